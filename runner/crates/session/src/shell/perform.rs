//! Each action as a future that ends with its input.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firesteel_model::runner::{Action, Beside, Input, Sight, StageTrouble, Trouble, Verdict, Watched};
use firesteel_model::statement::{Event, next};
use firesteel_model::{Attempt, Code, Expect, Failure, Stage, Statement, StatementId, StatementState, Version};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::work::Ready;
use super::{Job, keep};
use crate::journal::Entry;
use crate::ports::{Companion, Marker, Open, Outcome, Prepared, Progress, StageError, StoreError};

/// How many statements a search brings.
const HITS: usize = 200;

impl From<&StoreError> for Trouble {
    fn from(error: &StoreError) -> Trouble {
        match error {
            StoreError::Conflict => Trouble::Conflict,
            StoreError::Unavailable(_) => Trouble::Unavailable,
            StoreError::Unknown(_) => Trouble::Unknown,
            StoreError::Refused(_) => Trouble::Refused,
            StoreError::Corrupt(_) => Trouble::Corrupt,
        }
    }
}

/// The model hears what can be done; the log hears why.
fn hear<T>(job: &Job, what: &'static str, answer: Result<T, StoreError>) -> Result<T, Trouble> {
    job.counters.heard(job.clock.now(), &job.me.session, what, &answer);
    answer.map_err(|error| Trouble::from(&error))
}

/// Whose result it is, as the documents name it.
pub(super) fn outcome<'a>(job: &'a Job, statement: &'a Statement, attempt: Attempt, run_millis: u64) -> Outcome<'a> {
    Outcome {
        statement,
        attempt,
        job: job.me.job.as_ref().map_or(job.me.runner.as_str(), firesteel_model::JobId::as_str),
        application: job.me.application.as_deref().unwrap_or_default(),
        job_type: if job.me.batch.is_some() { "batch" } else { "interactive" },
        run_millis,
    }
}

/// The state that an event leads to. The model asks for legal steps only.
fn moved(statement: &Statement, event: Event) -> Result<StatementState, StoreError> {
    next(&statement.state, event).map_err(|illegal| StoreError::Refused(illegal.to_string()))
}

fn decided(statement: &Statement, verdict: Verdict, timeout_state: bool) -> Result<StatementState, StoreError> {
    moved(
        statement,
        match verdict {
            Verdict::Success => Event::Succeed,
            Verdict::Release => Event::Release,
            Verdict::Failed(fault) => match fault.state(timeout_state) {
                StatementState::Timeout { error } => Event::TimeOut { error },
                StatementState::Failed { error } => Event::Fail { error },
                _ => return Err(StoreError::Refused("a fault is no failure".into())),
            },
        },
    )
}

