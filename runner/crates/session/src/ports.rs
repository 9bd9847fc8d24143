//! What the loop needs of the world. Adapters implement these and never meet each other.
//!
//! There is no unconditional write: each names what it expects, and each error says what the caller can do.

pub mod control;
pub mod plugins;

use std::collections::BTreeMap;
use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use firesteel_model::{
    Attempt, Expect, Failure, Kind, Millis, Pattern, QueryId, RunnerId, Session, SessionChange, SessionId, Statement,
    StatementId, StatementState, Stored, Version,
};
use futures::stream::BoxStream;
use tokio::sync::watch;

use crate::journal::{Entry, Found, Journal, Record};

/// The runner's own time.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Monotonic milliseconds that count suspend (`CLOCK_BOOTTIME`), from any start.
    fn now(&self) -> Millis;
    /// Returns when `now()` has reached `until`.
    async fn sleep_until(&self, until: Millis);
}

/// Why a store did not do as asked, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The document is not at the version that was named, or exists where none was expected: read again.
    #[error("the document was changed by another")]
    Conflict,
    /// Not applied; the same request may succeed later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// May have been applied: read, then decide.
    #[error("the store did not say whether it was done: {0}")]
    Unknown(String),
    /// Not applied, and never will be: credentials, a mapping, a size. Says what to change.
    #[error("{0}")]
    Refused(String),
    /// What is stored cannot be read as what it should be.
    #[error("unreadable document: {0}")]
    Corrupt(String),
}

/// Whether the indices are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// All there, with mappings that fit.
    Ready,
    /// The request index does not exist yet and was not to be created.
    NotYet,
}

/// A session's statements that have not ended, as one search saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Oldest `submitTime` first, ties by id.
    pub statements: Vec<Stored<Statement>>,
    /// Ids of documents that could not be read as statements, with the reason.
    pub unreadable: Vec<(String, String)>,
    /// The session's own document as the same search saw it, unless it did not start yet.
    pub session: Option<Stored<Session>>,
}

/// What one search saw of many sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Of each session that was asked for and of which anything was found.
    pub open: BTreeMap<SessionId, Open>,
    /// Sessions that nobody has begun to serve.
    pub fresh: Vec<Stored<Session>>,
}

/// One look at a running statement and what surrounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The session, None if its document is gone.
    pub session: Option<Stored<Session>>,
    /// The statement, None if its document is gone.
    pub statement: Option<Stored<Statement>>,
    /// Its companion, if it has one.
    pub companion: Option<Stored<Companion>>,
}

/// What only Firesteel keeps of a statement. One document a statement, in the state index; made on first need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Companion {
    /// Whose statement it is, to find it when the session is swept.
    pub session: String,
    /// Its own limit on execution time in milliseconds, below the runner's.
    pub timeout: Option<u64>,
    /// What to do with a result that one document cannot hold.
    pub large_results: Option<LargeResults>,
    /// Who submitted it.
    pub user: Option<String>,
    /// Executions begun; written before the second and each later one.
    pub attempts: u32,
    /// The attempts that staged something, or are about to.
    pub staged: Vec<Attempt>,
    /// The attempt whose staged result may be published. Only rises.
    pub candidate: Option<Attempt>,
    /// What the statement left can be read, and nothing else of it is left to be removed. A mark that may be late, never early.
    pub published: bool,
    /// What the candidate's result holds.
    pub totals: Option<Totals>,
    /// What the statement calls the columns of the candidate's result, if a name is there twice; else none.
    pub labels: Vec<String>,
    /// How far the running attempt is.
    pub progress: Option<Progress>,
}

/// What to do with a result that one document cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeResults {
    /// Fail the statement with `result too large`.
    Fail,
    /// Keep what fits and say so.
    First,
    /// Put the rest into result pages, for readers that page.
    Pages,
}

/// The size of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows in all pages.
    pub rows: u64,
    /// Bytes of row text in all pages.
    pub bytes: u64,
    /// Pages beyond the result document.
    pub pages: u32,
    /// A limit was reached and, as asked, the rows beyond it were left out.
    pub truncated: bool,
}

/// How far an execution is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows read from sources.
    pub rows: u64,
    /// Bytes read from sources.
    pub bytes: u64,
    /// Since the execution began.
    pub elapsed_millis: u64,
}

/// The proof that a statement that writes was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Who began it.
    pub runner: RunnerId,
    /// Under which attempt.
    pub attempt: Attempt,
}

/// A statement in whose session nobody is at work, or whose result nobody has published yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The statement.
    pub statement: Stored<Statement>,
    /// Its session, None if its document is gone.
    pub session: Option<Stored<Session>>,
    /// It is a batch job's, whose result is found by that job's id.
    pub batch: bool,
}

/// Which sessions and statements a listing shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only the statement with this query id.
    pub query_id: Option<QueryId>,
    /// At most so many, newest first.
    pub limit: usize,
}

