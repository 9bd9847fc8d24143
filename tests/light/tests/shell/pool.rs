//! Many sessions in one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firesteel_model::policy::{OnStop, Policy};
use firesteel_model::runner::{Exit, Identity};
use firesteel_model::{
    Owner, Pattern, QueryId, QueryText, RunnerId, Session, SessionChange, SessionId, SessionState, Statement,
    StatementId, StatementState, Stored,
};
use firesteel_session::counters::Counters;
use firesteel_session::pool::Pool;
use firesteel_session::ports::{Engine, SessionStore};
use firesteel_session::result::Limits;
use firesteel_store::{Scope, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::engine::Words;
use crate::faulty::{Fault, Faulty, Plan};
use crate::world::{World, no_faults, quick};

fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn owner(runner: &str, lease_millis: u64) -> Owner {
    Owner { runner: RunnerId::new(runner).unwrap(), lease_millis }
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// A process that serves many.
struct Process {
    stop: mpsc::UnboundedSender<()>,
    task: JoinHandle<Exit>,
    hearts: JoinHandle<()>,
    store: Faulty,
    heart: Faulty,
    words: Arc<Mutex<BTreeMap<SessionId, Words>>>,
    counters: Counters,
}

impl Process {
    fn start(world: &World, name: &str, pattern: &str, policy: &Policy, faults: Plan, hearts: Plan) -> Process {
        let (store, heart) = (Faulty::new(world.memory.clone(), faults), Faulty::new(world.memory.clone(), hearts));
        let words: Arc<Mutex<BTreeMap<SessionId, Words>>> = Arc::default();
        let (made, counters) = (Arc::clone(&words), Counters::default());
        let me = Identity {
            runner: RunnerId::new(name).unwrap(),
            job: None,
            application: None,
            session: id(pattern),
            data_source: "files".into(),
            excluded: Vec::new(),
            batch: None,
        };
        let pool = Pool {
            me,
            patterns: vec![Pattern::new(pattern).unwrap()],
            policy: policy.clone(),
            limits: Limits::default(),
            store: Arc::new(Store::new(store.clone(), Scope::Requests)),
            engines: Arc::new(move |session: &SessionId| {
                Arc::new(made.lock().unwrap().entry(session.clone()).or_default().clone()) as Arc<dyn Engine>
            }),
            clock: Arc::new(world.clock),
            counters: counters.clone(),
            members: Default::default(),
        };
        let hearts = tokio::spawn(pool.hearts(Arc::new(Store::new(heart.clone(), Scope::Requests))).beat());
        let (stop, stopped) = mpsc::unbounded_channel();
        Process { stop, task: tokio::spawn(pool.run(stopped)), hearts, store, heart, words, counters }
    }

    fn plain(world: &World, policy: &Policy) -> Process {
        Process::start(world, "r1", "s*", policy, no_faults(), no_faults())
    }

    async fn stops(self) -> u8 {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().code
    }

    /// As `kill -9` does: no last word.
    fn kill(self) {
        self.task.abort();
        self.hearts.abort();
    }

    /// The requests of a kind since the last call of either count.
    fn requests(&self) -> (BTreeMap<&'static str, usize>, BTreeMap<&'static str, usize>) {
        let count = |documents: &Faulty| {
            let mut counts = BTreeMap::new();
            documents.requests().into_iter().for_each(|kind| *counts.entry(kind).or_default() += 1);
            counts
        };
        (count(&self.store), count(&self.heart))
    }
}

async fn make(world: &World, name: &str) {
    owned(world, name, None).await;
}

async fn owned(world: &World, name: &str, owner: Option<Owner>) {
    let session = Session {
        state: if owner.is_some() { SessionState::Running } else { SessionState::NotStarted },
        owner,
        ..Session::new(id(name), "files")
    };
    world.user.create_session(&session).await.unwrap();
}

async fn submit(world: &World, session: &str, name: &str, text: &str) {
    let statement = Statement {
        id: StatementId::new(name).unwrap(),
        session: id(session),
        query_id: Some(QueryId::new(format!("q-{name}")).unwrap()),
        lang: "sql".into(),
        query: QueryText(text.into()),
        data_source: "files".into(),
        submit_time: world.user.time().await.unwrap(),
        state: StatementState::Waiting,
    };
    world.user.create_statement(&statement, None).await.unwrap();
}

async fn session(world: &World, name: &str) -> Stored<Session> {
    world.user.session(&id(name)).await.unwrap().expect("made")
}

async fn owner_of(world: &World, name: &str) -> Option<String> {
    session(world, name).await.value.owner.map(|owner| owner.runner.to_string())
}

/// Waits until a session is as it should be.
async fn until(world: &World, name: &str, is_so: impl Fn(&Session) -> bool) {
    for _ in 0..10_000 {
        if is_so(&session(world, name).await.value) {
            return;
        }
        pause(10).await;
    }
    panic!("{name} is never so: {:?}", session(world, name).await);
}

#[tokio::test(start_paused = true)]
async fn each_session_has_its_own_statements_and_state_and_all_end_when_the_process_is_told_to_stop() {
    let world = World::new();
    for name in ["s1", "s2", "s3", "other"] {
        make(&world, name).await;
    }
    let process = Process::plain(&world, &quick());
    for session in ["s1", "s2", "s3"] {
        submit(&world, session, &format!("{session}-a"), &format!("set of-{session}")).await;
        submit(&world, session, &format!("{session}-b"), "show").await;
    }
    submit(&world, "other", "x", "rows 1").await;
    for session in ["s1", "s2", "s3"] {
        assert_eq!(world.rows(&format!("{session}-b")).await, [format!(r#"{{"entry":"of-{session}"}}"#)]);
        assert_eq!(process.words.lock().unwrap()[&id(session)].runs(&format!("{session}-b")), 1);
    }
    assert_eq!((process.counters.sessions_active.get(), process.counters.statements.get()), (3, 6));
    assert_eq!(world.state("x").await, StatementState::Waiting, "a session like no pattern is not touched");
    let counters = process.counters.clone();
    assert_eq!(process.stops().await, 0);
    for name in ["s1", "s2", "s3"] {
        assert_eq!(session(&world, name).await.value.state, SessionState::Dead);
    }
    assert_eq!(session(&world, "other").await.value.state, SessionState::NotStarted);
    assert_eq!((counters.sessions_active.get(), counters.sessions_dead.get()), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn sessions_without_work_cost_one_search_a_round_and_one_bulk_an_interval() {
    let world = World::new();
    let policy = Policy {
        heartbeat: 2_000,
        first_heartbeat: 700,
        lease: 6_000,
        poll_idle: 100,
        idle_after: 1_000,
        inactivity: 1_000_000,
        sweep_every: 1_000_000,
        ..quick()
    };
    let process = Process::plain(&world, &policy);
    for n in 0..50 {
        make(&world, &format!("s{n:02}")).await;
        pause(37).await;
    }
    pause(10_000).await;
    process.requests();
    pause(20_000).await;
    let (store, heart) = process.requests();
    // A listing for each heartbeat comes to the searches.
    assert_eq!(store.keys().collect::<Vec<_>>(), [&"search"], "{store:?}");
    assert!((200..=212).contains(&store["search"]), "{store:?}");
    assert_eq!(heart.keys().collect::<Vec<_>>(), [&"bulk"], "{heart:?}");
    assert!((9..=11).contains(&heart["bulk"]), "{heart:?}");
    for n in 0..50 {
        let seen = session(&world, &format!("s{n:02}")).await.value;
        let now = world.user.time().await.unwrap();
        assert_eq!(seen.owner, Some(owner("r1", 6_000)));
        assert!(now - seen.last_update <= 2_100, "renewed in time: {seen:?} {now}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_session_is_taken_by_the_next_search_and_not_by_the_next_listing() {
    let world = World::new();
    let policy = Policy { heartbeat: 60_000, lease: 180_000, ..quick() };
    let process = Process::plain(&world, &policy);
    pause(10_000).await;
    make(&world, "s1").await;
    submit(&world, "s1", "a", "rows 1").await;
    pause(300).await;
    assert_eq!(world.state("a").await, StatementState::Success);
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_many_statements_keeps_no_other_waiting() {
    let world = World::new();
    let slow: Plan = Box::new(|_, _| (Duration::from_millis(1), Fault::None));
    for name in ["s1", "s2"] {
        make(&world, name).await;
    }
    for n in 0..600 {
        submit(&world, "s1", &format!("m{n:03}"), "rows 1").await;
    }
    let process = Process::start(&world, "r1", "s*", &quick(), slow, no_faults());
    until(&world, "s2", |s| s.state == SessionState::Running).await;
    submit(&world, "s2", "late", "rows 1").await;
    assert_eq!(world.end("late").await, StatementState::Success);
    assert_eq!(world.state("m599").await, StatementState::Waiting);
    assert_eq!(world.end("m599").await, StatementState::Success);
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_takes_is_left_and_the_others_go_on() {
    let world = World::new();
    for name in ["s1", "s2"] {
        make(&world, name).await;
    }
    let process = Process::plain(&world, &quick());
    submit(&world, "s1", "long", "hang").await;
    until(&world, "s2", |s| s.state == SessionState::Running).await;
    pause(100).await;
    assert_eq!(world.state("long").await.name(), "running");
    let thief = SessionChange::Own { owner: owner("thief", 60_000), job: None, application: None, excluded: vec![] };
    loop {
        let read = session(&world, "s1").await;
        if world.user.write_session(&id("s1"), read.version, &thief).await.is_ok() {
            break;
        }
    }
    pause(1_000).await;
    assert!(process.words.lock().unwrap()[&id("s1")].closed(), "abandoned");
    assert_eq!(owner_of(&world, "s1").await.as_deref(), Some("thief"));
    submit(&world, "s2", "b", "rows 1").await;
    assert_eq!(world.end("b").await, StatementState::Success);
    pause(2_000).await;
    assert_eq!(owner_of(&world, "s1").await.as_deref(), Some("thief"));
    assert_eq!(owner_of(&world, "s2").await.as_deref(), Some("r1"));
    assert_eq!(process.stops().await, 0);
    assert_eq!(session(&world, "s1").await.value.state, SessionState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_is_of_its_session_alone() {
    let world = World::new();
    for name in ["s1", "s2", "s3"] {
        make(&world, name).await;
    }
    let process = Process::plain(&world, &quick());
    until(&world, "s3", |s| s.state == SessionState::Running).await;
    for _ in 0..20 {
        // Another program writes the session's document, so that the next renewal names an old version.
        let read = session(&world, "s2").await;
        let _ = world.user.write_session(&id("s2"), read.version, &SessionChange::Renew).await;
        pause(230).await;
    }
    let (_, heart) = process.requests();
    assert!(heart["get"] >= 15, "each refusal is read about: {heart:?}");
    for name in ["s1", "s2", "s3"] {
        submit(&world, name, &format!("{name}-a"), "rows 1").await;
        assert_eq!(world.end(&format!("{name}-a")).await, StatementState::Success);
    }
    let read = session(&world, "s3").await.value;
    assert!(world.user.time().await.unwrap() - read.last_update <= 300, "{read:?}");
    assert_eq!(process.counters.heartbeat_failures.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_ended_is_left_before_its_next_statement_is_claimed() {
    let world = World::new();
    for name in ["s1", "s2"] {
        make(&world, name).await;
    }
    let process =
        Process::plain(&world, &Policy { heartbeat: 5_000, lease: 15_000, first_heartbeat: 5_000, ..quick() });
    until(&world, "s1", |s| s.state == SessionState::Running).await;
    pause(100).await;
    let read = session(&world, "s1").await;
    world.user.write_session(&id("s1"), read.version, &SessionChange::End).await.unwrap();
    submit(&world, "s1", "a", "rows 1").await;
    submit(&world, "s2", "b", "rows 1").await;
    assert_eq!(world.end("b").await, StatementState::Success);
    // What is left in an ended session is failed after a while.
    let error = "session ended".to_owned();
    assert_eq!(world.end("a").await, StatementState::Failed { error });
    assert_eq!(process.words.lock().unwrap()[&id("s1")].runs("a"), 0);
    assert_eq!(process.stops().await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_runner_left_is_taken_when_its_lease_has_run_out_and_what_a_living_one_serves_is_not() {
    let world = World::new();
    owned(&world, "s-dead", Some(owner("gone", 500))).await;
    owned(&world, "s-free", Some(owner("gone", 0))).await;
    owned(&world, "s-alive", Some(owner("alive", 500))).await;
    let process = Process::plain(&world, &quick());
    let began = world.clock.0.elapsed();
    let alive = async {
        loop {
            let read = session(&world, "s-alive").await;
            world.user.write_session(&id("s-alive"), read.version, &SessionChange::Renew).await.unwrap();
            pause(100).await;
        }
    };
    let taken = async {
        until(&world, "s-free", |s| s.owner == Some(owner("r1", 600))).await;
        assert!(world.clock.0.elapsed() - began < Duration::from_millis(200));
        until(&world, "s-dead", |s| s.owner == Some(owner("r1", 600))).await;
        assert!(world.clock.0.elapsed() - began >= Duration::from_millis(500));
        pause(3_000).await;
        assert_eq!(owner_of(&world, "s-alive").await.as_deref(), Some("alive"));
        assert_eq!(process.counters.sessions_active.get(), 2);
    };
    tokio::select! {
        () = alive => {}
        () = taken => {}
    }
}

#[tokio::test(start_paused = true)]
async fn two_stand_bys_share_the_sessions_and_one_takes_over_what_the_other_had() {
    let world = World::new();
    let names: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    for name in &names {
        make(&world, name).await;
    }
    let policy = Policy { standby: true, ..quick() };
    let first = Process::start(&world, "r1", "s*", &policy, no_faults(), no_faults());
    for name in &names {
        until(&world, name, |s| s.owner.is_some()).await;
    }
    let second = Process::start(&world, "r2", "s*", &policy, no_faults(), no_faults());
    make(&world, "s-new").await;
    pause(2_000).await;
    second.requests();
    pause(1_000).await;
    let (store, _) = second.requests();
    assert!(store["get"] <= 1_000 / 50 + 1, "those who watch ask together: {store:?}");
    let of_second = second.counters.sessions_active.get();
    assert!(of_second <= 1, "only the new one is not the first's: {of_second}");
    first.kill();
    for name in names.iter().map(String::as_str).chain(["s-new"]) {
        until(&world, name, |s| s.owner.as_ref().is_some_and(|o| o.runner.as_str() == "r2")).await;
        submit(&world, name, &format!("{name}-a"), "rows 1").await;
    }
    for name in &names {
        assert_eq!(world.end(&format!("{name}-a")).await, StatementState::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_away_is_asked_less_and_served_from_when_it_is_back() {
    let world = World::new();
    for name in ["s1", "s2"] {
        make(&world, name).await;
    }
    let clock = world.clock;
    let away = move || -> Plan {
        Box::new(move |_, _| {
            let away = (1_000..4_000).contains(&clock.0.elapsed().as_millis());
            (Duration::ZERO, if away { Fault::Refuse } else { Fault::None })
        })
    };
    let process = Process::start(&world, "r1", "s*", &quick(), away(), away());
    pause(2_000).await;
    process.requests();
    pause(1_000).await;
    let (store, _) = process.requests();
    assert!(store["search"] <= 1_000 / 100 + 2 + 10, "a search and a listing each 100 ms at most: {store:?}");
    for name in ["s1", "s2"] {
        submit(&world, name, &format!("{name}-a"), "rows 1").await;
    }
    pause(2_000).await;
    for name in ["s1", "s2"] {
        assert_eq!(world.state(&format!("{name}-a")).await, StatementState::Success);
        assert_eq!(owner_of(&world, name).await.as_deref(), Some("r1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_process() {
    let world = World::new();
    make(&world, "s1").await;
    let clock = world.clock;
    let away = move || -> Plan {
        Box::new(move |_, _| {
            let away = clock.0.elapsed().as_millis() >= 1_000;
            (Duration::ZERO, if away { Fault::Refuse } else { Fault::None })
        })
    };
    let process = Process::start(&world, "r1", "s*", &Policy { unreachable: 2_000, ..quick() }, away(), away());
    assert_eq!(process.task.await.unwrap(), Exit { code: 1, why: "the store is out of reach" });
    assert!((3_000..5_000).contains(&clock.0.elapsed().as_millis()), "{:?}", clock.0.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_handover_leaves_all_sessions_to_the_next_process_and_a_second_stop_leaves_at_once() {
    let world = World::new();
    for name in ["s1", "s2"] {
        make(&world, name).await;
    }
    let first = Process::plain(&world, &Policy { on_stop: OnStop::Handover, ..quick() });
    submit(&world, "s1", "a", "hang").await;
    until(&world, "s2", |s| s.state == SessionState::Running).await;
    pause(200).await;
    assert_eq!(first.stops().await, 0);
    for name in ["s1", "s2"] {
        assert_eq!(session(&world, name).await.value.owner, Some(owner("r1", 0)));
    }
    assert_eq!(world.state("a").await, StatementState::Waiting);
    let second = Process::start(&world, "r2", "s*", &quick(), no_faults(), no_faults());
    pause(300).await;
    assert_eq!(owner_of(&world, "s2").await.as_deref(), Some("r2"));
    assert_eq!(world.state("a").await.name(), "running");
    second.stop.send(()).unwrap();
    pause(1).await;
    assert_eq!(second.stops().await, 1, "stopped at once, with a statement that runs");
    assert_eq!(session(&world, "s1").await.value.state, SessionState::Running);
}
