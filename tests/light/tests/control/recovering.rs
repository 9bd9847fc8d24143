//! A session's place taken by another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use firesteel_control::admission::Limits;
use firesteel_control::watch::{Recovery, Rounds, Seen, Watch};
use firesteel_model::steer::{JobState, Patience, Steer};
use firesteel_model::{Attempt, RunnerId, SessionState, Statement, StatementId, StatementState, Stored, Version};
use firesteel_session::journal::{Entry, Log, Record, What};
use firesteel_session::ports::Marker;

use crate::faulty::Fault;
use crate::world::{World, anybody, id, named, no_faults, refusing_after, session, statement};

fn st(name: &str) -> StatementId {
    StatementId::new(name).unwrap()
}

fn attempt(n: u32) -> Attempt {
    Attempt { claim: Version { term: 1, seq_no: 1 }, n }
}

async fn find(world: &World, name: &str) -> Stored<Statement> {
    world.store.statement(&st(name)).await.unwrap().unwrap()
}

async fn write(world: &World, name: &str, state: StatementState) {
    let found = find(world, name).await;
    world.store.write_statement(&st(name), found.version, &state).await.unwrap();
}

/// A session with a define that counts, one that is being run, and two statements that wait.
async fn old() -> World {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("old")).await.unwrap();
    for name in ["v1", "v2", "a", "b"] {
        plane.submit(&anybody(), named(name, statement("old", "CREATE VIEW"))).await.unwrap();
    }
    let runner = RunnerId::new("r").unwrap();
    for (n, (name, state)) in
        [("v1", StatementState::Success), ("v2", StatementState::Running { job: None })].into_iter().enumerate()
    {
        let what =
            What::Define { statement: st(name), attempt: attempt(1), entry: Entry::new(format!("entry {name}")) };
        let record = Record { runner: runner.clone(), what };
        world.store.append_journal(&id("old"), n as u64, &record).await.unwrap();
        write(&world, name, StatementState::Running { job: None }).await;
        if state == StatementState::Success {
            write(&world, name, state).await;
        }
    }
    world
}