/// Sessions and statements. All reads are real time but [`SessionStore::open_statements`] and the listings.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Checks the indices; makes those that are missing. The request index is made only if `create`.
    async fn prepare(&self, create: bool) -> Result<Prepared, StoreError>;

    /// Reads a session. None: no such document, or no index yet.
    async fn session(&self, id: &SessionId) -> Result<Option<Stored<Session>>, StoreError>;
    /// Makes a session. `Conflict`: it exists.
    async fn create_session(&self, session: &Session) -> Result<Version, StoreError>;
    /// Changes a session that is still at `expect`. The change carries the store's time.
    async fn write_session(
        &self,
        id: &SessionId,
        expect: Version,
        change: &SessionChange,
    ) -> Result<Version, StoreError>;

    /// One search for the waiting and running statements of a session, oldest first, at most `limit`. May lag behind writes.
    async fn open_statements(&self, session: &SessionId, limit: usize) -> Result<Open, StoreError>;
    /// The same, but a complete search: refreshed, of every shard, paged to its end; anything less is `Unavailable`.
    async fn every_open_statement(&self, session: &SessionId) -> Result<Open, StoreError>;
    /// What [`SessionStore::open_statements`] is for one session, for all of these in one search, together with the sessions of these
    /// patterns that are not started. None with many statements keeps another from being seen.
    async fn open_statements_of(
        &self,
        sessions: &[SessionId],
        fresh: &[Pattern],
        limit: usize,
    ) -> Result<Overview, StoreError>;
    /// Searches for all sessions of these patterns that have not ended.
    async fn live_sessions(&self, patterns: &[Pattern]) -> Result<Vec<Stored<Session>>, StoreError>;
    /// Reads sessions in one request, in the order of `ids`.
    async fn sessions_at(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<Result<Option<Stored<Session>>, StoreError>>, StoreError>;
    /// Changes sessions in one request, in the order of `changes`, each as [`SessionStore::write_session`] does and with an outcome of its own.
    async fn write_sessions(
        &self,
        changes: &[(SessionId, Version, SessionChange)],
    ) -> Result<Vec<Result<Version, StoreError>>, StoreError>;
    /// Reads a statement.
    async fn statement(&self, id: &StatementId) -> Result<Option<Stored<Statement>>, StoreError>;
    /// Reads a session, a statement and its companion in one request.
    async fn watch(&self, session: &SessionId, statement: &StatementId) -> Result<Watched, StoreError>;
    /// Makes a statement. `Conflict`: it exists. With a companion that says more than the default, both or neither are visible to the loop.
    async fn create_statement(
        &self,
        statement: &Statement,
        companion: Option<&Companion>,
    ) -> Result<Version, StoreError>;
    /// Moves a statement that is still at `expect` to `state`. `Claim` writes the job too. Never a no-op.
    async fn write_statement(
        &self,
        id: &StatementId,
        expect: Version,
        state: &StatementState,
    ) -> Result<Version, StoreError>;

    /// Makes the marker of a statement that writes. `Conflict`: it was begun before.
    async fn create_marker(&self, statement: &StatementId, marker: &Marker) -> Result<(), StoreError>;
    /// Reads that marker.
    async fn marker(&self, statement: &StatementId) -> Result<Option<Marker>, StoreError>;
    /// Reads a companion.
    async fn companion(&self, statement: &StatementId) -> Result<Option<Stored<Companion>>, StoreError>;
    /// Makes or replaces a companion.
    async fn write_companion(
        &self,
        statement: &StatementId,
        expect: Expect,
        companion: &Companion,
    ) -> Result<Version, StoreError>;

    /// Reads a session's journal: the newest snapshot and what follows it. In real time.
    async fn journal(&self, session: &SessionId) -> Result<Found, StoreError>;
    /// Reads one record of it.
    async fn journal_record(&self, session: &SessionId, n: u64) -> Result<Option<Record>, StoreError>;
    /// Makes record `n`. `Conflict`: it exists.
    async fn append_journal(&self, session: &SessionId, n: u64, record: &Record) -> Result<(), StoreError>;

    /// Statements that are waiting or running in sessions that have ended or are gone, of all sessions, by a complete search.
    async fn left_open(&self) -> Result<Vec<Left>, StoreError>;
    /// Statements that have ended and of which something is left to be published or removed, of all sessions, by a complete search.
    async fn left_unpublished(&self) -> Result<Vec<Left>, StoreError>;

    /// Lists sessions, last renewed first.
    async fn sessions(&self, filter: &Filter) -> Result<Vec<Stored<Session>>, StoreError>;
    /// Lists statements, last submitted first.
    async fn statements(&self, filter: &Filter) -> Result<Vec<Stored<Statement>>, StoreError>;
    /// The store's time, epoch milliseconds: measured against the store's own clock, then carried on by ours.
    async fn time(&self) -> Result<u64, StoreError>;
}

/// Rows as they stand in a result document: each a JSON object.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// One string a row.
    pub rows: Vec<String>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} rows>", self.rows.len())
    }
}

/// A column of a result document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name, unique in the document.
    pub name: String,
    /// Spark's name of its type.
    pub data_type: String,
    /// What the statement calls it, where an earlier column has the same name. Not in the result document, but in the companion.
    pub label: Option<String>,
}

