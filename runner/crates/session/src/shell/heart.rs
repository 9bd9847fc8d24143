//! The heart: renews the lease beside the loop, so that a busy loop never loses it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use firesteel_model::lease::Beat;
use firesteel_model::{Millis, Session, SessionChange, SessionId, Stored, Version};

use super::Shared;
use crate::counters::Counters;
use crate::ports::{Clock, Store, StoreError};

/// Beats on a thread of its own, with a runtime of its own. The thread ends when the lease is lost or given up.
///
/// # Errors
/// The thread or its runtime could not be made.
pub fn on_its_own_thread(
    session: SessionId,
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    counters: Counters,
    patience: Duration,
) -> std::io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let body = move || runtime.block_on(beat(session, shared, store, clock, counters, patience));
    std::thread::Builder::new().name("heart".into()).spawn(body)
}

/// Beats until the lease is lost or given up. `store` should be a connection of its own; an answer that takes longer than
/// `patience` counts as none.
pub async fn beat(
    session: SessionId,
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    counters: Counters,
    patience: Duration,
) {
    loop {
        let now = clock.now();
        let beat = shared.with_lease(|lease| lease.beat(now));
        match beat {
            None => shared.stepped.notified().await,
            Some(Beat::Stop) => {
                shared.beaten.notify_one();
                return;
            }
            Some(Beat::Wait(until)) => tokio::select! {
                () = clock.sleep_until(until) => {}
                () = shared.stepped.notified() => {}
            },
            Some(Beat::Renew(version)) => {
                let answer = in_time(patience, store.write_session(&session, version, &SessionChange::Renew)).await;
                let after = clock.now();
                counters.heard(after, &session, "renew the session", &answer);
                renewed(&shared, &counters, now, answer, after);
            }
            Some(Beat::Read) => {
                let answer = in_time(patience, store.session(&session)).await;
                let after = clock.now();
                counters.heard(after, &session, "read the session", &answer);
                read(&shared, &answer, after);
            }
        }
    }
}

/// A renewal that was sent at `sent` was answered.
pub(crate) fn renewed(
    shared: &Shared,
    counters: &Counters,
    sent: Millis,
    answer: Result<Version, StoreError>,
    after: Millis,
) {
    if !matches!(answer, Ok(_) | Err(StoreError::Conflict)) {
        counters.heartbeat_failures.inc();
    }
    shared.with_lease(|lease| match answer {
        Ok(version) => lease.renewed(sent, version),
        Err(StoreError::Conflict) => lease.doubted(after),
        Err(StoreError::Unknown(_)) => lease.unanswered(after),
        Err(_) => lease.silent(after),
    });
    shared.beaten.notify_one();
}

/// The session was read, or could not be.
pub(crate) fn read(shared: &Shared, answer: &Result<Option<Stored<Session>>, StoreError>, after: Millis) {
    shared.with_lease(|lease| match answer {
        Ok(session) => lease.seen(session.as_ref(), after),
        Err(_) => lease.silent(after),
    });
    shared.beaten.notify_one();
}

pub(crate) async fn in_time<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(patience, answer).await;
    answer.unwrap_or_else(|_| Err(StoreError::Unknown("no answer in time".into())))
}
