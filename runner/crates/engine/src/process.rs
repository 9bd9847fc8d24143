//! One worker process as the runner sees it: started, spoken to, watched, killed, reaped.
//!
//! Three threads each, so that nothing here waits for the runner's own runtime: one reads the socket and reaps,
//! one writes, one watches the resident size and the deadlines. The only place in this crate that reads a clock.

mod command;
mod peer;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use firesteel_model::{Code, Failure, Stage};
use firesteel_session::journal::Entry;
use firesteel_session::ports::{EngineError, Progress};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};

use crate::settings::Settings;
use crate::spill;
use crate::wire::{self, Frame, ToRunner, ToWorker, WireKind};

pub use peer::Peer;

/// What a worker said about one statement.
#[derive(Debug)]
pub enum Said {
    Planned { kind: WireKind, entry: Option<Entry> },
    Arrow(Vec<u8>),
    Done,
    Failed(Failure),
    Died(Death),
}

/// Why a worker is gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Death {
    /// It was over its memory limit: the statement's own fault.
    Memory { limit: u64 },
    /// It could not open the session: a setting is wrong.
    Unfit(String),
    /// Anything else.
    Other(String),
}

impl From<Death> for EngineError {
    fn from(death: Death) -> Self {
        match death {
            Death::Memory { limit } => EngineError::Failed(Failure::new(
                Code::Memory,
                Stage::Execute,
                format!(
                    "the statement needed more memory than a worker may have ({}, setting `memory_limit`); \
                     read fewer rows or columns at once, or raise the limit",
                    crate::failures::size(limit)
                ),
            )),
            Death::Unfit(why) => EngineError::Failed(Failure::new(Code::Internal, Stage::Accept, why)),
            Death::Other(why) => EngineError::Died(why),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines of this process's own, on its own clock")]
fn now() -> Instant {
    Instant::now()
}

/// What is known of a worker at any time.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    /// Statements that were told to stop and have not confirmed.
    pub stopping: usize,
    /// It is gone, reaped and its files are removed.
    pub dead: Option<Death>,
}

struct Slot {
    said: mpsc::UnboundedSender<Said>,
    progress: watch::Sender<Progress>,
    stop_by: Option<Instant>,
}

struct State {
    slots: HashMap<u64, Slot>,
    /// It is some session's: a statement was begun.
    used: bool,
    /// Since when there has been no statement.
    idle_since: Instant,
    /// A statement was stopped, and nothing was begun since.
    stopped: bool,
    /// Set once, before it is killed: it takes no more statements.
    verdict: Option<Death>,
}

struct Shared {
    pid: u32,
    child: Mutex<Child>,
    state: Mutex<State>,
    situation: watch::Sender<Situation>,
    watcher: OnceLock<Thread>,
    settings: Arc<Settings>,
    /// Told whenever the last statement is over.
    idle: Arc<Notify>,
}

/// A running worker. Dropping it kills it.
pub struct Process {
    shared: Arc<Shared>,
    out: blocking::Sender<Vec<u8>>,
}

impl Process {
    /// Starts a worker and tells it how to work. It keeps the permit until it is reaped, and tells `idle` when it has nothing to do.
    ///
    /// # Errors
    /// The program could not be started, or the spill folder not be made.
    pub fn spawn(settings: &Arc<Settings>, permit: OwnedSemaphorePermit, idle: Arc<Notify>) -> io::Result<Process> {
        let (ours, theirs) = UnixStream::pair()?;
        let errors = File::from(rustix::fs::memfd_create("worker-stderr", rustix::fs::MemfdFlags::CLOEXEC)?);
        let spill = spill::create(settings)?;
        let child = command::of(settings, theirs, &errors).spawn().inspect_err(|_| spill::remove(&spill))?;
        let shared = Arc::new(Shared {
            pid: child.id(),
            child: Mutex::new(child),
            state: Mutex::new(State {
                slots: HashMap::new(),
                used: false,
                idle_since: now(),
                stopped: false,
                verdict: None,
            }),
            situation: watch::Sender::new(Situation::default()),
            watcher: OnceLock::new(),
            settings: Arc::clone(settings),
            idle,
        });
        let (out, frames) = blocking::channel::<Vec<u8>>();
        let writing = ours.try_clone()?;
        let reading = Arc::clone(&shared);
        let read_spill = spill.clone();
        let watching = Arc::clone(&shared);
        let threads = thread::Builder::new()
            .name("worker-watch".into())
            .spawn(move || watching.watch())
            .map(|t| shared.watcher.get_or_init(|| t.thread().clone()))
            .and_then(|_| thread::Builder::new().name("worker-write".into()).spawn(move || write(writing, &frames)))
            .and_then(|_| {
                thread::Builder::new().name("worker-read".into()).spawn(move || {
                    reading.read(ours, errors, &read_spill);
                    drop(permit);
                })
            });
        let process = Process { shared, out };
        threads?;
        process.send(&ToWorker::Open { settings: Box::new((**settings).clone()), spill })?;
        Ok(process)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// What others than its session see of it.
    pub fn peer(&self) -> Peer {
        Peer::of(&self.shared)
    }

    /// It has not been reaped.
    pub fn is_alive(&self) -> bool {
        self.shared.situation.borrow().dead.is_none()
    }

    /// Ends it, whatever it does, and waits until it is reaped.
    pub async fn end(&self, why: &str) {
        self.kill(why);
        // An error is an end, too: nobody is left to tell of one.
        let _ = self.situation().wait_for(|s| s.dead.is_some()).await;
    }

    /// What is known of it, now and later.
    pub fn situation(&self) -> watch::Receiver<Situation> {
        self.shared.situation.subscribe()
    }

    /// Begins a statement. `Err`: it takes none any more.
    pub fn begin(&self, n: u64, plan: &[u8]) -> Result<Line, ()> {
        let (said, hears) = mpsc::unbounded_channel();
        let (progress, reads) = watch::channel(Progress::default());
        let mut state = self.shared.lock();
        if state.verdict.is_some() {
            return Err(());
        }
        state.stopped = false;
        state.used = true;
        state.slots.insert(n, Slot { said, progress, stop_by: None });
        drop(state);
        self.shared.wake();
        // A failed send is a worker that is dying: its reader tells the line.
        let _ = self.out.send(plan.to_vec());
        Ok(Line { n, shared: Arc::clone(&self.shared), out: self.out.clone(), hears, reads, over: false })
    }

    /// Whether a statement was stopped and left more than a worker may keep.
    pub fn outgrown(&self) -> bool {
        self.shared.lock().stopped
            && resident(self.shared.pid).is_some_and(|bytes| bytes > self.shared.settings.retire_above)
    }

    /// Ends it, whatever it does.
    pub fn kill(&self, why: &str) {
        let mut state = self.shared.lock();
        state.verdict.get_or_insert_with(|| Death::Other(why.to_owned()));
        drop(state);
        self.shared.kill();
    }

    fn send(&self, message: &ToWorker) -> io::Result<()> {
        let frame = wire::message(message)?;
        let _ = self.out.send(frame);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill("the runner ended it");
    }
}

fn write(mut socket: UnixStream, frames: &blocking::Receiver<Vec<u8>>) {
    for frame in frames {
        if socket.write_all(&frame).is_err() {
            break;
        }
    }
    // Whoever holds the other end reads the end of the stream and leaves.
    let _ = socket.shutdown(std::net::Shutdown::Write);
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        // Only an unreaped child is signalled, so the id cannot be another's.
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    fn wake(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    fn read(&self, socket: UnixStream, errors: File, spill: &std::path::Path) {
        let mut socket = BufReader::with_capacity(256 * 1024, socket);
        loop {
            match wire::read::<ToRunner>(&mut socket, self.settings.max_frame) {
                Ok(Some(frame)) => self.hear(frame),
                Ok(None) => break,
                // It died with words of ours unread.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => break,
                Err(e) => {
                    let mut state = self.lock();
                    state.verdict.get_or_insert_with(|| Death::Other(format!("its messages could not be read: {e}")));
                    break;
                }
            }
        }
        self.kill();
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
        spill::remove(spill);
        let mut state = self.lock();
        let death = state.verdict.get_or_insert_with(|| Death::Other(reason(status, errors))).clone();
        for (_, slot) in state.slots.drain() {
            let _ = slot.said.send(Said::Died(death.clone()));
        }
        drop(state);
        self.situation.send_replace(Situation { stopping: 0, dead: Some(death) });
        self.wake();
    }

    fn hear(&self, frame: Frame<ToRunner>) {
        let mut state = self.lock();
        let (n, said) = match frame {
            Frame::Arrow { n, bytes } => (n, Said::Arrow(bytes)),
            Frame::Message(message) => match message {
                ToRunner::Ready => return,
                ToRunner::Log { plugin, level, line } => return crate::plugins::write(&plugin, &level, &line),
                ToRunner::Broken { why } => {
                    state.verdict.get_or_insert(Death::Unfit(why));
                    return;
                }
                ToRunner::Progress { n, rows, bytes } => {
                    if let Some(slot) = state.slots.get(&n) {
                        slot.progress.send_replace(Progress { rows, bytes, elapsed_millis: 0 });
                    }
                    return;
                }
                ToRunner::Planned { n, kind, entry } => (n, Said::Planned { kind, entry: entry.map(Entry::from) }),
                ToRunner::Done { n } => (n, Said::Done),
                ToRunner::Failed { n, failure } => (n, Said::Failed(failure.into())),
                ToRunner::Cancelled { n } => {
                    state.slots.remove(&n);
                    state.stopped = true;
                    self.settle(&mut state);
                    return;
                }
            },
        };
        let over = matches!(said, Said::Done | Said::Failed(_));
        if let Some(slot) = state.slots.get(&n) {
            let _ = slot.said.send(said);
            // A statement that was told to stop is over when the worker confirms that nothing of it runs.
            if over && slot.stop_by.is_none() {
                state.slots.remove(&n);
                self.settle(&mut state);
            }
        }
    }

    /// Tells who waits, and lets the watcher look at what is left.
    fn settle(&self, state: &mut State) {
        state.idle_since = now();
        let stopping = state.slots.values().filter(|slot| slot.stop_by.is_some()).count();
        self.situation.send_if_modified(|s| std::mem::replace(&mut s.stopping, stopping) != stopping);
        if state.slots.is_empty() {
            self.wake();
            self.idle.notify_waiters();
        }
    }

    fn watch(&self) {
        let settings = &self.settings;
        let limit = settings.hard_limit();
        let period = Duration::from_millis(settings.watch_millis.max(1));
        let large = Duration::from_millis(settings.retire_large_millis);
        let retire = Duration::from_millis(settings.retire_idle_millis);
        while self.situation.borrow().dead.is_none() {
            let now = now();
            let resident = resident(self.pid).unwrap_or(0);
            let mut state = self.lock();
            let busy = !state.slots.is_empty();
            let idle = if busy { Duration::ZERO } else { now - state.idle_since };
            // One that is nobody's is there to wait.
            let retire = if state.used { retire } else { Duration::MAX };
            let deadline = state.slots.values().filter_map(|slot| slot.stop_by).min();
            let verdict = if busy && resident > limit {
                Some(Death::Memory { limit })
            } else if deadline.is_some_and(|by| by <= now) {
                Some(Death::Other("a statement did not stop when it was told to".into()))
            } else if !busy && resident > settings.retire_above && (state.stopped || idle >= large) {
                Some(Death::Other("it was retired: it kept too much memory after a statement".into()))
            } else if !busy && idle >= retire {
                Some(Death::Other("it was retired: it had nothing to do".into()))
            } else {
                None
            };
            if let Some(verdict) = verdict {
                state.verdict.get_or_insert(verdict);
                drop(state);
                self.kill();
                return;
            }
            drop(state);
            let next = match deadline {
                Some(by) => period.min(by - now),
                None if busy => period,
                None if idle < large => large.min(retire) - idle.min(retire),
                None => retire.saturating_sub(idle),
            };
            thread::park_timeout(next.max(Duration::from_millis(1)));
        }
    }
}

/// What the kernel says is resident of a process, in bytes.
pub fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Why it ended: its exit, and what Rust's runtime wrote when it gave up. Nothing else of its output is used.
fn reason(status: io::Result<ExitStatus>, mut errors: File) -> String {
    let mut tail = Vec::new();
    let length = errors.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = errors.seek(SeekFrom::Start(length.saturating_sub(4096)));
    let _ = errors.take(4096).read_to_end(&mut tail);
    let tail = String::from_utf8_lossy(&tail);
    if tail.contains("has overflowed its stack") {
        return "stack overflow: the statement nests too deeply".into();
    }
    if tail.contains("memory allocation of") && tail.contains("failed") {
        return "out of memory: an allocation failed".into();
    }
    match status {
        Ok(status) => match (status.signal(), status.code()) {
            (Some(9), _) => "killed by signal 9 from outside, perhaps because the machine ran out of memory".into(),
            (Some(signal), _) => format!("killed by signal {signal}"),
            (None, Some(code)) => format!("it exited with code {code}"),
            (None, None) => "it ended for no known reason".into(),
        },
        Err(e) => format!("its end could not be read: {e}"),
    }
}

/// One statement's share of a worker. Dropping it before it is over stops the statement.
pub struct Line {
    n: u64,
    shared: Arc<Shared>,
    out: blocking::Sender<Vec<u8>>,
    hears: mpsc::UnboundedReceiver<Said>,
    reads: watch::Receiver<Progress>,
    over: bool,
}

impl Line {
    /// The next thing that the worker says about the statement.
    pub async fn next(&mut self) -> Said {
        let said = self.hears.recv().await.unwrap_or_else(|| Said::Died(Death::Other("it is gone".into())));
        self.over |= matches!(said, Said::Done | Said::Failed(_) | Said::Died(_));
        said
    }

    /// What the statement has read so far.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.reads.clone()
    }

    /// Runs what was planned.
    pub fn run(&self) {
        self.send(&ToWorker::Run { n: self.n });
    }

    /// Allows one more batch.
    pub fn credit(&self) {
        self.send(&ToWorker::Credit { n: self.n, batches: 1 });
    }

    fn send(&self, message: &ToWorker) {
        if let Ok(frame) = wire::message(message) {
            let _ = self.out.send(frame);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(slot) = state.slots.get_mut(&self.n) {
            slot.stop_by = Some(now() + Duration::from_millis(self.shared.settings.cancel_grace_millis));
            self.shared.settle(&mut state);
            drop(state);
            self.send(&ToWorker::Cancel { n: self.n });
            self.shared.wake();
        }
    }
}
