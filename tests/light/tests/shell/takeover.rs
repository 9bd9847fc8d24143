//! One runner dies, freezes or is cut off at a chosen request; what its successor makes of it.

use std::time::Duration;

use firesteel_model::policy::Policy;
use firesteel_model::{Session, SessionId, SessionState, StatementId, StatementState};
use firesteel_session::ports::{LargeResults, ResultStore, SessionStore};
use firesteel_session::result::Limits;
use firesteel_store::Documents;
use firesteel_store::documents::{Index, Key, Op};
use serde_json::json;

use crate::engine::Words;
use crate::faulty::{Fault, Plan};
use crate::world::{Running, World, no_faults, quick, session_id};

const FOR_EVER: Duration = Duration::from_secs(3_600);

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// The `n`th bulk that names a document whose id begins so is done after this time, or never.
fn late(begins: &'static str, mut n: u32, by: Duration) -> Plan {
    Box::new(move |kind, ids| {
        if kind == "bulk" && ids.iter().any(|id| id.starts_with(begins)) {
            n = n.wrapping_sub(1);
            if n == 0 {
                return (by, Fault::None);
            }
        }
        (Duration::ZERO, Fault::None)
    })
}

/// So that a result of 2,500 rows has pages.
fn paged() -> Limits {
    Limits { document_bytes: 2_000, page_bytes: 1_000, large_results: LargeResults::Pages, ..Limits::default() }
}

/// Runs until the statement has come to the request that is late, then dies.
async fn die_at(world: &World, words: &Words, text: &str, plan: Plan) {
    let first = world.run("r1", &quick(), words.clone(), plan);
    pause(20).await;
    world.submit("a", text).await;
    pause(100).await;
    first.kill();
}

async fn shown(world: &World, id: &str) -> Vec<String> {
    world.submit(id, "show").await;
    assert_eq!(world.end(id).await, StatementState::Success, "{id}");
    world.rows(id).await
}

fn successor(world: &World, words: &Words) -> Running {
    world.run("r2", &quick(), words.clone(), no_faults())
}

