//! What the control plane needs of a store beyond what the loop does, and what starts jobs.

use async_trait::async_trait;
use firesteel_model::batch::BatchState;
use firesteel_model::permits::Book;
use firesteel_model::steer::{JobState, Steer};
use firesteel_model::{Expect, JobId, QueryText, Session, SessionId, Statement, StatementId, Stored, Version};

use super::{Store, StoreError};

/// What only the control plane keeps of a session. One document a session, made before the session is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Who it was allocated to.
    pub user: String,
    /// The name that its user gave it; may be empty.
    pub name: String,
    /// When it was allocated, in the store's time.
    pub created: u64,
    /// It ends after so many milliseconds without a statement; None: as the runner has it.
    pub idle_timeout: Option<u64>,
    /// It ends after so many milliseconds, whatever it does.
    pub lifetime: Option<u64>,
    /// The session that it was recovered from.
    pub recovered_from: Option<SessionId>,
    /// How often it was recovered, with those before it.
    pub recoveries: u32,
}

/// Which documents a listing shows, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only in these states; none: in any.
    pub states: Vec<String>,
    /// Only those not newer than this, in the store's time.
    pub up_to: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// What the control plane needs of a store.
#[async_trait]
pub trait ControlStore: Store {
    /// Changes a session that is still at `expect`, but not the time of its last heartbeat.
    async fn steer_session(&self, id: &SessionId, expect: Version, steer: &Steer) -> Result<Version, StoreError>;
    /// Where a session's statements are being moved to, if they are.
    async fn recovery_of(&self, id: &SessionId) -> Result<Option<SessionId>, StoreError>;
    /// Puts a statement that is still at `expect` into another session, where it waits.
    async fn move_statement(&self, id: &StatementId, expect: Version, to: &SessionId) -> Result<Version, StoreError>;
    /// Reads statements in one request, in the order of `ids`, in real time.
    async fn statements_at(&self, ids: &[StatementId]) -> Result<Vec<Option<Stored<Statement>>>, StoreError>;

    /// Reads what is kept of a session.
    async fn allocation(&self, id: &SessionId) -> Result<Option<Stored<Allocation>>, StoreError>;
    /// Makes or replaces it.
    async fn write_allocation(
        &self,
        id: &SessionId,
        expect: Expect,
        allocation: &Allocation,
    ) -> Result<Version, StoreError>;
    /// The sessions that were allocated to a user, or to anybody, last allocated first, at most `limit`. May lag behind writes.
    async fn allocations(&self, user: Option<&str>, limit: usize) -> Result<Vec<(SessionId, Allocation)>, StoreError>;

    /// Reads the slots under the limit of this name. None: nobody ever took one.
    async fn book(&self, name: &str) -> Result<Option<Stored<Book>>, StoreError>;
    /// Reads several books in one request.
    async fn books(&self, names: &[String]) -> Result<Vec<Option<Stored<Book>>>, StoreError>;
    /// Makes or replaces a book.
    async fn write_book(&self, name: &str, expect: Expect, book: &Book) -> Result<Version, StoreError>;

    /// Reads a batch.
    async fn batch(&self, id: &str) -> Result<Option<Stored<Batch>>, StoreError>;
    /// Makes or replaces a batch.
    async fn write_batch(&self, id: &str, expect: Expect, batch: &Batch) -> Result<Version, StoreError>;
    /// The batches of a user, or of anybody, last asked for first, at most `limit`; with `open`, only those that are not over. May lag behind writes.
    async fn batches(&self, user: Option<&str>, open: bool, limit: usize) -> Result<Vec<(String, Batch)>, StoreError>;

    /// Lists sessions, last renewed first. May lag behind writes.
    async fn list_sessions(&self, listing: &Listing) -> Result<Vec<Stored<Session>>, StoreError>;
    /// Lists statements, last submitted first. May lag behind writes.
    async fn list_statements(&self, listing: &Listing) -> Result<Vec<Stored<Statement>>, StoreError>;
    /// Decides a statement that is still at `expect` as failed, and makes its result document, as a runner that swept it would.
    async fn fail_statement(&self, statement: &Statement, expect: Version, error: &str) -> Result<(), StoreError>;
}

/// A job that somebody asked for and that ends by itself, as the control plane keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Who asked for it.
    pub user: String,
    /// What people see.
    pub name: String,
    /// The application that it is launched in.
    pub application: String,
    /// What it is to do.
    pub task: Task,
    /// Its job, once it was launched.
    pub job: Option<JobId>,
    /// Where it stands.
    pub state: BatchState,
    /// Why it failed.
    pub error: String,
    /// When it was asked for, in the store's time.
    pub created: u64,
    /// When it was last changed.
    pub updated: u64,
    /// The replica that it belongs to.
    pub instance: String,
    /// Another replica closed it while its own was away.
    pub closed_by_peer: bool,
}

/// What a job is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Serve a session.
    Session(SessionId),
    /// Run one statement.
    Batch {
        /// Its query id.
        query_id: String,
        /// Its text.
        query: QueryText,
    },
    /// What a program says that starts jobs by the launch contract.
    Contract {
        /// The class whose place the program takes.
        class: String,
        /// Spark's settings, `key=value`, as they were given.
        conf: Vec<QueryText>,
        /// The statement, if it is an argument.
        query: Option<QueryText>,
        /// The result index, if it is an argument.
        result_index: Option<String>,
    },
}

/// A job to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Two launches with the same token start one job.
    pub token: String,
    /// What others call the job; None: what the launcher calls it.
    pub known_as: Option<String>,
    /// What people see of it.
    pub name: String,
    /// The application to start it in; empty where there are none.
    pub application: String,
    /// What it is to do.
    pub task: Task,
    /// For which data source.
    pub data_source: String,
    /// Settings beyond the launcher's own, as `--conf` has them.
    pub settings: Vec<(String, String)>,
}

/// Why a launcher did not do as asked, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// Not done; the same request may succeed later.
    #[error("the launcher is unavailable: {0}")]
    Unavailable(String),
    /// May have been done: ask again with the same token.
    #[error("the launcher did not say whether it was done: {0}")]
    Unknown(String),
    /// Not done, and never will be. Says what to change.
    #[error("{0}")]
    Refused(String),
}

/// Starts jobs and tells what became of them.
#[async_trait]
pub trait Launcher: Send + Sync + 'static {
    /// What settings call it.
    fn name(&self) -> &'static str;
    /// Starts a job, or finds the one that this token has started before.
    async fn start(&self, launch: &Launch) -> Result<JobId, LaunchError>;
    /// What a job is doing.
    async fn state(&self, application: &str, job: &JobId) -> Result<JobState, LaunchError>;
    /// Has a job end. One that has ended stays as it is.
    async fn cancel(&self, application: &str, job: &JobId) -> Result<(), LaunchError>;
    /// The jobs that it knows of.
    async fn list(&self, application: &str) -> Result<Vec<(JobId, JobState)>, LaunchError>;
    /// The last lines of a job's log, oldest first, where the launcher has one.
    async fn log(&self, application: &str, job: &JobId, lines: usize) -> Result<Vec<String>, LaunchError>;
    /// Whether one job serves many sessions: then no single session's end is a reason to cancel it.
    fn shares_jobs(&self) -> bool;
}
