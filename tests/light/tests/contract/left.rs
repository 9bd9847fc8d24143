//! Stories of what outlives a runner: the session's journal, and what a sweep finds and settles.

use firesteel_model::{Attempt, RunnerId, Session, SessionId, SessionState, Statement, StatementId, StatementState};
use firesteel_session::journal::{Entry, Found, Record, What};
use firesteel_session::ports::{Companion, Left, Page, StoreError, Totals};
use firesteel_store::documents::{Index, Key, Op};
use firesteel_store::wire;
use serde_json::{Value, json};

use crate::people::{
    attempt, claimed, columns, failed, in_results, outcome, query, rows, running, session, statement, totals,
};
use crate::stores::Stores;

crate::stories! { Requests;
    a_journal_is_read_as_it_was_written_and_each_record_is_made_once
    a_long_journal_is_read_from_its_newest_snapshot
    journals_of_sessions_with_like_names_stay_apart
    what_a_dead_runner_decided_is_found_and_published_and_its_other_attempts_go
    a_published_result_does_not_hide_what_a_released_attempt_left
    what_a_runner_stages_after_its_successor_has_published_is_found_and_goes
    a_staged_result_that_no_companion_names_is_found_and_goes
    what_a_batch_left_is_found_by_who_serves_sessions
    a_failure_that_was_announced_is_found_and_told
    a_cancelled_statement_leaves_nothing
    settling_what_is_settled_changes_nothing
    statements_of_sessions_that_are_over_or_gone_are_found_and_no_others
}

fn by(runner: &str, what: What) -> Record {
    Record { runner: RunnerId::new(runner).unwrap(), what }
}

fn define(n: u64) -> Record {
    let text = format!("{{\"text\":\"SET a = '{n}'\\n\u{1F525}\"}}");
    let statement = StatementId::new(format!("st/{n}\"")).unwrap();
    let attempt = Attempt { claim: firesteel_model::Version { term: 1, seq_no: n }, n: 1 };
    let key = n.is_multiple_of(2).then(|| "set a".to_owned());
    by("r1", What::Define { statement, attempt, entry: Entry { text, key } })
}

fn void_of(record: &Record) -> Record {
    let What::Define { statement, attempt, .. } = &record.what else { panic!("a define") };
    by("r2", What::Void { statement: statement.clone(), attempt: *attempt })
}

async fn a_journal_is_read_as_it_was_written_and_each_record_is_made_once(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let id = session("s").id;
    assert_eq!(stores.a.journal(&id).await, Ok(Found::default()));
    let records = [by("r1", What::Epoch), define(1), define(2), by("r2", What::Epoch), void_of(&define(2))];
    for (n, record) in (0..).zip(&records) {
        stores.a.append_journal(&id, n, record).await.unwrap();
    }
    assert_eq!(stores.b.append_journal(&id, 4, &define(9)).await, Err(StoreError::Conflict), "an old owner's");
    assert_eq!(stores.b.journal(&id).await, Ok(Found { first: 0, records: records.to_vec() }));
    assert_eq!(stores.b.journal_record(&id, 2).await, Ok(Some(define(2))));
    assert_eq!(stores.b.journal_record(&id, 5).await, Ok(None));
}

async fn a_long_journal_is_read_from_its_newest_snapshot(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let id = session("s").id;
    let mut records: Vec<Record> = (0..40).map(define).collect();
    let entries: Vec<Entry> = (0..3).map(|n| Entry::new(format!("view {n}"))).collect();
    records[20] = by("r1", What::Snapshot { entries: entries.clone() });
    records[30] = by("r1", What::Snapshot { entries });
    for (n, record) in (0..).zip(&records) {
        stores.a.append_journal(&id, n, record).await.unwrap();
    }
    assert_eq!(stores.b.journal(&id).await, Ok(Found { first: 30, records: records[30..].to_vec() }));
}

async fn journals_of_sessions_with_like_names_stay_apart(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let ids = ["s", "s/0", "s/head", "S"].map(|id| SessionId::new(id).unwrap());
    for (n, id) in (0..).zip(&ids) {
        stores.a.append_journal(id, 0, &define(n)).await.unwrap();
    }
    for (n, id) in (0..).zip(&ids) {
        assert_eq!(stores.b.journal(id).await, Ok(Found { first: 0, records: vec![define(n)] }), "{id}");
    }
}

async fn unpublished(stores: &Stores) -> Vec<(String, &'static str)> {
    let left = stores.b.left_unpublished().await.unwrap();
    left.into_iter().map(|left| (left.statement.value.id.to_string(), left.statement.value.state.name())).collect()
}