impl Column {
    /// What the statement calls it.
    #[must_use]
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// Whose result it is. `statement` is as it was claimed.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The statement.
    pub statement: &'a Statement,
    /// The attempt that made the result.
    pub attempt: Attempt,
    /// The job that ran it, for `jobRunId`.
    pub job: &'a str,
    /// The application it runs for.
    pub application: &'a str,
    /// `interactive` or `batch`, for `jobType`.
    pub job_type: &'a str,
    /// How long it ran, in milliseconds.
    pub run_millis: u64,
}

/// Why a result was not staged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// Another statement holds the query id.
    #[error("the query id belongs to another statement")]
    DuplicateQueryId,
    /// The companion names a later attempt: this one lost.
    #[error("a later attempt has staged its result")]
    Superseded,
    /// The store's own word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A result document as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultDocument {
    /// `SUCCESS`, `FAILED` or `TIMEOUT`.
    pub status: String,
    /// The statement's error.
    pub error: String,
    /// The columns; empty for a failure.
    pub columns: Vec<Column>,
    /// The rows that the document itself holds.
    pub rows: Vec<String>,
    /// How long the statement ran, in milliseconds.
    pub run_millis: u64,
}

/// Results: staged where no reader looks, then published once the statement is decided.
#[async_trait]
pub trait ResultStore: Send + Sync + 'static {
    /// Stages pages beyond the result document, the first of them numbered `first`. Staging the same again changes nothing.
    async fn stage_pages(&self, outcome: &Outcome<'_>, first: u32, pages: &[Page]) -> Result<(), StoreError>;
    /// Stages the result document (`rows` and no query id yet), the guard of the query id and the candidate, in one request where the
    /// companion is new. Every part is acknowledged, or it is an error. Staging the same again changes nothing.
    async fn stage(
        &self,
        outcome: &Outcome<'_>,
        columns: &[Column],
        rows: &[String],
        totals: Totals,
    ) -> Result<(), StageError>;
    /// Makes a staged result readable whose attempt the statement was decided for, and waits until a search finds it. Publishing again
    /// changes nothing.
    async fn publish(&self, outcome: &Outcome<'_>) -> Result<(), StoreError>;
    /// Makes it known that a statement is about to fail: whoever dies after the decision, [`SessionStore::left_unpublished`] finds it.
    async fn announce(&self, outcome: &Outcome<'_>) -> Result<(), StoreError>;
    /// Makes the result document of a failed statement, from the statement, under an id that depends on nothing else. Again: changes nothing.
    async fn publish_failure(&self, outcome: &Outcome<'_>) -> Result<(), StoreError>;
    /// Publishes what belongs to a statement that has ended, whoever decided it, and removes what other attempts staged. The outcome's
    /// attempt does not matter: the companion says which one counts. Again: changes nothing.
    async fn settle(&self, outcome: &Outcome<'_>) -> Result<(), StoreError>;
    /// Removes what an attempt staged.
    async fn discard(&self, outcome: &Outcome<'_>) -> Result<(), StoreError>;

    /// The published result of a query id, if there is one. May lag behind [`ResultStore::publish`] only across stores' refreshes.
    async fn result(&self, query_id: &QueryId) -> Result<Option<ResultDocument>, StoreError>;
    /// Reads a page beyond the result document, counted from 0.
    async fn page(&self, statement: &StatementId, attempt: Attempt, n: u32) -> Result<Page, StoreError>;
}

/// A store does both.
pub trait Store: SessionStore + ResultStore {}
impl<T: SessionStore + ResultStore> Store for T {}

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct Request {
    /// The statement, for spans and for the engine's own files.
    pub statement: StatementId,
    /// Its session's id, for what runs in the engine and asks.
    pub session: String,
    /// The language of the text.
    pub lang: String,
    /// The text.
    pub text: firesteel_model::QueryText,
}

/// Why an engine did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The statement's own fault or a limit: tell its user.
    #[error("{0}")]
    Failed(Failure),
    /// The process died under it; the text says what is known of why, without query text.
    #[error("the worker died: {0}")]
    Died(String),
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        EngineError::Failed(failure)
    }
}

/// Runs statements. Dropping a plan or an output stops its work: within 500 ms by asking, then by force.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Plans a statement in a session made of `journal`. Nothing has happened yet.
    async fn plan(&self, journal: &Journal, request: &Request) -> Result<Box<dyn Plan>, EngineError>;
    /// The session is over, or was given away: frees what it holds.
    async fn close(&self);
}

/// A planned statement.
#[async_trait]
pub trait Plan: Send {
    /// What it does, from its plan.
    fn kind(&self) -> Kind;
    /// Of a define: what the journal is to hold.
    fn entry(&self) -> Option<Entry>;
    /// Begins it.
    async fn run(self: Box<Self>) -> Result<Output, EngineError>;
}

/// A running statement: a schema and a stream, never a collected result.
pub struct Output {
    /// The columns as the engine has them; names may repeat.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: BoxStream<'static, Result<RecordBatch, EngineError>>,
    /// What has been read so far.
    pub progress: watch::Receiver<Progress>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("schema", &self.schema).finish_non_exhaustive()
    }
}
