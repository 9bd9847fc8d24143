//! The one statement that the engine is at: planned, then run, its rows packed into pages as they come.

use std::future::pending;
use std::sync::{Arc, OnceLock};

use firesteel_model::runner::{Input, RunTrouble};
use firesteel_model::{Attempt, Failure, Kind, Millis, Statement};
use futures::StreamExt;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use super::Job;
use super::perform::{stage_page, write_failed};
use crate::journal::{Entry, Journal};
use crate::ports::{Column, EngineError, Output, Page, Plan, Progress, Request, StoreError, Totals};
use crate::result::{Encoder, Pager, Verdict};

/// Progress is told after this long, and again after each further time, in milliseconds.
const TELL_EVERY: u64 = 1_000;
/// How often a page is tried to be staged before the statement fails.
const PAGE_TRIES: u64 = 8;

/// A whole result, but for the pages that are staged already.
#[derive(Debug)]
pub(super) struct Ready {
    pub columns: Vec<Column>,
    pub rows: Vec<String>,
    pub last_page: Option<Page>,
    pub totals: Totals,
    pub run_millis: u64,
}

/// What the engine is at. Dropping a task drops the plan or the stream, which stops the engine.
#[derive(Default)]
pub(super) struct Work {
    task: Option<Task>,
    plan: Option<Box<dyn Plan>>,
    entry: Option<Entry>,
    ready: Option<Arc<Ready>>,
    begun: Option<Millis>,
    told: Option<Millis>,
    sending: Arc<Mutex<()>>,
    progress: Arc<OnceLock<watch::Receiver<Progress>>>,
}

enum Task {
    Planning(Stopping<Result<Box<dyn Plan>, EngineError>>),
    Running(Stopping<Result<Ready, RunTrouble>>),
}

/// A task that ends with its handle.
struct Stopping<T>(JoinHandle<T>);

impl<T> Drop for Stopping<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> Stopping<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the session spawns a task: it ends with its handle"
    )]
    fn spawn(future: impl Future<Output = T> + Send + 'static) -> Stopping<T> {
        Stopping(tokio::spawn(future))
    }
}

/// A request that is not broken off by dropping what waits for it.
#[expect(clippy::disallowed_methods, reason = "the task is one request to the store, which ends by itself")]
async fn to_its_end<T: Send + 'static>(
    request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::spawn(request).await;
    done.unwrap_or_else(|_| Err(StoreError::Unknown("the request broke off".into())))
}

fn trouble(error: EngineError) -> RunTrouble {
    match error {
        EngineError::Failed(failure) => RunTrouble::Failed(failure),
        EngineError::Died(why) => RunTrouble::Died { why },
    }
}

impl Work {
    /// Stops and forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Work { sending: Arc::clone(&self.sending), ..Work::default() };
    }

    /// Held while a page is on its way to the store, even if its statement was stopped meanwhile: who removes pages waits for it, or the page
    /// would come after that.
    pub(super) fn sending(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.sending)
    }

    pub(super) fn plan(&mut self, job: &Job, journal: &Journal, statement: &Statement) {
        self.clear();
        let (engine, journal) = (Arc::clone(&job.engine), journal.clone());
        let request = Request {
            statement: statement.id.clone(),
            session: job.me.session.to_string(),
            lang: statement.lang.clone(),
            text: statement.query.clone(),
        };
        self.task = Some(Task::Planning(Stopping::spawn(async move { engine.plan(&journal, &request).await })));
    }

    pub(super) fn run(&mut self, job: &Job, statement: Statement, attempt: Attempt) {
        let Some(plan) = self.plan.take() else { return };
        // Told before the first row: an aggregate reads for long and gives its rows at the end.
        let progress = Arc::default();
        self.begun = Some(job.clock.now());
        self.progress = Arc::clone(&progress);
        let (job, statement, sending) = (job.clone(), Arc::new(statement), self.sending());
        self.task = Some(Task::Running(Stopping::spawn(async move {
            let begun = job.clock.now();
            let output = plan.run().await.map_err(trouble)?;
            let _ = progress.set(output.progress.clone());
            let mut ready = pages(&job, &statement, attempt, output, &sending).await?;
            ready.run_millis = job.clock.now().since(begun);
            Ok(ready)
        })));
    }

    /// The next input of the task, if there is one.
    pub(super) async fn next(&mut self) -> Input {
        match &mut self.task {
            None => pending().await,
            Some(Task::Planning(task)) => {
                let planned = (&mut task.0).await;
                self.task = None;
                Input::Planned(match planned {
                    Ok(Ok(plan)) => {
                        let kind: Kind = plan.kind();
                        self.entry = plan.entry();
                        self.plan = Some(plan);
                        Ok(kind)
                    }
                    Ok(Err(error)) => Err(trouble(error)),
                    Err(_) => Err(RunTrouble::Failed(panicked())),
                })
            }
            Some(Task::Running(task)) => {
                let ran = (&mut task.0).await;
                self.task = None;
                Input::Ran(match ran {
                    Ok(Ok(ready)) => {
                        self.ready = Some(Arc::new(ready));
                        Ok(())
                    }
                    Ok(Err(trouble)) => Err(trouble),
                    Err(_) => Err(RunTrouble::Failed(panicked())),
                })
            }
        }
    }

    /// What is ready to be staged.
    pub(super) fn ready(&self) -> Option<Arc<Ready>> {
        self.ready.clone()
    }

    /// Of a define: what the journal is to hold.
    pub(super) fn entry(&self) -> Option<Entry> {
        self.entry.clone()
    }

    pub(super) fn run_millis(&self) -> u64 {
        self.ready.as_ref().map_or(0, |ready| ready.run_millis)
    }

    /// The progress, if it is time to tell it.
    pub(super) fn progress(&mut self, now: Millis) -> Option<Progress> {
        let begun = self.begun.filter(|_| self.task.is_some())?;
        if now.since(self.told.unwrap_or(begun)) < TELL_EVERY {
            return None;
        }
        self.told = Some(now);
        let seen = *self.progress.get()?.borrow();
        Some(Progress { elapsed_millis: now.since(begun), ..seen })
    }
}

