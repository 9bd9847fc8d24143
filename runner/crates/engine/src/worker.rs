//! The worker's side: one session, its statements on a runtime of their own, the socket on threads of its own.
//!
//! The main thread reads messages and starts statements; a reader and a writer thread serve the socket; queries run
//! on a pool with large stacks. When the socket ends, so does the process: nothing outlives its runner.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::{Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use datafusion::arrow::error::ArrowError;
use firesteel_model::{Code, Failure, QueryText, Stage};
use firesteel_session::ports::plugins::Level;
use futures::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use crate::failures;
use crate::plugins::{Late, Loader, Log, Plugins};
use crate::query::Running;
use crate::sandbox;
use crate::session::{Given, Session};
use crate::settings::Settings;
use crate::wire::{self, Frame, ToRunner, ToWorker};

/// The size that a frame of rows aims at, in bytes.
const FRAME: usize = 4 << 20;

/// The hidden command `firesteel worker`: serves the runner at the other end of standard input until it closes.
#[must_use]
pub fn main(load: Loader) -> ExitCode {
    // A panic's message may quote a statement, and this process has no log: its place is all that is told.
    std::panic::set_hook(Box::new(|_| {}));
    match serve(load) {
        Ok(()) => ExitCode::SUCCESS,
        Err(()) => ExitCode::from(2),
    }
}

fn serve(load: Loader) -> Result<(), ()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).map_err(drop)?;
    let mut reading = socket.try_clone().map_err(drop)?;
    let first = wire::read::<ToWorker>(&mut reading, u64::from(u32::MAX)).map_err(drop)?;
    let Some(Frame::Message(ToWorker::Open { settings, spill })) = first else { return Err(()) };
    sandbox::enter(&settings, &spill);
    let (out, frames) = blocking::channel();
    let writing = move || write(socket, &frames);
    let writer = std::thread::Builder::new().name("socket-write".into()).spawn(writing).map_err(drop)?;
    let out = Out { frames: out, limit: settings.max_frame };
    let stack = usize::try_from(settings.stack).unwrap_or(usize::MAX);
    let queries = Builder::new_multi_thread()
        .worker_threads(settings.query_threads())
        .thread_stack_size(stack)
        .thread_name("query")
        .enable_all()
        .build()
        .map_err(drop)?;
    let telling = out.clone();
    let log: Log = Arc::new(move |plugin, level, line| {
        let level = match level {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        };
        telling.say(&ToRunner::Log { plugin: plugin.to_owned(), level: level.to_owned(), line: line.to_owned() });
    });
    let plugins = match settings.plugins.plugins.as_slice() {
        [] => Ok(Vec::new()),
        plugins => load(plugins, &log),
    };
    let opened = plugins.map_err(|why| Failure::new(Code::Plugin, Stage::Accept, why)).and_then(|plugins| {
        let late = Late::new(settings.plugins.on_demand.clone(), load, Arc::clone(&log));
        Session::open(&settings, Some(spill), Plugins::new(plugins, late), log)
    });
    let session = match opened {
        Ok(session) => Arc::new(session),
        Err(failure) => {
            out.say(&ToRunner::Broken { why: failure.message });
            // The reason must be on its way before the process ends.
            drop(out);
            let _ = writer.join();
            return Err(());
        }
    };
    out.say(&ToRunner::Ready);
    let (heard, messages) = mpsc::unbounded_channel();
    let limit = settings.max_frame;
    std::thread::Builder::new()
        .name("socket-read".into())
        .spawn(move || {
            while let Ok(Some(Frame::Message(message))) = wire::read::<ToWorker>(&mut reading, limit) {
                if heard.send(message).is_err() {
                    break;
                }
            }
            std::process::exit(0)
        })
        .map_err(drop)?;
    let desk =
        Desk { session, settings: Arc::new(*settings), queries: queries.handle().clone(), out, jobs: HashMap::new() };
    let control = Builder::new_current_thread().enable_time().build().map_err(drop)?;
    control.block_on(desk.work(messages));
    Ok(())
}

