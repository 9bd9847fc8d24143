//! What the log says of a store in trouble: the first failure at once, then a line an interval, and one when it is over.
//!
//! A store that is away fails every request of every session, several times a second; the log must still be readable then.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use firesteel_model::{Millis, SessionId};

use crate::ports::StoreError;

/// Between two lines about failures that go on, in milliseconds.
const TELL_EVERY: u64 = 30_000;
/// A success ends the trouble when nothing failed for so long, in milliseconds: longer than the longest wait between two tries.
const CALM: u64 = 10_000;

/// The trouble with the store, shared by all that ask it. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct StoreTrouble(Arc<Mutex<Option<Trouble>>>);

/// Failures since a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trouble {
    began: Millis,
    last: Millis,
    told: Millis,
    failures: u64,
    untold: u64,
}

impl StoreTrouble {
    fn trouble(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was not done, or nobody knows.
    pub fn failed(&self, now: Millis, session: &SessionId, what: &'static str, error: &StoreError) {
        let mut trouble = self.trouble();
        let Some(trouble) = trouble.as_mut() else {
            *trouble = Some(Trouble { began: now, last: now, told: now, failures: 1, untold: 0 });
            tracing::warn!(%session, what, %error, "the store did not do it; more failures are summed up");
            return;
        };
        trouble.last = now;
        trouble.failures += 1;
        trouble.untold += 1;
        if now.since(trouble.told) >= TELL_EVERY {
            let seconds = now.since(trouble.began) / 1_000;
            tracing::warn!(failures = trouble.untold, seconds, %session, what, %error, "the store still fails; this is the last failure");
            trouble.told = now;
            trouble.untold = 0;
        }
    }

    /// A request was done.
    pub fn succeeded(&self, now: Millis) {
        let mut trouble = self.trouble();
        if let Some(over) = trouble.take_if(|trouble| now.since(trouble.last) >= CALM) {
            let seconds = over.last.since(over.began) / 1_000;
            tracing::info!(failures = over.failures, seconds, "the store is well again");
        }
    }
}
