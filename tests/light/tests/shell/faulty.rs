//! A store in memory that answers late, or not at all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_store::Memory;
use firesteel_store::documents::{Documents, Found, Index, Key, Op, Opened, Search};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is done.
    None,
    /// It is not done, and says so.
    Refuse,
    /// It is done after this time, even if whoever sent it waits no longer.
    OnTheWire(Duration),
}

/// Decides the fault of each request: its kind (`get`, `bulk`, `search`) and the ids that it names.
pub type Plan = Box<dyn FnMut(&'static str, &[String]) -> (Duration, Fault) + Send>;

/// One connection to the shared memory, with faults of its own.
#[derive(Clone)]
pub struct Faulty {
    memory: Memory,
    plan: Arc<Mutex<Plan>>,
    log: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Faulty {
    pub fn new(memory: Memory, plan: Plan) -> Faulty {
        Faulty { memory, plan: Arc::new(Mutex::new(plan)), log: Arc::default() }
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().drain(..).collect()
    }

    async fn fault(&self, kind: &'static str, ids: &[String]) -> Fault {
        let (delay, fault) = (self.plan.lock().unwrap())(kind, ids);
        self.log.lock().unwrap().push_back(kind);
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        fault
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("away".into())
}

#[async_trait]
impl Documents for Faulty {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        self.memory.open(index, create).await
    }

    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        let ids: Vec<String> = keys.iter().map(|k| k.id.clone()).collect();
        match self.fault("get", &ids).await {
            Fault::Refuse => Err(away()),
            _ => self.memory.get(keys, sources).await,
        }
    }

    async fn bulk(&self, ops: Vec<Op>, refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        let ids: Vec<String> = ops
            .iter()
            .map(|op| match op {
                Op::Create { key, .. } | Op::Update { key, .. } | Op::Delete { key, .. } => key.id.clone(),
            })
            .collect();
        match self.fault("bulk", &ids).await {
            Fault::None => self.memory.bulk(ops, refresh).await,
            Fault::Refuse => Err(away()),
            Fault::OnTheWire(time) => {
                let memory = self.memory.clone();
                let sent = tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    memory.bulk(ops, refresh).await
                });
                sent.await.unwrap_or_else(|_| Err(away()))
            }
        }
    }

    async fn refresh(&self, index: Index) -> Result<(), StoreError> {
        self.memory.refresh(index).await
    }

    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        match self.fault("search", &[]).await {
            Fault::Refuse => Err(away()),
            _ => self.memory.search(search).await,
        }
    }

    async fn measure(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn now(&self) -> u64 {
        self.memory.now()
    }
}
