//! A session, who owns it, and the changes that a runner may write.

use crate::ids::{JobId, RunnerId, SessionId};

/// A session as its document has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The document's id.
    pub id: SessionId,
    /// Where it stands.
    pub state: SessionState,
    /// The one data source whose statements it runs.
    pub data_source: String,
    /// The launcher's application, empty if none is recorded.
    pub application: String,
    /// The job that serves it, as the control plane knows it.
    pub job: Option<JobId>,
    /// Jobs that must leave.
    pub excluded: Vec<JobId>,
    /// The runner that holds the lease. None: nobody, or a peer that knows of no leases.
    pub owner: Option<Owner>,
    /// The last renewal, in epoch milliseconds of the store's time. Compared only with itself.
    pub last_update: u64,
    /// It takes no new statements.
    pub draining: bool,
    /// Its statements are moved to another session: nobody else is to end them.
    pub recovering: bool,
    /// Why it failed, empty if it did not.
    pub error: String,
}

impl Session {
    /// One that nobody has begun to serve.
    #[must_use]
    pub fn new(id: SessionId, data_source: impl Into<String>) -> Session {
        Session {
            id,
            state: SessionState::NotStarted,
            data_source: data_source.into(),
            application: String::new(),
            job: None,
            excluded: Vec::new(),
            owner: None,
            last_update: 0,
            draining: false,
            recovering: false,
            error: String::new(),
        }
    }
}

/// Who holds a session's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub runner: RunnerId,
    /// How long its silence must have been watched before another may take the session; 0: it gave the lease up.
    pub lease_millis: u64,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Made, not yet served.
    NotStarted,
    /// Served, or waiting for a successor.
    Running,
    /// Ended as it should. Never runs again.
    Dead,
    /// Ended by an error. Never runs again.
    Fail,
}

impl SessionState {
    /// It never runs again.
    #[must_use]
    pub fn is_ended(self) -> bool {
        matches!(self, SessionState::Dead | SessionState::Fail)
    }

    /// The document's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SessionState::NotStarted => "not_started",
            SessionState::Running => "running",
            SessionState::Dead => "dead",
            SessionState::Fail => "fail",
        }
    }
}

/// What a runner may write to a session, always at a version. The store adds its own time to each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// Take it: `running`, this runner, this lease; the job, its application and its exclusions if a launcher gave them.
    Own {
        /// Who takes it.
        owner: Owner,
        /// The launcher's job id.
        job: Option<JobId>,
        /// The launcher's application id.
        application: Option<String>,
        /// The jobs that must leave, as recorded by this job.
        excluded: Vec<JobId>,
    },
    /// A heartbeat: the time, nothing else.
    Renew,
    /// The lease ends now; the session stays `running` for a successor.
    GiveUp,
    /// `dead`.
    End,
    /// `fail`.
    Fail {
        /// Why, for the operator; never query text.
        error: String,
    },
}
