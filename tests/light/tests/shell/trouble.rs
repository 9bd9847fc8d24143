//! A store in trouble: what the runner does meanwhile, and what its log says.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firesteel_model::StatementState;
use firesteel_model::policy::Policy;
use firesteel_session::ports::Clock;
use firesteel_store::documents::{Documents, Field, Index, Order, Search};
use tracing::field::Visit;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::engine::Words;
use crate::faulty::Fault;
use crate::world::{World, no_faults, quick};

/// The lines of a log from `info` up.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Lines {
    /// How many lines say this, and the last of them.
    fn saying(&self, text: &str) -> (usize, String) {
        let lines = self.0.lock().unwrap();
        let found: Vec<&String> = lines.iter().filter(|line| line.contains(text)).collect();
        (found.len(), found.last().map_or(String::new(), |line| (*line).clone()))
    }
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

async fn seconds(n: u64) {
    pause(n * 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_told_of_at_once_then_each_half_minute_and_when_it_is_back() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (world, away) = (World::new(), Arc::new(Mutex::new(false)));
    let policy = Policy { unreachable: 600_000, inactivity: 3_600_000, ..quick() };
    let faults = {
        let away = Arc::clone(&away);
        Box::new(move |_: &'static str, _: &[String]| {
            (Duration::ZERO, if *away.lock().unwrap() { Fault::Refuse } else { Fault::None })
        })
    };
    let runner = world.run("r1", &policy, Words::default(), faults);
    seconds(1).await;
    *away.lock().unwrap() = true;
    seconds(1).await;
    assert_eq!(lines.saying("the store did not do it").0, 1);
    seconds(94).await;
    assert!(runner.counters.store_failures.get() > 1_000, "{}", runner.counters.store_failures.get());
    let (told, last) = lines.saying("the store still fails");
    assert_eq!(told, 3, "{last}");
    assert!(last.contains("error=the store is unavailable: away") && last.contains("seconds=90 "), "{last}");
    *away.lock().unwrap() = false;
    world.submit("a", "rows 1").await;
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(lines.saying("the store is well again").0, 0, "not before it is calm");
    seconds(15).await;
    let (told, last) = lines.saying("the store is well again");
    assert_eq!(told, 1);
    assert!(
        last.contains("seconds=94 ") && last.contains(&format!("failures={} ", runner.counters.store_failures.get())),
        "{last}"
    );
    assert_eq!(lines.saying("the store").0, 5, "and nothing else is said of it");
}

#[tokio::test(start_paused = true)]
async fn a_refused_version_is_no_trouble_of_the_stores() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let world = World::new();
    let runners = ["r1", "r2"].map(|name| {
        let policy = Policy { standby: true, ..quick() };
        world.run(name, &policy, Words::default(), no_faults())
    });
    for id in ["a", "b", "c"] {
        world.submit(id, "rows 1").await;
        world.cancel(id).await;
    }
    seconds(5).await;
    assert_eq!(lines.saying("the store").0, 0);
    assert!(runners.iter().all(|runner| runner.counters.store_failures.get() == 0));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_taken_for_too_long_fails_the_session() {
    let world = World::new();
    let faults = Box::new(|kind: &'static str, ids: &[String]| {
        let staged = kind == "bulk" && ids.iter().any(|id| id.starts_with("result-"));
        (Duration::ZERO, if staged { Fault::Refuse } else { Fault::None })
    });
    let runner = world.run("r1", &Policy { unreachable: 3_000, ..quick() }, Words::default(), faults);
    seconds(1).await;
    world.submit("a", "rows 1").await;
    seconds(2).await;
    assert_eq!(
        (world.state("a").await.name(), world.session_state().await),
        ("running", "running"),
        "it is tried again"
    );
    assert_eq!(runner.exit().await, 1);
    assert_eq!(world.session_state().await, "fail");
    let ended = StatementState::Failed { error: "session ended".into() };
    assert_eq!(world.end("a").await, ended, "what was left is swept");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_store_is_away_does_not_wait_for_ever() {
    let (world, away) = (World::new(), Arc::new(Mutex::new(false)));
    let faults = {
        let away = Arc::clone(&away);
        Box::new(move |_: &'static str, _: &[String]| {
            (Duration::ZERO, if *away.lock().unwrap() { Fault::Refuse } else { Fault::None })
        })
    };
    let runner = world.run("r1", &Policy { unreachable: 3_000, ..quick() }, Words::default(), faults);
    seconds(1).await;
    *away.lock().unwrap() = true;
    runner.stop.send(()).unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(runner.exit().await, 1);
    let took = began.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(4)).contains(&took), "{took:?}");
    assert_eq!(world.session_state().await, "running", "a successor takes it when the lease has run out");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_arrives_after_the_successors_removes_itself() {
    let world = World::new();
    let (mut owned, mut results, clock) = (0, 0, world.clock);
    let late = Box::new(move |kind: &'static str, ids: &[String]| match kind {
        // Its result arrives when the successor's is there, and what removes it takes a while.
        "bulk" if ids.iter().any(|id| id.starts_with("result-")) => {
            results += 1;
            (Duration::from_millis(if results == 1 { 1_200 } else { 600 }), Fault::None)
        }
        // It takes the session, never renews it, and learns that it is lost in between.
        "bulk" if ids == ["s"] => {
            owned += 1;
            (Duration::ZERO, if owned == 1 { Fault::None } else { Fault::Refuse })
        }
        "get" if ids == ["s"] && results > 0 && clock.now().0 < 1_500 => (Duration::ZERO, Fault::Refuse),
        _ => (Duration::ZERO, Fault::None),
    });
    let first = world.run("r1", &quick(), Words::default(), late);
    pause(20).await;
    world.submit("a", "rows 1").await;
    let _second = world.run("r2", &Policy { standby: true, ..quick() }, Words::default(), no_faults());
    assert_eq!(world.end("a").await, StatementState::Success);
    assert_eq!(first.exit().await, 0);
    let all = Search {
        index: Index::Results,
        terms: Vec::new(),
        or: Vec::new(),
        order: Order::Newest(Field::Updated),
        limit: 10,
    };
    let left = world.memory.search(&all).await.unwrap();
    assert_eq!(left.iter().map(|found| found.source["queryId"].as_str()).collect::<Vec<_>>(), [Some("q-a")]);
}
