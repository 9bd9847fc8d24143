//! A store, the runners on it, and the users and control plane beside them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::policy::Policy;
use firesteel_model::runner::{Exit, Identity};
use firesteel_model::{Millis, QueryId, QueryText, RunnerId, SessionId, Statement, StatementId, StatementState};
use firesteel_session::counters::Counters;
use firesteel_session::ports::{Clock, Engine, ResultDocument, ResultStore, SessionStore};
use firesteel_session::result::Limits;
use firesteel_session::shell::{Job, Shared, heart, run};
use firesteel_store::{Memory, Scope, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::faulty::{Fault, Faulty, Plan};

/// Tokio's clock, so that it can be paused.
#[derive(Clone, Copy)]
pub struct Paused(pub Instant);

#[async_trait]
impl Clock for Paused {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }

    async fn sleep_until(&self, until: Millis) {
        tokio::time::sleep_until(self.0 + Duration::from_millis(until.0)).await;
    }
}

/// Every interval short, none equal to another.
pub fn quick() -> Policy {
    Policy {
        heartbeat: 200,
        first_heartbeat: 50,
        lease: 600,
        poll_busy: 5,
        busy_for: 500,
        poll: 10,
        poll_idle: 40,
        idle_after: 5_000,
        watch: 20,
        execution_timeout: 3_000,
        wait_timeout: 60_000,
        inactivity: 30_000,
        launch_grace: 1_000,
        unreachable: 20_000,
        stop_grace: 500,
        sweep: 300,
        sweep_every: 1_000,
        retry: 5,
        retry_max: 100,
        ..Policy::default()
    }
}

pub fn no_faults() -> Plan {
    Box::new(|_, _| (Duration::ZERO, Fault::None))
}

pub fn session_id() -> SessionId {
    SessionId::new("s").unwrap()
}

/// A runner at work.
pub struct Running {
    pub stop: mpsc::UnboundedSender<()>,
    pub task: JoinHandle<Exit>,
    pub heart: JoinHandle<()>,
    pub store: Faulty,
    pub counters: Counters,
}

impl Running {
    /// As `kill -9` does: no last word.
    pub fn kill(self) {
        self.task.abort();
        self.heart.abort();
    }

    pub async fn exit(self) -> u8 {
        self.task.await.unwrap().code
    }
}

/// The store that all share.
pub struct World {
    pub memory: Memory,
    pub clock: Paused,
    pub user: Store<Memory>,
}

impl World {
    pub fn new() -> World {
        let clock = Paused(Instant::now());
        let memory = Memory::new(move || 1_700_000_000_000 + clock.now().0);
        World { user: Store::new(memory.clone(), Scope::Requests), memory, clock }
    }

    pub fn run(&self, name: &str, policy: &Policy, engine: impl Engine + Clone, faults: Plan) -> Running {
        self.run_with(name, policy, engine, faults, Limits::default())
    }

    pub fn run_with(
        &self,
        name: &str,
        policy: &Policy,
        engine: impl Engine + Clone,
        faults: Plan,
        limits: Limits,
    ) -> Running {
        self.start(session_id(), name, policy, engine, faults, limits)
    }

    /// A runner of another session.
    pub fn run_in(
        &self,
        session: &str,
        name: &str,
        policy: &Policy,
        engine: impl Engine + Clone,
        faults: Plan,
    ) -> Running {
        self.start(SessionId::new(session).unwrap(), name, policy, engine, faults, Limits::default())
    }

    fn start(
        &self,
        session: SessionId,
        name: &str,
        policy: &Policy,
        engine: impl Engine + Clone,
        faults: Plan,
        limits: Limits,
    ) -> Running {
        let me = Identity {
            runner: RunnerId::new(name).unwrap(),
            job: None,
            application: None,
            session: session.clone(),
            data_source: "files".into(),
            excluded: Vec::new(),
            batch: None,
        };
        let documents = Faulty::new(self.memory.clone(), faults);
        let store: Arc<Store<Faulty>> = Arc::new(Store::new(documents.clone(), Scope::Requests));
        let shared = Shared::new(me.clone(), policy.clone());
        let (stop, stopped) = mpsc::unbounded_channel();
        let clock: Arc<dyn Clock> = Arc::new(self.clock);
        let counters = Counters::default();
        let job = Job {
            me,
            policy: policy.clone(),
            limits,
            store: store.clone(),
            engine: Arc::new(engine),
            clock: clock.clone(),
            counters: counters.clone(),
        };
        let counted = counters.clone();
        let patience = Duration::from_millis(policy.heartbeat / 2);
        let heart = tokio::spawn(heart::beat(session, shared.clone(), store, clock, counters, patience));
        Running { stop, task: tokio::spawn(run(job, shared, stopped)), heart, store: documents, counters: counted }
    }

    pub async fn submit(&self, id: &str, text: &str) {
        let statement = Statement {
            id: StatementId::new(id).unwrap(),
            session: session_id(),
            query_id: Some(QueryId::new(format!("q-{id}")).unwrap()),
            lang: "sql".into(),
            query: QueryText(text.into()),
            data_source: "files".into(),
            submit_time: self.clock.now().0,
            state: StatementState::Waiting,
        };
        self.user.create_statement(&statement, None).await.unwrap();
    }

    pub async fn state(&self, id: &str) -> StatementState {
        self.user.statement(&StatementId::new(id).unwrap()).await.unwrap().expect("submitted").value.state
    }

    pub async fn session_state(&self) -> &'static str {
        self.user.session(&session_id()).await.unwrap().expect("made").value.state.name()
    }

    /// As the control plane does, if the statement has not ended.
    pub async fn cancel(&self, id: &str) {
        let id = StatementId::new(id).unwrap();
        let read = self.user.statement(&id).await.unwrap().expect("submitted");
        if !read.value.state.is_terminal() {
            let _ = self.user.write_statement(&id, read.version, &StatementState::Cancelled).await;
        }
    }

    /// Waits for the statement's end, on the paused clock.
    pub async fn end(&self, id: &str) -> StatementState {
        for _ in 0..100_000 {
            let state = self.state(id).await;
            if state.is_terminal() {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} never ended");
    }

    pub async fn result(&self, id: &str) -> Option<ResultDocument> {
        self.user.result(&QueryId::new(format!("q-{id}")).unwrap()).await.unwrap()
    }

    /// Waits for the result of a statement that has one.
    pub async fn rows(&self, id: &str) -> Vec<String> {
        for _ in 0..10_000 {
            if let Some(result) = self.result(id).await {
                return result.rows;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} has no result");
    }
}
