//! One runner, one thing that happens.

use std::time::Duration;

use firesteel_model::StatementState;
use firesteel_model::policy::{OnStop, Policy};
use firesteel_session::ports::{LargeResults, ResultStore, SessionStore};
use firesteel_session::result::Limits;
use futures::FutureExt;

use crate::engine::Words;
use crate::faulty::Fault;
use crate::world::{World, no_faults, quick};

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn error(state: &StatementState) -> &str {
    match state {
        StatementState::Failed { error } | StatementState::Timeout { error } => error,
        other => panic!("{other:?} has no error"),
    }
}

#[tokio::test(start_paused = true)]
async fn statements_are_answered_in_order_and_a_session_left_alone_ends() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "rows 3").await;
    world.submit("b", "fail").await;
    world.submit("c", "bad").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(world.rows("a").await, [r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#]);
    assert_eq!(
        error(&world.end("b").await),
        r#"{"message":"as asked","code":"EXECUTION","stage":"execute","retryable":false}"#
    );
    assert_eq!(
        error(&world.end("c").await),
        r#"{"message":"not a word","code":"SYNTAX","stage":"plan","retryable":false}"#
    );
    pause(10).await;
    let failed = world.result("b").await.expect("a failure has a result document");
    assert_eq!((failed.status.as_str(), failed.columns.len(), failed.rows.len()), ("FAILED", 0, 0));
    assert_eq!(runner.exit().await, 0);
    assert_eq!(world.session_state().await, "dead");
    assert!(words.closed());
}

#[tokio::test(start_paused = true)]
async fn a_read_costs_four_requests_after_the_search() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run(
        "r1",
        &Policy { heartbeat: 100_000, first_heartbeat: 100_000, lease: 300_000, sweep_every: 100_000, ..quick() },
        words,
        no_faults(),
    );
    pause(100).await;
    runner.store.requests();
    world.submit("a", "rows 3").await;
    world.rows("a").await;
    let requests = runner.store.requests();
    let after = requests.iter().skip_while(|r| **r == "search").take_while(|r| **r != "search");
    assert_eq!(after.collect::<Vec<_>>(), [&"bulk"; 4], "claim, stage, decide, publish: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_statement_stops_and_has_no_result_and_the_next_one_is_answered() {
    let (world, words) = (World::new(), Words::default());
    let _runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "hang").await;
    pause(50).await;
    assert_eq!(world.state("a").await.name(), "running");
    world.cancel("a").await;
    world.submit("b", "rows 1").await;
    assert_eq!(world.end("b").await, StatementState::Success);
    assert_eq!((world.state("a").await, world.result("a").await), (StatementState::Cancelled, None));
}