fn panicked() -> Failure {
    Failure::new(
        firesteel_model::Code::Internal,
        firesteel_model::Stage::Execute,
        "the runner failed inside; its log has the detail",
    )
}

/// Reads the stream to its end: never more in memory than a batch, a document's rows and a page.
async fn pages(
    job: &Job,
    statement: &Arc<Statement>,
    attempt: Attempt,
    mut output: Output,
    sending: &Arc<Mutex<()>>,
) -> Result<Ready, RunTrouble> {
    let mut encoder = Encoder::new(&output.schema).map_err(RunTrouble::Failed)?;
    let mut pager = Pager::new(job.limits);
    let mut asked = false;
    let mut staged = 0;
    let mut full = Vec::new();
    'stream: while let Some(batch) = output.batches.next().await {
        let batch = batch.map_err(trouble)?;
        if !asked && pager.totals().bytes + batch.get_array_memory_size() as u64 * 4 > job.limits.document_bytes / 2 {
            asked = true;
            pager.large_results(wanted(job, statement).await);
        }
        let mut end = None;
        encoder
            .encode(&batch, &mut |row| match (end.is_none()).then(|| pager.push(row)).flatten() {
                Some(Verdict::Page(page)) => full.push(page),
                Some(over) => end = Some(over),
                None => {}
            })
            .map_err(RunTrouble::Failed)?;
        for page in full.drain(..) {
            put(job, statement, attempt, staged, page, sending).await.map_err(RunTrouble::Failed)?;
            staged += 1;
        }
        match end {
            Some(Verdict::TooLarge(failure)) => return Err(RunTrouble::Failed(failure)),
            Some(_) => break 'stream,
            None => {}
        }
    }
    let done = pager.finish();
    Ok(Ready {
        columns: encoder.columns().to_vec(),
        rows: done.rows,
        last_page: done.page,
        totals: done.totals,
        run_millis: 0,
    })
}

/// What the submitter wants of a large result; asked only when there is one.
async fn wanted(job: &Job, statement: &Statement) -> crate::ports::LargeResults {
    match job.store.companion(&statement.id).await {
        Ok(companion) => companion.and_then(|c| c.value.large_results).unwrap_or(job.limits.large_results),
        Err(error) => {
            tracing::warn!(statement = %statement.id, %error, "what to do with a large result could not be read");
            job.limits.large_results
        }
    }
}

/// Stages one page, again and again while the store is away for a while.
async fn put(
    job: &Job,
    statement: &Arc<Statement>,
    attempt: Attempt,
    n: u32,
    page: Page,
    sending: &Arc<Mutex<()>>,
) -> Result<(), Failure> {
    let (mut tries, page) = (0, Arc::new(page));
    loop {
        let (guard, page) = (Arc::clone(sending).lock_owned().await, Arc::clone(&page));
        let (sender, statement) = (job.clone(), Arc::clone(statement));
        let answer = to_its_end(async move {
            let answer = stage_page(&sender, &statement, attempt, n, &page).await;
            drop(guard);
            answer
        })
        .await;
        job.counters.heard(job.clock.now(), &job.me.session, "stage a page", &answer);
        match answer {
            Ok(()) => return Ok(()),
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) if tries < PAGE_TRIES => {
                tries += 1;
                job.clock.sleep_until(job.clock.now().plus(tries * job.policy.retry)).await;
            }
            Err(error) => return Err(write_failed(&error.to_string())),
        }
    }
}
