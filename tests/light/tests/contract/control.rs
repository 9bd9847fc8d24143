//! Stories of what the control plane keeps and steers.

use firesteel_model::permits::Book;
use firesteel_model::steer::Steer;
use firesteel_model::{Expect, Session, SessionState, Statement, StatementState};
use firesteel_session::ports::control::{Allocation, Listing};
use firesteel_session::ports::{Companion, StoreError};

use crate::people::{job, query, running, session, statement};
use crate::stores::Stores;

crate::stories! { Requests;
    steering_a_session_leaves_its_heartbeat_s_time_and_the_rest_of_it_as_they_are
    a_statement_is_moved_to_another_session_once_and_waits_there
    a_book_is_changed_by_one_of_two_who_read_it
    an_allocation_is_found_by_its_user
    listings_are_newest_first_and_go_on_where_they_ended
    a_statement_that_is_failed_is_answered_by_a_result_document
}

async fn steering_a_session_leaves_its_heartbeat_s_time_and_the_rest_of_it_as_they_are(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let s = session("s");
    let made = stores.a.create_session(&s).await.unwrap();
    let there = stores.b.session(&s.id).await.unwrap().unwrap().value;
    let launched = Steer::Launched { job: job("j"), application: "app2".to_owned() };
    let at = stores.a.steer_session(&s.id, made, &launched).await.unwrap();
    let expected = Session { job: Some(job("j")), application: "app2".to_owned(), ..there };
    assert_eq!(stores.b.session(&s.id).await.unwrap().unwrap().value, expected);
    assert_eq!(stores.b.steer_session(&s.id, made, &Steer::End).await, Err(StoreError::Conflict));
    assert_eq!(stores.b.recovery_of(&s.id).await, Ok(None));

    let at = stores.a.steer_session(&s.id, at, &Steer::Drain).await.unwrap();
    let at = stores.a.steer_session(&s.id, at, &Steer::RecoverTo(session("t").id)).await.unwrap();
    assert_eq!(stores.b.recovery_of(&s.id).await, Ok(Some(session("t").id)));
    let expected = Session { draining: true, recovering: true, ..expected };
    assert_eq!(stores.b.session(&s.id).await.unwrap().unwrap().value, expected);

    stores.a.steer_session(&s.id, at, &Steer::Fail { error: "why".to_owned() }).await.unwrap();
    let expected = Session { state: SessionState::Fail, error: "why".to_owned(), ..expected };
    assert_eq!(stores.b.session(&s.id).await.unwrap().unwrap().value, expected);
}

async fn a_statement_is_moved_to_another_session_once_and_waits_there(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let moved = statement("a", 1);
    let companion = Companion { session: "s".to_owned(), timeout: Some(5), ..Companion::default() };
    let made = stores.a.create_statement(&moved, Some(&companion)).await.unwrap();
    let begun = stores.a.write_statement(&moved.id, made, &running("j")).await.unwrap();
    let to = session("t").id;
    assert_eq!(stores.b.move_statement(&moved.id, made, &to).await, Err(StoreError::Conflict), "it was claimed");
    let at = stores.a.move_statement(&moved.id, begun, &to).await.unwrap();
    assert_eq!(stores.b.move_statement(&moved.id, begun, &to).await, Err(StoreError::Conflict));
    let there = stores.b.statements_at(&[statement("x", 1).id, moved.id.clone()]).await.unwrap();
    assert_eq!(there[0], None);
    let there = there[1].clone().unwrap();
    assert_eq!((there.version, there.value), (at, Statement { session: to.clone(), ..moved.clone() }));
    let companion = Companion { session: "t".to_owned(), ..companion };
    assert_eq!(stores.b.companion(&moved.id).await.unwrap().unwrap().value, companion);
    assert_eq!(stores.b.every_open_statement(&to).await.unwrap().statements.len(), 1);
    assert!(stores.b.every_open_statement(&moved.session).await.unwrap().statements.is_empty());
}