async fn what_a_dead_runner_decided_is_found_and_published_and_its_other_attempts_go(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let pages = [Page { rows: rows() }];
    stores.a.stage_pages(&outcome(&st, first), 0, &pages).await.unwrap();
    let companion = stores.b.companion(&st.id).await.unwrap().unwrap().value;
    assert_eq!(companion.staged, [first], "known before the first page is");
    assert_eq!(unpublished(stores).await, [], "it has not ended");
    // It died; another adopted and ran it, decided it, and died too.
    let claim = stores.b.write_statement(&st.id, first.claim, &running("job2")).await.unwrap();
    let second = attempt(claim, 1);
    stores.b.stage_pages(&outcome(&st, second), 0, &pages).await.unwrap();
    let paged = Totals { pages: 1, ..totals() };
    stores.b.stage(&outcome(&st, second), &columns(), &rows(), paged).await.unwrap();
    stores.b.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();

    assert_eq!(unpublished(stores).await, [("st".to_owned(), "success")]);
    let ended = Statement { state: StatementState::Success, ..st.clone() };
    stores.a.settle(&outcome(&ended, first)).await.unwrap();
    assert_eq!(stores.b.result(&query("q-st")).await.unwrap().unwrap().rows, rows());
    assert_eq!(stores.b.page(&st.id, second, 0).await.unwrap().rows, rows());
    assert!(
        matches!(stores.b.page(&st.id, first, 0).await, Err(StoreError::Corrupt(_))),
        "the first attempt's is gone"
    );
    assert_eq!(unpublished(stores).await, []);
}

async fn a_published_result_does_not_hide_what_a_released_attempt_left(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    stores.a.stage_pages(&outcome(&st, first), 0, &[Page { rows: rows() }]).await.unwrap();
    let released = stores.a.write_statement(&st.id, first.claim, &StatementState::Waiting).await.unwrap();
    let claim = stores.b.write_statement(&st.id, released, &running("job2")).await.unwrap();
    let second = attempt(claim, 1);
    stores.b.stage(&outcome(&st, second), &columns(), &rows(), totals()).await.unwrap();
    stores.b.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
    let ended = Statement { state: StatementState::Success, ..st.clone() };
    stores.b.publish(&outcome(&ended, second)).await.unwrap();

    assert_eq!(unpublished(stores).await, [("st".to_owned(), "success")]);
    stores.b.settle(&outcome(&ended, second)).await.unwrap();
    assert_eq!(unpublished(stores).await, []);
    assert!(matches!(stores.a.page(&st.id, first, 0).await, Err(StoreError::Corrupt(_))), "it is gone");
}

async fn what_a_runner_stages_after_its_successor_has_published_is_found_and_goes(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let claim = stores.b.write_statement(&st.id, first.claim, &running("job2")).await.unwrap();
    let second = attempt(claim, 1);
    stores.b.stage(&outcome(&st, second), &columns(), &rows(), totals()).await.unwrap();
    stores.b.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
    let ended = Statement { state: StatementState::Success, ..st.clone() };
    stores.b.publish(&outcome(&ended, second)).await.unwrap();
    assert_eq!(unpublished(stores).await, []);
    // It wakes, and knows of nothing yet.
    let page = [Page { rows: rows() }];
    stores.a.stage_pages(&outcome(&st, first), 0, &page).await.unwrap();
    assert_eq!(unpublished(stores).await, [("st".to_owned(), "success")]);
    stores.b.settle(&outcome(&ended, second)).await.unwrap();
    assert_eq!(unpublished(stores).await, []);
    // What it sends again, or sends now, is refused.
    for n in 0..2 {
        assert_eq!(stores.a.stage_pages(&outcome(&st, first), n, &page).await, Err(StoreError::Conflict), "page {n}");
        let late = stores.b.page(&st.id, first, n).await;
        assert!(matches!(late, Err(StoreError::Corrupt(_))), "{late:?}");
    }
    assert_eq!(stores.b.result(&query("q-st")).await.unwrap().unwrap().rows, rows());
}

async fn a_staged_result_that_no_companion_names_is_found_and_goes(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await.unwrap();
    stores.b.write_statement(&st.id, first.claim, &StatementState::Cancelled).await.unwrap();
    let ended = Statement { state: StatementState::Cancelled, ..st.clone() };
    stores.b.settle(&outcome(&ended, first)).await.unwrap();
    assert_eq!((unpublished(stores).await, in_results(stores).await), (vec![], vec![]));
    // A process that died sent it, of an attempt that it could name nowhere; and the first's is sent once more.
    let second = Attempt { n: 2, ..first };
    for attempt in [first, second] {
        let body = wire::result::staged(&outcome(&st, attempt), &columns(), &rows(), 0).unwrap();
        let key = Key { index: Index::Results, id: wire::ids::result(&st.id, attempt) };
        stores.raw.bulk(vec![Op::Create { key, body }], true).await.unwrap().remove(0).unwrap();
        assert_eq!(unpublished(stores).await, [("st".to_owned(), "cancelled")]);
        stores.b.settle(&outcome(&ended, first)).await.unwrap();
        assert_eq!((unpublished(stores).await, in_results(stores).await), (vec![], vec![]));
    }
}

