//! Stories of many sessions in one request.

use std::sync::atomic::Ordering;

use firesteel_model::{Owner, Pattern, Session, SessionChange, SessionId, SessionState, Statement, StatementState};
use firesteel_session::ports::{Overview, StoreError};

use crate::people::{owner, running, session, statement};
use crate::stores::Stores;

crate::stories! { Requests;
    one_search_sees_the_statements_of_all_sessions_and_those_that_are_not_started
    a_session_with_more_than_a_search_brings_hides_no_other
    a_search_takes_a_thousand_sessions
    live_sessions_are_found_by_patterns_in_which_only_the_star_is_special
    sessions_are_read_in_the_order_in_which_they_are_named
    of_many_changes_each_has_an_outcome_of_its_own
}

fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(*text).unwrap()).collect()
}

fn of(session: &str, name: &str, submitted: u64) -> Statement {
    Statement { session: id(session), ..statement(name, submitted) }
}

/// Each session with its statements' ids.
fn told(overview: &Overview) -> Vec<(&str, Vec<&str>)> {
    overview
        .open
        .iter()
        .map(|(id, open)| (id.as_str(), open.statements.iter().map(|s| s.value.id.as_str()).collect()))
        .collect()
}

fn fresh(overview: &Overview) -> Vec<&str> {
    overview.fresh.iter().map(|s| s.value.id.as_str()).collect()
}

async fn one_search_sees_the_statements_of_all_sessions_and_those_that_are_not_started(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (name, state) in [
        ("s1", SessionState::Running),
        ("s2", SessionState::Running),
        ("s3", SessionState::Dead),
        ("s4", SessionState::Dead),
        ("n1", SessionState::NotStarted),
        ("n2", SessionState::NotStarted),
        ("x1", SessionState::NotStarted),
    ] {
        stores.a.create_session(&Session { state, ..session(name) }).await.unwrap();
    }
    for (session, name, submitted) in [
        ("s1", "b", 2),
        ("s1", "a", 1),
        ("s1", "c", 3),
        ("s2", "d", 1),
        ("s3", "e", 1),
        ("else", "f", 0),
        ("n1", "g", 0),
    ] {
        stores.a.create_statement(&of(session, name, submitted), None).await.unwrap();
    }
    let version = stores.a.statement(&statement("b", 2).id).await.unwrap().unwrap().version;
    let claimed = stores.a.write_statement(&statement("b", 2).id, version, &running("j")).await.unwrap();
    let done = of("s2", "h", 0);
    let version = stores.a.create_statement(&done, None).await.unwrap();
    stores.a.write_statement(&done.id, version, &StatementState::Cancelled).await.unwrap();
    // A complete search refreshes.
    stores.a.every_open_statement(&id("s1")).await.unwrap();

    let before = stores.requests.load(Ordering::SeqCst);
    let ids: Vec<SessionId> = ["s1", "s2", "s3", "idle"].map(id).to_vec();
    let seen = stores.a.open_statements_of(&ids, &patterns(&["n*", "s*"]), 2).await.unwrap();
    assert_eq!(stores.requests.load(Ordering::SeqCst) - before, 1);
    assert_eq!(told(&seen), [("s1", vec!["a", "b"]), ("s2", vec!["d"]), ("s3", vec!["e"])]);
    let ended = seen.open[&id("s3")].session.as_ref().map(|s| s.value.state);
    assert_eq!(ended, Some(SessionState::Dead), "a session that another ended is seen");
    assert_eq!(seen.open[&id("s1")].session, None);
    assert_eq!(seen.open[&id("s1")].statements[1].version, claimed);
    assert_eq!(fresh(&seen), ["n1", "n2"], "like a pattern and not begun");
    assert_eq!(fresh(&stores.a.open_statements_of(&ids, &[], 2).await.unwrap()), Vec::<&str>::new());
    let only_fresh = stores.b.open_statements_of(&[], &patterns(&["*1"]), 2).await.unwrap();
    assert_eq!((told(&only_fresh), fresh(&only_fresh)), (vec![], vec!["n1", "x1"]));
}

async fn a_session_with_more_than_a_search_brings_hides_no_other(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let many: Vec<Statement> = (0..520).map(|n| of("many", &format!("m{n:04}"), n)).collect();
    let made = many.iter().map(|statement| stores.a.create_statement(statement, None));
    for made in futures::future::join_all(made).await {
        made.unwrap();
    }
    for (session, name, submitted) in [("few", "late", 9_001), ("few", "early", 9_000), ("one", "only", 9_002)] {
        stores.a.create_statement(&of(session, name, submitted), None).await.unwrap();
    }
    stores.a.create_session(&session("new")).await.unwrap();
    stores.a.every_open_statement(&id("one")).await.unwrap();
    let before = stores.requests.load(Ordering::SeqCst);
    let ids: Vec<SessionId> = ["many", "few", "one"].map(id).to_vec();
    let seen = stores.a.open_statements_of(&ids, &patterns(&["*"]), 3).await.unwrap();
    assert_eq!(stores.requests.load(Ordering::SeqCst) - before, 2);
    assert_eq!(
        told(&seen),
        [("few", vec!["early"]), ("many", vec!["m0000", "m0001", "m0002"]), ("one", vec!["only"])],
        "those that the first search did not reach have their oldest"
    );
    assert_eq!(fresh(&seen), ["new"]);
}

