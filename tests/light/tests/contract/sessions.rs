//! Stories of sessions.

use firesteel_model::{Owner, Session, SessionChange, SessionState};
use firesteel_session::ports::{Filter, Prepared, StoreError};

use crate::people::{job, owner, session};
use crate::stores::Stores;

crate::stories! { Requests;
    a_session_is_made_once_and_read_by_all
    a_heartbeat_changes_only_the_time
    of_many_who_take_a_session_one_gets_it
    an_owner_leaves_in_three_ways
    what_a_launcher_gave_is_written_and_what_it_did_not_give_stays
    sessions_are_listed_last_renewed_first
    the_time_is_the_store_s
}

async fn a_session_is_made_once_and_read_by_all(stores: &Stores) {
    let (a, b) = (&stores.a, &stores.b);
    assert_eq!(a.prepare(true).await, Ok(Prepared::Ready));
    assert_eq!(b.prepare(false).await, Ok(Prepared::Ready));
    let new = Session {
        job: Some(job("job1")),
        excluded: vec![job("a"), job("b")],
        owner: Some(owner("r")),
        draining: true,
        recovering: false,
        error: "e".to_owned(),
        ..session("s")
    };
    assert_eq!(b.session(&new.id).await, Ok(None));
    let version = a.create_session(&new).await.unwrap();
    let read = b.session(&new.id).await.unwrap().unwrap();
    assert_eq!(read.version, version);
    assert_eq!(read.value, Session { last_update: read.value.last_update, ..new.clone() });
    assert_eq!(b.create_session(&new).await, Err(StoreError::Conflict));
}

async fn a_heartbeat_changes_only_the_time(stores: &Stores) {
    let s = session("s");
    stores.a.prepare(true).await.unwrap();
    let made = stores.a.create_session(&s).await.unwrap();
    let own = SessionChange::Own { owner: owner("r"), job: Some(job("j")), application: None, excluded: vec![] };
    let owned = stores.a.write_session(&s.id, made, &own).await.unwrap();
    let before = stores.b.session(&s.id).await.unwrap().unwrap().value;
    let renewed = stores.a.write_session(&s.id, owned, &SessionChange::Renew).await.unwrap();
    assert!(renewed > owned && owned > made, "even where no millisecond has passed");
    let after = stores.b.session(&s.id).await.unwrap().unwrap().value;
    assert!(after.last_update >= before.last_update);
    assert_eq!(after, Session { last_update: after.last_update, ..before });
    assert_eq!(stores.a.write_session(&s.id, owned, &SessionChange::Renew).await, Err(StoreError::Conflict));
}

async fn of_many_who_take_a_session_one_gets_it(stores: &Stores) {
    let s = session("s");
    stores.a.prepare(true).await.unwrap();
    let made = stores.a.create_session(&s).await.unwrap();
    let changes: Vec<SessionChange> = (0..8)
        .map(|n| SessionChange::Own { owner: owner(&format!("r{n}")), job: None, application: None, excluded: vec![] })
        .collect();
    let takes = changes.iter().enumerate().map(|(n, own)| {
        let store = if n % 2 == 0 { &stores.a } else { &stores.b };
        store.write_session(&s.id, made, own)
    });
    let outcomes = futures::future::join_all(takes).await;
    let winners: Vec<usize> = (0..8).filter(|n| outcomes[*n].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|o| **o == Err(StoreError::Conflict)).count(), 7, "{outcomes:?}");
    let there = stores.b.session(&s.id).await.unwrap().unwrap();
    assert_eq!(there.value.owner, Some(owner(&format!("r{}", winners[0]))));
    assert_eq!(Ok(there.version), outcomes[winners[0]]);
}

async fn an_owner_leaves_in_three_ways(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let told = "no more memory".to_owned();
    for (id, change, state, lease, error) in [
        ("1", SessionChange::GiveUp, SessionState::Running, 0, ""),
        ("2", SessionChange::End, SessionState::Dead, 60_000, ""),
        ("3", SessionChange::Fail { error: told.clone() }, SessionState::Fail, 60_000, told.as_str()),
    ] {
        let s = Session { state: SessionState::Running, owner: Some(owner("r")), ..session(id) };
        let made = stores.a.create_session(&s).await.unwrap();
        stores.a.write_session(&s.id, made, &change).await.unwrap();
        let there = stores.b.session(&s.id).await.unwrap().unwrap().value;
        let left = Some(Owner { lease_millis: lease, ..owner("r") });
        assert_eq!((there.state, there.owner, there.error.as_str()), (state, left, error));
    }
}

async fn what_a_launcher_gave_is_written_and_what_it_did_not_give_stays(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let s = Session { job: Some(job("old")), excluded: vec![job("x")], ..session("s") };
    let made = stores.a.create_session(&s).await.unwrap();
    let nothing = SessionChange::Own { owner: owner("r"), job: None, application: None, excluded: vec![] };
    let version = stores.a.write_session(&s.id, made, &nothing).await.unwrap();
    let there = stores.a.session(&s.id).await.unwrap().unwrap().value;
    assert_eq!((there.job, there.excluded, there.application.as_str()), (Some(job("old")), vec![job("x")], "app1"));

    let all = SessionChange::Own {
        owner: owner("r"),
        job: Some(job("new")),
        application: Some("app2".to_owned()),
        excluded: vec![job("y"), job("z")],
    };
    stores.a.write_session(&s.id, version, &all).await.unwrap();
    let there = stores.a.session(&s.id).await.unwrap().unwrap().value;
    assert_eq!(there.state, SessionState::Running);
    assert_eq!(
        (there.job, there.excluded, there.application.as_str()),
        (Some(job("new")), vec![job("y"), job("z")], "app2")
    );
}

async fn sessions_are_listed_last_renewed_first(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let mut versions = Vec::new();
    for id in ["1", "2", "3"] {
        versions.push(stores.a.create_session(&session(id)).await.unwrap());
    }
    // A complete search refreshes.
    stores.a.every_open_statement(&session("1").id).await.unwrap();
    let listed = |limit| Filter { limit, ..Filter::default() };
    let mut ids: Vec<String> =
        stores.b.sessions(&listed(10)).await.unwrap().into_iter().map(|s| s.value.id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(stores.b.sessions(&listed(2)).await.unwrap().len(), 2);
    let one = Filter { session: Some(session("2").id), limit: 10, ..Filter::default() };
    assert_eq!(stores.b.sessions(&one).await.unwrap()[0].version, versions[1]);
}

async fn the_time_is_the_store_s(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let (one, other) = (stores.a.time().await.unwrap(), stores.b.time().await.unwrap());
    assert!(one.abs_diff(other) < 5_000, "{one} {other}: two handles agree");
    let s = session("s");
    stores.a.create_session(&s).await.unwrap();
    let stamped = stores.a.session(&s.id).await.unwrap().unwrap().value.last_update;
    assert!(stamped >= one && stamped - one < 60_000, "{stamped} {one}");
}
