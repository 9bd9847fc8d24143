//! A store, and replicas of the control plane on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use firesteel_control::access::Caller;
use firesteel_control::admission::{Admission, Limits};
use firesteel_control::plane::{NewSession, NewStatement, Plane, Settings};
use firesteel_model::{Millis, SessionId, StatementId};
use firesteel_session::ports::Clock;
use firesteel_session::ports::control::ControlStore;
use firesteel_store::{Memory, Scope, Store};
use tokio::time::Instant;

use crate::faulty::{Fault, Faulty, Plan};
use crate::jobs::Jobs;

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

pub struct World {
    pub memory: Memory,
    pub clock: Paused,
    pub jobs: Jobs,
    pub store: Arc<dyn ControlStore>,
}

/// Rises over all tests: what matters is that no two are equal.
fn unique() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("id-{:06}", LAST.fetch_add(1, Ordering::SeqCst))
}

pub fn no_faults() -> Plan {
    Box::new(|_, _| (Duration::ZERO, Fault::None))
}

/// Refuses every write but the first ones, as one that dies between two of them would have it.
pub fn refusing_after(mut writes: u32) -> Plan {
    Box::new(move |kind, _| {
        let done = kind != "bulk" || writes > 0;
        if kind == "bulk" {
            writes = writes.saturating_sub(1);
        }
        (Duration::ZERO, if done { Fault::None } else { Fault::Refuse })
    })
}

impl World {
    pub fn new() -> World {
        let clock = Paused(Instant::now());
        let memory = Memory::new(move || 1_700_000_000_000 + clock.now().0);
        let store = Arc::new(Store::new(memory.clone(), Scope::Requests));
        World { memory, clock, jobs: Jobs::default(), store }
    }

    /// A replica with faults of its own.
    pub fn replica(&self, limits: Limits, faults: Plan) -> Arc<Plane> {
        self.named("one", limits, faults)
    }

    /// A replica of this name.
    pub fn instance(&self, name: &str, faults: Plan) -> Arc<Plane> {
        self.named(name, Limits::default(), faults)
    }

    fn named(&self, name: &str, limits: Limits, faults: Plan) -> Arc<Plane> {
        let store: Arc<dyn ControlStore> =
            Arc::new(Store::new(Faulty::new(self.memory.clone(), faults), Scope::Requests));
        let clock = Arc::new(self.clock);
        Arc::new(Plane {
            admission: Admission::new(Arc::clone(&store), clock.clone(), limits),
            store,
            launcher: Arc::new(self.jobs.clone()),
            clock,
            unique,
            settings: Settings {
                data_source: "d".to_owned(),
                application: "app".to_owned(),
                execution_timeout: 600_000,
                instance: name.to_owned(),
            },
        })
    }

    pub fn plane(&self) -> Arc<Plane> {
        self.replica(Limits::default(), no_faults())
    }

    /// Lets so many milliseconds pass.
    pub async fn pass(&self, millis: u64) {
        self.clock.sleep_until(self.clock.now().plus(millis)).await;
    }

    /// Statements that wait or run.
    pub async fn open(&self) -> usize {
        let states = ["waiting", "running"].map(str::to_owned).to_vec();
        let all = firesteel_session::ports::control::Listing { states, limit: 10_000, ..Default::default() };
        self.store.list_statements(&all).await.unwrap().len()
    }
}

pub fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub fn session(name: &str) -> NewSession {
    NewSession { id: Some(id(name)), ..NewSession::default() }
}

pub fn statement(session: &str, text: &str) -> NewStatement {
    NewStatement {
        session: Some(id(session)),
        lang: "sql".to_owned(),
        query: text.to_owned(),
        ..NewStatement::default()
    }
}

pub fn named(name: &str, statement: NewStatement) -> NewStatement {
    NewStatement { id: Some(StatementId::new(name).unwrap()), ..statement }
}

pub fn anybody() -> Caller {
    Caller::anybody()
}