fn write(mut socket: UnixStream, frames: &blocking::Receiver<Vec<u8>>) {
    for frame in frames {
        if socket.write_all(&frame).is_err() {
            std::process::exit(0);
        }
    }
}

/// The way out.
#[derive(Clone)]
struct Out {
    frames: blocking::Sender<Vec<u8>>,
    limit: u64,
}

impl Out {
    fn say(&self, message: &ToRunner) {
        if let Ok(frame) = wire::message(message) {
            let _ = self.frames.send(frame);
        }
    }
}

/// A statement on its way.
struct Job {
    go: Option<oneshot::Sender<()>>,
    credit: Arc<Semaphore>,
    work: AbortHandle,
    /// Tells a plugin's call to end.
    stop: Arc<AtomicBool>,
    /// The runner waits for the word that nothing of it runs.
    stopping: bool,
}

struct Desk {
    session: Arc<Session>,
    settings: Arc<Settings>,
    queries: Handle,
    out: Out,
    jobs: HashMap<u64, Job>,
}

impl Desk {
    async fn work(mut self, mut messages: mpsc::UnboundedReceiver<ToWorker>) {
        let mut followers: JoinSet<u64> = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                message = messages.recv() => match message {
                    Some(message) => self.hear(message, &mut followers).await,
                    None => return,
                },
                Some(over) = followers.join_next() => {
                    let Ok(n) = over else { continue };
                    if self.jobs.remove(&n).is_some_and(|job| job.stopping) {
                        self.quiet().await;
                        self.out.say(&ToRunner::Cancelled { n });
                    }
                }
            }
        }
    }

    async fn hear(&mut self, message: ToWorker, followers: &mut JoinSet<u64>) {
        match message {
            ToWorker::Plan { n, statement, session, lang, text, entries, plugins } => {
                let (go, gone) = oneshot::channel();
                let stop = Arc::<AtomicBool>::default();
                let text = QueryText(text);
                let given = Given { statement, session, lang, text, stop: Arc::clone(&stop), plugins };
                let credit = Arc::new(Semaphore::new(self.settings.credit.max(1) as usize));
                let task = Task {
                    n,
                    session: Arc::clone(&self.session),
                    out: self.out.clone(),
                    credit: Arc::clone(&credit),
                    reads: Arc::default(),
                };
                let reads = Arc::clone(&task.reads);
                let work = self.queries.spawn(task.run(given, entries, gone));
                self.jobs.insert(n, Job { go: Some(go), credit, work: work.abort_handle(), stop, stopping: false });
                let out = self.out.clone();
                let period = Duration::from_millis(self.settings.progress_millis.max(10));
                followers.spawn(follow(n, work, reads, out, period));
            }
            ToWorker::Run { n } => {
                if let Some(go) = self.jobs.get_mut(&n).and_then(|job| job.go.take()) {
                    let _ = go.send(());
                }
            }
            ToWorker::Credit { n, batches } => {
                if let Some(job) = self.jobs.get(&n) {
                    job.credit.add_permits(batches as usize);
                }
            }
            ToWorker::Cancel { n } => match self.jobs.get_mut(&n) {
                Some(job) => {
                    job.stopping = true;
                    job.stop.store(true, Ordering::Relaxed);
                    job.work.abort();
                }
                None => self.out.say(&ToRunner::Cancelled { n }),
            },
            ToWorker::Open { .. } => {}
        }
    }

    /// Returns when nothing of a cancelled statement runs any more; the runner's patience is the limit.
    async fn quiet(&self) {
        while self.jobs.is_empty() && self.queries.metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Reports a statement's progress until it is over, and its panic. Returns its number.
async fn follow(
    n: u64,
    mut work: tokio::task::JoinHandle<()>,
    reads: Arc<Mutex<crate::query::Reads>>,
    out: Out,
    period: Duration,
) -> u64 {
    let mut said = (0, 0);
    loop {
        tokio::select! {
            end = &mut work => {
                if let Err(e) = end
                    && e.is_panic()
                {
                    let failure = Failure::new(Code::Internal, Stage::Execute, "the statement met a fault of the engine (a panic)");
                    out.say(&ToRunner::Failed { n, failure: failure.into() });
                }
                return n;
            }
            () = tokio::time::sleep(period) => {
                let now = reads.lock().unwrap_or_else(PoisonError::into_inner).now();
                if now != said {
                    said = now;
                    out.say(&ToRunner::Progress { n, rows: now.0, bytes: now.1 });
                }
            }
        }
    }
}

struct Task {
    n: u64,
    session: Arc<Session>,
    out: Out,
    credit: Arc<Semaphore>,
    reads: Arc<Mutex<crate::query::Reads>>,
}

impl Task {
    async fn run(self, given: Given, entries: Vec<String>, go: oneshot::Receiver<()>) {
        let n = self.n;
        let performed = self.perform(&given, entries, go).await;
        // What of it is still under way in a plugin is not wanted any more.
        given.stop.store(true, Ordering::Relaxed);
        let end = match performed {
            Ok(true) => ToRunner::Done { n },
            Ok(false) => return,
            Err(failure) => ToRunner::Failed { n, failure: failure.into() },
        };
        let reads = std::mem::take(&mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner));
        let (rows, bytes) = reads.now();
        self.out.say(&ToRunner::Progress { n, rows, bytes });
        self.out.say(&end);
    }

    async fn perform(&self, given: &Given, entries: Vec<String>, go: oneshot::Receiver<()>) -> Result<bool, Failure> {
        for entry in &entries {
            self.session.replay(entry).await;
        }
        let planned = self.session.plan(given).await?;
        self.out.say(&ToRunner::Planned {
            n: self.n,
            kind: planned.kind.into(),
            entry: planned.entry.clone().map(Into::into),
        });
        if go.await.is_err() {
            return Ok(false);
        }
        let Running { schema, mut batches, reads } = self.session.run(planned).await?;
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner) = reads;
        let mut writer = StreamWriter::try_new(wire::arrow_header(self.n), &schema).map_err(|e| wrong(&e))?;
        self.send(std::mem::replace(writer.get_mut(), wire::arrow_header(self.n)))?;
        while let Some(batch) = batches.next().await {
            self.batch(&mut writer, &batch?).await?;
        }
        Ok(true)
    }

    async fn batch(&self, writer: &mut StreamWriter<Vec<u8>>, batch: &RecordBatch) -> Result<(), Failure> {
        let step = rows_a_frame(batch);
        let mut at = 0;
        while at < batch.num_rows() {
            let rows = step.min(batch.num_rows() - at);
            let permit = self.credit.acquire().await.expect("the semaphore is never closed");
            permit.forget();
            writer.write(&batch.slice(at, rows)).map_err(|e| wrong(&e))?;
            self.send(std::mem::replace(writer.get_mut(), wire::arrow_header(self.n)))?;
            at += rows;
        }
        Ok(())
    }

    fn send(&self, frame: Vec<u8>) -> Result<(), Failure> {
        if frame.len() as u64 > self.out.limit {
            return Err(Failure::new(
                Code::ResultTooLarge,
                Stage::Execute,
                format!(
                    "a row of the result has {}, the limit is {} (setting `max_frame`)",
                    failures::size(frame.len() as u64),
                    failures::size(self.out.limit)
                ),
            ));
        }
        let frame = wire::seal(frame).map_err(|e| Failure::new(Code::Internal, Stage::Execute, e.to_string()))?;
        let _ = self.out.frames.send(frame);
        Ok(())
    }
}

fn wrong(e: &ArrowError) -> Failure {
    Failure::new(Code::Execution, Stage::Execute, format!("the rows cannot be sent: {e}"))
}

fn rows_a_frame(batch: &RecordBatch) -> usize {
    let bytes: usize = batch
        .columns()
        .iter()
        .map(|c| c.to_data().get_slice_memory_size().unwrap_or_else(|_| c.get_array_memory_size()))
        .sum();
    (batch.num_rows() * FRAME / bytes.max(1)).max(1)
}