/// The future of an action that only asks the store.
pub(super) fn store(
    job: &Job,
    action: Action,
    run_millis: u64,
    prepared: &Arc<AtomicBool>,
) -> Option<BoxFuture<'static, Input>> {
    let (job, prepared) = (job.clone(), Arc::clone(prepared));
    Some(match action {
        Action::ReadSession => async move {
            // The indices come first: without a launcher they are made, with one the request index is waited for.
            if !prepared.load(Ordering::Relaxed) {
                match job.store.prepare(job.me.job.is_none()).await {
                    Err(StoreError::Refused(why)) => return Input::Fatal(why),
                    Err(error) => return Input::Session(hear(&job, "prepare", Err(error))),
                    Ok(Prepared::NotYet) => return Input::Session(Ok(None)),
                    Ok(Prepared::Ready) => prepared.store(true, Ordering::Relaxed),
                }
            }
            Input::Session(hear(&job, "read the session", job.store.session(&job.me.session).await))
        }
        .boxed(),
        Action::CreateSession(session) => async move {
            let sent = job.clock.now();
            Input::Owned(sent, hear(&job, "create the session", job.store.create_session(&session).await))
        }
        .boxed(),
        Action::Own(version, change) => async move {
            let sent = job.clock.now();
            Input::Owned(
                sent,
                hear(&job, "take the session", job.store.write_session(&job.me.session, version, &change).await),
            )
        }
        .boxed(),
        Action::Prove(version) => async move {
            let sent = job.clock.now();
            let answer =
                job.store.write_session(&job.me.session, version, &firesteel_model::SessionChange::Renew).await;
            Input::Proved(sent, hear(&job, "renew the session", answer))
        }
        .boxed(),
        Action::EndSession(version, change) => async move {
            Input::SessionEnded(hear(
                &job,
                "end the session",
                job.store.write_session(&job.me.session, version, &change).await,
            ))
        }
        .boxed(),
        Action::Poll => async move {
            let answer = match &job.me.batch {
                Some(id) => job
                    .store
                    .statement(id)
                    .await
                    .map(|one| Sight { statements: one.into_iter().collect(), session: None }),
                None => job.store.open_statements(&job.me.session, HITS).await.map(|open| readable(&job, open)),
            };
            Input::Open(hear(&job, "search for statements", answer))
        }
        .boxed(),
        Action::PollEvery => async move {
            let answer = job.store.every_open_statement(&job.me.session).await.map(|open| readable(&job, open));
            Input::Open(hear(&job, "search for statements", answer))
        }
        .boxed(),
        Action::ReadStatement(id) => {
            async move { Input::Statement(hear(&job, "read the statement", job.store.statement(&id).await)) }.boxed()
        }
        Action::Write(statement, version, event) => async move {
            let answer = match moved(&statement, event) {
                Ok(state) => job.store.write_statement(&statement.id, version, &state).await,
                Err(error) => Err(error),
            };
            Input::Written(hear(&job, "claim the statement", answer))
        }
        .boxed(),
        Action::Decide(statement, version, attempt, verdict) => async move {
            let answer = decide(&job, &statement, version, attempt, verdict).await.map(|(version, _)| version);
            Input::Written(hear(&job, "decide the statement", answer))
        }
        .boxed(),
        Action::Examine(id) => {
            async move { Input::Examined(hear(&job, "examine the statement", examine(&job, &id).await)) }.boxed()
        }
        Action::Count(id, attempts, at) => {
            async move { Input::Counted(hear(&job, "count the attempt", count(&job, &id, attempts, at).await)) }.boxed()
        }
        Action::Mark(id, attempt) => async move {
            let marker = Marker { runner: job.me.runner.clone(), attempt };
            Input::Marked(hear(&job, "mark the statement", job.store.create_marker(&id, &marker).await))
        }
        .boxed(),
        Action::Publish(statement, attempt) => async move {
            Input::Published(hear(
                &job,
                "publish the result",
                job.store.publish(&outcome(&job, &statement, attempt, run_millis)).await,
            ))
        }
        .boxed(),
        Action::PublishFailure(statement, attempt) => async move {
            let done = job.store.publish_failure(&outcome(&job, &statement, attempt, run_millis)).await;
            Input::Published(hear(&job, "publish the failure", done))
        }
        .boxed(),
        Action::Settle(statement, attempt) => async move {
            let done = job.store.settle(&outcome(&job, &statement, attempt, run_millis)).await;
            Input::Published(hear(&job, "publish what counts and remove the rest", done))
        }
        .boxed(),
        Action::Discard(statement, attempt) => async move {
            Input::Discarded(hear(
                &job,
                "discard the result",
                job.store.discard(&outcome(&job, &statement, attempt, run_millis)).await,
            ))
        }
        .boxed(),
        _ => return None,
    })
}

/// Decides a statement. That it fails is announced before, so that its result is made whoever dies in between.
pub(super) async fn decide(
    job: &Job,
    statement: &Statement,
    version: Version,
    attempt: Attempt,
    verdict: Verdict,
) -> Result<(Version, StatementState), StoreError> {
    let state = decided(statement, verdict, job.policy.timeout_state)?;
    if state.is_terminal() && state != StatementState::Success {
        job.store.announce(&outcome(job, statement, attempt, 0)).await?;
    }
    Ok((job.store.write_statement(&statement.id, version, &state).await?, state))
}

/// What cannot be read as a statement blocks nobody: it is counted, and logged when it is first seen.
fn readable(job: &Job, open: Open) -> Sight {
    for (id, why) in &open.unreadable {
        if job.counters.first_unreadable(id) {
            tracing::warn!(session = %job.me.session, document = %id.escape_debug(), why, "skipped a document that is no statement");
        }
    }
    Sight { statements: open.statements, session: open.session }
}

pub(super) async fn examine(job: &Job, id: &StatementId) -> Result<Beside, StoreError> {
    let (marker, companion) = futures::future::try_join(job.store.marker(id), job.store.companion(id)).await?;
    Ok(Beside {
        marker: marker.map(|m| m.attempt),
        attempts: companion.as_ref().map_or(0, |c| c.value.attempts),
        candidate: companion.as_ref().and_then(|c| c.value.candidate),
        companion: companion.map(|c| c.version),
    })
}

