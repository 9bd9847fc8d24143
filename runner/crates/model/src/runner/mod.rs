//! What a runner does next: [`Runner::step`] takes the answer to an action and gives the next actions.
//!
//! Read [`own`] (whose session it is), [`serve`] (which statement is next), then [`hand`] (one statement, from
//! its claim to its published result). Nothing here waits: what takes time is an [`Action`], and its answer, failures
//! included, is an [`Input`].

pub mod hand;
pub mod own;
pub mod serve;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::attempt::{Attempt, Kind};
use crate::failure::Failure;
use crate::ids::{JobId, RunnerId, SessionId, StatementId};
use crate::lease::{Lease, Lost};
use crate::policy::{OnStop, Policy};
use crate::session::{Session, SessionChange};
use crate::statement::{Event, Statement};
use crate::version::{Millis, Stored, Version};

use hand::Hand;
use own::Watch;

/// Who this runner is and what it is to serve.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random for each process.
    pub runner: RunnerId,
    /// The job that a launcher gave. None: started by hand, so that it makes what is missing.
    pub job: Option<JobId>,
    /// The launcher's application.
    pub application: Option<String>,
    /// The session to serve.
    pub session: SessionId,
    /// The data source of a session that this runner creates.
    pub data_source: String,
    /// The jobs that must leave.
    pub excluded: Vec<JobId>,
    /// One statement instead of a session's.
    pub batch: Option<StatementId>,
}

/// Why something could not be done, by what to do about it. The store's texts stay in the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another was first: read again.
    Conflict,
    /// Not applied: try again.
    Unavailable,
    /// Perhaps applied: read, then decide.
    Unknown,
    /// Not applied, and never will be.
    Refused,
    /// What is stored cannot be read.
    Corrupt,
}

/// Why a result was not staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageTrouble {
    /// Another statement has the query id.
    DuplicateQueryId,
    /// A later attempt has staged.
    Superseded,
    /// The store refuses it for good, for the reason given.
    Refused(Failure),
    /// Worth another try.
    Again,
}

/// Why an execution gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunTrouble {
    /// The statement's own fault, or a limit.
    Failed(Failure),
    /// Its process died.
    Died {
        /// What is known of why.
        why: String,
    },
}

/// What was found beside a statement that somebody else had begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The attempt named by its write marker.
    pub marker: Option<Attempt>,
    /// Executions counted so far.
    pub attempts: u32,
    /// The companion's version, if there is one.
    pub companion: Option<Version>,
    /// The attempt whose result is staged.
    pub candidate: Option<Attempt>,
}

/// How a statement is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its staged result counts.
    Success,
    /// It failed.
    Failed(Fault),
    /// It goes back to `waiting` for a successor.
    Release,
}

/// What a failed statement's error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ran for too long.
    Timeout,
    /// It waited for too long.
    WaitTimeout,
    /// Everything else.
    Failure(Failure),
}

/// What the shell is to do. Each names the input that answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the session → [`Input::Session`].
    ReadSession,
    /// Create the session, owned → [`Input::Owned`].
    CreateSession(Box<Session>),
    /// Take the session at this version → [`Input::Owned`].
    Own(Version, SessionChange),
    /// Renew the session at the lease's version, to prove that it is ours → [`Input::Proved`].
    Prove(Version),
    /// End the session or give it up at this version → [`Input::SessionEnded`].
    EndSession(Version, SessionChange),
    /// Search for open statements → [`Input::Open`].
    Poll,
    /// The same by a complete search → [`Input::Open`].
    PollEvery,
    /// Read a statement → [`Input::Statement`].
    ReadStatement(StatementId),
    /// Move a statement at this version → [`Input::Written`].
    Write(Box<Statement>, Version, Event),
    /// Decide a statement at this version → [`Input::Written`].
    Decide(Box<Statement>, Version, Verdict),
    /// Read a statement's marker and companion → [`Input::Examined`].
    Examine(StatementId),
    /// Count an execution in the companion (None: it has none yet) → [`Input::Counted`].
    Count(StatementId, u32, Option<Version>),
    /// Plan the statement → [`Input::Planned`].
    Plan(Box<Statement>),
    /// Create the marker of a statement that writes → [`Input::Marked`].
    Mark(StatementId, Attempt),
    /// Run what was planned, its rows into pages → [`Input::Ran`].
    Run(Box<Statement>, Attempt),
    /// Look at the running statement and its session → [`Input::Watched`].
    Look(StatementId),
    /// Drop what is planned or running: no answer.
    Drop,
    /// Stage the result → [`Input::Staged`].
    Stage(Box<Statement>, Attempt),
    /// Publish the staged result → [`Input::Published`].
    Publish(Box<Statement>, Attempt),
    /// Publish a failure, the statement being in its final state → [`Input::Published`].
    PublishFailure(Box<Statement>, Attempt, Fault),
    /// Remove what an attempt staged → [`Input::Discarded`].
    Discard(Box<Statement>, Attempt),
    /// The define just decided is in force: no answer.
    KeepDefine,
    /// The define just run is not in force; its worker must be rebuilt: no answer.
    VoidDefine,
    /// Something to log and to count: no answer.
    Note(Note),
    /// Stop.
    Exit(Exit),
}

