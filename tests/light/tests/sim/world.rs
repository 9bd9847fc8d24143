//! Sessions, the processes that serve them, and those who submit, cancel and close.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firesteel_model::policy::{OnStop, Policy};
use firesteel_model::runner::{Exit, Identity};
use firesteel_model::{
    JobId, Pattern, QueryId, QueryText, RunnerId, Session, SessionChange, SessionId, Statement, StatementId,
    StatementState,
};
use firesteel_session::counters::Counters;
use firesteel_session::pool::{Members, Pool};
use firesteel_session::ports::{Clock, Engine, LargeResults, SessionStore, StoreError};
use firesteel_session::result::Limits;
use firesteel_session::shell::{Job, Shared, heart, run};
use firesteel_store::documents::{Index, Key, Op};
use firesteel_store::{Memory, Scope, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::engine::Words;
use crate::ledger::{Facts, Ledger};
use crate::observer::Observed;
use crate::plant::{Fault, Planted};
use crate::process::{Gate, OwnClock};
use crate::wire::{Weather, Wire};

/// The lease of every runner, in milliseconds.
pub const LEASE: u64 = 600;

/// Every interval short, none equal to another.
pub fn policy() -> Policy {
    Policy {
        heartbeat: 200,
        first_heartbeat: 50,
        lease: LEASE,
        poll_busy: 10,
        busy_for: 300,
        poll: 25,
        poll_idle: 60,
        idle_after: 3_000,
        watch: 20,
        execution_timeout: 1_500,
        wait_timeout: 60_000,
        inactivity: 60_000,
        launch_grace: 2_000,
        unreachable: 5_000,
        stop_grace: 300,
        sweep: 300,
        sweep_every: 400,
        retry: 5,
        retry_max: 100,
        standby: true,
        on_stop: OnStop::Handover,
        ..Policy::default()
    }
}

/// Small, so that a result of thirty rows has pages.
fn limits() -> Limits {
    Limits { document_bytes: 400, page_bytes: 200, large_results: LargeResults::Pages, ..Limits::default() }
}

/// A session and how its runners are started.
#[derive(Clone)]
pub struct Served {
    pub session: String,
    /// The jobs that a launcher gave; none: started by hand.
    pub job: Option<String>,
    pub excluded: Vec<String>,
    /// One statement of a batch job instead of a session's.
    pub batch: bool,
    /// All sessions that `session` is a pattern of, in one process.
    pub many: bool,
    pub policy: Policy,
}

/// A runner at work.
pub struct Process {
    pub name: String,
    pub served: Served,
    /// One, or one for each of many sessions.
    pub engines: Arc<Mutex<BTreeMap<SessionId, Words>>>,
    gate: Gate,
    clock: OwnClock,
    wires: [Wire; 2],
    stop: mpsc::UnboundedSender<()>,
    work: JoinHandle<Exit>,
    heart: JoinHandle<()>,
}

/// The world of one seed.
pub struct World {
    pub ledger: Ledger,
    pub weather: Arc<Mutex<Weather>>,
    pub processes: Vec<Process>,
    pub fault: Option<Fault>,
    origin: Instant,
    memory: Memory,
    people: JoinSet<()>,
    started: u64,
}

fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

impl World {
    pub fn new(fault: Option<Fault>) -> World {
        let origin = Instant::now();
        let ledger = Ledger::new(origin);
        let clock = ledger.clone();
        World {
            memory: Memory::new(move || 1_700_000_000_000 + clock.now()),
            ledger,
            weather: Arc::default(),
            processes: Vec::new(),
            fault,
            origin,
            people: JoinSet::new(),
            started: 0,
        }
    }

    /// The store itself, as nobody reaches it.
    pub fn store(&self, by: &str) -> Observed {
        Observed::new(self.memory.clone(), self.ledger.clone(), by)
    }

    fn wire(&self, by: &str, gate: &Gate, dice: &mut Dice, planted: &Planted) -> Wire {
        Wire::new(self.store(by), gate.clone(), Arc::clone(&self.weather), dice.more(), planted.clone())
    }

    /// A store of somebody who is no runner, and who has no luck either.
    fn somebody(&self, who: &str, dice: &mut Dice) -> Store<Wire> {
        Store::new(self.wire(who, &Gate::default(), dice, &Planted::new(None, None)), Scope::Requests)
    }

    /// Starts a runner.
    pub fn start(&mut self, served: &Served, dice: &mut Dice) {
        self.started += 1;
        let name = format!("r{}", self.started);
        let job = |name: &String| JobId::new(name.clone()).unwrap();
        let me = Identity {
            runner: RunnerId::new(name.clone()).unwrap(),
            job: served.job.as_ref().map(job),
            application: None,
            session: session_id(&served.session),
            data_source: "files".into(),
            excluded: served.excluded.iter().map(job).collect(),
            batch: served.batch.then(|| StatementId::new(served.session.clone()).unwrap()),
        };
        let (gate, planted) = (Gate::default(), Planted::new(self.fault, served.job.as_deref()));
        let wires = [self.wire(&name, &gate, dice, &planted), self.wire(&name, &gate, dice, &planted)];
        let scope = if served.batch { Scope::Batch } else { Scope::Requests };
        let clock = OwnClock::new(self.origin, dice.below(2_000_000));
        let engines: Arc<Mutex<BTreeMap<SessionId, Words>>> = Arc::default();
        let (made, by, ledger) = (Arc::clone(&engines), name.clone(), self.ledger.clone());
        let engine_of = move |session: &SessionId| {
            let mut made = made.lock().unwrap();
            let words = made.entry(session.clone()).or_insert_with(|| Words::new(&by, ledger.clone()));
            Arc::new(words.clone()) as Arc<dyn Engine>
        };
        let (stop, stopped) = mpsc::unbounded_channel();
        let counters = Counters::default();
        let [store, beats] = wires.clone().map(|wire| Arc::new(Store::new(wire, scope)));
        let (policy, own) = (served.policy.clone(), Arc::new(clock.clone()) as Arc<dyn Clock>);
        let (work, heart): (BoxFuture<'static, Exit>, BoxFuture<'static, ()>) = if served.many {
            let pool = Pool {
                patterns: vec![Pattern::new(&served.session).unwrap()],
                me,
                policy,
                limits: limits(),
                store,
                engines: Arc::new(engine_of),
                clock: own,
                counters,
                members: Members::default(),
            };
            let hearts = pool.hearts(beats);
            (pool.run(stopped).boxed(), hearts.beat().boxed())
        } else {
            let shared = Shared::new(me.clone(), policy.clone());
            let patience = Duration::from_millis(policy.heartbeat);
            let (id, seen) = (me.session.clone(), Arc::clone(&shared));
            let beating = heart::beat(id, seen, beats, Arc::clone(&own), counters.clone(), patience);
            let engine = engine_of(&me.session);
            let job = Job { me, policy, limits: limits(), store, engine, clock: own, counters };
            (run(job, shared, stopped).boxed(), beating.boxed())
        };
        let facts = Facts { session: served.session.clone(), alive: true, ..Facts::default() };
        self.ledger.book().processes.insert(name.clone(), facts);
        self.ledger.tell(|| format!("{name} is started for {}, job {:?}", served.session, served.job));
        let work = tokio::spawn(gate.clone().hold(work));
        let heart = tokio::spawn(gate.clone().hold(heart));
        let served = served.clone();
        self.processes.push(Process { name, served, engines, gate, clock, wires, stop, work, heart });
    }

    fn facts(&self, name: &str, f: impl FnOnce(&mut Facts)) {
        if let Some(facts) = self.ledger.book().processes.get_mut(name) {
            f(facts);
        }
    }

    /// As `kill -9` does: no last word. What it sent may arrive.
    pub fn kill(&mut self, n: usize) -> Served {
        let process = self.processes.swap_remove(n);
        process.work.abort();
        process.heart.abort();
        self.ledger.tell(|| format!("{} is killed", process.name));
        self.facts(&process.name, |f| f.alive = false);
        process.served
    }

    /// The process stands still for so long; its clock goes on, or misses that time.
    pub fn freeze(&self, n: usize, millis: u64, clock_stops: bool) {
        let process = &self.processes[n];
        let (gate, clock) = (process.gate.clone(), process.clock.clone());
        gate.shut();
        self.ledger.tell(|| format!("{} is frozen for {millis} ms, its clock stops: {clock_stops}", process.name));
        if clock_stops {
            self.facts(&process.name, |f| f.misled = true);
        }
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if clock_stops {
                clock.miss(millis);
            }
            gate.open();
        });
    }

    /// Its workers die.
    pub fn crash(&self, n: usize) {
        self.processes[n].engines.lock().unwrap().values().for_each(Words::crash);
    }

    pub fn cut(&self, n: usize, millis: u64) {
        let until = self.ledger.now() + millis;
        self.ledger.tell(|| format!("{} is cut off for {millis} ms", self.processes[n].name));
        self.processes[n].wires.iter().for_each(|w| w.cut(until));
    }

    pub fn stop(&self, n: usize) {
        self.ledger.tell(|| format!("{} is told to stop", self.processes[n].name));
        self.facts(&self.processes[n].name, |f| f.stopping = true);
        let _ = self.processes[n].stop.send(());
    }

    /// Takes away the runners that have left; what each said.
    pub async fn left(&mut self) -> Vec<(Served, Exit)> {
        let (gone, here): (Vec<_>, Vec<_>) = self.processes.drain(..).partition(|p| p.work.is_finished());
        self.processes = here;
        let mut left = Vec::new();
        for process in gone {
            process.heart.abort();
            self.facts(&process.name, |f| f.alive = false);
            match process.work.await {
                Ok(exit) => {
                    self.ledger.tell(|| format!("{} exits with {}: {}", process.name, exit.code, exit.why));
                    left.push((process.served, exit));
                }
                Err(error) => self.ledger.wrong(format!("{} panicked: {error}", process.name)),
            }
        }
        left
    }

    /// A user submits: again until it is known to be there, then looks whether the session takes it.
    pub fn submit(&mut self, session: &str, n: usize, text: &str, back: u64, dice: &mut Dice) {
        let store = self.somebody("user", dice);
        let id = StatementId::new(format!("{session}-{n}")).unwrap();
        let statement = Statement {
            query_id: Some(QueryId::new(format!("q-{id}")).unwrap()),
            id: id.clone(),
            session: session_id(session),
            lang: "sql".into(),
            query: QueryText(text.into()),
            data_source: "files".into(),
            submit_time: (self.ledger.now() + 1_000).saturating_sub(back),
            state: StatementState::Waiting,
        };
        self.people.spawn(async move {
            loop {
                match store.create_statement(&statement, None).await {
                    Ok(_) | Err(StoreError::Conflict) => break,
                    Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
                }
            }
            let error = "session ended".to_owned();
            loop {
                match store.session(&statement.session).await {
                    Ok(session) if !session.as_ref().is_some_and(|s| s.value.state.is_ended()) => return,
                    Ok(_) => {}
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(30)).await;
                        continue;
                    }
                }
                match store.statement(&id).await {
                    Ok(Some(read)) if !read.value.state.is_terminal() => {
                        let failed = StatementState::Failed { error: error.clone() };
                        let _ = store.write_statement(&id, read.version, &failed).await;
                    }
                    Ok(_) => return,
                    Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
                }
            }
        });
    }

    /// The control plane cancels a statement, if it has not ended.
    pub fn cancel(&mut self, id: &str, dice: &mut Dice) {
        let (store, id) = (self.somebody("control", dice), StatementId::new(id).unwrap());
        self.people.spawn(async move {
            for _ in 0..5 {
                match store.statement(&id).await {
                    Ok(Some(read)) if !read.value.state.is_terminal() => {
                        let _ = store.write_statement(&id, read.version, &StatementState::Cancelled).await;
                    }
                    Ok(Some(_)) => return,
                    _ => {}
                }
            }
        });
    }

    /// The control plane makes a session for a job that it launched.
    pub fn make(&mut self, served: &Served, dice: &mut Dice) {
        let store = self.somebody("control", dice);
        let session = Session {
            job: served.job.as_ref().map(|j| JobId::new(j.clone()).unwrap()),
            ..Session::new(session_id(&served.session), "files")
        };
        self.people.spawn(async move {
            while !matches!(store.create_session(&session).await, Ok(_) | Err(StoreError::Conflict)) {}
        });
    }

    /// What a batch job does before its loop: makes its statement and its session.
    pub fn make_batch(&mut self, served: &Served, text: &str) {
        let by = self.store("launcher");
        let submit_time = self.ledger.now();
        let id = StatementId::new(served.session.clone()).unwrap();
        let statement = Statement {
            query_id: Some(QueryId::new(format!("q-{id}")).unwrap()),
            id,
            session: session_id(&served.session),
            lang: "sql".into(),
            query: QueryText(text.into()),
            data_source: "files".into(),
            submit_time,
            state: StatementState::Waiting,
        };
        let gate = Gate::default();
        let weather = Arc::new(Mutex::new(Weather { calm: true, ..Weather::default() }));
        let store = Store::new(Wire::new(by, gate, weather, Dice(1), Planted::new(None, None)), Scope::Batch);
        let session = Session::new(statement.session.clone(), "files");
        self.people.spawn(async move {
            let _ = store.create_statement(&statement, None).await;
            let _ = store.create_session(&session).await;
        });
    }

    /// The control plane closes a session.
    pub fn close(&mut self, session: &str, dice: &mut Dice) {
        let (store, id) = (self.somebody("control", dice), session_id(session));
        self.people.spawn(async move {
            for _ in 0..10 {
                match store.session(&id).await {
                    Ok(Some(read)) if !read.value.state.is_ended() => {
                        let _ = store.write_session(&id, read.version, &SessionChange::End).await;
                    }
                    Ok(_) => return,
                    Err(_) => {}
                }
            }
        });
    }

    /// The control plane has a job leave a session.
    pub fn exclude(&self, session: &str, job: &str) {
        let (store, key) = (self.store("control"), Key { index: Index::Requests, id: session.into() });
        if let Some(found) = store.find(&key)
            && !matches!(found.source["state"].as_str(), Some("dead" | "fail"))
        {
            let fields = serde_json::json!({ "excludeJobIds": job }).to_string();
            let _ = store.write(Op::Update { key, at: found.version, fields });
        }
    }

    /// Somebody removes a session's document.
    pub fn delete_session(&self, session: &str) {
        let (store, key) = (self.store("somebody"), Key { index: Index::Requests, id: session.into() });
        if let Some(found) = store.find(&key) {
            let _ = store.write(Op::Delete { key, at: found.version });
        }
    }

    /// Nothing goes wrong from now on.
    pub fn calm(&self) {
        self.weather.lock().unwrap().calm = true;
        for process in &self.processes {
            process.gate.open();
            process.wires.iter().for_each(|w| w.cut(0));
        }
    }

    /// The control plane fails what is left in sessions that have ended.
    pub fn sweep(&self) {
        let store = self.store("control");
        let left: Vec<Key> = {
            let book = self.ledger.book();
            let ended = |s: &str| book.sessions.get(s).is_some_and(|s| s.ended);
            book.statements.values().filter(|s| s.end.is_none() && ended(&s.session)).map(|s| s.key.clone()).collect()
        };
        for key in left {
            if let Some(found) = store.find(&key) {
                let fields = serde_json::json!({ "state": "failed", "error": "session ended" }).to_string();
                let _ = store.write(Op::Update { key, at: found.version, fields });
            }
        }
    }

    /// Statements that have not ended, of sessions that are still there.
    pub fn open(&self) -> BTreeMap<String, String> {
        let book = self.ledger.book();
        let open = book
            .statements
            .iter()
            .filter(|(_, s)| s.end.is_none() && book.sessions.get(&s.session).is_none_or(|held| !held.deleted));
        open.map(|(id, s)| (id.clone(), format!("`{}` claimed by {:?}", s.text, s.claim))).collect()
    }
}
