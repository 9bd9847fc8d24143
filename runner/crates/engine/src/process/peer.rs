//! A worker as others than its session see it, who may end it while it has nothing to do.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::{Death, Shared};

/// Another session's worker.
pub struct Peer(Weak<Shared>);

impl Peer {
    pub(super) fn of(shared: &Arc<Shared>) -> Peer {
        Peer(Arc::downgrade(shared))
    }

    /// It has been reaped.
    pub fn is_gone(&self) -> bool {
        self.0.upgrade().is_none_or(|shared| shared.situation.borrow().dead.is_some())
    }

    /// It is being ended.
    pub fn is_ending(&self) -> bool {
        self.0.upgrade().is_some_and(|shared| shared.lock().verdict.is_some())
    }

    /// Since when a session's worker has had nothing to do. None: it has, or it is nobody's, or is being ended.
    pub fn idle_since(&self) -> Option<Instant> {
        let shared = self.0.upgrade()?;
        let state = shared.lock();
        (state.used && state.slots.is_empty() && state.verdict.is_none()).then_some(state.idle_since)
    }

    /// Ends it, unless it has got something to do.
    pub fn retire(&self) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.lock();
        if state.slots.is_empty() && state.verdict.is_none() {
            state.verdict = Some(Death::Other("it was retired: another session needs a worker".into()));
            drop(state);
            shared.kill();
        }
    }
}

impl super::Process {
    /// It was started with these plugins.
    pub fn has(&self, plugins: &crate::settings::PluginSet) -> bool {
        self.shared.settings.plugins == *plugins
    }
}