#[tokio::test(start_paused = true)]
async fn what_a_session_is_made_of_outlives_its_runners() {
    let world = World::new();
    let first = world.run("r1", &quick(), Words::default(), no_faults());
    for (id, text) in [("a", "set x"), ("b", "fail"), ("c", "set y")] {
        world.submit(id, text).await;
        world.end(id).await;
    }
    first.kill();
    let second = successor(&world, &Words::default());
    assert_eq!(shown(&world, "d").await, [r#"{"entry":"x"}"#, r#"{"entry":"y"}"#]);
    world.submit("e", "set z").await;
    world.end("e").await;
    second.kill();
    world.run("r3", &quick(), Words::default(), no_faults());
    assert_eq!(shown(&world, "f").await, [r#"{"entry":"x"}"#, r#"{"entry":"y"}"#, r#"{"entry":"z"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_define_that_is_in_the_journal_succeeds_without_being_run_again() {
    let (world, words) = (World::new(), Words::default());
    // The statement's second write is its decision.
    die_at(&world, &Words::default(), "set x", late("a", 2, FOR_EVER)).await;
    assert_eq!(world.state("a").await.name(), "running");
    world.submit("b", "show").await;
    let _second = successor(&world, &words);
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!((words.runs("a"), world.rows("a").await.len()), (0, 1));
    assert_eq!(world.rows("b").await, [r#"{"entry":"x"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_define_that_is_not_in_the_journal_is_run_again() {
    let (world, words) = (World::new(), Words::default());
    die_at(&world, &Words::default(), "set x", late("journal-s/1", 1, FOR_EVER)).await;
    let _second = successor(&world, &words);
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!((words.runs("a"), shown(&world, "b").await), (1, vec![r#"{"entry":"x"}"#.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_define_cancelled_between_journal_and_decision_is_in_force_nowhere() {
    for dies in [false, true] {
        let (world, words) = (World::new(), Words::default());
        let first = world.run("r1", &quick(), words.clone(), late("a", 2, Duration::from_millis(100)));
        pause(20).await;
        world.submit("a", "set x").await;
        pause(50).await;
        world.cancel("a").await;
        if dies {
            first.kill();
            successor(&world, &Words::default());
        }
        assert_eq!(world.end("a").await, StatementState::Cancelled);
        assert_eq!(shown(&world, "b").await, Vec::<String>::new(), "its runner died: {dies}");
        assert_eq!(world.result("a").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_decided_and_not_published_is_published_by_the_next_runner() {
    let world = World::new();
    // After its staging, the result's next write is its publishing.
    die_at(&world, &Words::default(), "rows 3", late("result-a", 2, FOR_EVER)).await;
    assert_eq!((world.state("a").await, world.result("a").await), (StatementState::Success, None));
    let second = successor(&world, &Words::default());
    assert_eq!(world.rows("a").await.len(), 3);
    assert_eq!(second.counters.statements_swept.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_was_decided_and_not_told_is_told_by_the_next_runner() {
    let world = World::new();
    die_at(&world, &Words::default(), "fail", late("failure-a", 1, FOR_EVER)).await;
    assert_eq!((world.state("a").await.name(), world.result("a").await), ("failed", None));
    let _second = successor(&world, &Words::default());
    for _ in 0..1_000 {
        if let Some(result) = world.result("a").await {
            assert_eq!(result.status, "FAILED");
            return;
        }
        pause(10).await;
    }
    panic!("the failure has no result");
}

#[tokio::test(start_paused = true)]
async fn a_journal_write_by_an_old_owner_is_refused() {
    let (world, old, new) = (World::new(), Words::default(), Words::default());
    let clock = world.clock;
    // From 100 ms on it cannot renew its lease, and what it writes to the journal comes after its successor's epoch.
    let cut_off: Plan = Box::new(move |kind, ids| {
        use firesteel_session::ports::Clock;
        let cut = clock.now().0 > 100;
        match kind {
            "bulk" if ids.iter().any(|id| id == "s") && cut => (Duration::ZERO, Fault::Refuse),
            "bulk" if ids.iter().any(|id| id == "journal-s/1") => (Duration::from_millis(2_000), Fault::None),
            _ => (Duration::ZERO, Fault::None),
        }
    });
    let first = world.run("r1", &quick(), old.clone(), cut_off);
    pause(20).await;
    let _standby = world.run("r2", &Policy { standby: true, ..quick() }, new.clone(), no_faults());
    world.submit("a", "set x").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(first.exit().await, 0);
    assert_eq!((old.runs("a"), new.runs("a")), (1, 1));
    assert_eq!(shown(&world, "b").await, [r#"{"entry":"x"}"#], "once");
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_cannot_read_learns_nothing_from_the_silence() {
    let (world, words) = (World::new(), Words::default());
    let _first = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    let clock = world.clock;
    let deaf: Plan = Box::new(move |_, _| {
        use firesteel_session::ports::Clock;
        let away = (200..3_000).contains(&clock.now().0);
        (Duration::ZERO, if away { Fault::Refuse } else { Fault::None })
    });
    let standby = world.run("r2", &Policy { standby: true, ..quick() }, words.clone(), deaf);
    pause(5_000).await;
    let owner = world.user.session(&session_id()).await.unwrap().unwrap().value.owner.unwrap();
    assert_eq!((owner.runner.as_str(), standby.task.is_finished()), ("r1", false));
}

#[tokio::test(start_paused = true)]
async fn statements_of_a_session_that_nobody_serves_end_unless_it_is_being_recovered() {
    let world = World::new();
    let _runner = world.run("r1", &quick(), Words::default(), no_faults());
    let (user, dead) = (&world.user, |id: &str| Session {
        state: SessionState::Dead,
        ..Session::new(SessionId::new(id).unwrap(), "files")
    });
    pause(20).await;
    for session in ["over", "moving"] {
        user.create_session(&dead(session)).await.unwrap();
    }
    let moving = Key { index: Index::Requests, id: "moving".into() };
    let at = world.memory.get(std::slice::from_ref(&moving), false).await.unwrap()[0].clone().unwrap().version;
    let fields = json!({ "recoverTo": "next" }).to_string();
    world.memory.bulk(vec![Op::Update { key: moving, at, fields }], true).await.unwrap().remove(0).unwrap();
    for (id, session) in [("a", "over"), ("b", "moving"), ("c", "over")] {
        world.submit(id, "rows 1").await;
        // As if it had been submitted there.
        let key = Key { index: Index::Requests, id: id.into() };
        let at = world.memory.get(std::slice::from_ref(&key), false).await.unwrap()[0].clone().unwrap().version;
        let fields = json!({ "sessionId": session }).to_string();
        world.memory.bulk(vec![Op::Update { key, at, fields }], true).await.unwrap().remove(0).unwrap();
    }
    let ended = |state: StatementState| matches!(&state, StatementState::Failed { error } if error == "session ended");
    assert!(ended(world.end("a").await) && ended(world.end("c").await));
    pause(10).await;
    assert_eq!(world.result("a").await.map(|result| result.error), Some("session ended".to_owned()));
    pause(60_000).await;
    assert_eq!(world.state("b").await, StatementState::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_write_left_running_in_a_session_that_is_over_is_called_interrupted() {
    let world = World::new();
    let words = Words::default();
    let first = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "write 100000").await;
    pause(100).await;
    first.kill();
    let read = world.user.session(&session_id()).await.unwrap().unwrap();
    world.user.write_session(&session_id(), read.version, &firesteel_model::SessionChange::End).await.unwrap();
    // Somebody serves another session of the same index.
    let another = world.run_in("other", "r2", &quick(), Words::default(), no_faults());
    let StatementState::Failed { error } = world.end("a").await else { panic!("not failed") };
    assert!(error.contains("outcome unknown"), "{error}");
    assert!(!another.task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_another_version_is_left_to_a_runner_that_can_read_it() {
    let world = World::new();
    let first = world.run("r1", &quick(), Words::default(), no_faults());
    pause(20).await;
    world.submit("a", "set x").await;
    world.end("a").await;
    first.kill();
    let key = Key { index: Index::State, id: "journal-s/1".into() };
    let at = world.memory.get(std::slice::from_ref(&key), false).await.unwrap()[0].clone().expect("a record").version;
    let fields = json!({ "formatVersion": 2 }).to_string();
    world.memory.bulk(vec![Op::Update { key, at, fields }], true).await.unwrap().remove(0).unwrap();
    assert_eq!(successor(&world, &Words::default()).exit().await, 1);
    assert_eq!(world.session_state().await, "running", "it is for a successor of the other version");
}

/// The statements of two runners never meet, though both are told of all of them by searches that lag.
#[tokio::test(start_paused = true)]
async fn two_runners_that_see_the_same_hits_execute_each_statement_once() {
    let (world, words) = (World::new(), Words::default());
    let standby = Policy { standby: true, ..quick() };
    let _first = world.run("r1", &standby, words.clone(), no_faults());
    let _second = world.run("r2", &standby, words.clone(), no_faults());
    pause(20).await;
    let ids: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    for id in &ids {
        world.submit(id, "write 1").await;
    }
    for id in &ids {
        assert_eq!(world.end(id).await, StatementState::Success);
        assert_eq!((words.runs(id), words.writes(id)), (1, 1), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_on_the_wire_when_its_statement_is_cancelled_is_removed_too() {
    let world = World::new();
    let mut pages = 0;
    let on_the_wire: Plan = Box::new(move |kind, ids| {
        let page = kind == "bulk" && ids.iter().any(|id| id.starts_with("page-a/"));
        pages += u32::from(page);
        (Duration::ZERO, if page && pages == 2 { Fault::OnTheWire(Duration::from_millis(300)) } else { Fault::None })
    });
    let _runner = world.run_with("r1", &quick(), Words::default(), on_the_wire, paged());
    pause(20).await;
    world.submit("a", "rows 2500").await;
    pause(100).await;
    world.cancel("a").await;
    world.submit("b", "rows 1").await;
    assert_eq!(world.end("b").await, StatementState::Success);
    pause(1_000).await;
    let id = StatementId::new("a").unwrap();
    let companion = world.user.companion(&id).await.unwrap().expect("something was staged").value;
    assert_eq!((companion.staged.len(), companion.published), (1, true));
    for n in 0..4 {
        assert!(world.user.page(&id, companion.staged[0], n).await.is_err(), "page {n} is left");
    }
}

/// The gaps into which a runner can fall: before the claim, after it, after the first page, between the result and its decision.
#[tokio::test(start_paused = true)]
async fn whatever_gap_a_runner_dies_in_its_successor_gives_the_whole_result_once() {
    for (gap, plan, runs) in [
        ("before the claim", late("a", 1, FOR_EVER), 1),
        ("after the claim", late("companion-a", 1, FOR_EVER), 2),
        ("after the first page", late("page-a/", 2, FOR_EVER), 2),
        ("after the result", late("a", 2, FOR_EVER), 2),
    ] {
        let (world, words) = (World::new(), Words::default());
        let first = world.run_with("r1", &quick(), words.clone(), plan, paged());
        pause(20).await;
        world.submit("a", "rows 2500").await;
        pause(200).await;
        first.kill();
        let _second = world.run_with("r2", &quick(), words.clone(), no_faults(), paged());
        assert_eq!(world.end("a").await, StatementState::Success, "{gap}");
        pause(3_000).await;
        assert_eq!(words.runs("a"), runs, "{gap}");
        let id = StatementId::new("a").unwrap();
        let companion = world.user.companion(&id).await.unwrap().unwrap().value;
        let decided = companion.candidate.expect("a candidate");
        let mut rows = world.rows("a").await;
        for n in 0..companion.totals.unwrap().pages {
            rows.extend(world.user.page(&id, decided, n).await.unwrap().rows);
        }
        let expected: Vec<String> = (0..2_500).map(|n| format!("{{\"n\":{n}}}")).collect();
        assert!(rows == expected, "{gap}: {} rows", rows.len());
        assert!(companion.published, "{gap}");
        for other in companion.staged.into_iter().filter(|attempt| *attempt != decided) {
            assert!(world.user.page(&id, other, 0).await.is_err(), "{gap}: a page of another attempt is left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_after_the_sessions_document_was_deleted_makes_none_and_its_runner_leaves() {
    let (world, words) = (World::new(), Words::default());
    let runner = world.run("r1", &quick(), words.clone(), no_faults());
    pause(20).await;
    world.submit("a", "wait 2000").await;
    pause(20).await;
    let key = Key { index: Index::Requests, id: session_id().as_str().into() };
    let at = world.memory.get(std::slice::from_ref(&key), false).await.unwrap()[0].clone().unwrap().version;
    world.memory.bulk(vec![Op::Delete { key: key.clone(), at }], true).await.unwrap().remove(0).unwrap();
    assert_eq!(runner.exit().await, 0);
    assert_eq!(world.memory.get(&[key], false).await, Ok(vec![None]));
    assert!(words.closed(), "what ran is stopped");
}

#[tokio::test(start_paused = true)]
async fn a_statement_submitted_between_idle_and_dead_is_not_lost_silently() {
    let (world, words) = (World::new(), Words::default());
    let idle = Policy { inactivity: 300, heartbeat: 20_000, first_heartbeat: 20_000, lease: 60_000, ..quick() };
    // The search for what is left has found nothing; the end is on its way.
    let mut ends = 0;
    let slow_end: Plan = Box::new(move |kind, ids| {
        let session = kind == "bulk" && ids.iter().any(|id| id == session_id().as_str());
        ends += u32::from(session);
        (Duration::ZERO, if session && ends == 2 { Fault::OnTheWire(Duration::from_millis(200)) } else { Fault::None })
    });
    let runner = world.run("r1", &idle, words.clone(), slow_end);
    pause(400).await;
    assert_eq!(world.session_state().await, "running");
    world.submit("a", "rows 1").await;
    assert_eq!(runner.exit().await, 0);
    assert_eq!((world.session_state().await, words.runs("a")), ("dead", 0));
    assert_eq!(world.state("a").await, StatementState::Failed { error: "session ended".into() });
    assert_eq!(world.result("a").await.map(|result| result.error), Some("session ended".to_owned()));
}
