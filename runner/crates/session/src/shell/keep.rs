//! The session's journal in the store: opened, written and read by its owner alone.

use std::sync::Arc;

use firesteel_model::{Attempt, StatementId, StatementState};
use tokio::sync::{Mutex, MutexGuard};

use super::Job;
use crate::journal::{Entry, Last, Log, Record, What};
use crate::ports::StoreError;

/// The log as this owner knows it. One request about it is on its way at a time.
pub(super) type Shared = Arc<Mutex<Log>>;

/// Opens an epoch, which refuses every later record of an earlier owner, reads what the session is made of, and takes out the last define
/// if its statement did not succeed. Gives the last define if it is undecided: its statement still runs.
///
/// # Errors
/// `Conflict`: the session is another's.
pub(super) async fn replay(job: &Job, log: &Shared) -> Result<Option<(StatementId, Attempt)>, StoreError> {
    let mut log = log.lock().await;
    let begun = job.clock.now();
    *log = Log::read(job.store.journal(&job.me.session).await?);
    if log.owner() != Some(&job.me.runner) {
        // Read after the journal: if the session is still ours, no successor has opened an epoch in what was read.
        let session = job.store.session(&job.me.session).await?;
        let owner = session.and_then(|session| session.value.owner);
        if owner.is_none_or(|owner| owner.runner != job.me.runner) {
            return Err(StoreError::Conflict);
        }
        let record = Record { runner: job.me.runner.clone(), what: What::Epoch };
        job.store.append_journal(&job.me.session, log.next(), &record).await?;
        log.take(record);
    }
    let undecided = match log.last().cloned() {
        None => None,
        Some(last) => match fate(job, &last).await? {
            Fate::InForce => None,
            Fate::Open => Some((last.statement, last.attempt)),
            Fate::Void => {
                append(job, &mut log, What::Void { statement: last.statement, attempt: last.attempt }).await?;
                job.counters.defines_voided.inc();
                None
            }
        },
    };
    let entries = log.entries().len() + usize::from(log.last().is_some());
    if entries > 0 || undecided.is_some() {
        let millis = job.clock.now().since(begun);
        tracing::info!(session = %job.me.session, entries, records = log.next(), millis, "the session's journal was read");
    }
    Ok(undecided)
}

/// What becomes of the last define.
enum Fate {
    InForce,
    Open,
    Void,
}

async fn fate(job: &Job, last: &Last) -> Result<Fate, StoreError> {
    Ok(match job.store.statement(&last.statement).await {
        // It ended so long ago that it is gone; if it had not succeeded, its owner would have taken the define out.
        Ok(None) => Fate::InForce,
        Ok(Some(statement)) => match statement.value.state {
            StatementState::Running { .. } => Fate::Open,
            StatementState::Success => {
                let candidate = job.store.companion(&last.statement).await?.and_then(|c| c.value.candidate);
                if candidate == Some(last.attempt) { Fate::InForce } else { Fate::Void }
            }
            _ => Fate::Void,
        },
        // Nobody can decide a statement that is no statement any more.
        Err(StoreError::Corrupt(_)) => Fate::Void,
        Err(error) => return Err(error),
    })
}

/// The log, when an answer about it was heard.
pub(super) fn heard(log: &Shared) -> MutexGuard<'_, Log> {
    log.try_lock().expect("one request about the log is on its way at a time, and it let go of it when it was answered")
}

/// The entries in force, once the last define is decided or is not to count.
pub(super) fn in_force(log: &Log, undecided: bool) -> Vec<Entry> {
    let last = log.last().filter(|_| !undecided).map(|last| last.entry.clone());
    log.entries().iter().cloned().chain(last).collect()
}

/// Puts a define into the journal, before its statement is decided.
///
/// # Errors
/// `Conflict`: another owner has opened an epoch.
pub(super) async fn define(
    job: &Job,
    log: &Shared,
    statement: StatementId,
    attempt: Attempt,
    entry: Entry,
) -> Result<(), StoreError> {
    let mut log = log.lock().await;
    if log.last().is_some_and(|last| last.statement == statement && last.attempt == attempt) {
        return Ok(());
    }
    if let Some(snapshot) = log.snapshot() {
        append(job, &mut log, snapshot).await?;
    }
    append(job, &mut log, What::Define { statement, attempt, entry }).await
}

/// Takes a define out, or keeps one whose answer was lost from arriving late.
///
/// # Errors
/// `Conflict`: another owner has opened an epoch, and does so itself.
pub(super) async fn void(job: &Job, log: &Shared, statement: StatementId, attempt: Attempt) -> Result<(), StoreError> {
    append(job, &mut *log.lock().await, What::Void { statement, attempt }).await?;
    job.counters.defines_voided.inc();
    Ok(())
}

/// Makes the next record. One of ours that is there already was made by a try whose answer was lost.
async fn append(job: &Job, log: &mut Log, what: What) -> Result<(), StoreError> {
    let record = Record { runner: job.me.runner.clone(), what };
    loop {
        match job.store.append_journal(&job.me.session, log.next(), &record).await {
            Err(StoreError::Conflict) => {
                let there = job.store.journal_record(&job.me.session, log.next()).await?;
                let there = there.filter(|there| there.runner == record.runner).ok_or(StoreError::Conflict)?;
                let same = there == record;
                log.take(there);
                if same {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
            Ok(()) => {
                log.take(record);
                return Ok(());
            }
        }
    }
}
