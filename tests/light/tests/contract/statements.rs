//! Stories of statements and what surrounds them.

use firesteel_model::{Expect, QueryText, SessionId, Statement, StatementId, StatementState, Version};
use firesteel_session::ports::{Companion, Filter, LargeResults, Marker, Progress, StoreError, Totals};

use crate::people::{attempt, failed, owner, query, running, session, statement};
use crate::stores::Stores;

crate::stories! { Requests;
    a_statement_is_made_once_and_read_as_it_was_written
    open_statements_come_oldest_first_and_ties_by_id
    a_complete_search_finds_all_of_many
    of_many_who_claim_a_statement_one_gets_it
    a_claim_by_the_same_job_again_still_changes_the_version
    each_state_is_written_and_read
    a_hostile_id_is_only_an_id
    a_statement_of_a_megabyte_comes_back_whole
    a_companion_keeps_what_it_is_told
    a_statement_comes_with_its_companion_or_without
    a_statement_that_exists_keeps_its_companion
    what_a_broken_off_submit_left_is_replaced
    one_look_shows_session_statement_and_companion
    a_write_is_begun_once
    statements_are_listed_last_submitted_first
}

async fn a_statement_is_made_once_and_read_as_it_was_written(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 7);
    assert_eq!(stores.b.statement(&st.id).await, Ok(None));
    let version = stores.a.create_statement(&st, None).await.unwrap();
    let read = stores.b.statement(&st.id).await.unwrap().unwrap();
    assert_eq!((read.version, &read.value), (version, &st));
    assert_eq!(stores.b.create_statement(&st, None).await, Err(StoreError::Conflict));

    let nameless = Statement { query_id: None, ..statement("nameless", 8) };
    stores.a.create_statement(&nameless, None).await.unwrap();
    assert_eq!(stores.b.statement(&nameless.id).await.unwrap().unwrap().value, nameless);
}

async fn open_statements_come_oldest_first_and_ties_by_id(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (id, time) in [("d", 3), ("b", 2), ("c", 2), ("a", 10), ("e", 1)] {
        stores.a.create_statement(&statement(id, time), None).await.unwrap();
    }
    let other = Statement { session: SessionId::new("other").unwrap(), ..statement("f", 0) };
    stores.a.create_statement(&other, None).await.unwrap();
    let done = statement("g", 0);
    let version = stores.a.create_statement(&done, None).await.unwrap();
    stores.a.write_statement(&done.id, version, &StatementState::Cancelled).await.unwrap();
    let version = stores.a.statement(&statement("b", 2).id).await.unwrap().unwrap().version;
    let claimed = stores.a.write_statement(&statement("b", 2).id, version, &running("j")).await.unwrap();

    let s = session("s").id;
    let all = stores.b.every_open_statement(&s).await.unwrap();
    let ids: Vec<&str> = all.statements.iter().map(|st| st.value.id.as_str()).collect();
    assert_eq!(ids, ["e", "b", "c", "d", "a"]);
    assert_eq!(all.statements[1].version, claimed);
    assert_eq!(all.statements[1].value.state, running("j"));
    let first = stores.b.open_statements(&s, 2).await.unwrap();
    assert_eq!(first.statements, all.statements[..2]);
    assert_eq!(first.unreadable, []);
}

async fn a_complete_search_finds_all_of_many(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("0", 0);
    let ops = (0..1_234).map(|n| {
        let source = firesteel_store::wire::statement::new(&statement(&n.to_string(), 5_000 - n / 3));
        firesteel_store::documents::Op::Create {
            key: firesteel_store::documents::Key {
                index: firesteel_store::documents::Index::Requests,
                id: n.to_string(),
            },
            body: serde_json::to_string(&source).unwrap(),
        }
    });
    stores.raw.bulk(ops.collect(), false).await.unwrap();
    let all = stores.a.every_open_statement(&st.session).await.unwrap().statements;
    let mut expected: Vec<(u64, String)> = (0..1_234).map(|n| (5_000 - n / 3, n.to_string())).collect();
    expected.sort();
    let found: Vec<(u64, String)> = all.into_iter().map(|s| (s.value.submit_time, s.value.id.to_string())).collect();
    assert_eq!(found, expected);
}