/// What is worth a log line and a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The session is this runner's.
    Serving,
    /// Another runner owns the session; this one watches its lease.
    Waiting {
        /// How long its silence must last, in milliseconds.
        lease: u64,
    },
    /// A statement was claimed.
    Claimed(StatementId),
    /// A running statement of another owner was adopted.
    Adopted(StatementId),
    /// A statement ended here, in this state, this many milliseconds after its claim.
    Ended(StatementId, &'static str, u64),
    /// A statement was given back.
    Released(StatementId),
    /// A result was staged but another decision stands.
    Overruled(StatementId),
    /// A worker died under a statement.
    WorkerDied(StatementId, String),
    /// A decided result could not be published and is left to a sweep.
    Unpublished(StatementId),
    /// A write was refused because its version was old.
    Conflict,
    /// This runner ended its session, in this state: `dead`, `fail` or, given up, `running`.
    SessionEnded(&'static str),
}

/// How the runner ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The process's exit code.
    pub code: u8,
    /// Why, for the log.
    pub why: &'static str,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// The time that [`Runner::wake`] named has come.
    Tick,
    /// The lease was lost, or may have come back.
    LeaseChanged,
    /// The operator asks the runner to stop; a second time, to stop at once.
    Stop,
    /// The store is unusable for a reason that will not pass.
    Fatal(String),
    /// The session as read.
    Session(Result<Option<Stored<Session>>, Trouble>),
    /// Whether the session was taken by the write sent then.
    Owned(Millis, Result<Version, Trouble>),
    /// Whether the session was renewed by the write sent then.
    Proved(Millis, Result<Version, Trouble>),
    /// Whether the session's end was written.
    SessionEnded(Result<Version, Trouble>),
    /// The open statements, oldest first.
    Open(Result<Vec<Stored<Statement>>, Trouble>),
    /// A statement as read.
    Statement(Result<Option<Stored<Statement>>, Trouble>),
    /// Whether a statement was moved or decided.
    Written(Result<Version, Trouble>),
    /// What is beside the statement in hand.
    Examined(Result<Beside, Trouble>),
    /// Whether an execution was counted.
    Counted(Result<(), Trouble>),
    /// What the statement does.
    Planned(Result<Kind, RunTrouble>),
    /// Whether the marker was made.
    Marked(Result<(), Trouble>),
    /// Whether the statement ran to its end.
    Ran(Result<(), RunTrouble>),
    /// The running statement, its own timeout in milliseconds if it has one, and its session.
    Watched(Result<Watched, Trouble>),
    /// Whether the result is staged.
    Staged(Result<(), StageTrouble>),
    /// Whether the result is published.
    Published(Result<(), Trouble>),
    /// Whether an attempt's remains are gone.
    Discarded(Result<(), Trouble>),
}

/// What a look at a running statement showed.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The statement, None if its document is gone.
    pub statement: Option<Stored<Statement>>,
    /// The session, None if its document is gone.
    pub session: Option<Stored<Session>>,
    /// The statement's own limit on its execution, in milliseconds.
    pub timeout: Option<u64>,
}

