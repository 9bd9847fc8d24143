//! The ports, written once over any [`Documents`]. Sessions and statements are here, results in `results.rs`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::{
    Attempt, Expect, Pattern, Session, SessionChange, SessionId, Statement, StatementId, StatementState, Stored,
    Version,
};
use firesteel_session::journal::{self, Record};
use firesteel_session::ports::{
    Companion, Filter, Left, Marker, Open, Overview, Prepared, SessionStore, StoreError, Watched,
};
use serde_json::{Map, Value, json};

use crate::documents::{Documents, Field, Found, Index, Key, Op, Order, Search};
use crate::prepare::Mappings;
use crate::wire::{self, BadField, ids};

/// Where sessions and statements are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In the request index, a contract with other programs.
    #[default]
    Requests,
    /// In the state index: a batch job's own, which no other program is to see.
    Batch,
}

impl Scope {
    pub(crate) fn session_key(self, id: &SessionId) -> Key {
        match self {
            Scope::Requests => Key { index: Index::Requests, id: id.as_str().to_owned() },
            Scope::Batch => state(ids::batch_session(id)),
        }
    }

    pub(crate) fn statement_key(self, id: &StatementId) -> Key {
        match self {
            Scope::Requests => Key { index: Index::Requests, id: id.as_str().to_owned() },
            Scope::Batch => state(ids::batch(id)),
        }
    }

    pub(crate) fn read_statement(self, found: &Found) -> Result<Stored<Statement>, BadField> {
        let id = (self == Scope::Requests).then_some(found.id.as_str());
        Ok(Stored { version: found.version, value: wire::statement::read(id, &found.source)? })
    }
}

/// What the three indices are called, and where sessions and statements are. SQLite and memory hold one of each and
/// heed only the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The request index.
    pub request_index: String,
    /// The result index.
    pub result_index: String,
    /// The state index.
    pub state_index: String,
    /// Where sessions and statements are.
    pub scope: Scope,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            request_index: "flint_ql_sessions".to_owned(),
            result_index: "query_execution_result".to_owned(),
            state_index: "firesteel_state".to_owned(),
            scope: Scope::Requests,
        }
    }
}

impl Settings {
    /// The name of an index.
    #[must_use]
    pub fn name(&self, index: Index) -> &str {
        match index {
            Index::Requests => &self.request_index,
            Index::Results => &self.result_index,
            Index::State => &self.state_index,
        }
    }
}

/// Sessions, statements and results in some store of documents.
#[derive(Debug)]
pub struct Store<D> {
    pub(crate) documents: D,
    pub(crate) scope: Scope,
    staged: Mutex<BTreeMap<(StatementId, Attempt), Staged>>,
    /// Companions at these versions that are to be told that their result is published. The telling rides on the next request that
    /// writes anyway, for a refresh of the index that they are in would be a third of what publishing costs.
    pub(crate) marks: Mutex<Vec<(Key, Version)>>,
    pub(crate) mappings: Mutex<Mappings>,
}

/// Versions that staging got, so that publishing need not read them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Staged {
    pub result: Option<Version>,
    pub companion: Option<Version>,
    /// The query id is known to be this statement's.
    pub guarded: bool,
}

/// How long a change of a session waits for the store to tell its time.
const MEASURING: Duration = Duration::from_millis(500);
/// More attempts than one runner has between staging and publishing.
const MOST_STAGED: usize = 256;

impl<D: Documents> Store<D> {
    /// The ports over `documents`.
    pub fn new(documents: D, scope: Scope) -> Store<D> {
        Store { documents, scope, staged: Mutex::default(), marks: Mutex::default(), mappings: Mutex::default() }
    }

    /// What is underneath.
    pub fn documents(&self) -> &D {
        &self.documents
    }

