//! The loop: performs what the model asks, and gives it the answers.
//!
//! [`run`] serves one session until the runner is to leave. The heart ([`heart`]) renews the lease beside it, on a thread of
//! its own if the caller gives it one; [`work`] is the one statement that the engine is at.

pub mod heart;
mod keep;
mod perform;
pub(crate) mod sweep;
mod work;

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use firesteel_model::lease::Lease;
use firesteel_model::policy::Policy;
use firesteel_model::runner::{Action, Exit, Identity, Input, Note, Runner};
use firesteel_model::{Millis, StatementId, StatementState};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Notify, mpsc};

use crate::counters::Counters;
use crate::journal::Journal;
use crate::ports::{Clock, Engine, Store};
use crate::result::Limits;
use work::Work;

/// How long what is on its way may take when a runner leaves.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// What a runner needs to serve a session.
#[derive(Clone)]
pub struct Job {
    /// Who it is and what it serves.
    pub me: Identity,
    /// Its intervals and limits.
    pub policy: Policy,
    /// The limits of a result.
    pub limits: Limits,
    /// Where sessions, statements and results are.
    pub store: Arc<dyn Store>,
    /// What runs statements.
    pub engine: Arc<dyn Engine>,
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// What it counts.
    pub counters: Counters,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("me", &self.me).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The machine, shared by the loop, which steps it, and the heart, which renews its lease.
pub struct Shared {
    runner: Mutex<Runner>,
    /// The heart did something that the loop should look at.
    beaten: Notify,
    /// The loop did something that the heart should look at.
    stepped: Notify,
}

impl Shared {
    /// A machine that has done nothing yet.
    #[must_use]
    pub fn new(me: Identity, policy: Policy) -> Arc<Shared> {
        Arc::new(Shared { runner: Mutex::new(Runner::new(me, policy)), beaten: Notify::new(), stepped: Notify::new() })
    }

    fn runner(&self) -> MutexGuard<'_, Runner> {
        // A panic inside of the pure machine leaves it as it was before the step or after it.
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_in_hand(&self, id: &StatementId) -> bool {
        self.runner().has_in_hand(id)
    }

