//! A statement, its states, and every step it may take.

use std::fmt;

use crate::ids::{JobId, QueryId, SessionId, StatementId};

/// Text that a user wrote. It never reaches a log: its `Debug` form is its length.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct QueryText(pub String);

impl fmt::Debug for QueryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

/// A statement as its document has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The document's id.
    pub id: StatementId,
    /// The session that is to run it.
    pub session: SessionId,
    /// The id the user holds; a statement without one is refused.
    pub query_id: Option<QueryId>,
    /// The language of `query`, such as `sql`; compared without case.
    pub lang: String,
    /// What to run.
    pub query: QueryText,
    /// The data source it was submitted for.
    pub data_source: String,
    /// When it was submitted, in epoch milliseconds of the submitter's clock: orders, nothing else.
    pub submit_time: u64,
    /// Where it stands.
    pub state: StatementState,
}

/// Where a statement stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementState {
    /// Nobody has claimed it.
    Waiting,
    /// A job has claimed it.
    Running {
        /// The job that claimed it: what the control plane shows, not what a lease hangs on.
        job: Option<JobId>,
    },
    /// It ended and its result counts.
    Success,
    /// It ended without a result.
    Failed {
        /// What the user is told; never empty when Firesteel writes it.
        error: String,
    },
    /// It ran out of time, in the peer's words. Firesteel writes it only when told to (`--timeout-state timeout`).
    Timeout {
        /// What the user is told.
        error: String,
    },
    /// Somebody cancelled it.
    Cancelled,
}

impl StatementState {
    /// Somebody claimed it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, StatementState::Running { .. })
    }

    /// No event leads out of it.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        !matches!(self, StatementState::Waiting | StatementState::Running { .. })
    }

    /// The document's word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            StatementState::Waiting => "waiting",
            StatementState::Running { .. } => "running",
            StatementState::Success => "success",
            StatementState::Failed { .. } => "failed",
            StatementState::Timeout { .. } => "timeout",
            StatementState::Cancelled => "cancelled",
        }
    }
}

/// What may happen to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job claims it, or adopts a running one under a new claim.
    Claim {
        /// The claiming job.
        job: Option<JobId>,
    },
    /// Its result is staged and it is decided.
    Succeed,
    /// It is decided as failed.
    Fail {
        /// What the user is told.
        error: String,
    },
    /// It waited or ran for too long and the operator asked for the peer's state.
    TimeOut {
        /// What the user is told.
        error: String,
    },
    /// The control plane cancels it.
    Cancel,
    /// Its runner gives it back before its lease.
    Release,
}

/// A step that no table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The state that was to be left.
    pub from: &'static str,
    /// What was to happen.
    pub event: Event,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} statement takes no {:?}", self.from, self.event)
    }
}

impl std::error::Error for Illegal {}

/// The one table of a statement's steps.
///
/// # Errors
/// [`Illegal`] for everything that the table does not list, a terminal state's every event included.
pub fn next(from: &StatementState, event: Event) -> Result<StatementState, Illegal> {
    use StatementState::{Cancelled, Failed, Running, Success, Timeout, Waiting};
    match (from, event) {
        (Waiting | Running { .. }, Event::Claim { job }) => Ok(Running { job }),
        (Running { .. }, Event::Succeed) => Ok(Success),
        (Waiting | Running { .. }, Event::Fail { error }) => Ok(Failed { error }),
        (Waiting | Running { .. }, Event::TimeOut { error }) => Ok(Timeout { error }),
        (Waiting | Running { .. }, Event::Cancel) => Ok(Cancelled),
        (Running { .. }, Event::Release) => Ok(Waiting),
        (from, event) => Err(Illegal { from: from.name(), event }),
    }
}