#[tokio::test(start_paused = true)]
async fn what_a_session_was_made_of_is_copied_and_what_waits_is_moved_in_order() {
    let world = old().await;
    let plane = world.plane();
    let new = plane.recover(&anybody(), &id("old"), Some("app2".to_owned()), 0).await.unwrap();
    let session = &new.session.value;
    assert_eq!((session.application.as_str(), session.state), ("app2", SessionState::NotStarted));
    assert_eq!((new.allocation.recovered_from, new.allocation.recoveries), (Some(id("old")), 1));
    let log = Log::read(world.store.journal(&session.id).await.unwrap());
    let entries: Vec<&str> = log.entries().iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(entries, ["entry v1"], "a define that was not decided is run again");
    let moved = world.store.every_open_statement(&session.id).await.unwrap().statements;
    let names: Vec<&str> = moved.iter().map(|statement| statement.value.id.as_str()).collect();
    assert_eq!(names, ["v2", "a", "b"]);
    assert!(moved.iter().all(|statement| statement.value.state == StatementState::Waiting));
    let ended = world.store.session(&id("old")).await.unwrap().unwrap().value;
    assert_eq!((ended.state, ended.recovering), (SessionState::Fail, true));
    assert_eq!(world.jobs.get("job-old"), Some(JobState::Cancelled));
    assert_eq!(world.jobs.get(&format!("job-{}", session.id)), Some(JobState::Running));

    let late = Record { runner: RunnerId::new("r").unwrap(), what: What::Epoch };
    assert!(world.store.append_journal(&id("old"), 2, &late).await.is_err(), "the old runner adds nothing more");
    let again = plane.recover(&anybody(), &id("old"), None, 0).await.unwrap();
    assert_eq!(again.session.value.id, session.id);
    assert_eq!(world.jobs.states.lock().unwrap().len(), 2);
    plane.admission.collect().await.unwrap();
    assert_eq!(plane.admission.in_use().await, Ok((1, 3)));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_had_begun_is_not_moved_but_interrupted() {
    let world = old().await;
    let marker = Marker { runner: RunnerId::new("r").unwrap(), attempt: attempt(1) };
    write(&world, "a", StatementState::Running { job: None }).await;
    world.store.create_marker(&st("a"), &marker).await.unwrap();
    world.plane().recover(&anybody(), &id("old"), None, 0).await.unwrap();
    let failed = find(&world, "a").await.value;
    assert_eq!(failed.session, id("old"));
    assert!(matches!(&failed.state, StatementState::Failed { error } if error.contains("INTERRUPTED")), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_recovery_that_breaks_off_after_any_write_is_completed_by_the_next_call() {
    let mut broken_off = 0;
    for writes in 0..40_u32 {
        let world = old().await;
        let broken = world.replica(Limits::default(), refusing_after(writes));
        let first = broken.recover(&anybody(), &id("old"), None, 0).await;
        broken_off += u32::from(first.is_err());
        // Its own runner, which has not heard of it, decides what it ran in between.
        let running = find(&world, "v2").await;
        if running.value.state.is_running() && writes % 2 == 0 {
            write(&world, "v2", StatementState::Success).await;
        }
        let decided = find(&world, "v2").await.value.state == StatementState::Success;
        let new = world.plane().recover(&anybody(), &id("old"), None, 0).await.unwrap();
        let to = new.session.value.id;
        let log = Log::read(world.store.journal(&to).await.unwrap());
        let entries: BTreeSet<&str> = log.entries().iter().map(|entry| entry.text.as_str()).collect();
        let moved = world.store.every_open_statement(&to).await.unwrap().statements;
        let moved: Vec<&str> = moved.iter().map(|statement| statement.value.id.as_str()).collect();
        if decided {
            assert_eq!(entries, BTreeSet::from(["entry v1", "entry v2"]), "after {writes} writes");
            assert_eq!(moved, ["a", "b"], "after {writes} writes");
        } else {
            assert_eq!(entries, BTreeSet::from(["entry v1"]), "after {writes} writes");
            assert_eq!(moved, ["v2", "a", "b"], "after {writes} writes");
        }
        assert_eq!(world.jobs.states.lock().unwrap().len(), 2, "one new job, after {writes} writes");
    }
    assert!((8..40).contains(&broken_off), "{broken_off} were broken off");
}

#[tokio::test(start_paused = true)]
async fn two_replicas_that_recover_at_once_make_one_session_and_move_each_statement_once() {
    let world = Arc::new(old().await);
    let slow = |seed: u64| {
        let mut state = seed;
        world.replica(
            Limits::default(),
            Box::new(move |_, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (Duration::from_millis((state >> 33) % 9), Fault::None)
            }),
        )
    };
    let (one, two, caller, old) = (slow(1), slow(2), anybody(), id("old"));
    let (a, b) = tokio::join!(one.recover(&caller, &old, None, 0), two.recover(&caller, &old, None, 0));
    let to = a.unwrap().session.value.id;
    assert_eq!(b.unwrap().session.value.id, to);
    assert_eq!(world.store.every_open_statement(&to).await.unwrap().statements.len(), 3);
    assert_eq!(world.jobs.states.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_session_is_recovered_by_itself_so_often_and_then_its_statements_fail() {
    let world = World::new();
    let plane = world.replica(Limits::default(), no_faults());
    plane.allocate(&anybody(), session("s")).await.unwrap();
    plane.submit(&anybody(), named("q", statement("s", "SELECT 1"))).await.unwrap();
    let rounds = Rounds {
        every: 5_000,
        patience: Patience { stale: 900_000, watched: 60_000 },
        sweep: 30_000,
        recovery: Some(Recovery { most: 2, a_minute: 60 }),
    };
    let mut watch = Watch::new(plane.clone(), rounds, Seen::default());
    let mut sessions = Vec::new();
    for _ in 0..30 {
        let at = find(&world, "q").await.value;
        if sessions.last() != Some(&at.session) {
            sessions.push(at.session.clone());
        }
        // Whatever serves it dies at once.
        world.jobs.set(&format!("job-{}", at.session), JobState::Failed { why: "exit code 1".to_owned() });
        watch.round().await.unwrap();
        world.pass(5_000).await;
    }
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    assert_eq!(
        find(&world, "q").await.value.state,
        StatementState::Failed { error: "session ended: its job failed: exit code 1".to_owned() }
    );
}

#[tokio::test(start_paused = true)]
async fn a_recovery_that_nobody_goes_on_with_is_completed_by_the_watch() {
    let world = old().await;
    let plane = world.plane();
    for steer in [Steer::RecoverTo(id("new")), Steer::End] {
        let found = world.store.session(&id("old")).await.unwrap().unwrap();
        world.store.steer_session(&id("old"), found.version, &steer).await.unwrap();
    }
    let mut watch = Watch::new(plane, Rounds::default(), Seen::default());
    for _ in 0..8 {
        watch.round().await.unwrap();
        world.pass(5_000).await;
    }
    assert_eq!(world.store.every_open_statement(&id("new")).await.unwrap().statements.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_was_broken_off_at_any_write_is_gone_on_with_when_it_is_asked_for_again() {
    for writes in 0..16_u32 {
        let world = old().await;
        let dying = world.instance("one", refusing_after(writes));
        let broken = dying.recover(&anybody(), &id("old"), Some("app2".to_owned()), 0).await.is_err();
        let plane = world.plane();
        for session in plane.to_migrate("app2").await.unwrap() {
            plane.recover(&anybody(), &session, Some("app2".to_owned()), 0).await.unwrap();
        }
        assert!(plane.to_migrate("app2").await.unwrap().is_empty(), "{writes}");
        let new = world.store.recovery_of(&id("old")).await.unwrap().unwrap();
        let session = world.store.session(&new).await.unwrap().unwrap().value;
        assert_eq!((session.application.as_str(), session.job.is_some()), ("app2", true), "{writes}");
        let moved = world.store.every_open_statement(&new).await.unwrap().statements;
        assert_eq!(moved.len(), 3, "{writes}");
        assert_eq!(plane.to_drain().await.unwrap(), BTreeSet::from([new]), "{writes}");
        assert!(broken || writes > 4, "{writes}");
    }
}
