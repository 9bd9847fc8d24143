//! Results: staged where no reader looks, then published once their statement is decided.

use async_trait::async_trait;
use firesteel_model::{Attempt, QueryId, StatementId, Version};
use firesteel_session::ports::{
    Column, Companion, Outcome, Page, ResultDocument, ResultStore, StageError, StoreError, Totals,
};
use serde_json::{Map, Value, json};

use crate::documents::{Documents, Field, Found, Index, Key, Op, Order, Search};
use crate::store::{Staged, Store, corrupt, reading, state, text};
use crate::wire::{self, ids};

/// How often a companion is read again because another wrote it in between.
const ROUNDS: u32 = 16;
/// The most bytes of pages in one request; some services take no more than 10 MB.
const MOST_BYTES: usize = 8 << 20;
/// How many pages are looked for at once when an attempt is discarded.
const PAGES_AT_ONCE: u32 = 32;

fn results(id: String) -> Key {
    Key { index: Index::Results, id }
}

fn encoded(body: serde_json::Result<String>) -> Result<String, StoreError> {
    body.map_err(|e| StoreError::Refused(format!("the result has no JSON form: {e}")))
}

/// A document named by an attempt of mine exists: an earlier try of the same write made it.
fn acknowledged(outcome: Result<Version, StoreError>) -> Result<Option<Version>, StoreError> {
    match outcome {
        Ok(version) => Ok(Some(version)),
        Err(StoreError::Conflict) => Ok(None),
        Err(error) => Err(error),
    }
}

fn too_busy() -> StoreError {
    StoreError::Unavailable("the statement's companion is changed by others all the time".to_owned())
}

impl<D: Documents> Store<D> {
    async fn bulk<const N: usize>(
        &self,
        ops: [Op; N],
        refresh: bool,
    ) -> Result<[Result<Version, StoreError>; N], StoreError> {
        let outcomes = self.documents.bulk(ops.into(), refresh).await?;
        outcomes.try_into().map_err(|_| StoreError::Unknown("the store did not answer for each document".to_owned()))
    }

    /// Whether the query id belongs to this statement, now that its guard exists.
    async fn guarded_for(&self, query: &QueryId, statement: &StatementId) -> Result<bool, StoreError> {
        let found = self.find(state(ids::guard(query))).await?;
        let holder = reading(found, |f| wire::state::read_guard(&f.source).map(str::to_owned))?;
        holder.map(|h| h == statement.as_str()).ok_or(StoreError::Conflict)
    }

    async fn read_companion(&self, statement: &StatementId) -> Result<Option<(Version, Companion)>, StoreError> {
        reading(self.find(state(ids::companion(statement))).await?, |f| {
            Ok((f.version, wire::state::read_companion(&f.source)?))
        })
    }

    /// Makes an attempt the candidate of a companion that exists. The candidate only rises.
    async fn raise(&self, outcome: &Outcome<'_>, totals: Totals) -> Result<Version, StageError> {
        let statement = &outcome.statement.id;
        for _ in 0..ROUNDS {
            let (at, there) = self.read_companion(statement).await?.ok_or(StoreError::Conflict)?;
            if there.candidate > Some(outcome.attempt) {
                return Err(StageError::Superseded);
            }
            if there.candidate == Some(outcome.attempt) && there.totals == Some(totals) {
                return Ok(at);
            }
            let fields = text(&wire::state::candidate(Some(outcome.attempt), Some(totals), false));
            match self.write(Op::Update { key: state(ids::companion(statement)), at, fields }, false).await {
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
                Ok(version) => return Ok(version),
            }
        }
        Err(too_busy().into())
    }

    /// Publishes at these versions; None: that part is published. False: one of them is old.
    async fn publish_at(
        &self,
        outcome: &Outcome<'_>,
        result: Option<Version>,
        companion: Option<Version>,
    ) -> Result<bool, StoreError> {
        let statement = &outcome.statement.id;
        let mut ops = Vec::new();
        if let Some(at) = result {
            let key = results(ids::result(statement, outcome.attempt));
            ops.push(Op::Update { key, at, fields: text(&wire::result::visible(outcome)) });
        }
        if let Some(at) = companion {
            ops.push(Op::Update { key: state(ids::companion(statement)), at, fields: text(&published()) });
        }
        let mut fresh = true;
        for outcome in self.documents.bulk(ops, true).await? {
            fresh &= acknowledged(outcome)?.is_some();
        }
        if fresh && result.is_none() {
            self.documents.refresh(Index::Results).await?;
        }
        Ok(fresh)
    }

