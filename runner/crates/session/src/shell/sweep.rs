//! What dead runners left, in every session of the request index: found and settled beside the loop, at the start and then slowly.

use std::collections::BTreeMap;
use std::sync::Arc;

use firesteel_model::runner::sweep::{self, Found};
use firesteel_model::runner::{Fault, Verdict};
use firesteel_model::{Attempt, Millis, Statement, StatementId};

use super::{Job, Shared, perform};
use crate::ports::{Left, StoreError};

/// Sweeps beside one session's loop.
pub(super) async fn beside(job: Job, shared: Arc<Shared>) {
    // Not before the session is ours: what a predecessor left in it is the most urgent.
    let ready = || shared.with_lease(|lease| lease.lost().is_none()).unwrap_or(false);
    forever(job, ready, |statement| shared.has_in_hand(&statement.id)).await;
}

/// Sweeps whenever it is `ready`, until the future is dropped. Never touches a statement that is `in_hand`: a loop is at it.
pub(crate) async fn forever(job: Job, ready: impl Fn() -> bool, in_hand: impl Fn(&Statement) -> bool) {
    let mut seen = Seen::default();
    loop {
        let wait = if !ready() {
            job.policy.watch
        } else if let Err(error) = round(&job, &in_hand, &mut seen).await {
            tracing::debug!(%error, "a sweep was not finished: the next one goes on");
            // The first is the most urgent.
            if seen.rounds == 0 { job.policy.retry_max } else { job.policy.sweep_every }
        } else {
            job.policy.sweep_every
        };
        job.clock.sleep_until(job.clock.now().plus(wait)).await;
    }
}

/// Since when a thing was seen that must be seen for a while before it is touched.
#[derive(Default)]
struct Seen {
    rounds: u64,
    since: BTreeMap<StatementId, Millis>,
}

impl Seen {
    /// How long this statement has been seen as it is, in milliseconds.
    fn age(&mut self, id: &StatementId, now: Millis) -> u64 {
        now.since(*self.since.entry(id.clone()).or_insert(now))
    }
}

async fn round(job: &Job, in_hand: impl Fn(&Statement) -> bool, seen: &mut Seen) -> Result<(), StoreError> {
    // At first whoever starts the loop has just done so.
    if seen.rounds > 0
        && let Err(StoreError::Refused(why)) = job.store.prepare(false).await
    {
        tracing::error!(why, "the store cannot be used as it is: results would not be found");
    }
    let found: Vec<(Found, Left)> = {
        let open = job.store.left_open().await?.into_iter().map(|left| (Found::Open, left));
        let unpublished = job.store.left_unpublished().await?.into_iter().map(|left| (Found::Unpublished, left));
        open.chain(unpublished).collect()
    };
    seen.rounds += 1;
    let now = job.clock.now();
    seen.since.retain(|id, _| found.iter().any(|(_, left)| left.statement.value.id == *id));
    for (what, left) in found {
        let id = left.statement.value.id.clone();
        let age = seen.age(&id, now);
        let session = left.session.as_ref().map(|session| &session.value);
        if !sweep::due(what, session, &job.me.runner, age, &job.policy) || in_hand(&left.statement.value) {
            continue;
        }
        let swept = match what {
            Found::Open => end(job, &left).await,
            Found::Unpublished => settle(job, &left, &left.statement.value).await,
        };
        match swept {
            Ok(()) => {
                seen.since.remove(&id);
                job.counters.statements_swept.inc();
                tracing::info!(session = %left.statement.value.session, statement = %id, "swept: what a runner had left is settled");
            }
            // Somebody else is at it.
            Err(StoreError::Conflict) => {}
            Err(error) => tracing::warn!(statement = %id, %error, "not swept yet"),
        }
    }
    Ok(())
}

/// Fails a statement whose session is over.
async fn end(job: &Job, left: &Left) -> Result<(), StoreError> {
    let statement = &left.statement.value;
    let fault = if statement.state.is_running() {
        sweep::left(&perform::examine(job, &statement.id).await?)
    } else {
        Fault::SessionEnded
    };
    let verdict = Verdict::Failed(fault);
    let attempt = Attempt { claim: left.statement.version, n: 0 };
    let state = perform::decide(job, statement, left.statement.version, attempt, verdict).await?.1;
    settle(job, left, &Statement { state, ..statement.clone() }).await
}

async fn settle(job: &Job, left: &Left, statement: &Statement) -> Result<(), StoreError> {
    let attempt = Attempt { claim: firesteel_model::Version { term: 0, seq_no: 0 }, n: 0 };
    let session = left.session.as_ref().filter(|_| left.batch).map(|session| &session.value);
    let mut outcome = perform::outcome(job, statement, attempt, 0);
    if let Some(session) = session {
        outcome.job_type = "batch";
        outcome.application = &session.application;
        let runner = session.owner.as_ref().map(|owner| owner.runner.as_str());
        outcome.job = session.job.as_ref().map(firesteel_model::JobId::as_str).or(runner).unwrap_or_default();
    }
    job.store.settle(&outcome).await
}
