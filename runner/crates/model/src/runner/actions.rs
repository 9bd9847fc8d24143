//! What a runner asks for, and what it is answered.

use crate::attempt::{Attempt, Kind};
use crate::failure::Failure;
use crate::ids::{JobId, RunnerId, SessionId, StatementId};
use crate::session::{Session, SessionChange};
use crate::statement::{Event, Statement};
use crate::version::{Millis, Stored, Version};

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
    /// Another owner has written to the session's journal.
    Fenced,
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
    /// Its session ended before it was run, and was not recovered.
    SessionEnded,
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
    /// Open an epoch in the session's journal and read what the session is made of → [`Input::Replayed`].
    Replay,
    /// Search for open statements → [`Input::Open`].
    Poll,
    /// The same by a complete search → [`Input::Open`].
    PollEvery,
    /// Read a statement → [`Input::Statement`].
    ReadStatement(StatementId),
    /// Move a statement at this version → [`Input::Written`].
    Write(Box<Statement>, Version, Event),
    /// Decide a statement at this version, an attempt of which leads to it → [`Input::Written`].
    Decide(Box<Statement>, Version, Attempt, Verdict),
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
    PublishFailure(Box<Statement>, Attempt),
    /// Remove what an attempt staged → [`Input::Discarded`].
    Discard(Box<Statement>, Attempt),
    /// Publish what belongs to a statement that has ended, if anything does, and remove whatever else was staged for it →
    /// [`Input::Published`].
    Settle(Box<Statement>, Attempt),
    /// Take an attempt's define out of the journal, if it is in it → [`Input::Voided`].
    Void(StatementId, Attempt),
    /// The define just decided is in force: no answer.
    KeepDefine,
    /// The define just run is not in force; its worker must be rebuilt: no answer.
    Taint,
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
    /// A define of a runner that is gone was in the journal: it counts, and was not run again.
    Kept(StatementId),
    /// A define that was in the journal, or may be, was taken out again.
    Voided(StatementId),
    /// A result was staged but another decision stands.
    Overruled(StatementId),
    /// A worker died under a statement.
    WorkerDied(StatementId, String),
    /// A decided result could not be published and is left to a sweep.
    Unpublished(StatementId),
    /// A write was refused because its version was old.
    Conflict,
    /// So many statements are left in the ended session; they are failed in so many milliseconds.
    LeftBehind(usize, u64),
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
    /// Whether the journal was read; of a define that is in it and whose statement still runs, which.
    Replayed(Result<Option<(StatementId, Attempt)>, Trouble>),
    /// What a search saw.
    Open(Result<Sight, Trouble>),
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
    /// Whether a define is out of the journal.
    Voided(Result<(), Trouble>),
}

/// What a search saw: a hint, since a search may lag behind writes.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The open statements, oldest first.
    pub statements: Vec<Stored<Statement>>,
    /// The session's document, if it was among the hits.
    pub session: Option<Stored<Session>>,
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
