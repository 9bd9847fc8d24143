//! What a replica does by itself.

use firesteel_control::watch::{Rounds, Seen, Watch};
use firesteel_model::steer::{JobState, Patience, Steer};
use firesteel_model::{Owner, RunnerId, Session, SessionChange, SessionState, StatementState};
use firesteel_session::ports::Marker;

use crate::world::{World, anybody, id, named, session, statement};

fn rounds() -> Rounds {
    Rounds { every: 5_000, patience: Patience { stale: 900_000, watched: 60_000 }, sweep: 30_000, recovery: None }
}

fn own(runner: &str) -> SessionChange {
    let owner = Owner { runner: RunnerId::new(runner).unwrap(), lease_millis: 60_000 };
    SessionChange::Own { owner, job: None, application: None, excluded: vec![] }
}

async fn state(world: &World, name: &str) -> Session {
    world.store.session(&id(name)).await.unwrap().unwrap().value
}

/// Rounds as they come, for so many milliseconds.
async fn watched(world: &World, watch: &mut Watch, millis: u64) {
    for _ in 0..millis / 5_000 {
        watch.round().await.unwrap();
        world.pass(5_000).await;
    }
    watch.round().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_job_ended_before_it_began_fails_with_the_job_s_last_words() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    plane.submit(&anybody(), named("q", statement("s", "SELECT 1"))).await.unwrap();
    let mut watch = Watch::new(plane.clone(), rounds(), Seen::default());
    watch.round().await.unwrap();
    assert_eq!(state(&world, "s").await.state, SessionState::NotStarted, "its job runs: it may yet begin");
    let why = "exit code 2; its log ends: firesteel: --data: no such folder".to_owned();
    world.jobs.set("job-s", JobState::Failed { why });
    watch.round().await.unwrap();
    let failed = state(&world, "s").await;
    assert_eq!(failed.state, SessionState::Fail);
    assert_eq!(failed.error, "its job failed: exit code 2; its log ends: firesteel: --data: no such folder");
    watched(&world, &mut watch, 30_000).await;
    let left = plane.statement(&anybody(), "q").await.unwrap().statement.value.state;
    assert_eq!(left, StatementState::Failed { error: format!("session ended: {}", failed.error) });
    assert_eq!(plane.admission.in_use().await, Ok((0, 0)), "what has ended is given back");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_fell_silent_is_failed_after_a_quarter_of_an_hour_and_its_job_is_cancelled() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let there = world.store.session(&id("s")).await.unwrap().unwrap();
    world.store.write_session(&id("s"), there.version, &own("r")).await.unwrap();
    let mut watch = Watch::new(plane.clone(), rounds(), Seen::default());
    watched(&world, &mut watch, 895_000).await;
    assert_eq!(state(&world, "s").await.state, SessionState::Running);
    watched(&world, &mut watch, 5_000).await;
    let failed = state(&world, "s").await;
    assert_eq!(failed.state, SessionState::Fail);
    assert_eq!(failed.error, "no heartbeat for 900 s, though its job runs: the job is cancelled");
    assert_eq!(world.jobs.get("job-s"), Some(JobState::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_has_just_begun_to_watch_waits_before_it_believes_in_silence() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let there = world.store.session(&id("s")).await.unwrap().unwrap();
    world.store.write_session(&id("s"), there.version, &own("r")).await.unwrap();
    world.pass(2_000_000).await;
    let mut watch = Watch::new(plane.clone(), rounds(), Seen::default());
    watched(&world, &mut watch, 55_000).await;
    assert_eq!(state(&world, "s").await.state, SessionState::Running, "the store may have been away");
    watched(&world, &mut watch, 5_000).await;
    assert_eq!(state(&world, "s").await.state, SessionState::Fail);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_had_begun_is_interrupted_and_what_is_recovered_is_left_alone() {
    let world = World::new();
    let plane = world.plane();
    for name in ["s", "t"] {
        plane.allocate(&anybody(), session(name)).await.unwrap();
    }
    for (name, of) in [("w", "s"), ("r", "t")] {
        plane.submit(&anybody(), named(name, statement(of, "COPY"))).await.unwrap();
    }
    let at = world.store.statement(&named("w", statement("s", "")).id.unwrap()).await.unwrap().unwrap();
    let claimed = StatementState::Running { job: None };
    let claim = world.store.write_statement(&at.value.id, at.version, &claimed).await.unwrap();
    let attempt = firesteel_model::Attempt { claim, n: 1 };
    let marker = Marker { runner: RunnerId::new("r").unwrap(), attempt };
    world.store.create_marker(&at.value.id, &marker).await.unwrap();
    for (name, steer) in [("s", Steer::End), ("t", Steer::RecoverTo(id("u")))] {
        plane.steer(&id(name), |s| (!s.state.is_ended() && !s.recovering).then(|| steer.clone())).await.unwrap();
    }
    plane.steer(&id("t"), |s| (!s.state.is_ended()).then_some(Steer::End)).await.unwrap();
    let mut watch = Watch::new(plane.clone(), rounds(), Seen::default());
    watched(&world, &mut watch, 60_000).await;
    let failed = plane.statement(&anybody(), "w").await.unwrap().statement.value.state;
    assert!(
        matches!(&failed, StatementState::Failed { error } if error.contains("\"code\":\"INTERRUPTED\"")),
        "{failed:?}"
    );
    assert_eq!(plane.statement(&anybody(), "r").await.unwrap().statement.value.state, StatementState::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_its_time_is_up() {
    let world = World::new();
    let plane = world.plane();
    let mut new = session("s");
    new.lifetime = Some(60_000);
    plane.allocate(&anybody(), new).await.unwrap();
    let mut watch = Watch::new(plane.clone(), rounds(), Seen::default());
    watched(&world, &mut watch, 55_000).await;
    assert_eq!(state(&world, "s").await.state, SessionState::NotStarted);
    watched(&world, &mut watch, 5_000).await;
    assert_eq!(state(&world, "s").await.state, SessionState::Dead);
    assert_eq!(world.jobs.get("job-s"), Some(JobState::Cancelled));
}