async fn what_a_batch_left_is_found_by_who_serves_sessions(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("app/job/q", 1);
    let made = wire::statement::new(&st);
    let mut document = Value::Object(made);
    document["kind"] = json!("batch");
    let key = Key { index: Index::State, id: wire::ids::batch(&st.id) };
    let op = Op::Create { key: key.clone(), body: document.to_string() };
    let claim = stores.raw.bulk(vec![op], false).await.unwrap().remove(0).unwrap();
    let first = attempt(claim, 1);
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await.unwrap();
    let fields = json!({ "state": "success" }).to_string();
    stores.raw.bulk(vec![Op::Update { key, at: claim, fields }], false).await.unwrap().remove(0).unwrap();

    let left = stores.b.left_unpublished().await.unwrap();
    let found: Vec<_> = left.iter().map(|l| (l.statement.value.id.as_str(), l.batch, l.session.is_none())).collect();
    assert_eq!(found, [("app/job/q", true, true)]);
    let ended = Statement { state: StatementState::Success, ..st };
    stores.b.settle(&outcome(&ended, first)).await.unwrap();
    assert_eq!(stores.b.result(&query("q-app/job/q")).await.unwrap().unwrap().rows, rows());
    assert_eq!(unpublished(stores).await, []);
}

async fn a_failure_that_was_announced_is_found_and_told(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    stores.a.announce(&outcome(&st, first)).await.unwrap();
    stores.a.announce(&outcome(&st, first)).await.unwrap();
    assert_eq!(unpublished(stores).await, []);
    stores.a.write_statement(&st.id, first.claim, &failed("why")).await.unwrap();
    assert_eq!(unpublished(stores).await, [("st".to_owned(), "failed")]);
    let ended = Statement { state: failed("why"), ..st };
    stores.b.settle(&outcome(&ended, first)).await.unwrap();
    let seen = stores.a.result(&query("q-st")).await.unwrap().unwrap();
    assert_eq!((seen.status.as_str(), seen.error.as_str(), seen.rows.len()), ("FAILED", "why", 0));
    assert_eq!(unpublished(stores).await, []);
}

async fn a_cancelled_statement_leaves_nothing(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let second = Attempt { n: 2, ..first };
    for attempt in [first, second] {
        stores.a.stage(&outcome(&st, attempt), &columns(), &rows(), totals()).await.unwrap();
    }
    stores.b.write_statement(&st.id, first.claim, &StatementState::Cancelled).await.unwrap();
    assert_eq!(in_results(stores).await.len(), 2);
    let ended = Statement { state: StatementState::Cancelled, ..st };
    stores.b.settle(&outcome(&ended, first)).await.unwrap();
    assert_eq!(in_results(stores).await, Vec::<String>::new());
    assert_eq!(unpublished(stores).await, []);
}

async fn settling_what_is_settled_changes_nothing(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await.unwrap();
    let open = stores.a.settle(&outcome(&st, first)).await;
    assert!(matches!(open, Err(StoreError::Refused(_))), "it runs: {open:?}");
    stores.a.write_statement(&st.id, first.claim, &StatementState::Success).await.unwrap();
    let ended = Statement { state: StatementState::Success, ..st };
    stores.a.publish(&outcome(&ended, first)).await.unwrap();
    stores.a.settle(&outcome(&ended, first)).await.unwrap();
    let before = (in_results(stores).await, stores.b.companion(&ended.id).await.unwrap());
    for store in [&stores.a, &stores.b] {
        store.settle(&outcome(&ended, first)).await.unwrap();
    }
    assert_eq!((in_results(stores).await, stores.b.companion(&ended.id).await.unwrap()), before);

    // Another program's statement: there is nothing of ours to be settled.
    let (theirs, claim) = claimed(stores, "theirs").await;
    stores.a.write_statement(&theirs.id, claim.claim, &StatementState::Success).await.unwrap();
    let theirs = Statement { state: StatementState::Success, ..theirs };
    stores.a.settle(&outcome(&theirs, claim)).await.unwrap();
    assert_eq!(stores.a.companion(&theirs.id).await, Ok(None::<firesteel_model::Stored<Companion>>));
}

async fn statements_of_sessions_that_are_over_or_gone_are_found_and_no_others(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (name, state) in [
        ("dead", SessionState::Dead),
        ("fail", SessionState::Fail),
        ("running", SessionState::Running),
        ("new", SessionState::NotStarted),
    ] {
        stores.a.create_session(&Session { state, ..session(name) }).await.unwrap();
    }
    for (n, name) in (0..).zip(["dead", "fail", "running", "new", "gone"]) {
        let st = Statement { session: SessionId::new(name).unwrap(), ..statement(&format!("in-{name}"), n) };
        stores.a.create_statement(&st, None).await.unwrap();
        let ended = Statement { state: StatementState::Cancelled, ..statement(&format!("ended-{name}"), n) };
        stores.a.create_statement(&Statement { session: st.session, ..ended }, None).await.unwrap();
    }
    let left = stores.b.left_open().await.unwrap();
    let told = |left: &Left| {
        (left.statement.value.id.to_string(), left.session.as_ref().map(|session| session.value.state.name()))
    };
    assert_eq!(
        left.iter().map(told).collect::<Vec<_>>(),
        [("in-dead".to_owned(), Some("dead")), ("in-fail".to_owned(), Some("fail")), ("in-gone".to_owned(), None)]
    );
}
