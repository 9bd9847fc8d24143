//! Sessions and statements as they are asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firesteel_control::access::{Caller, Role};
use firesteel_control::admission::Limits;
use firesteel_control::refusal::Refusal;
use firesteel_model::steer::{JobState, Steer};
use firesteel_model::{SessionState, StatementState};
use firesteel_session::ports::control::{LaunchError, Listing};

use crate::faulty::Fault;
use crate::world::{World, anybody, id, named, session, statement};

fn user(name: &str, role: Role) -> Caller {
    Caller { user: name.to_owned(), role }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_before_its_job_is_launched_and_the_job_is_noted() {
    let world = World::new();
    let plane = world.plane();
    let view = plane.allocate(&user("ann", Role::Owner), session("s")).await.unwrap();
    let session = &view.session.value;
    assert_eq!(session.state, SessionState::NotStarted);
    assert_eq!(session.job.as_ref().map(|job| job.as_str()), Some("job-s"));
    assert_eq!((session.data_source.as_str(), session.application.as_str()), ("d", "app"));
    assert_eq!(view.allocation.user, "ann");
    assert_eq!(plane.session(&user("ann", Role::Owner), &id("s")).await.unwrap(), view);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_asked_for_again_is_the_same_session_and_another_user_s_is_taken() {
    let world = World::new();
    let plane = world.plane();
    let first = plane.allocate(&user("ann", Role::Owner), session("s")).await.unwrap();
    assert_eq!(plane.allocate(&user("ann", Role::Owner), session("s")).await.unwrap(), first);
    let refused = plane.allocate(&user("bob", Role::Owner), session("s")).await.unwrap_err();
    assert_eq!(refused, Refusal::Conflict("the id `s` is taken; choose another".to_owned()));
    assert_eq!(world.jobs.states.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_answer_is_lost_is_asked_for_again_and_one_that_is_refused_fails_the_session() {
    let world = World::new();
    let plane = world.plane();
    world.jobs.refuse.lock().unwrap().push(LaunchError::Unknown("no answer".to_owned()));
    plane.allocate(&anybody(), session("s")).await.unwrap();
    assert_eq!(world.jobs.states.lock().unwrap().len(), 1);

    world.jobs.refuse.lock().unwrap().push(LaunchError::Refused("no such application".to_owned()));
    let refused = plane.allocate(&anybody(), session("t")).await.unwrap_err();
    assert_eq!(refused.to_string(), "the job was not launched: no such application");
    let failed = world.store.session(&id("t")).await.unwrap().unwrap().value;
    assert_eq!((failed.state, failed.error.as_str()), (SessionState::Fail, "no such application"));
    plane.admission.collect().await.unwrap();
    assert_eq!(plane.admission.in_use().await, Ok((1, 0)));
}

#[tokio::test(start_paused = true)]
async fn submit_times_rise_though_two_come_in_one_millisecond() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let mut times = Vec::new();
    for name in ["a", "b", "c"] {
        let submitted = plane.submit(&anybody(), named(name, statement("s", "SELECT 1"))).await.unwrap();
        times.push(world.store.statement(&submitted.id).await.unwrap().unwrap().value.submit_time);
    }
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_statement_submitted_twice_under_one_id_is_one_statement() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let caller = anybody();
    let ask = || plane.submit(&caller, named("q", statement("s", "SELECT 1")));
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(ask().await.unwrap().session, id("s"));
    assert_eq!(world.open().await, 1);
    let other = plane.submit(&anybody(), named("q", statement("s", "SELECT 2"))).await.unwrap_err();
    assert_eq!(other.to_string(), "the query id `q` is another statement's; choose another");
    let theirs = plane.submit(&user("ann", Role::Owner), named("q", statement("s", "SELECT 1"))).await.unwrap_err();
    assert_eq!(theirs.status(), 409);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_a_statement_is_made_refuses_it_and_leaves_no_statement_waiting() {
    let world = Arc::new(World::new());
    world.plane().allocate(&anybody(), session("s")).await.unwrap();
    let (memory, ended) = (world.memory.clone(), Arc::new(AtomicBool::new(false)));
    let plane = world.replica(
        Limits::default(),
        Box::new(move |kind, ids| {
            // The statement is about to be made: the session ends just before.
            if kind == "bulk" && ids.iter().any(|id| id == "q") && !ended.swap(true, Ordering::SeqCst) {
                let store = firesteel_store::Store::new(memory.clone(), firesteel_store::Scope::Requests);
                let done = async {
                    use firesteel_session::ports::{SessionStore, control::ControlStore};
                    let session = store.session(&id("s")).await.unwrap().unwrap();
                    store.steer_session(&id("s"), session.version, &Steer::End).await.unwrap();
                };
                futures::FutureExt::now_or_never(done).unwrap();
            }
            (Duration::ZERO, Fault::None)
        }),
    );
    let refused = plane.submit(&anybody(), named("q", statement("s", "SELECT 1"))).await.unwrap_err();
    assert_eq!(refused.to_string(), "session `s` has ended (dead); submit without it, or to another");
    let left = plane.statement(&anybody(), "q").await.unwrap().statement.value.state;
    assert_eq!(left, StatementState::Failed { error: refused.to_string() });
    assert_eq!(world.open().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_submit_to_a_session_that_has_ended_gets_a_new_one_and_one_to_a_draining_session_is_refused() {
    let world = World::new();
    let plane = world.plane();
    for name in ["dead", "draining"] {
        plane.allocate(&anybody(), session(name)).await.unwrap();
    }
    plane.close(&anybody(), &id("dead"), 0).await.unwrap();
    let submitted = plane.submit(&anybody(), statement("dead", "SELECT 1")).await.unwrap();
    assert_ne!(submitted.session, id("dead"));
    assert!(world.jobs.get(&format!("job-{}", submitted.session)).is_some());

    plane.steer(&id("draining"), |session| (!session.draining).then_some(Steer::Drain)).await.unwrap();
    let refused = plane.submit(&anybody(), statement("draining", "SELECT 1")).await.unwrap_err();
    assert_eq!(refused.to_string(), "session `draining` takes no more statements; submit without it, or to another");
}

#[tokio::test(start_paused = true)]
async fn another_data_source_is_none() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let mut other = statement("s", "SELECT 1");
    other.data_source = Some("mys3".to_owned());
    let refused = plane.submit(&anybody(), other).await.unwrap_err();
    assert_eq!(refused.to_string(), "no datasource exist: `mys3`; there is `d`");
}

#[tokio::test(start_paused = true)]
async fn users_see_their_own_and_a_viewer_everything_but_changes_nothing() {
    let world = World::new();
    let plane = world.plane();
    let (ann, bob, eve) = (user("ann", Role::Owner), user("bob", Role::Owner), user("eve", Role::Viewer));
    plane.allocate(&ann, session("s")).await.unwrap();
    plane.submit(&ann, named("q", statement("s", "SELECT 1"))).await.unwrap();
    let unknown = plane.session(&bob, &id("s")).await.unwrap_err();
    assert_eq!(unknown.to_string(), "no session `s`");
    assert_eq!(plane.cancel(&bob, "q").await.unwrap_err().to_string(), "no statement `q`");
    assert_eq!(plane.submit(&bob, statement("s", "SELECT 1")).await.unwrap_err().to_string(), "no session `s`");
    assert_eq!(plane.cancel(&eve, "q").await.unwrap_err().status(), 403);
    assert!(plane.session(&eve, &id("s")).await.is_ok());
    let all = Listing { limit: 10, ..Listing::default() };
    let seen = |views: Vec<_>| views.len();
    assert_eq!(seen(plane.sessions(&ann, &all).await.unwrap()), 1);
    assert_eq!(seen(plane.sessions(&bob, &all).await.unwrap()), 0);
    assert_eq!(seen(plane.sessions(&eve, &all).await.unwrap()), 1);
    assert_eq!(plane.statements(&ann, &all).await.unwrap().len(), 1);
    assert_eq!(plane.statements(&bob, &all).await.unwrap().len(), 0);
    assert_eq!(plane.cancel(&ann, "q").await.unwrap(), StatementState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_runs_and_cancels_what_is_left_then_the_job() {
    let world = Arc::new(World::new());
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    plane.submit(&anybody(), named("q", statement("s", "SELECT 1"))).await.unwrap();
    let began = world.clock.0.elapsed();
    let (caller, s) = (anybody(), id("s"));
    let closing = plane.close(&caller, &s, 10_000);
    let running = async {
        world.pass(3_000).await;
        let refused = plane.submit(&anybody(), statement("s", "SELECT 1")).await.unwrap_err();
        assert_eq!(refused.status(), 409);
        plane.cancel(&anybody(), "q").await.unwrap();
    };
    let (closed, ()) = tokio::join!(closing, running);
    assert_eq!(closed.unwrap().session.value.state, SessionState::Dead);
    let took = world.clock.0.elapsed() - began;
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(world.jobs.get("job-s"), Some(JobState::Cancelled));

    plane.allocate(&anybody(), session("t")).await.unwrap();
    plane.submit(&anybody(), named("r", statement("t", "SELECT 1"))).await.unwrap();
    plane.close(&anybody(), &id("t"), 1_000).await.unwrap();
    assert_eq!(plane.statement(&anybody(), "r").await.unwrap().statement.value.state, StatementState::Cancelled);
}