#[tokio::test(start_paused = true)]
async fn a_statement_over_its_time_fails_with_timeout_or_ends_in_the_peers_state() {
    for timeout_state in [false, true] {
        let (world, words) = (World::new(), Words::default());
        let _runner = world.run("r1", &Policy { timeout_state, ..quick() }, words, no_faults());
        pause(20).await;
        world.submit("a", "hang").await;
        let state = world.end("a").await;
        assert_eq!((state.name(), error(&state)), (if timeout_state { "timeout" } else { "failed" }, "timeout"));
        pause(10).await;
        assert_eq!(
            world.result("a").await.expect("published").status,
            if timeout_state { "TIMEOUT" } else { "FAILED" }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_define_holds_for_later_statements_and_a_cancelled_one_does_not() {
    let (world, words) = (World::new(), Words::default());
    let _runner = world.run("r1", &quick(), words, no_faults());
    pause(20).await;
    world.submit("a", "set x").await;
    world.submit("b", "show").await;
    assert_eq!(world.rows("b").await, [r#"{"entry":"x"}"#]);

    // Cancelled after it ran and before it is decided: its decision is refused and its worker rebuilt.
    let (world, words) = (World::new(), Words::default());
    let memory = firesteel_store::Store::new(world.memory.clone(), firesteel_store::Scope::Requests);
    let memory = std::sync::Arc::new(memory);
    let cancel = {
        let memory = memory.clone();
        move |id: &'static str| {
            let memory = memory.clone();
            let cancelled = async move {
                let id = firesteel_model::StatementId::new(id).unwrap();
                let read = memory.statement(&id).await.unwrap().unwrap();
                memory.write_statement(&id, read.version, &StatementState::Cancelled).await.unwrap();
            };
            cancelled.now_or_never().expect("memory answers at once");
        }
    };
    let mut writes = 0;
    let faults = Box::new(move |kind: &'static str, ids: &[String]| {
        if kind == "bulk" && ids == ["a"] {
            writes += 1;
            if writes == 2 {
                cancel("a");
            }
        }
        (Duration::ZERO, Fault::None)
    });
    let _runner = world.run("r1", &quick(), words, faults);
    pause(20).await;
    world.submit("a", "set x").await;
    world.submit("b", "set y").await;
    world.submit("c", "show").await;
    assert_eq!(world.rows("c").await, [r#"{"entry":"y"}"#]);
    assert_eq!((world.state("a").await, world.result("a").await), (StatementState::Cancelled, None));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_costs_a_read_one_try_and_a_write_its_certainty() {
    let (world, words) = (World::new(), Words::default());
    let _runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "die").await;
    let state = world.end("a").await;
    assert!(error(&state).contains("WORKER_DIED") && error(&state).contains("signal 9"), "{state:?}");
    assert_eq!(words.runs("a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_executed_once_and_one_that_was_begun_by_a_runner_that_died_never_again() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "write 1").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(words.writes("a"), 1);
    world.submit("b", "write 1000").await;
    pause(100).await;
    runner.kill();
    let _successor = world.run("r2", &quick(), words.clone(), no_faults());
    let state = world.end("b").await;
    assert!(error(&state).contains("interrupted: outcome unknown"), "{state:?}");
    assert_eq!((words.writes("b"), words.runs("b")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_a_dead_runner_left_is_run_again_by_its_successor() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "wait 300").await;
    world.submit("b", "rows 1").await;
    pause(100).await;
    runner.kill();
    let _successor = world.run("r2", &quick(), words.clone(), no_faults());
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(world.end("b").await, StatementState::Success);
    assert_eq!(words.runs("a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_runner_leaves_and_a_standby_waits() {
    let (world, words) = (World::new(), Words::default());
    let first = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    assert_eq!(world.run("r2", &quick(), words.clone(), no_faults()).exit().await, 0);
    let standby = world.run("r3", &Policy { standby: true, ..quick() }, words.clone(), no_faults());
    pause(2_000).await;
    assert!(!standby.task.is_finished());
    world.submit("a", "rows 1").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    first.kill();
    world.submit("b", "rows 1").await;
    assert_eq!(world.end("b").await, StatementState::Success);
    let owner = world.user.session(&crate::world::session_id()).await.unwrap().unwrap().value.owner.unwrap();
    assert_eq!(owner.runner.as_str(), "r3");
}

#[tokio::test(start_paused = true)]
async fn a_handover_gives_the_running_read_to_a_standby_at_once() {
    let (world, words) = (World::new(), Words::default());
    let first = world.run(
        "r1",
        &Policy { on_stop: OnStop::Handover, lease: 60_000, heartbeat: 20_000, ..quick() },
        words.clone(),
        no_faults(),
    );
    pause(20).await;
    let _standby = world.run("r2", &Policy { standby: true, ..quick() }, words.clone(), no_faults());
    world.submit("a", "wait 400").await;
    pause(100).await;
    first.stop.send(()).unwrap();
    assert_eq!(first.exit().await, 0);
    let before = tokio::time::Instant::now();
    assert_eq!(world.end("a").await, StatementState::Success);
    assert!(before.elapsed() < Duration::from_secs(5), "not after the lease of 60 s: {:?}", before.elapsed());
    assert_eq!(world.session_state().await, "running");
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_is_never_revived_by_a_heartbeat() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words, no_faults());
    pause(20).await;
    let read = world.user.session(&crate::world::session_id()).await.unwrap().unwrap();
    world.user.write_session(&read.value.id, read.version, &firesteel_model::SessionChange::End).await.unwrap();
    assert_eq!(runner.exit().await, 0);
    assert_eq!(world.session_state().await, "dead");
}

#[tokio::test(start_paused = true)]
async fn a_session_closed_by_another_is_left_before_its_next_statement_is_claimed() {
    let (world, words) = (World::new(), Words::default());
    let slow = Policy { heartbeat: 20_000, first_heartbeat: 20_000, lease: 60_000, ..quick() };
    let runner = world.run("r1", &slow, words.clone(), no_faults());
    pause(20).await;
    let read = world.user.session(&crate::world::session_id()).await.unwrap().unwrap();
    world.user.write_session(&read.value.id, read.version, &firesteel_model::SessionChange::End).await.unwrap();
    world.submit("a", "rows 1").await;
    assert_eq!(runner.exit().await, 0);
    assert_eq!((error(&world.state("a").await), words.runs("a")), ("session ended", 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_away_for_a_while_costs_time_and_nothing_else() {
    let (world, words) = (World::new(), Words::default());
    let clock = world.clock;
    let faults = Box::new(move |_: &'static str, _: &[String]| {
        use firesteel_session::ports::Clock;
        let away = (100..400).contains(&clock.now().0);
        (Duration::ZERO, if away { Fault::Refuse } else { Fault::None })
    });
    let _runner = world.run("r1", &quick(), words.clone(), faults);
    pause(60).await;
    world.submit("a", "wait 100").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(world.rows("a").await, [r#"{"n":0}"#]);
    assert_eq!(words.runs("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_runner_with_an_error() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words, Box::new(|_, _| (Duration::ZERO, Fault::Refuse)));
    assert_eq!(runner.exit().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_any_size_is_whole_or_refused_by_name() {
    let small = Limits { document_bytes: 2_000, page_bytes: 1_000, ..Limits::default() };
    let (world, words) = (World::new(), Words::default());
    let _runner =
        world.run_with("r1", &quick(), words, no_faults(), Limits { large_results: LargeResults::Pages, ..small });
    pause(20).await;
    world.submit("a", "rows 2500").await;
    let mut rows = world.rows("a").await;
    let id = firesteel_model::StatementId::new("a").unwrap();
    let companion = world.user.companion(&id).await.unwrap().expect("a result has one").value;
    let (totals, attempt) = (companion.totals.expect("staged"), companion.candidate.expect("decided"));
    assert!(totals.pages > 3, "{totals:?}");
    for n in 0..totals.pages {
        rows.extend(world.user.page(&id, attempt, n).await.unwrap().rows);
    }
    let expected: Vec<String> = (0..2_500).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!((rows, totals.rows), (expected, 2_500));

    let (world, words) = (World::new(), Words::default());
    let _runner = world.run_with("r1", &quick(), words, no_faults(), small);
    pause(20).await;
    world.submit("a", "rows 2500").await;
    let state = world.end("a").await;
    assert!(error(&state).contains("result too large: "), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_statement_tells_how_far_it_is() {
    let (world, words) = (World::new(), Words::default());
    let _runner = world.run("r1", &quick(), words, no_faults());
    pause(20).await;
    world.submit("a", "wait 2500").await;
    pause(1_500).await;
    let id = firesteel_model::StatementId::new("a").unwrap();
    let progress = world.user.companion(&id).await.unwrap().expect("told").value.progress.expect("told");
    assert!((1_000..1_500).contains(&progress.elapsed_millis), "{progress:?}");
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(world.rows("a").await, [r#"{"n":0}"#]);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_is_what_ended_claimed_or_not_and_a_failure_tells_how_long_it_took() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &Policy { wait_timeout: 1_000, ..quick() }, words, no_faults());
    pause(20).await;
    for (id, text) in [("a", "rows 1"), ("b", "hang"), ("c", "rows 1")] {
        world.submit(id, text).await;
    }
    assert_eq!(error(&world.end("b").await), "timeout");
    assert_eq!(error(&world.end("c").await), "wait timeout");
    pause(10).await;
    let counted = &runner.counters;
    assert_eq!(
        (counted.statements.get(), counted.statements_succeeded.get(), counted.statements_failed.get()),
        (3, 1, 2)
    );
    assert_eq!(world.result("b").await.expect("published").run_millis, 3_000, "from its claim to its timeout");
    assert_eq!(world.result("c").await.expect("published").run_millis, 0, "it never ran");
}