/// Where the runner stands with its session.
#[derive(Debug)]
enum Phase {
    /// Reading the session since then.
    Reading { since: Millis },
    /// Waiting until then to read it again.
    Pausing { since: Millis, until: Millis },
    /// A write that takes the session is on its way.
    Taking { since: Millis },
    /// Serving it.
    Serving(Serving),
    /// The write that ends the session is on its way, or waits until then to be sent again.
    Ending { change: SessionChange, retry: Retry, exit: Exit },
    /// Over.
    Ended,
}

/// The runner serves its session.
#[derive(Debug)]
struct Serving {
    since: Millis,
    last_work: Millis,
    next_poll: Millis,
    polling: bool,
    closing: bool,
    retry: Retry,
    found_at: Millis,
    queue: VecDeque<Stored<Statement>>,
    sighted: BTreeMap<StatementId, Millis>,
    settled: BTreeSet<StatementId>,
    hand: Option<Box<Hand>>,
}

/// Back-off between tries of one action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    tries: u32,
    at: Option<Millis>,
}

impl Retry {
    /// Another try failed: the next one not before the time this sets.
    fn again(&mut self, now: Millis, policy: &Policy) {
        let wait = policy.retry.saturating_mul(1 << self.tries.min(16)).min(policy.retry_max);
        self.tries += 1;
        self.at = Some(now.plus(wait));
    }

    /// It is time for the next try. Says so once.
    fn due(&mut self, now: Millis) -> bool {
        let due = self.at.is_some_and(|at| at <= now);
        if due {
            self.at = None;
        }
        due
    }
}

/// The machine of one runner and one session.
pub struct Runner {
    me: Identity,
    policy: Policy,
    phase: Phase,
    watch: Option<Watch>,
    /// The lease, once taken; shared with the heart by the shell.
    lease: Option<Lease>,
    stopping: Option<Millis>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Runner {
    /// A runner that has done nothing yet: give it [`Input::Start`].
    #[must_use]
    pub fn new(me: Identity, policy: Policy) -> Runner {
        Runner { me, policy, phase: Phase::Ended, watch: None, lease: None, stopping: None }
    }

    /// The lease, once the session is this runner's. The heart renews it; the loop asks it.
    pub fn lease(&mut self) -> Option<&mut Lease> {
        self.lease.as_mut()
    }

    /// Takes an input at a time, gives what to do.
    pub fn step(&mut self, input: Input, now: Millis) -> Vec<Action> {
        let mut out = Vec::new();
        match input {
            Input::Start => self.read_session(now, now, &mut out),
            Input::Fatal(error) => self.fail_session(error, &mut out),
            Input::Stop if self.stopping.is_some() => self.abandon(Exit { code: 1, why: "stopped at once" }, &mut out),
            Input::Stop => {
                self.stopping = Some(now);
                self.tick(now, &mut out);
            }
            Input::Tick | Input::LeaseChanged => self.tick(now, &mut out),
            Input::Session(answer) => self.session_read(answer, now, &mut out),
            Input::Owned(sent, answer) => self.owned(sent, answer, now, &mut out),
            Input::SessionEnded(answer) => self.session_ended(answer, now, &mut out),
            Input::Open(answer) => self.open(answer, now, &mut out),
            answer => self.hand_input(answer, now, &mut out),
        }
        if self.lost().is_some() {
            self.leave_lost(&mut out);
        }
        out
    }

    /// When to give the next [`Input::Tick`], if nothing else happens.
    #[must_use]
    pub fn wake(&self) -> Option<Millis> {
        match &self.phase {
            Phase::Pausing { until, .. } => Some(*until),
            Phase::Ending { retry, .. } => retry.at,
            Phase::Serving(serving) => {
                let poll = (!serving.polling && serving.hand.is_none()).then_some(serving.next_poll);
                let hand = serving.hand.as_ref().and_then(|hand| hand.wake(&self.policy, self.stopping));
                poll.into_iter().chain(hand).chain(serving.retry.at).min()
            }
            Phase::Reading { .. } | Phase::Taking { .. } | Phase::Ended => None,
        }
    }

    fn lost(&self) -> Option<Lost> {
        self.lease.as_ref().and_then(Lease::lost)
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Pausing { since, until } if self.stopping.is_some() || *until <= now => {
                let since = *since;
                if self.stopping.is_some() {
                    self.exit(Exit { code: 0, why: "stopped before the session was taken" }, out);
                } else {
                    self.read_session(since, now, out);
                }
            }
            Phase::Ending { change, retry, .. } => {
                if retry.due(now) {
                    let change = change.clone();
                    out.extend(self.lease.as_ref().map(|lease| Action::EndSession(lease.version(), change)));
                }
            }
            Phase::Serving(_) => self.serve(now, out),
            _ => {}
        }
    }

