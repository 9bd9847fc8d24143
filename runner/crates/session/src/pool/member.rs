//! The store as one session of many sees it.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use firesteel_model::{
    Attempt, Expect, Pattern, QueryId, Session, SessionChange, SessionId, Statement, StatementId, StatementState,
    Stored, Version,
};
use tokio::sync::SemaphorePermit;

use super::Common;
use crate::journal::{Found, Record};
use crate::ports::{
    Column, Companion, Filter, Left, Marker, Open, Outcome, Overview, Page, Prepared, ResultDocument, ResultStore,
    SessionStore, StageError, Store, StoreError, Totals, Watched,
};

/// The store of a pool, for one of its sessions.
pub(super) struct Member {
    common: Arc<Common>,
    session: SessionId,
}

/// The store, and the right to ask it something.
struct Asking<'a> {
    store: &'a (dyn Store + 'static),
    _permit: Option<SemaphorePermit<'a>>,
}

impl Deref for Asking<'_> {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.store
    }
}

impl Member {
    pub(super) fn new(common: Arc<Common>, session: SessionId) -> Member {
        Member { common, session }
    }

    async fn ask(&self) -> Asking<'_> {
        // It is never closed.
        Asking { store: &*self.common.store, _permit: self.common.requests.acquire().await.ok() }
    }
}

#[async_trait]
impl SessionStore for Member {
    async fn prepare(&self, _create: bool) -> Result<Prepared, StoreError> {
        // Done once for all.
        Ok(Prepared::Ready)
    }

    async fn session(&self, id: &SessionId) -> Result<Option<Stored<Session>>, StoreError> {
        self.common.reads.read(id).await
    }

    async fn create_session(&self, _session: &Session) -> Result<Version, StoreError> {
        Err(StoreError::Refused("the session's document is gone; only its submitter makes it".into()))
    }

    async fn write_session(
        &self,
        id: &SessionId,
        expect: Version,
        change: &SessionChange,
    ) -> Result<Version, StoreError> {
        self.ask().await.write_session(id, expect, change).await
    }

    async fn open_statements(&self, session: &SessionId, limit: usize) -> Result<Open, StoreError> {
        self.common.rounds.open_statements(session, limit, self.common.clock.now()).await
    }

    async fn every_open_statement(&self, session: &SessionId) -> Result<Open, StoreError> {
        self.ask().await.every_open_statement(session).await
    }

    async fn open_statements_of(
        &self,
        sessions: &[SessionId],
        fresh: &[Pattern],
        limit: usize,
    ) -> Result<Overview, StoreError> {
        self.ask().await.open_statements_of(sessions, fresh, limit).await
    }

    async fn live_sessions(&self, patterns: &[Pattern]) -> Result<Vec<Stored<Session>>, StoreError> {
        self.ask().await.live_sessions(patterns).await
    }

    async fn sessions_at(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<Result<Option<Stored<Session>>, StoreError>>, StoreError> {
        self.ask().await.sessions_at(ids).await
    }

    async fn write_sessions(
        &self,
        changes: &[(SessionId, Version, SessionChange)],
    ) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        self.ask().await.write_sessions(changes).await
    }

    async fn statement(&self, id: &StatementId) -> Result<Option<Stored<Statement>>, StoreError> {
        self.ask().await.statement(id).await
    }

    async fn watch(&self, session: &SessionId, statement: &StatementId) -> Result<Watched, StoreError> {
        self.ask().await.watch(session, statement).await
    }

    async fn create_statement(
        &self,
        statement: &Statement,
        companion: Option<&Companion>,
    ) -> Result<Version, StoreError> {
        self.ask().await.create_statement(statement, companion).await
    }

    async fn write_statement(
        &self,
        id: &StatementId,
        expect: Version,
        state: &StatementState,
    ) -> Result<Version, StoreError> {
        self.common.rounds.worked(&self.session, self.common.clock.now());
        self.ask().await.write_statement(id, expect, state).await
    }

    async fn create_marker(&self, statement: &StatementId, marker: &Marker) -> Result<(), StoreError> {
        self.ask().await.create_marker(statement, marker).await
    }

    async fn marker(&self, statement: &StatementId) -> Result<Option<Marker>, StoreError> {
        self.ask().await.marker(statement).await
    }

    async fn companion(&self, statement: &StatementId) -> Result<Option<Stored<Companion>>, StoreError> {
        self.ask().await.companion(statement).await
    }

    async fn write_companion(
        &self,
        statement: &StatementId,
        expect: Expect,
        companion: &Companion,
    ) -> Result<Version, StoreError> {
        self.ask().await.write_companion(statement, expect, companion).await
    }

    async fn journal(&self, session: &SessionId) -> Result<Found, StoreError> {
        self.ask().await.journal(session).await
    }

    async fn journal_record(&self, session: &SessionId, n: u64) -> Result<Option<Record>, StoreError> {
        self.ask().await.journal_record(session, n).await
    }

    async fn append_journal(&self, session: &SessionId, n: u64, record: &Record) -> Result<(), StoreError> {
        self.ask().await.append_journal(session, n, record).await
    }

    async fn left_open(&self) -> Result<Vec<Left>, StoreError> {
        self.ask().await.left_open().await
    }

    async fn left_unpublished(&self) -> Result<Vec<Left>, StoreError> {
        self.ask().await.left_unpublished().await
    }

    async fn sessions(&self, filter: &Filter) -> Result<Vec<Stored<Session>>, StoreError> {
        self.ask().await.sessions(filter).await
    }

    async fn statements(&self, filter: &Filter) -> Result<Vec<Stored<Statement>>, StoreError> {
        self.ask().await.statements(filter).await
    }

    async fn time(&self) -> Result<u64, StoreError> {
        self.ask().await.time().await
    }
}

#[async_trait]
impl ResultStore for Member {
    async fn stage_pages(&self, outcome: &Outcome<'_>, first: u32, pages: &[Page]) -> Result<(), StoreError> {
        self.ask().await.stage_pages(outcome, first, pages).await
    }

    async fn stage(
        &self,
        outcome: &Outcome<'_>,
        columns: &[Column],
        rows: &[String],
        totals: Totals,
    ) -> Result<(), StageError> {
        self.ask().await.stage(outcome, columns, rows, totals).await
    }

    async fn publish(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.ask().await.publish(outcome).await
    }

    async fn announce(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.ask().await.announce(outcome).await
    }

    async fn publish_failure(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.ask().await.publish_failure(outcome).await
    }

    async fn settle(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.ask().await.settle(outcome).await
    }

    async fn discard(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.ask().await.discard(outcome).await
    }

    async fn result(&self, query_id: &QueryId) -> Result<Option<ResultDocument>, StoreError> {
        self.ask().await.result(query_id).await
    }

    async fn page(&self, statement: &StatementId, attempt: Attempt, n: u32) -> Result<Page, StoreError> {
        self.ask().await.page(statement, attempt, n).await
    }
}
