//! The heart of many sessions: their leases, renewed together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use firesteel_model::lease::Beat;
use firesteel_model::policy::Policy;
use firesteel_model::{Millis, SessionChange, SessionId, Statement, Version};

use crate::counters::Counters;
use crate::ports::{Clock, Store, StoreError};
use crate::shell::Shared;
use crate::shell::heart::{in_time, read, renewed};

/// The sessions whose leases are renewed.
#[derive(Clone, Debug, Default)]
pub struct Members(Arc<Mutex<BTreeMap<SessionId, Arc<Shared>>>>);

impl Members {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Shared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, id: &SessionId, shared: &Arc<Shared>) {
        self.lock().insert(id.clone(), Arc::clone(shared));
    }

    /// A loop is at this statement.
    pub(super) fn has_in_hand(&self, statement: &Statement) -> bool {
        self.lock().get(&statement.session).is_some_and(|shared| shared.has_in_hand(&statement.id))
    }

    pub(super) fn remove(&self, id: &SessionId) {
        self.lock().remove(id);
    }
}

/// Between looks at the leases, in milliseconds: what the loops learn of theirs is heeded after so long.
const LOOK: u64 = 50;

/// The heart of a pool's sessions.
pub struct Hearts {
    pub(super) members: Members,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counters: Counters,
    pub(super) name: SessionId,
    pub(super) policy: Policy,
}

impl std::fmt::Debug for Hearts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearts").finish_non_exhaustive()
    }
}

/// What is to be done for some leases now.
#[derive(Default)]
struct Due {
    renew: Vec<(SessionId, Version, SessionChange)>,
    read: Vec<SessionId>,
    shared: BTreeMap<SessionId, Arc<Shared>>,
}

impl Hearts {
    /// Beats on a thread of its own, with a runtime of its own, until the process ends.
    ///
    /// # Errors
    /// The thread or its runtime could not be made.
    pub fn on_its_own_thread(self) -> std::io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("heart".into()).spawn(move || runtime.block_on(self.beat()))
    }

    /// Beats for as long as anybody waits for it.
    pub async fn beat(self) {
        let patience = Duration::from_millis(self.policy.heartbeat);
        loop {
            let now = self.clock.now();
            let due = self.due(now);
            if !due.renew.is_empty() {
                self.renew(now, &due, patience).await;
            }
            if !due.read.is_empty() {
                self.read(&due, patience).await;
            }
            self.clock.sleep_until(now.plus(LOOK)).await;
        }
    }

    /// Once one lease is to be renewed, those are, too, whose turn is within half an interval: soon all are renewed together.
    fn due(&self, now: Millis) -> Due {
        let soon = now.plus(self.policy.heartbeat / 2);
        let members = self.members.lock();
        let (mut due, mut joining) = (Due::default(), Vec::new());
        for (id, shared) in &*members {
            match shared.with_lease(|lease| (lease.beat(now), lease.beat(soon))) {
                Some((Beat::Renew(version), _)) => due.renew.push((id.clone(), version, SessionChange::Renew)),
                Some((Beat::Wait(_), Beat::Renew(version))) => joining.push((id, version)),
                Some((Beat::Read, _)) => due.read.push(id.clone()),
                Some((Beat::Wait(_) | Beat::Stop, _)) | None => continue,
            }
        }
        if !due.renew.is_empty() {
            due.renew.extend(joining.into_iter().map(|(id, version)| (id.clone(), version, SessionChange::Renew)));
        }
        let named = due.renew.iter().map(|(id, ..)| id).chain(&due.read);
        due.shared = named.filter_map(|id| Some((id.clone(), Arc::clone(members.get(id)?)))).collect();
        due
    }

    async fn renew(&self, sent: Millis, due: &Due, patience: Duration) {
        let answers = in_time(patience, self.store.write_sessions(&due.renew)).await;
        let after = self.clock.now();
        self.counters.heard(after, &self.name, "renew the sessions", &answers);
        for (n, (id, ..)) in due.renew.iter().enumerate() {
            let answer = match &answers {
                Ok(answers) => answers.get(n).cloned().unwrap_or_else(|| Err(StoreError::Unknown("no answer".into()))),
                Err(error) => Err(error.clone()),
            };
            if let (Ok(_), Err(_)) = (&answers, &answer) {
                self.counters.heard(after, id, "renew the session", &answer);
            }
            renewed(&due.shared[id], &self.counters, sent, answer, after);
        }
    }

    async fn read(&self, due: &Due, patience: Duration) {
        let answers = in_time(patience, self.store.sessions_at(&due.read)).await;
        let after = self.clock.now();
        self.counters.heard(after, &self.name, "read the sessions", &answers);
        for (n, id) in due.read.iter().enumerate() {
            let answer = match &answers {
                Ok(answers) => answers.get(n).cloned().unwrap_or_else(|| Err(StoreError::Unknown("no answer".into()))),
                Err(error) => Err(error.clone()),
            };
            read(&due.shared[id], &answer, after);
        }
    }
}