    pub(crate) fn staged(&self) -> MutexGuard<'_, BTreeMap<(StatementId, Attempt), Staged>> {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        if staged.len() > MOST_STAGED {
            // Of attempts that were given up; what is forgotten here is read from the store.
            staged.clear();
        }
        staged
    }

    pub(crate) fn index(&self) -> Index {
        match self.scope {
            Scope::Requests => Index::Requests,
            Scope::Batch => Index::State,
        }
    }

    pub(crate) fn session_key(&self, id: &SessionId) -> Key {
        self.scope.session_key(id)
    }

    pub(crate) fn statement_key(&self, id: &StatementId) -> Key {
        self.scope.statement_key(id)
    }

    /// In the state index each document says what it is.
    fn scoped(&self, mut document: Map<String, Value>) -> String {
        if self.scope == Scope::Batch {
            document.insert("kind".to_owned(), json!("batch"));
            document.insert("formatVersion".to_owned(), json!(wire::state::FORMAT_VERSION));
        }
        text(&document)
    }

    pub(crate) fn read_statement(&self, found: &Found) -> Result<Stored<Statement>, BadField> {
        self.scope.read_statement(found)
    }

    pub(crate) fn open(&self, id: &SessionId, found: Vec<Found>) -> Open {
        let mut open = Open::default();
        for hit in found {
            if hit.source["type"] == "session" {
                // One that is unreadable is told by whoever reads it by its id.
                open.session =
                    wire::session::read(id, &hit.source).ok().map(|value| Stored { version: hit.version, value });
                continue;
            }
            match self.read_statement(&hit) {
                Ok(statement) => open.statements.push(statement),
                Err(bad) => open.unreadable.push((hit.id, bad.to_string())),
            }
        }
        open.statements.sort_by(|a, b| (a.value.submit_time, &a.value.id).cmp(&(b.value.submit_time, &b.value.id)));
        open
    }

    fn open_search(&self, session: &SessionId, limit: usize) -> Search {
        Search {
            index: self.index(),
            terms: vec![
                (Field::Type, vec!["statement".to_owned(), "session".to_owned()]),
                (Field::Session, vec![session.as_str().to_owned()]),
                // A session that was ended by another is noticed by the same search.
                (Field::State, ["waiting", "running", "dead", "fail"].map(str::to_owned).to_vec()),
            ],
            or: Vec::new(),
            order: Order::Oldest(Field::Submitted),
            limit,
        }
    }

    /// The store's time, for a document. Not for long: a heartbeat matters more than its stamp, for which the last measurement still stands.
    pub(crate) async fn stamp(&self) -> u64 {
        match tokio::time::timeout(MEASURING, self.documents.measure()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the store's clock was not measured"),
            Err(_) => tracing::debug!("the store's clock was not measured in time"),
        }
        self.documents.now()
    }

    pub(crate) async fn find(&self, key: Key) -> Result<Option<Found>, StoreError> {
        Ok(self.documents.get(&[key], true).await?.pop().flatten())
    }

    pub(crate) async fn write(&self, op: Op, refresh: bool) -> Result<Version, StoreError> {
        let mut outcomes = self.documents.bulk(vec![op], refresh).await?;
        outcomes.pop().unwrap_or_else(|| Err(StoreError::Unknown("the store answered for no document".to_owned())))
    }
}

pub(crate) fn state(id: String) -> Key {
    Key { index: Index::State, id }
}

pub(crate) fn text(document: &Map<String, Value>) -> String {
    // As `Value` prints it: a map of texts, numbers and flags always has a JSON form.
    serde_json::to_string(document).unwrap_or_default()
}

pub(crate) fn corrupt(id: &str, bad: &BadField) -> StoreError {
    StoreError::Corrupt(format!("document `{}`: {bad}", id.escape_debug()))
}

/// Reads what was found, if something was.
pub(crate) fn reading<T>(
    found: Option<Found>,
    read: impl FnOnce(&Found) -> Result<T, BadField>,
) -> Result<Option<T>, StoreError> {
    found.map(|f| read(&f).map_err(|bad| corrupt(&f.id, &bad))).transpose()
}

pub(crate) fn stored_session(id: &SessionId, found: &Found) -> Result<Stored<Session>, BadField> {
    Ok(Stored { version: found.version, value: wire::session::read(id, &found.source)? })
}

fn stored_companion(found: &Found) -> Result<Stored<Companion>, BadField> {
    Ok(Stored { version: found.version, value: wire::state::read_companion(&found.source)? })
}

#[async_trait]
impl<D: Documents> SessionStore for Store<D> {
    async fn prepare(&self, create: bool) -> Result<Prepared, StoreError> {
        self.prepare_indices(create).await
    }

    async fn session(&self, id: &SessionId) -> Result<Option<Stored<Session>>, StoreError> {
        reading(self.find(self.session_key(id)).await?, |found| stored_session(id, found))
    }