async fn a_book_is_changed_by_one_of_two_who_read_it(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let mut book = Book { borrowed: 8, ..Book::default() };
    assert!(book.give("é\"/", 3, 9, 1_796_032_000_000));
    assert_eq!(stores.a.book("queue/s").await, Ok(None));
    let made = stores.a.write_book("queue/s", Expect::Absent, &book).await.unwrap();
    assert_eq!(stores.b.write_book("queue/s", Expect::Absent, &book).await, Err(StoreError::Conflict));
    let read = stores.b.books(&["none".to_owned(), "queue/s".to_owned()]).await.unwrap();
    assert_eq!(read[0], None);
    assert_eq!(read[1].as_ref().map(|b| (b.version, b.value.clone())), Some((made, book.clone())));

    assert!(book.take_back("é\"/"));
    stores.a.write_book("queue/s", Expect::Version(made), &book).await.unwrap();
    assert_eq!(stores.b.book("queue/s").await.unwrap().unwrap().value, book, "who gave back is no longer in it");
    assert_eq!(stores.b.write_book("queue/s", Expect::Version(made), &book).await, Err(StoreError::Conflict));
}

async fn an_allocation_is_found_by_its_user(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let allocation = |user: &str, created| Allocation { user: user.to_owned(), created, ..Allocation::default() };
    let full = Allocation {
        name: "n".to_owned(),
        idle_timeout: Some(1),
        lifetime: Some(2),
        recovered_from: Some(session("old").id),
        recoveries: 3,
        ..allocation("ann", 1_796_032_000_003)
    };
    let made = stores.a.write_allocation(&session("3").id, Expect::Absent, &full).await.unwrap();
    assert_eq!(stores.b.write_allocation(&session("3").id, Expect::Absent, &full).await, Err(StoreError::Conflict));
    let read = stores.b.allocation(&session("3").id).await.unwrap().unwrap();
    assert_eq!((read.version, read.value), (made, full));
    for (id, user, created) in [("1", "ann", 1), ("2", "bob", 2)] {
        let new = allocation(user, 1_796_032_000_000 + created);
        stores.a.write_allocation(&session(id).id, Expect::Absent, &new).await.unwrap();
    }
    stores.raw.refresh(firesteel_store::documents::Index::State).await.unwrap();
    let found = |user: Option<&'static str>, limit| async move {
        let found = stores.b.allocations(user, limit).await.unwrap();
        found.into_iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(Some("ann"), 9).await, ["3", "1"]);
    assert_eq!(found(None, 2).await, ["3", "2"]);
    assert_eq!(found(Some("eve"), 9).await, Vec::<String>::new());
}

async fn listings_are_newest_first_and_go_on_where_they_ended(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    for (id, time) in [("a", 1), ("b", 2), ("c", 3)] {
        stores.a.create_statement(&statement(id, 1_796_032_000_000 + time), None).await.unwrap();
    }
    stores.a.create_session(&session("s")).await.unwrap();
    stores.raw.refresh(firesteel_store::documents::Index::Requests).await.unwrap();
    let listed = |listing: Listing| async move {
        let found = stores.b.list_statements(&listing).await.unwrap();
        found.into_iter().map(|s| s.value.id.to_string()).collect::<Vec<_>>()
    };
    let all = Listing { limit: 9, ..Listing::default() };
    assert_eq!(listed(Listing { limit: 2, ..all.clone() }).await, ["c", "b"]);
    assert_eq!(listed(Listing { up_to: Some(1_796_032_000_002), ..all.clone() }).await, ["b", "a"]);
    assert_eq!(listed(Listing { session: Some(session("t").id), ..all.clone() }).await, Vec::<String>::new());
    assert_eq!(listed(Listing { states: vec!["running".to_owned()], ..all.clone() }).await, Vec::<String>::new());
    let states = vec!["not_started".to_owned(), "dead".to_owned()];
    let sessions = stores.b.list_sessions(&Listing { states, ..all }).await.unwrap();
    assert_eq!(sessions.into_iter().map(|s| s.value.id).collect::<Vec<_>>(), [session("s").id]);
}

async fn a_statement_that_is_failed_is_answered_by_a_result_document(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let left = statement("a", 1);
    let made = stores.a.create_statement(&left, None).await.unwrap();
    stores.a.fail_statement(&left, made, "session ended: why").await.unwrap();
    let there = stores.b.statement(&left.id).await.unwrap().unwrap();
    assert_eq!(there.value.state, StatementState::Failed { error: "session ended: why".to_owned() });
    let result = stores.b.result(&query("q-a")).await.unwrap().unwrap();
    assert_eq!((result.status.as_str(), result.error.as_str()), ("FAILED", "session ended: why"));
    assert!(stores.b.left_unpublished().await.unwrap().is_empty());
    assert_eq!(stores.a.fail_statement(&left, made, "again").await, Err(StoreError::Conflict));
    assert_eq!(stores.a.fail_statement(&there.value, there.version, "again").await, Err(StoreError::Conflict));
}