async fn of_many_who_claim_a_statement_one_gets_it(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    stores.a.create_statement(&st, None).await.unwrap();
    let hit = stores.b.open_statements(&st.session, 1).await.unwrap().statements.remove(0);
    let states: Vec<StatementState> = (0..8).map(|n| running(&format!("j{n}"))).collect();
    let claims = states.iter().enumerate().map(|(n, state)| {
        let store = if n % 2 == 0 { &stores.a } else { &stores.b };
        store.write_statement(&st.id, hit.version, state)
    });
    let outcomes = futures::future::join_all(claims).await;
    let winners: Vec<usize> = (0..8).filter(|n| outcomes[*n].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    let there = stores.a.statement(&st.id).await.unwrap().unwrap();
    assert_eq!(there.value.state, states[winners[0]]);
    // A cancel that was read before the claim comes too late.
    let late = stores.b.write_statement(&st.id, hit.version, &StatementState::Cancelled).await;
    assert_eq!(late, Err(StoreError::Conflict));
    // And one after it fences the claimer.
    stores.b.write_statement(&st.id, there.version, &StatementState::Cancelled).await.unwrap();
    let decided = stores.a.write_statement(&st.id, there.version, &StatementState::Success).await;
    assert_eq!(decided, Err(StoreError::Conflict));
}

async fn a_claim_by_the_same_job_again_still_changes_the_version(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    let mut versions = vec![stores.a.create_statement(&st, None).await.unwrap()];
    for _ in 0..3 {
        let last = *versions.last().unwrap();
        versions.push(stores.a.write_statement(&st.id, last, &running("j")).await.unwrap());
    }
    assert!(versions.windows(2).all(|v| v[0] < v[1]), "{versions:?}");
    assert_eq!(stores.a.write_statement(&st.id, versions[2], &running("j")).await, Err(StoreError::Conflict));
    let gone = StatementId::new("gone").unwrap();
    assert_eq!(stores.a.write_statement(&gone, versions[0], &running("j")).await, Err(StoreError::Conflict));
}

async fn each_state_is_written_and_read(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    let mut version = stores.a.create_statement(&st, None).await.unwrap();
    for state in [
        running("j"),
        StatementState::Waiting,
        StatementState::Success,
        failed(r#"{"message":"no table `x'"}"#),
        StatementState::Timeout { error: "timeout".to_owned() },
        StatementState::Cancelled,
    ] {
        version = stores.a.write_statement(&st.id, version, &state).await.unwrap();
        let there = stores.b.statement(&st.id).await.unwrap().unwrap();
        assert_eq!((there.version, &there.value.state), (version, &state));
        assert_eq!(there.value, Statement { state, ..st.clone() }, "nothing else changed");
    }
}

async fn a_hostile_id_is_only_an_id(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let long = "é".repeat(256);
    let ids = [
        "a/b",
        "..",
        ".",
        "%2e%2e",
        "a\"b'c`",
        "x\ny\r\n\t",
        "_search",
        "?q=1#f",
        "{\"index\":1}\n",
        "日本語",
        "\u{0}",
        "*",
        ",",
        " ",
        "-",
        "sha256:00",
        "companion-x",
        &long,
    ];
    for id in ids {
        let st = Statement { session: SessionId::new(id).unwrap(), ..statement(id, 1) };
        let own = session(&format!("{id}s").chars().rev().take(200).collect::<String>());
        stores.a.create_session(&own).await.unwrap();
        assert_eq!(stores.b.session(&own.id).await.unwrap().unwrap().value.id, own.id, "{id:?}");

        let told = Companion { session: id.to_owned(), timeout: Some(5), ..Companion::default() };
        let made = stores.a.create_statement(&st, Some(&told)).await.unwrap();
        assert_eq!(stores.b.statement(&st.id).await.unwrap().unwrap().value, st, "{id:?}");
        assert_eq!(stores.b.companion(&st.id).await.unwrap().unwrap().value, told, "{id:?}");
        let found = stores.b.open_statements(&st.session, 9).await.unwrap().statements;
        assert_eq!(found.iter().map(|s| s.value.id.as_str()).collect::<Vec<_>>(), [id]);

        let claim = stores.a.write_statement(&st.id, made, &running(id)).await.unwrap();
        let marker = Marker { runner: owner(id).runner, attempt: attempt(claim, 1) };
        stores.a.create_marker(&st.id, &marker).await.unwrap();
        assert_eq!(stores.b.marker(&st.id).await, Ok(Some(marker)), "{id:?}");
    }
}

async fn a_statement_of_a_megabyte_comes_back_whole(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let text = format!("SELECT '{}'", "\u{1F525}\"\\\n".repeat(150_000));
    let st = Statement { query: QueryText(text), ..statement("st", 1) };
    stores.a.create_statement(&st, None).await.unwrap();
    let found = stores.b.open_statements(&st.session, 1).await.unwrap().statements.remove(0).value;
    assert_eq!(found.query.0.len(), st.query.0.len());
    assert!(found == st);
}

fn told() -> Companion {
    Companion {
        session: "s".to_owned(),
        timeout: Some(1_000),
        large_results: Some(LargeResults::Pages),
        user: Some("me".to_owned()),
        attempts: 2,
        staged: vec![attempt(Version { term: 1, seq_no: 3 }, 1), attempt(Version { term: 1, seq_no: 5 }, 2)],
        candidate: Some(attempt(Version { term: 1, seq_no: 5 }, 2)),
        published: true,
        totals: Some(Totals { rows: 1, bytes: 2, pages: 3, truncated: true }),
        labels: vec!["a".to_owned(), "a".to_owned()],
        progress: Some(Progress { rows: 4, bytes: 5, elapsed_millis: 6 }),
    }
}

async fn a_companion_keeps_what_it_is_told(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let id = statement("st", 1).id;
    let none = Companion { session: "s".to_owned(), ..Companion::default() };
    let made = stores.a.write_companion(&id, Expect::Absent, &told()).await.unwrap();
    assert_eq!(stores.b.companion(&id).await.unwrap().unwrap().value, told());
    assert_eq!(stores.a.write_companion(&id, Expect::Absent, &none).await, Err(StoreError::Conflict));
    let emptied = stores.a.write_companion(&id, Expect::Version(made), &none).await.unwrap();
    let there = stores.b.companion(&id).await.unwrap().unwrap();
    assert_eq!((there.version, there.value), (emptied, none.clone()));
    assert_eq!(stores.a.write_companion(&id, Expect::Version(made), &none).await, Err(StoreError::Conflict));
}

async fn a_statement_comes_with_its_companion_or_without(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let plain = Companion { session: "s".to_owned(), ..Companion::default() };
    stores.a.create_statement(&statement("plain", 1), Some(&plain)).await.unwrap();
    assert_eq!(stores.b.companion(&statement("plain", 1).id).await, Ok(None), "it says nothing more");
    stores.a.create_statement(&statement("told", 2), Some(&told())).await.unwrap();
    assert_eq!(stores.b.companion(&statement("told", 2).id).await.unwrap().unwrap().value, told());
}

async fn a_statement_that_exists_keeps_its_companion(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let (with, without) = (statement("with", 1), statement("without", 2));
    stores.a.create_statement(&with, Some(&told())).await.unwrap();
    stores.a.create_statement(&without, None).await.unwrap();
    let other = Companion { user: Some("another".to_owned()), ..told() };
    for st in [&with, &without] {
        assert_eq!(stores.b.create_statement(st, Some(&other)).await, Err(StoreError::Conflict));
    }
    assert_eq!(stores.a.companion(&with.id).await.unwrap().unwrap().value, told());
    assert_eq!(stores.a.companion(&without.id).await, Ok(None));
}

async fn what_a_broken_off_submit_left_is_replaced(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    let left = Companion { session: "s".to_owned(), timeout: Some(1), ..Companion::default() };
    stores.a.write_companion(&st.id, Expect::Absent, &left).await.unwrap();
    let wanted = Companion { timeout: Some(2), ..left };
    stores.b.create_statement(&st, Some(&wanted)).await.unwrap();
    assert_eq!(stores.a.companion(&st.id).await.unwrap().unwrap().value, wanted);
}

async fn one_look_shows_session_statement_and_companion(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let (s, st) = (session("s"), statement("st", 1));
    let nothing = stores.a.watch(&s.id, &st.id).await.unwrap();
    assert_eq!((nothing.session, nothing.statement, nothing.companion), (None, None, None));
    let session_at = stores.b.create_session(&s).await.unwrap();
    let statement_at = stores.b.create_statement(&st, Some(&told())).await.unwrap();
    let before = stores.requests.load(std::sync::atomic::Ordering::SeqCst);
    let seen = stores.a.watch(&s.id, &st.id).await.unwrap();
    assert_eq!(stores.requests.load(std::sync::atomic::Ordering::SeqCst) - before, 1);
    assert_eq!(seen.session.unwrap().version, session_at);
    assert_eq!(seen.statement.unwrap().version, statement_at);
    assert_eq!(seen.companion.unwrap().value, told());
    // What another changes is seen at once, without a refresh.
    stores.b.write_statement(&st.id, statement_at, &StatementState::Cancelled).await.unwrap();
    assert_eq!(stores.a.watch(&s.id, &st.id).await.unwrap().statement.unwrap().value.state, StatementState::Cancelled);
}

async fn a_write_is_begun_once(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    let claim = stores.a.create_statement(&st, None).await.unwrap();
    assert_eq!(stores.a.marker(&st.id).await, Ok(None));
    let mine = Marker { runner: owner("a").runner, attempt: attempt(claim, 1) };
    let theirs = Marker { runner: owner("b").runner, attempt: attempt(claim, 2) };
    stores.a.create_marker(&st.id, &mine).await.unwrap();
    assert_eq!(stores.b.create_marker(&st.id, &theirs).await, Err(StoreError::Conflict));
    assert_eq!(stores.b.marker(&st.id).await, Ok(Some(mine)));
}

async fn statements_are_listed_last_submitted_first(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (id, time) in [("1", 20), ("2", 30), ("3", 10)] {
        stores.a.create_statement(&statement(id, time), None).await.unwrap();
    }
    let other = Statement { session: SessionId::new("other").unwrap(), ..statement("4", 40) };
    stores.a.create_statement(&other, None).await.unwrap();
    let all = Filter { limit: 10, ..Filter::default() };
    for (filter, expected) in [
        (all.clone(), vec!["4", "2", "1", "3"]),
        (Filter { limit: 2, ..all.clone() }, vec!["4", "2"]),
        (Filter { session: Some(session("s").id), ..all.clone() }, vec!["2", "1", "3"]),
        (Filter { query_id: Some(query("q-3")), ..all.clone() }, vec!["3"]),
        (Filter { query_id: Some(query("q-4")), session: Some(session("s").id), ..all.clone() }, vec![]),
    ] {
        let listed = stores.b.statements(&filter).await.unwrap();
        let ids: Vec<&str> = listed.iter().map(|s| s.value.id.as_str()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    }
}
