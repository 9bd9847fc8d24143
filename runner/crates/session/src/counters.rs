//! What the job counts, by the peer's names where it has one, and what it says once in place of many times.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use firesteel_model::{Millis, SessionId};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::ports::StoreError;
use crate::trouble::StoreTrouble;

/// The job's counters. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Statements taken: claimed, or decided while they waited.
    pub statements: Counter,
    /// Statements decided as `success`.
    pub statements_succeeded: Counter,
    /// Statements decided as `failed` or `timeout`.
    pub statements_failed: Counter,
    /// Statements cancelled while running here.
    pub statements_cancelled: Counter,
    /// Statements that were deleted, released or taken over while they ran here.
    pub statements_overruled: Counter,
    /// Statement documents that could not be read.
    pub statements_unreadable: Counter,
    /// Sessions served now.
    pub sessions_active: Gauge,
    /// Sessions ended as `dead`.
    pub sessions_dead: Counter,
    /// Sessions ended as `fail`.
    pub sessions_failed: Counter,
    /// Sessions left, however.
    pub sessions_finished: Counter,
    /// Heartbeats that were not acknowledged.
    pub heartbeat_failures: Counter,
    /// Requests that the store did not do, or may have done.
    pub store_failures: Counter,
    /// What the log has said of them.
    pub store_trouble: StoreTrouble,
    /// Writes refused because their version was old.
    pub conflicts: Counter<u64, AtomicU64>,
    /// Defines taken out of a journal because their statements did not succeed.
    pub defines_voided: Counter,
    /// Statements that another runner had left and a sweep settled.
    pub statements_swept: Counter,
    /// Claim to decision, in seconds.
    pub statement_seconds: Histogram,
    /// Worker processes that died under a statement.
    pub workers_died: Counter,
    unreadable: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            statements: Counter::default(),
            statements_succeeded: Counter::default(),
            statements_failed: Counter::default(),
            statements_cancelled: Counter::default(),
            statements_overruled: Counter::default(),
            statements_unreadable: Counter::default(),
            sessions_active: Gauge::default(),
            sessions_dead: Counter::default(),
            sessions_failed: Counter::default(),
            sessions_finished: Counter::default(),
            heartbeat_failures: Counter::default(),
            store_failures: Counter::default(),
            store_trouble: StoreTrouble::default(),
            conflicts: Counter::default(),
            defines_voided: Counter::default(),
            statements_swept: Counter::default(),
            statement_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 20)),
            workers_died: Counter::default(),
            unreadable: Arc::default(),
        }
    }
}

impl Counters {
    /// Registers all of them under the prefix `firesteel`.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("firesteel");
        r.register("statements", "Statements claimed, or decided while they waited", self.statements.clone());
        r.register("statements_succeeded", "Statements decided as success", self.statements_succeeded.clone());
        r.register("statements_failed", "Statements decided as failed or timeout", self.statements_failed.clone());
        r.register("statements_cancelled", "Statements cancelled while running", self.statements_cancelled.clone());
        r.register(
            "statements_overruled",
            "Statements deleted, released or taken over while they ran",
            self.statements_overruled.clone(),
        );
        r.register(
            "statements_unreadable",
            "Statement documents that could not be read",
            self.statements_unreadable.clone(),
        );
        r.register("sessions_active", "Sessions served now", self.sessions_active.clone());
        r.register("sessions_dead", "Sessions ended as dead", self.sessions_dead.clone());
        r.register("sessions_failed", "Sessions ended as fail", self.sessions_failed.clone());
        r.register("sessions_finished", "Sessions left, however", self.sessions_finished.clone());
        r.register("heartbeat_failures", "Heartbeats that were not acknowledged", self.heartbeat_failures.clone());
        r.register(
            "store_failures",
            "Requests that the store did not do, or may have done",
            self.store_failures.clone(),
        );
        r.register("conflicts", "Writes refused because their version was old", self.conflicts.clone());
        r.register(
            "defines_voided",
            "Defines taken out of a journal because their statements did not succeed",
            self.defines_voided.clone(),
        );
        r.register(
            "statements_swept",
            "Statements that another runner had left and a sweep settled",
            self.statements_swept.clone(),
        );
        r.register("workers_died", "Worker processes that died under a statement", self.workers_died.clone());
        r.register_with_unit("statement", "Claim to decision", Unit::Seconds, self.statement_seconds.clone());
    }
}

impl Counters {
    /// A statement ended in this state, so many milliseconds after its claim.
    pub fn ended(&self, state: &str, millis: u64) {
        match state {
            "success" => self.statements_succeeded.inc(),
            "cancelled" => self.statements_cancelled.inc(),
            "failed" | "timeout" => self.statements_failed.inc(),
            _ => self.statements_overruled.inc(),
        };
        #[allow(clippy::cast_precision_loss, reason = "a duration of 2^53 ms does not occur")]
        self.statement_seconds.observe(millis as f64 / 1_000.0);
    }

    /// Counts what the store said, and logs it when it should be: a refused version is no trouble of the store's.
    pub fn heard<T>(&self, now: Millis, session: &SessionId, what: &'static str, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.store_trouble.succeeded(now),
            Err(StoreError::Conflict) => {
                self.store_trouble.succeeded(now);
                tracing::debug!(%session, what, "refused: the document was changed by another");
            }
            Err(error) => {
                self.store_failures.inc();
                self.store_trouble.failed(now, session, what, error);
            }
        }
    }

    /// Counts a document that cannot be read, once; whether this was the first time. Remembers at most 10,000 of them.
    #[must_use]
    pub fn first_unreadable(&self, id: &str) -> bool {
        let mut seen = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen.len() < 10_000 && seen.insert(id.to_owned());
        if first {
            self.statements_unreadable.inc();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_did_to_a_statement_is_no_failure() {
        let counters = Counters::default();
        for state in ["success", "failed", "timeout", "cancelled", "deleted", "waiting", "running"] {
            counters.ended(state, 1);
        }
        let of = [
            &counters.statements_succeeded,
            &counters.statements_failed,
            &counters.statements_cancelled,
            &counters.statements_overruled,
        ];
        assert_eq!(of.map(Counter::get), [1, 2, 1, 3]);
    }
}