    pub(crate) fn with_lease<T>(&self, f: impl FnOnce(&mut Lease) -> T) -> Option<T> {
        self.runner().lease().map(f)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Serves the session until the runner is to leave. Each message on `stop` is a request to stop: the second means at once.
/// The heart must run beside it: [`heart::beat`] with the same `shared`.
pub async fn run(job: Job, shared: Arc<Shared>, stop: mpsc::UnboundedReceiver<()>) -> Exit {
    if job.me.batch.is_some() {
        // It looks after its one statement only.
        return serve(job, shared, stop, std::future::pending()).await;
    }
    let sweeps = sweep::beside(job.clone(), Arc::clone(&shared));
    serve(job, shared, stop, sweeps).await
}

/// The same, with what is done beside the loop for as long as it goes on.
pub(crate) async fn serve(
    job: Job,
    shared: Arc<Shared>,
    mut stop: mpsc::UnboundedReceiver<()>,
    sweeps: impl Future<Output = ()>,
) -> Exit {
    let mut shell = Shell {
        job,
        shared,
        pending: FuturesUnordered::new(),
        journal: Journal::default(),
        log: keep::Shared::default(),
        work: Work::default(),
        prepared: Arc::default(),
        taken: None,
        serving: false,
        exit: None,
    };
    shell.step(Input::Start);
    let mut may_stop = true;
    let mut sweeps = pin!(sweeps);
    loop {
        if let Some(exit) = shell.exit.take() {
            shell.shared.stepped.notify_one();
            shell.work.clear();
            if exit.code == 0 {
                // A result that is being staged too late removes itself; cut short, it would stay.
                let last = async { while shell.pending.next().await.is_some() {} };
                let _ = tokio::time::timeout(LAST_ANSWERS, last).await;
            }
            if shell.serving {
                shell.job.counters.sessions_active.dec();
                shell.job.counters.sessions_finished.inc();
            }
            shell.job.engine.close().await;
            return told(&shell.job.clone(), exit).await;
        }
        let wake = shell.shared.runner().wake();
        let clock = Arc::clone(&shell.job.clock);
        let input = tokio::select! {
            biased;
            signal = stop.recv(), if may_stop => match signal {
                Some(()) => Input::Stop,
                None => { may_stop = false; continue }
            },
            () = shell.shared.beaten.notified() => Input::LeaseChanged,
            () = &mut sweeps => continue,
            Some(input) = shell.pending.next(), if !shell.pending.is_empty() => input,
            () = sleep(&*clock, wake) => Input::Tick,
            input = shell.work.next() => input,
        };
        shell.step(input);
    }
}

/// A batch job's exit code is what became of its statement, whoever ran it.
async fn told(job: &Job, exit: Exit) -> Exit {
    let Some(id) = &job.me.batch else { return exit };
    match job.store.statement(id).await {
        Ok(Some(statement)) => Exit { code: u8::from(statement.value.state != StatementState::Success), ..exit },
        _ => Exit { code: 1, ..exit },
    }
}

async fn sleep(clock: &dyn Clock, wake: Option<Millis>) {
    match wake {
        Some(wake) => clock.sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// The loop's state: what is on its way, and what the machine does not hold because it isn't a decision.
struct Shell {
    job: Job,
    shared: Arc<Shared>,
    pending: FuturesUnordered<BoxFuture<'static, Input>>,
    /// The entries in force, for the engine.
    journal: Journal,
    /// What is stored of them.
    log: keep::Shared,
    work: Work,
    /// The indices were found to be there.
    prepared: Arc<AtomicBool>,
    /// The last statement that was counted, and how many milliseconds after its claim it ended.
    taken: Option<(StatementId, u64)>,
    /// The session was taken, and counted as served.
    serving: bool,
    exit: Option<Exit>,
}

impl Shell {
    fn step(&mut self, input: Input) {
        if let Input::Fatal(why) = &input {
            tracing::error!(session = %self.job.me.session, why, "the store cannot be used");
        }
        if let Input::Replayed(Ok(undecided)) = &input {
            self.journal.replace(keep::in_force(&keep::heard(&self.log), undecided.is_some()));
        }
        let now = self.job.clock.now();
        let actions = self.shared.runner().step(input, now);
        for action in actions {
            self.perform(action);
        }
        self.shared.stepped.notify_one();
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Drop => self.work.clear(),
            Action::KeepDefine => {
                if let Some(last) = keep::heard(&self.log).last() {
                    self.journal.append(last.entry.clone());
                }
            }
            Action::Taint => self.journal.taint(),
            Action::Note(note) => self.note(&note),
            Action::Exit(exit) => self.exit = Some(exit),
            Action::Plan(statement) => self.work.plan(&self.job, &self.journal, &statement),
            Action::Run(statement, attempt) => self.work.run(&self.job, *statement, attempt),
            Action::Stage(statement, attempt) => {
                let (ready, entry) = (self.work.ready(), self.work.entry());
                self.pending.push(perform::stage(self.job.clone(), statement, attempt, ready, entry, self.log.clone()));
            }
            Action::Replay => self.pending.push(perform::replay(self.job.clone(), self.log.clone())),
            Action::Void(id, attempt) => {
                self.pending.push(perform::void(self.job.clone(), self.log.clone(), id, attempt));
            }
            Action::Look(id) => {
                let progress = self.work.progress(self.job.clock.now());
                self.pending.push(perform::look(self.job.clone(), id, progress));
            }
            store => {
                let run_millis = match &store {
                    Action::PublishFailure(statement, ..) | Action::Settle(statement, _)
                        if statement.state != StatementState::Success =>
                    {
                        self.taken.as_ref().filter(|(id, _)| *id == statement.id).map_or(0, |(_, millis)| *millis)
                    }
                    _ => self.work.run_millis(),
                };
                let removes = matches!(store, Action::Settle(..) | Action::Discard(..));
                let sending = removes.then(|| self.work.sending());
                let Some(request) = perform::store(&self.job, store, run_millis, &self.prepared) else { return };
                self.pending.push(match sending {
                    None => request,
                    Some(sending) => async move {
                        drop(sending.lock().await);
                        request.await
                    }
                    .boxed(),
                });
            }
        }
    }

    /// Counts a statement once: when it is claimed, or, if it never is, when it is decided.
    fn take(&mut self, statement: &StatementId, millis: u64) {
        if self.taken.as_ref().is_none_or(|(id, _)| id != statement) {
            self.job.counters.statements.inc();
        }
        self.taken = Some((statement.clone(), millis));
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::Claimed(statement) | Note::Adopted(statement) => self.take(statement, 0),
            Note::Ended(statement, _, millis) => self.take(statement, *millis),
            _ => {}
        }
        let counters = &self.job.counters;
        let session = self.job.me.session.as_str();
        match note {
            Note::Serving => {
                if !std::mem::replace(&mut self.serving, true) {
                    counters.sessions_active.inc();
                }
                tracing::info!(session, "serving the session");
            }
            Note::Waiting { lease } => {
                tracing::info!(
                    session,
                    lease_millis = lease,
                    "another runner owns the session: watching whether it is renewed"
                );
            }
            Note::Claimed(statement) => tracing::debug!(session, %statement, "claimed"),
            Note::Adopted(statement) => {
                tracing::info!(session, %statement, "adopted a statement that another runner had begun")
            }
            Note::Ended(statement, state, millis) => {
                counters.ended(state, *millis);
                tracing::info!(session, %statement, state, millis, "ended");
            }
            Note::Kept(statement) => {
                tracing::info!(session, %statement, "a define in the journal succeeds, as its runner would have decided")
            }
            Note::Voided(statement) => tracing::info!(session, %statement, "its define is out of the journal"),
            Note::Released(statement) => tracing::info!(session, %statement, "released"),
            Note::Overruled(statement) => tracing::info!(session, %statement, "another decision stands"),
            Note::WorkerDied(statement, why) => {
                counters.workers_died.inc();
                tracing::warn!(session, %statement, why, "the worker died");
            }
            Note::Unpublished(statement) => {
                tracing::warn!(session, %statement, "not published or removed: left to a sweep")
            }
            Note::Conflict => {
                counters.conflicts.inc();
            }
            Note::LeftBehind(statements, millis) => {
                tracing::warn!(
                    session,
                    statements,
                    millis,
                    "statements are left in the ended session: they fail after this time unless they are recovered; stop again to leave at once"
                );
            }
            Note::SessionEnded(state) => {
                match *state {
                    "dead" => counters.sessions_dead.inc(),
                    "fail" => counters.sessions_failed.inc(),
                    _ => 0,
                };
                tracing::info!(session, state, "the session was ended or given up");
            }
        }
    }
}