    async fn publish_what_is_there(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = &outcome.statement.id;
        let keys = [results(ids::result(statement, outcome.attempt)), state(ids::companion(statement))];
        for _ in 0..ROUNDS {
            let mut found = self.documents.get(&keys, true).await?.into_iter();
            let missing = |key: &Key| StoreError::Corrupt(format!("document `{}` is missing", key.id.escape_debug()));
            let result = found.next().flatten().ok_or_else(|| missing(&keys[0]))?;
            let companion = found.next().flatten().ok_or_else(|| missing(&keys[1]))?;
            let there = wire::state::read_companion(&companion.source).map_err(|bad| corrupt(&companion.id, &bad))?;
            if there.candidate != Some(outcome.attempt) {
                return Err(StoreError::Conflict);
            }
            let unpublished = |found: &Found, done: bool| (!done).then_some(found.version);
            let result_at = unpublished(&result, result.source.get("jobRunId").is_some());
            let companion_at = unpublished(&companion, there.published);
            if result_at.is_none() && companion_at.is_none() {
                return self.documents.refresh(Index::Results).await;
            }
            if self.publish_at(outcome, result_at, companion_at).await? {
                return Ok(());
            }
        }
        Err(too_busy())
    }

    /// Notes in a companion that exists that nothing is left to be published.
    async fn settle_companion(&self, statement: &StatementId) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            let Some((at, there)) = self.read_companion(statement).await? else { return Ok(()) };
            if there.published {
                return Ok(());
            }
            let op = Op::Update { key: state(ids::companion(statement)), at, fields: text(&published()) };
            if acknowledged(self.write(op, false).await)?.is_some() {
                return Ok(());
            }
        }
        Err(too_busy())
    }
}

fn published() -> Map<String, Value> {
    Map::from_iter([("published".to_owned(), json!(true))])
}

#[async_trait]
impl<D: Documents> ResultStore for Store<D> {
    async fn stage_pages(&self, outcome: &Outcome<'_>, first: u32, pages: &[Page]) -> Result<(), StoreError> {
        let (mut ops, mut bytes) = (Vec::new(), 0);
        for (n, page) in (first..).zip(pages) {
            let body = encoded(wire::result::page(outcome, n, page))?;
            if bytes + body.len() > MOST_BYTES && !ops.is_empty() {
                self.create_all(std::mem::take(&mut ops)).await?;
                bytes = 0;
            }
            bytes += body.len();
            ops.push(Op::Create { key: state(ids::page(&outcome.statement.id, outcome.attempt, n)), body });
        }
        self.create_all(ops).await
    }

    async fn stage(
        &self,
        outcome: &Outcome<'_>,
        columns: &[Column],
        rows: &[String],
        totals: Totals,
    ) -> Result<(), StageError> {
        let statement = outcome.statement;
        let query = statement.query_id.as_ref().ok_or_else(|| {
            StoreError::Refused("a result can be found only by a query id, and the statement has none".to_owned())
        })?;
        let companion = Companion {
            session: statement.session.as_str().to_owned(),
            attempts: 1,
            candidate: Some(outcome.attempt),
            totals: Some(totals),
            ..Companion::default()
        };
        let create = |key: Key, body: String| Op::Create { key, body };
        let [result, guard, made] = self
            .bulk(
                [
                    create(
                        results(ids::result(&statement.id, outcome.attempt)),
                        encoded(wire::result::staged(outcome, columns, rows, self.documents.now()))?,
                    ),
                    create(state(ids::guard(query)), text(&wire::state::guard(query, &statement.id))),
                    create(
                        state(ids::companion(&statement.id)),
                        text(&wire::state::companion(&statement.id, &companion)),
                    ),
                ],
                false,
            )
            .await?;
        let result = acknowledged(result)?;
        if acknowledged(guard)?.is_none() && !self.guarded_for(query, &statement.id).await? {
            self.discard(outcome).await?;
            return Err(StageError::DuplicateQueryId);
        }
        let companion = match acknowledged(made)? {
            Some(version) => version,
            None => match self.raise(outcome, totals).await {
                Err(StageError::Superseded) => {
                    self.discard(outcome).await?;
                    return Err(StageError::Superseded);
                }
                raised => raised?,
            },
        };
        self.staged().insert((statement.id.clone(), outcome.attempt), Staged { result, companion: Some(companion) });
        Ok(())
    }