    async fn create_session(&self, session: &Session) -> Result<Version, StoreError> {
        self.documents.measure().await?;
        let body = self.scoped(wire::session::new(session, self.documents.now()));
        self.write(Op::Create { key: self.session_key(&session.id), body }, false).await
    }

    async fn write_session(
        &self,
        id: &SessionId,
        expect: Version,
        change: &SessionChange,
    ) -> Result<Version, StoreError> {
        let fields = text(&wire::session::change(change, self.stamp().await));
        let written = self.write(Op::Update { key: self.session_key(id), at: expect, fields }, false).await;
        if written.is_ok() {
            // At the latest with a heartbeat; a sweep tells it again if this fails.
            let _ = self.flush_marks().await;
        }
        written
    }

    async fn open_statements(&self, session: &SessionId, limit: usize) -> Result<Open, StoreError> {
        let mut open = self.open(session, self.documents.search(&self.open_search(session, limit + 1)).await?);
        open.statements.truncate(limit);
        Ok(open)
    }

    async fn every_open_statement(&self, session: &SessionId) -> Result<Open, StoreError> {
        self.documents.refresh(self.index()).await?;
        Ok(self.open(session, self.documents.search(&self.open_search(session, usize::MAX)).await?))
    }

    async fn open_statements_of(
        &self,
        sessions: &[SessionId],
        fresh: &[Pattern],
        limit: usize,
    ) -> Result<Overview, StoreError> {
        self.overview(sessions, fresh, limit).await
    }

    async fn live_sessions(&self, patterns: &[Pattern]) -> Result<Vec<Stored<Session>>, StoreError> {
        self.live(patterns).await
    }

    async fn sessions_at(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<Result<Option<Stored<Session>>, StoreError>>, StoreError> {
        self.read_sessions(self.scope, ids).await
    }

    async fn write_sessions(
        &self,
        changes: &[(SessionId, Version, SessionChange)],
    ) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        self.change_sessions(changes).await
    }

    async fn statement(&self, id: &StatementId) -> Result<Option<Stored<Statement>>, StoreError> {
        reading(self.find(self.statement_key(id)).await?, |found| self.read_statement(found))
    }

    async fn watch(&self, session: &SessionId, statement: &StatementId) -> Result<Watched, StoreError> {
        let keys = [self.session_key(session), self.statement_key(statement), state(ids::companion(statement))];
        let mut found = self.documents.get(&keys, true).await?.into_iter();
        let mut next = || found.next().flatten();
        Ok(Watched {
            session: reading(next(), |f| stored_session(session, f))?,
            statement: reading(next(), |f| self.read_statement(f))?,
            companion: reading(next(), stored_companion)?,
        })
    }

    async fn create_statement(
        &self,
        statement: &Statement,
        companion: Option<&Companion>,
    ) -> Result<Version, StoreError> {
        let plain = Companion { session: statement.session.as_str().to_owned(), ..Companion::default() };
        // First the companion: a loop that finds the statement finds its limits too.
        let made = match companion.filter(|c| **c != plain) {
            Some(companion) => Some(self.place_companion(statement, companion).await?),
            None => None,
        };
        let body = self.scoped(wire::statement::new(statement));
        // Refreshed, so that it is noticed by the next search and not by the first one after the index's interval.
        let written = self.write(Op::Create { key: self.statement_key(&statement.id), body }, true).await;
        if let (Err(StoreError::Conflict), Some(at)) = (&written, made) {
            // If this fails, a companion of an existing statement stays that says what a user asked for: harmless.
            let _ = self.write(Op::Delete { key: state(ids::companion(&statement.id)), at }, false).await;
        }
        written
    }

    async fn write_statement(
        &self,
        id: &StatementId,
        expect: Version,
        state: &StatementState,
    ) -> Result<Version, StoreError> {
        let fields = text(&wire::statement::state(state));
        self.write(Op::Update { key: self.statement_key(id), at: expect, fields }, false).await
    }

    async fn create_marker(&self, statement: &StatementId, marker: &Marker) -> Result<(), StoreError> {
        let body = text(&wire::state::marker(statement, marker));
        self.write(Op::Create { key: state(ids::marker(statement)), body }, false).await.map(|_| ())
    }

    async fn marker(&self, statement: &StatementId) -> Result<Option<Marker>, StoreError> {
        reading(self.find(state(ids::marker(statement))).await?, |f| wire::state::read_marker(&f.source))
    }

