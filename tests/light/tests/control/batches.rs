//! Batches, and the replicas that they belong to.

use std::sync::Arc;

use firesteel_control::peers::Peers;
use firesteel_control::plane::NewBatch;
use firesteel_model::QueryText;
use firesteel_model::batch::BatchState;
use firesteel_model::steer::JobState;
use firesteel_session::ports::control::{LaunchError, Task};

use crate::world::{World, anybody, no_faults, refusing_after};

fn batch(id: &str) -> NewBatch {
    let task = Task::Batch { query_id: "q".to_owned(), query: QueryText("SELECT 1".to_owned()) };
    NewBatch { id: Some(id.to_owned()), name: String::new(), application: "app".to_owned(), task }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_launched_once_though_it_is_asked_for_twice_and_an_answer_is_lost() {
    let world = World::new();
    let plane = world.instance("one", no_faults());
    world.jobs.refuse.lock().unwrap().push(LaunchError::Unknown("no answer".to_owned()));
    let view = plane.submit_batch(&anybody(), batch("b")).await.unwrap();
    assert_eq!((view.state, view.batch.instance.as_str()), (BatchState::Running, "one"));
    assert_eq!(plane.submit_batch(&anybody(), batch("b")).await.unwrap(), view);
    let other = Task::Batch { query_id: "q".to_owned(), query: QueryText("SELECT 2".to_owned()) };
    let refused = plane.submit_batch(&anybody(), NewBatch { task: other, ..batch("b") }).await.unwrap_err();
    assert_eq!(refused.to_string(), "the id `b` is taken; choose another");
    assert_eq!(world.jobs.states.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn how_a_job_ended_is_how_its_batch_ended() {
    let world = World::new();
    let plane = world.instance("one", no_faults());
    for (id, job, state, error) in [
        ("a", JobState::Succeeded, BatchState::Finished, ""),
        ("b", JobState::Failed { why: "exit code 1".to_owned() }, BatchState::Error, "exit code 1"),
        ("c", JobState::Cancelled, BatchState::Killed, "its job was cancelled"),
    ] {
        plane.submit_batch(&anybody(), batch(id)).await.unwrap();
        world.jobs.set(&format!("job-batch-{id}"), job);
        plane.drive_batches().await.unwrap();
        let view = plane.batch(&anybody(), id).await.unwrap();
        assert_eq!((view.batch.state, view.batch.error.as_str()), (state, error), "{id}");
    }
    let mut refused = batch("d");
    refused.application = "none".to_owned();
    world.jobs.refuse.lock().unwrap().push(LaunchError::Refused("no such application".to_owned()));
    let view = plane.submit_batch(&anybody(), refused).await.unwrap();
    assert_eq!((view.state, view.batch.error.as_str()), (BatchState::Error, "no such application"));
}

#[tokio::test(start_paused = true)]
async fn another_replica_tells_the_launcher_s_word_and_closes_through_it_and_the_owner_heeds_the_flag() {
    let world = World::new();
    let (one, two) = (world.instance("one", no_faults()), world.instance("two", no_faults()));
    one.submit_batch(&anybody(), batch("b")).await.unwrap();
    // Its owner is away from here on.
    assert_eq!(two.batch(&anybody(), "b").await.unwrap().state, BatchState::Running);
    world.jobs.set("job-batch-b", JobState::Succeeded);
    let told = two.batch(&anybody(), "b").await.unwrap();
    assert_eq!((told.state, told.batch.state), (BatchState::Finished, BatchState::Running));
    world.jobs.set("job-batch-b", JobState::Running);

    let closed = two.close_batch(&anybody(), "b").await.unwrap();
    assert!(closed.batch.closed_by_peer);
    assert_eq!((closed.batch.instance.as_str(), closed.state), ("one", BatchState::Error));
    assert_eq!(world.jobs.get("job-batch-b"), Some(JobState::Cancelled));
    // It comes back.
    one.drive_batches().await.unwrap();
    assert_eq!(one.batch(&anybody(), "b").await.unwrap().state, BatchState::Killed);
    assert_eq!(world.jobs.states.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_was_flagged_before_it_was_launched_never_is() {
    let world = World::new();
    // The launcher is away when the batch is asked for, and its owner dies.
    let one = world.instance("one", no_faults());
    world.jobs.refuse.lock().unwrap().push(LaunchError::Unavailable("away".to_owned()));
    assert!(one.submit_batch(&anybody(), batch("b")).await.is_err());
    let two = world.instance("two", no_faults());
    assert!(two.close_batch(&anybody(), "b").await.unwrap().batch.closed_by_peer);
    one.drive_batches().await.unwrap();
    assert_eq!(one.batch(&anybody(), "b").await.unwrap().state, BatchState::Killed);
    assert!(world.jobs.states.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_owner_died_at_any_write_is_launched_once_by_whoever_adopts_it() {
    for writes in 0..4_u32 {
        let world = World::new();
        let dying = world.instance("one", refusing_after(writes));
        let _ = dying.submit_batch(&anybody(), batch("b")).await;
        let two = world.instance("two", no_faults());
        two.adopt_batch("b", "one").await.unwrap();
        let there = two.batch(&anybody(), "b").await;
        if writes == 0 {
            assert_eq!(there.unwrap_err().to_string(), "no batch `b`");
            continue;
        }
        let there = there.unwrap();
        assert_eq!((there.state, there.batch.instance.as_str()), (BatchState::Running, "two"), "{writes}");
        assert_eq!(world.jobs.states.lock().unwrap().len(), 1, "{writes}");
        dying.adopt_batch("b", "one").await.unwrap();
        assert_eq!(two.batch(&anybody(), "b").await.unwrap().batch.instance, "two");
    }
}

#[tokio::test(start_paused = true)]
async fn the_batches_of_a_replica_that_is_silent_for_a_lease_are_adopted_and_nobody_else_s() {
    let world = World::new();
    let planes = ["one", "two", "three"].map(|name| world.instance(name, no_faults()));
    // Asked for while the launcher is away: nobody has launched them.
    for (plane, id) in planes.iter().zip(["a", "b"]) {
        world.jobs.refuse.lock().unwrap().push(LaunchError::Unavailable("away".to_owned()));
        assert!(plane.submit_batch(&anybody(), batch(id)).await.is_err());
    }
    let [mut one, mut two, mut three] = planes.each_ref().map(|plane| Peers::new(Arc::clone(plane)));
    let lease = 60_000;
    one.round(lease).await.unwrap();
    for _ in 0..11 {
        world.pass(5_000).await;
        two.round(lease).await.unwrap();
        three.round(lease).await.unwrap();
    }
    assert!(world.jobs.states.lock().unwrap().is_empty(), "it may come back");
    world.pass(5_000).await;
    three.round(lease).await.unwrap();
    world.pass(5_000).await;
    three.round(lease).await.unwrap();
    let of = |view: firesteel_control::plane::BatchView| (view.batch.instance, view.state);
    assert_eq!(of(planes[2].batch(&anybody(), "a").await.unwrap()), ("three".to_owned(), BatchState::Running));
    assert_eq!(of(planes[2].batch(&anybody(), "b").await.unwrap()), ("two".to_owned(), BatchState::Submitting));
    // It comes back, and leaves what is another's now.
    planes[0].drive_batches().await.unwrap();
    one.round(lease).await.unwrap();
    assert_eq!(planes[0].batch(&anybody(), "a").await.unwrap().batch.instance, "three");
    assert_eq!(world.jobs.states.lock().unwrap().len(), 1);
}
