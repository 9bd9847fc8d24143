//! The engine inside this very process: for tests and for embedding. It can be asked to stop, not made to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::{Entry, Journal};
use firesteel_session::ports::plugins::Plugin;
use firesteel_session::ports::{Engine, EngineError, Output, Plan, Progress, Request};
use futures::stream::{self, StreamExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::plugins::{Late, Log, Plugins, Routed};
use crate::query::Running;
use crate::session::{Given, Planned, Session};
use crate::settings::Settings;

/// An [`Engine`] for one session without a process of its own.
pub struct InProcess {
    settings: Settings,
    plugins: Vec<Arc<dyn Plugin>>,
    log: Log,
    runtime: Option<Runtime>,
    open: Mutex<Option<Open>>,
}

#[derive(Clone)]
struct Open {
    session: Arc<Session>,
    generation: u64,
    applied: Arc<tokio::sync::Mutex<Vec<Entry>>>,
}

impl InProcess {
    /// An engine with these settings; of those that concern processes, none has a meaning here.
    ///
    /// # Errors
    /// Threads cannot be started, or a data folder or store cannot be used.
    pub fn new(settings: Settings) -> Result<InProcess, EngineError> {
        InProcess::with_plugins(settings, Vec::new(), Arc::new(|_, _, _| {}))
    }

    /// The same with these plugins, in this order, and where their log goes.
    ///
    /// # Errors
    /// As [`InProcess::new`].
    pub fn with_plugins(settings: Settings, plugins: Vec<Arc<dyn Plugin>>, log: Log) -> Result<InProcess, EngineError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(settings.query_threads())
            .thread_stack_size(usize::try_from(settings.stack).unwrap_or(usize::MAX))
            .thread_name("query")
            .enable_all()
            .build()
            .map_err(|e| Failure::new(Code::Internal, Stage::Accept, format!("threads cannot be started: {e}")))?;
        let engine = InProcess { settings, plugins, log, runtime: Some(runtime), open: Mutex::default() };
        engine.open(0)?;
        Ok(engine)
    }

    /// The session of the last statement, to run queries on its DataFusion context without the loop.
    ///
    /// # Errors
    /// As [`InProcess::new`].
    pub fn session(&self) -> Result<Arc<Session>, EngineError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(match open {
            Some(open) => open.session,
            None => self.open(0)?.session,
        })
    }

    /// The threads that queries run on.
    pub fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("only dropping takes it").handle()
    }

    /// What the handlers make of a statement, which is not run.
    ///
    /// # Errors
    /// One rejects it or fails, or nobody takes the language.
    pub async fn route(&self, request: &Request) -> Result<Routed, EngineError> {
        let (session, given) = (self.session()?, given(request, &Arc::default()));
        let work = self.handle().spawn(async move { session.route(&given).await });
        Ok(work.await.map_err(|_| panicked())??)
    }

    fn open(&self, generation: u64) -> Result<Open, EngineError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.as_ref()
            && open.generation == generation
        {
            return Ok(open.clone());
        }
        let plugins = Plugins::new(self.plugins.clone(), Late::default());
        let session = Session::open(&self.settings, self.settings.spill_dir.clone(), plugins, Arc::clone(&self.log))?;
        Ok(open.insert(Open { session: Arc::new(session), generation, applied: Arc::default() }).clone())
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Stops a task that is no longer wanted, and whatever plugin it is in.
struct Stop(AbortHandle, Arc<AtomicBool>);

impl Stop {
    /// It is over: what follows is another.
    fn done(mut self) {
        self.1 = Arc::default();
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.abort();
    }
}

#[async_trait]
impl Engine for InProcess {
    async fn plan(&self, journal: &Journal, request: &Request) -> Result<Box<dyn Plan>, EngineError> {
        let mut open = self.open(journal.generation())?;
        if journal.missing(&open.applied.lock().await).is_none() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
            open = self.open(journal.generation())?;
        }
        let (journal, session, asked) = (journal.clone(), Arc::clone(&open.session), Arc::<AtomicBool>::default());
        let given = given(request, &asked);
        let applied = Arc::clone(&open.applied);
        let work = self.handle().spawn(async move {
            let mut done = applied.lock().await;
            for entry in journal.missing(&done).unwrap_or_default() {
                session.replay(&entry.text).await;
            }
            *done = journal.entries().to_vec();
            session.plan(&given).await
        });
        let stop = Stop(work.abort_handle(), Arc::clone(&asked));
        let planned = work.await.map_err(|_| panicked())??;
        stop.done();
        Ok(Box::new(Waiting { planned, open, asked, handle: self.handle().clone() }))
    }

    async fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn given(request: &Request, stop: &Arc<AtomicBool>) -> Given {
    Given {
        statement: request.statement.as_str().to_owned(),
        session: request.session.clone(),
        lang: request.lang.clone(),
        text: request.text.clone(),
        stop: Arc::clone(stop),
        plugins: Vec::new(),
    }
}

fn panicked() -> EngineError {
    Failure::new(Code::Internal, Stage::Execute, "the statement met a fault of the engine (a panic)").into()
}

struct Waiting {
    planned: Planned,
    open: Open,
    asked: Arc<AtomicBool>,
    handle: Handle,
}

#[async_trait]
impl Plan for Waiting {
    fn kind(&self) -> Kind {
        self.planned.kind
    }

    fn entry(&self) -> Option<Entry> {
        self.planned.entry.clone()
    }

    async fn run(self: Box<Self>) -> Result<Output, EngineError> {
        let Waiting { planned, open, asked, handle } = *self;
        let entry = planned.entry.clone();
        let session = Arc::clone(&open.session);
        let work = handle.spawn(async move { session.run(planned).await });
        let stop = Stop(work.abort_handle(), Arc::clone(&asked));
        let Running { schema, mut batches, reads } = work.await.map_err(|_| panicked())??;
        stop.done();
        if let Some(entry) = entry {
            open.applied.lock().await.push(entry);
        }
        let (send, receive) = mpsc::channel(2);
        let (progress, seen) = watch::channel(Progress::default());
        let work = handle.spawn(async move {
            while let Some(batch) = batches.next().await {
                let (rows, bytes) = reads.now();
                progress.send_replace(Progress { rows, bytes, elapsed_millis: 0 });
                if send.send(batch).await.is_err() {
                    return;
                }
            }
            let (rows, bytes) = reads.now();
            progress.send_replace(Progress { rows, bytes, elapsed_millis: 0 });
        });
        let stop = Stop(work.abort_handle(), asked);
        let rows = stream::unfold((receive, Some(work), stop), |(mut receive, work, stop)| async move {
            match receive.recv().await {
                Some(batch) => Some((batch.map_err(EngineError::from), (receive, work, stop))),
                // A panic ends the rows without an end: that is no result.
                None => match work?.await {
                    Ok(()) => None,
                    Err(_) => Some((Err(panicked()), (receive, None, stop))),
                },
            }
        });
        Ok(Output { schema, batches: rows.boxed(), progress: seen })
    }
}