    async fn publish(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let name = (outcome.statement.id.clone(), outcome.attempt);
        let staged = self.staged().get(&name).copied().unwrap_or_default();
        let done = match staged {
            Staged { result: Some(_), companion: Some(_) } => {
                self.publish_at(outcome, staged.result, staged.companion).await?
            }
            _ => false,
        };
        if !done {
            self.publish_what_is_there(outcome).await?;
        }
        self.staged().remove(&name);
        Ok(())
    }

    async fn publish_failure(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = outcome.statement;
        if let Some(query) = &statement.query_id {
            let key = state(ids::guard(query));
            let body = text(&wire::state::guard(query, &statement.id));
            let made = acknowledged(self.write(Op::Create { key, body }, false).await)?;
            if made.is_none() && !self.guarded_for(query, &statement.id).await? {
                // Whoever asks by that id asks for the other statement.
                return self.settle_companion(&statement.id).await;
            }
        }
        let companion =
            Companion { session: statement.session.as_str().to_owned(), published: true, ..Companion::default() };
        let [result, companion] = self
            .bulk(
                [
                    Op::Create {
                        key: results(ids::failure(&statement.id)),
                        body: encoded(wire::result::failed(outcome, self.documents.now()))?,
                    },
                    Op::Create {
                        key: state(ids::companion(&statement.id)),
                        body: text(&wire::state::companion(&statement.id, &companion)),
                    },
                ],
                true,
            )
            .await?;
        if acknowledged(result)?.is_none() {
            self.documents.refresh(Index::Results).await?;
        }
        if acknowledged(companion)?.is_none() {
            self.settle_companion(&statement.id).await?;
        }
        Ok(())
    }

    async fn discard(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = &outcome.statement.id;
        self.staged().remove(&(statement.clone(), outcome.attempt));
        let mut first = 0;
        loop {
            let mut keys: Vec<Key> =
                (first..first + PAGES_AT_ONCE).map(|n| state(ids::page(statement, outcome.attempt, n))).collect();
            if first == 0 {
                keys.push(results(ids::result(statement, outcome.attempt)));
            }
            let found = self.documents.get(&keys, false).await?;
            let ops: Vec<Op> = keys
                .into_iter()
                .zip(found)
                .filter_map(|(key, found)| Some(Op::Delete { key, at: found?.version }))
                .collect();
            let pages = ops.iter().any(|op| matches!(op, Op::Delete { key, .. } if key.index == Index::State));
            if !ops.is_empty() {
                for outcome in self.documents.bulk(ops, false).await? {
                    acknowledged(outcome)?;
                }
            }
            if !pages {
                return Ok(());
            }
            first += PAGES_AT_ONCE;
        }
    }

    async fn result(&self, query_id: &QueryId) -> Result<Option<ResultDocument>, StoreError> {
        let search = Search {
            or: Vec::new(),
            index: Index::Results,
            terms: vec![(Field::Query, vec![query_id.as_str().to_owned()])],
            order: Order::Newest(Field::Updated),
            limit: 1,
        };
        let found = self.documents.search(&search).await?.pop();
        reading(found, |f| wire::result::read(&f.source))
    }

    async fn page(&self, statement: &StatementId, attempt: Attempt, n: u32) -> Result<Page, StoreError> {
        let id = ids::page(statement, attempt, n);
        let missing =
            StoreError::Corrupt(format!("page {n} of statement `{}` is missing", statement.as_str().escape_debug()));
        let found = self.find(state(id)).await?;
        reading(found, |f| wire::result::read_page(statement, attempt, &f.source))?.ok_or(missing)
    }
}

impl<D: Documents> Store<D> {
    async fn create_all(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        if ops.is_empty() {
            return Ok(());
        }
        for outcome in self.documents.bulk(ops, false).await? {
            acknowledged(outcome)?;
        }
        Ok(())
    }
}
