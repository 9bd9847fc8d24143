//! What dead runners left, over all sessions: found by complete searches, settled by what the statement and its companion say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use firesteel_model::{Attempt, SessionId, Statement, StatementId, StatementState, Stored, Version};
use firesteel_session::ports::{Left, Outcome, ResultStore, StoreError};

use crate::documents::{Documents, Field, Index, Key, Op, Order, Search};
use crate::store::{Scope, Store, state, text};
use crate::wire::state::UNPUBLISHED;
use crate::wire::{self, ids};

/// So many marks wait for a request to ride on; then they have one of their own.
const MOST_MARKS: usize = 64;
/// How many documents are read in one request.
const AT_ONCE: usize = 500;

impl<D: Documents> Store<D> {
    pub(crate) async fn find_left_open(&self) -> Result<Vec<Left>, StoreError> {
        let index = self.index();
        self.documents.refresh(index).await?;
        let terms = vec![
            (Field::Type, vec!["statement".to_owned()]),
            (Field::State, ["waiting", "running"].map(str::to_owned).to_vec()),
        ];
        let order = Order::Oldest(Field::Submitted);
        let hits = self.documents.search(&Search { index, terms, or: Vec::new(), order, limit: usize::MAX }).await?;
        // What is unreadable is told by whoever serves its session.
        let statements = hits.iter().filter_map(|hit| self.read_statement(hit).ok()).collect();
        let mut left = self.with_sessions(self.scope, statements).await?;
        left.retain(|left| left.session.as_ref().is_none_or(|session| session.value.state.is_ended()));
        Ok(left)
    }

    pub(crate) async fn find_left_unpublished(&self) -> Result<Vec<Left>, StoreError> {
        self.name_staged().await?;
        self.flush_marks().await?;
        self.documents.refresh(Index::State).await?;
        let terms = vec![(Field::Kind, vec!["companion".to_owned()]), (Field::State, vec![UNPUBLISHED.to_owned()])];
        let order = Order::Oldest(Field::Submitted);
        let search = Search { index: Index::State, terms, or: Vec::new(), order, limit: usize::MAX };
        let ids: Vec<StatementId> = self
            .documents
            .search(&search)
            .await?
            .iter()
            .filter_map(|hit| StatementId::new(hit.source["statementId"].as_str()?).ok())
            .collect();
        let mut left = Vec::new();
        for some in ids.chunks(AT_ONCE) {
            for scope in [Scope::Requests, Scope::Batch] {
                let found = self.statements_in(scope, some).await?;
                let ended = found.into_iter().flatten().filter(|s| s.value.state.is_terminal()).collect();
                left.extend(self.with_sessions(scope, ended).await?);
            }
        }
        Ok(left)
    }

    /// These statements, in the order of their ids. None: it is another request index's, or unreadable, which whoever serves its session tells.
    pub(crate) async fn statements_in(
        &self,
        scope: Scope,
        ids: &[StatementId],
    ) -> Result<Vec<Option<Stored<Statement>>>, StoreError> {
        let keys: Vec<Key> = ids.iter().map(|id| scope.statement_key(id)).collect();
        let found = self.documents.get(&keys, true).await?;
        Ok(found.into_iter().map(|found| scope.read_statement(&found?).ok()).collect())
    }

    /// Each with its session. Of a session that is there and cannot be read nothing is known: its statements are left alone.
    async fn with_sessions(&self, scope: Scope, statements: Vec<Stored<Statement>>) -> Result<Vec<Left>, StoreError> {
        let ids: BTreeSet<&SessionId> = statements.iter().map(|s| &s.value.session).collect();
        let ids: Vec<SessionId> = ids.into_iter().cloned().collect();
        let mut sessions = BTreeMap::new();
        for some in ids.chunks(AT_ONCE) {
            let read = self.read_sessions(scope, some).await?;
            sessions.extend(some.iter().zip(read).filter_map(|(id, session)| Some((id, session.ok()?))));
        }
        let known = statements.into_iter().filter_map(|statement| {
            let session = sessions.get(&statement.value.session)?.clone();
            Some(Left { statement, session, batch: scope == Scope::Batch })
        });
        Ok(known.collect())
    }

    pub(crate) async fn settle_statement(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = outcome.statement;
        let companion = self.read_companion(&statement.id).await?.map(|(_, companion)| companion);
        let companion = companion.unwrap_or_default();
        let decided: Option<Attempt> = match statement.state {
            StatementState::Success => companion.candidate,
            StatementState::Failed { .. } | StatementState::Timeout { .. } | StatementState::Cancelled => None,
            StatementState::Waiting | StatementState::Running { .. } => {
                return Err(StoreError::Refused("only a statement that has ended can be settled".to_owned()));
            }
        };
        for attempt in companion.staged.into_iter().filter(|attempt| Some(*attempt) != decided) {
            self.discard(&Outcome { attempt, ..outcome.clone() }).await?;
        }
        match (&statement.state, decided) {
            (StatementState::Success, Some(attempt)) => self.publish(&Outcome { attempt, ..outcome.clone() }).await?,
            (StatementState::Failed { .. } | StatementState::Timeout { .. }, _) => {
                self.publish_failure(outcome).await?
            }
            // Cancelled; or another program's success, with a result of its own.
            _ => {}
        }
        self.settle_companion(&statement.id).await
    }

    pub(crate) fn marks(&self) -> MutexGuard<'_, Vec<(Key, Version)>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that everything this companion's statement left is published, to be told with the next write.
    pub(crate) async fn mark(&self, statement: &StatementId, at: Version) -> Result<(), StoreError> {
        let many = {
            let mut marks = self.marks();
            marks.push((state(ids::companion(statement)), at));
            marks.len() >= MOST_MARKS
        };
        if many { self.flush_marks().await } else { Ok(()) }
    }

    /// Tells companions whose results were published that they were.
    pub(crate) async fn flush_marks(&self) -> Result<(), StoreError> {
        let ops = self.take_marks();
        if !ops.is_empty() {
            // One that was changed meanwhile is settled by a sweep.
            self.documents.bulk(ops, false).await?;
        }
        Ok(())
    }

    /// The marks that are due, as writes.
    pub(crate) fn take_marks(&self) -> Vec<Op> {
        let marks = std::mem::take(&mut *self.marks());
        marks.into_iter().map(|(key, at)| Op::Update { key, at, fields: text(&wire::state::published(true)) }).collect()
    }
}