/// Counts only what was examined: the companion must still be at that version.
async fn count(job: &Job, id: &StatementId, attempts: u32, at: Option<Version>) -> Result<(), StoreError> {
    let (expect, before) = match at {
        None => (Expect::Absent, Companion { session: job.me.session.to_string(), ..Companion::default() }),
        Some(version) => {
            let read = job.store.companion(id).await?.filter(|c| c.version == version).ok_or(StoreError::Conflict)?;
            (Expect::Version(version), read.value)
        }
    };
    job.store.write_companion(id, expect, &Companion { attempts, ..before }).await.map(drop)
}

/// Looks at the running statement; tells its companion how far it is, if it has run for a while.
pub(super) fn look(job: Job, id: StatementId, progress: Option<Progress>) -> BoxFuture<'static, Input> {
    async move {
        let seen = job.store.watch(&job.me.session, &id).await;
        if let (Ok(seen), Some(progress)) = (&seen, progress) {
            let (expect, before) = match &seen.companion {
                None => (
                    Expect::Absent,
                    Companion { session: job.me.session.to_string(), attempts: 1, ..Companion::default() },
                ),
                Some(companion) => (Expect::Version(companion.version), companion.value.clone()),
            };
            let after = Companion { progress: Some(progress), ..before };
            if let Err(error) = job.store.write_companion(&id, expect, &after).await {
                tracing::debug!(statement = %id, %error, "the progress was not written");
            }
        }
        Input::Watched(hear(&job, "look at the statement", seen).map(|seen| Watched {
            statement: seen.statement,
            session: seen.session,
            timeout: seen.companion.and_then(|c| c.value.timeout),
        }))
    }
    .boxed()
}

/// Stages what the work left ready.
pub(super) fn stage(
    job: Job,
    statement: Box<Statement>,
    attempt: Attempt,
    ready: Option<Arc<Ready>>,
    entry: Option<Entry>,
    log: keep::Shared,
) -> BoxFuture<'static, Input> {
    async move {
        let Some(ready) = ready else {
            let failure = Failure::new(Code::Internal, Stage::Result, "there is no result to stage");
            return Input::Staged(Err(StageTrouble::Refused(failure)));
        };
        let outcome = outcome(&job, &statement, attempt, ready.run_millis);
        let answer = async {
            if let Some(page) = &ready.last_page {
                job.store.stage_pages(&outcome, ready.totals.pages - 1, std::slice::from_ref(page)).await?;
            }
            job.store.stage(&outcome, &ready.columns, &ready.rows, ready.totals).await
        }
        .await;
        if let Err(error) = answer {
            return Input::Staged(Err(stage_trouble(&job, error)));
        }
        // Last: a define that is in the journal has a whole result, so that a successor need not run it again.
        let kept = match entry.filter(|_| job.me.batch.is_none()) {
            Some(entry) => keep::define(&job, &log, statement.id.clone(), attempt, entry).await,
            None => Ok(()),
        };
        Input::Staged(kept.map_err(|error| match error {
            StoreError::Conflict => StageTrouble::Fenced,
            error => stage_trouble(&job, error.into()),
        }))
    }
    .boxed()
}

/// Reads what the session is made of.
pub(super) fn replay(job: Job, log: keep::Shared) -> BoxFuture<'static, Input> {
    async move { Input::Replayed(hear(&job, "read the journal", keep::replay(&job, &log).await)) }.boxed()
}

/// Takes a define out of the journal.
pub(super) fn void(job: Job, log: keep::Shared, id: StatementId, attempt: Attempt) -> BoxFuture<'static, Input> {
    async move { Input::Voided(hear(&job, "take a define out of the journal", keep::void(&job, &log, id, attempt).await)) }
        .boxed()
}

fn stage_trouble(job: &Job, error: StageError) -> StageTrouble {
    match error {
        StageError::DuplicateQueryId => StageTrouble::DuplicateQueryId,
        StageError::Superseded => StageTrouble::Superseded,
        StageError::Store(error) => match hear::<()>(job, "stage the result", Err(error.clone())) {
            Err(Trouble::Refused | Trouble::Corrupt) => StageTrouble::Refused(write_failed(&error.to_string())),
            _ => StageTrouble::Again,
        },
    }
}

/// The failure of a statement whose result the store refuses.
pub(super) fn write_failed(why: &str) -> Failure {
    Failure::new(Code::ResultWrite, Stage::Result, format!("result write failed: {why}"))
}

/// Whose pages are staged while the statement runs.
pub(super) async fn stage_page(
    job: &Job,
    statement: &Statement,
    attempt: Attempt,
    n: u32,
    page: &crate::ports::Page,
) -> Result<(), StoreError> {
    job.store.stage_pages(&outcome(job, statement, attempt, 0), n, std::slice::from_ref(page)).await
}