    /// The lease is lost for good: everything is abandoned, nothing more is written.
    fn leave_lost(&mut self, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        let exit = match self.lost() {
            Some(Lost::Taken) => Exit { code: 0, why: "another runner owns the session" },
            Some(Lost::Ended) => Exit { code: self.ended_code(), why: "the session has ended" },
            Some(Lost::Excluded) => Exit { code: 0, why: "the session excludes this job" },
            Some(Lost::Gone) => Exit { code: 0, why: "the session's document is gone" },
            Some(Lost::Unreachable) => Exit { code: 1, why: "the store is out of reach" },
            None => return,
        };
        let exit = match &self.phase {
            Phase::Ending { exit, .. } if exit.code == 0 || self.lost() != Some(Lost::Unreachable) => exit.clone(),
            _ => exit,
        };
        out.clear();
        self.abandon(exit, out);
    }

    /// A batch job whose session was ended by somebody else has not done its work.
    fn ended_code(&self) -> u8 {
        u8::from(self.me.batch.is_some())
    }

    fn abandon(&mut self, exit: Exit, out: &mut Vec<Action>) {
        if matches!(&self.phase, Phase::Serving(serving) if serving.hand.is_some()) {
            out.push(Action::Drop);
        }
        self.exit(exit, out);
    }

    fn exit(&mut self, exit: Exit, out: &mut Vec<Action>) {
        self.phase = Phase::Ended;
        if let Some(lease) = &mut self.lease {
            lease.finish();
        }
        out.push(Action::Exit(exit));
    }

    fn end_session(&mut self, change: SessionChange, exit: Exit, out: &mut Vec<Action>) {
        let Some(lease) = &mut self.lease else { return self.exit(exit, out) };
        lease.finish();
        out.push(Action::EndSession(lease.version(), change.clone()));
        self.phase = Phase::Ending { change, retry: Retry::default(), exit };
    }

    fn fail_session(&mut self, error: String, out: &mut Vec<Action>) {
        let exit = Exit { code: 1, why: "a fatal error" };
        if matches!(&self.phase, Phase::Serving(serving) if serving.hand.is_some()) {
            out.push(Action::Drop);
        }
        if self.lease.is_some() {
            self.end_session(SessionChange::Fail { error }, exit, out);
        } else {
            self.exit(exit, out);
        }
    }

    fn session_ended(&mut self, answer: Result<Version, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Phase::Ending { change, retry, exit } = &mut self.phase else { return };
        match answer {
            Ok(_) => {
                out.push(Action::Note(Note::SessionEnded(match change {
                    SessionChange::End => "dead",
                    SessionChange::Fail { .. } => "fail",
                    _ => "running",
                })));
                let exit = exit.clone();
                self.exit(exit, out);
            }
            // The heart may have renewed in between: what the read says decides whether to try again.
            Err(Trouble::Conflict | Trouble::Unknown) => out.push(Action::ReadSession),
            Err(Trouble::Unavailable) => retry.again(now, &self.policy),
            Err(Trouble::Refused | Trouble::Corrupt) => {
                self.exit(Exit { code: 1, why: "the session's end could not be written" }, out);
            }
        }
    }

    /// What a stop does to a session that has nothing in hand.
    fn leave_stopped(&mut self, out: &mut Vec<Action>) {
        let exit = Exit { code: 0, why: "told to stop" };
        let change = match self.policy.on_stop {
            OnStop::End => SessionChange::End,
            OnStop::Handover => SessionChange::GiveUp,
        };
        self.end_session(change, exit, out);
    }
}