    async fn companion(&self, statement: &StatementId) -> Result<Option<Stored<Companion>>, StoreError> {
        reading(self.find(state(ids::companion(statement))).await?, stored_companion)
    }

    async fn write_companion(
        &self,
        statement: &StatementId,
        expect: Expect,
        companion: &Companion,
    ) -> Result<Version, StoreError> {
        let key = state(ids::companion(statement));
        let body = text(&wire::state::companion(statement, companion));
        let op = match expect {
            Expect::Absent => Op::Create { key, body },
            Expect::Version(at) => Op::Update { key, at, fields: body },
        };
        self.write(op, false).await
    }

    async fn journal(&self, session: &SessionId) -> Result<journal::Found, StoreError> {
        self.read_journal(session).await
    }

    async fn journal_record(&self, session: &SessionId, n: u64) -> Result<Option<Record>, StoreError> {
        self.read_record(session, n).await
    }

    async fn append_journal(&self, session: &SessionId, n: u64, record: &Record) -> Result<(), StoreError> {
        self.make_record(session, n, record).await
    }

    async fn left_open(&self) -> Result<Vec<Left>, StoreError> {
        self.find_left_open().await
    }

    async fn left_unpublished(&self) -> Result<Vec<Left>, StoreError> {
        self.find_left_unpublished().await
    }

    async fn sessions(&self, filter: &Filter) -> Result<Vec<Stored<Session>>, StoreError> {
        if let Some(id) = &filter.session {
            return Ok(self.session(id).await?.into_iter().take(filter.limit).collect());
        }
        let terms = vec![(Field::Type, vec!["session".to_owned()])];
        let order = Order::Newest(Field::Renewed);
        let found = self
            .documents
            .search(&Search { index: self.index(), terms, or: Vec::new(), order, limit: filter.limit })
            .await?;
        let mut sessions = Vec::new();
        for hit in found {
            let id = match self.scope {
                Scope::Requests => &hit.id,
                Scope::Batch => hit.source["sessionId"].as_str().unwrap_or_default(),
            };
            let read = SessionId::new(id)
                .map_err(|_| BadField::new("sessionId", "an id"))
                .and_then(|id| wire::session::read(&id, &hit.source));
            match read {
                Ok(value) => sessions.push(Stored { version: hit.version, value }),
                Err(bad) => tracing::warn!(id = %hit.id.escape_debug(), %bad, "a session document is unreadable"),
            }
        }
        Ok(sessions)
    }

    async fn statements(&self, filter: &Filter) -> Result<Vec<Stored<Statement>>, StoreError> {
        let mut terms = vec![(Field::Type, vec!["statement".to_owned()])];
        if let Some(session) = &filter.session {
            terms.push((Field::Session, vec![session.as_str().to_owned()]));
        }
        if let Some(query) = &filter.query_id {
            terms.push((Field::Query, vec![query.as_str().to_owned()]));
        }
        let order = Order::Newest(Field::Submitted);
        let found = self
            .documents
            .search(&Search { index: self.index(), terms, or: Vec::new(), order, limit: filter.limit })
            .await?;
        let mut statements = Vec::new();
        for hit in found {
            match self.read_statement(&hit) {
                Ok(statement) => statements.push(statement),
                Err(bad) => tracing::warn!(id = %hit.id.escape_debug(), %bad, "a statement document is unreadable"),
            }
        }
        Ok(statements)
    }

    async fn time(&self) -> Result<u64, StoreError> {
        self.documents.measure().await?;
        Ok(self.documents.now())
    }
}

impl<D: Documents> Store<D> {
    /// Makes the companion of a statement that is about to be made. One that an earlier, broken-off try left is replaced.
    async fn place_companion(&self, statement: &Statement, companion: &Companion) -> Result<Version, StoreError> {
        match self.write_companion(&statement.id, Expect::Absent, companion).await {
            Err(StoreError::Conflict) => {}
            written => return written,
        }
        let watched = self.watch(&statement.session, &statement.id).await?;
        match (watched.statement, watched.companion) {
            (Some(_), _) | (None, None) => Err(StoreError::Conflict),
            (None, Some(left)) => self.write_companion(&statement.id, Expect::Version(left.version), companion).await,
        }
    }
}