async fn a_search_takes_a_thousand_sessions(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    stores.a.create_statement(&of("s0777", "st", 1), None).await.unwrap();
    let ids: Vec<SessionId> = (0..1_200).map(|n| id(&format!("s{n:04}"))).collect();
    let seen = stores.a.open_statements_of(&ids, &[], 10).await.unwrap();
    assert_eq!(told(&seen), [("s0777", vec!["st"])]);
}

async fn live_sessions_are_found_by_patterns_in_which_only_the_star_is_special(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (name, state) in [
        ("a?c", SessionState::Running),
        ("abc", SessionState::NotStarted),
        ("a[b]\\", SessionState::NotStarted),
        ("ab\\", SessionState::Running),
        ("dead", SessionState::Dead),
        ("fail", SessionState::Fail),
    ] {
        stores.a.create_session(&Session { state, ..session(name) }).await.unwrap();
    }
    stores.a.every_open_statement(&id("abc")).await.unwrap();
    for (wanted, live, not_started) in [
        (&["*"][..], &["a?c", "a[b]\\", "ab\\", "abc"][..], &["a[b]\\", "abc"][..]),
        (&["a?c"], &["a?c"], &[]),
        (&["a[b]*"], &["a[b]\\"], &["a[b]\\"]),
        (&["*\\"], &["a[b]\\", "ab\\"], &["a[b]\\"]),
        (&["abc", "*?*"], &["a?c", "abc"], &["abc"]),
        (&["d*"], &[], &[]),
    ] {
        let found = stores.b.live_sessions(&patterns(wanted)).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|s| s.value.id.as_str()).collect();
        assert_eq!(ids, live, "{wanted:?}");
        let seen = stores.b.open_statements_of(&[], &patterns(wanted), 1).await.unwrap();
        assert_eq!(fresh(&seen), not_started, "{wanted:?}");
    }
}

async fn sessions_are_read_in_the_order_in_which_they_are_named(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for name in ["1", "2"] {
        stores.a.create_session(&session(name)).await.unwrap();
    }
    let before = stores.requests.load(Ordering::SeqCst);
    let read = stores.a.sessions_at(&[id("2"), id("none"), id("1")]).await.unwrap();
    assert_eq!(stores.requests.load(Ordering::SeqCst) - before, 1);
    let ids: Vec<Option<String>> =
        read.into_iter().map(|session| session.unwrap().map(|s| s.value.id.to_string())).collect();
    assert_eq!(ids, [Some("2".to_owned()), None, Some("1".to_owned())]);
}

async fn of_many_changes_each_has_an_outcome_of_its_own(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let owned = |name| Session { state: SessionState::Running, owner: Some(owner("r")), ..session(name) };
    let mut versions = Vec::new();
    for name in ["1", "2", "3"] {
        versions.push(stores.a.create_session(&owned(name)).await.unwrap());
    }
    let taken = SessionChange::Own { owner: owner("other"), job: None, application: None, excluded: vec![] };
    stores.b.write_session(&id("2"), versions[1], &taken).await.unwrap();
    let changes = [
        (id("1"), versions[0], SessionChange::Renew),
        (id("2"), versions[1], SessionChange::Renew),
        (id("none"), versions[0], SessionChange::Renew),
        (id("3"), versions[2], SessionChange::GiveUp),
    ];
    let before = stores.requests.load(Ordering::SeqCst);
    let outcomes = stores.a.write_sessions(&changes).await.unwrap();
    assert_eq!(stores.requests.load(Ordering::SeqCst) - before, 1);
    assert_eq!((&outcomes[1], &outcomes[2]), (&Err(StoreError::Conflict), &Err(StoreError::Conflict)));
    for (name, outcome, lease) in [("1", &outcomes[0], 60_000), ("3", &outcomes[3], 0)] {
        let read = stores.b.session(&id(name)).await.unwrap().unwrap();
        assert_eq!(Ok(read.version), *outcome, "{name}");
        assert_eq!(read.value.owner, Some(Owner { lease_millis: lease, ..owner("r") }), "{name}");
    }
    let other = stores.b.session(&id("2")).await.unwrap().unwrap().value;
    assert_eq!(other.owner, Some(owner("other")));
}
