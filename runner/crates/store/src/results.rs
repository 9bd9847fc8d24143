//! Results: staged where no reader looks, then published once their statement is decided.

use async_trait::async_trait;
use firesteel_model::{Attempt, QueryId, Statement, StatementId, Version};
use firesteel_session::ports::{
    Column, Companion, Outcome, Page, ResultDocument, ResultStore, StageError, StoreError, Totals,
};
use serde_json::{Map, Value};

use crate::documents::{Documents, Field, Index, Key, Op, Order, Search};
use crate::store::{Staged, Store, corrupt, reading, state, text};
use crate::wire::{self, ids};

/// How often a companion is read again because another wrote it in between.
const ROUNDS: u32 = 16;
/// The most bytes of pages in one request; some services take no more than 10 MB.
const MOST_BYTES: usize = 8 << 20;

pub(crate) fn results(id: String) -> Key {
    Key { index: Index::Results, id }
}

fn encoded(body: serde_json::Result<String>) -> Result<String, StoreError> {
    body.map_err(|e| StoreError::Refused(format!("the result has no JSON form: {e}")))
}

/// A document named by an attempt of mine exists: an earlier try of the same write made it.
pub(crate) fn acknowledged(outcome: Result<Version, StoreError>) -> Result<Option<Version>, StoreError> {
    match outcome {
        Ok(version) => Ok(Some(version)),
        Err(StoreError::Conflict) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn too_busy() -> StoreError {
    StoreError::Unavailable("the statement's companion is changed by others all the time".to_owned())
}

impl<D: Documents> Store<D> {
    /// Performs these writes, and tells what waits for a request to ride on.
    async fn bulk<const N: usize>(&self, ops: [Op; N]) -> Result<[Result<Version, StoreError>; N], StoreError> {
        let ops = ops.into_iter().chain(self.take_marks()).collect();
        let mut outcomes = self.documents.bulk(ops, false).await?;
        // A companion that was changed meanwhile is settled by a sweep.
        outcomes.truncate(N);
        outcomes.try_into().map_err(|_| StoreError::Unknown("the store did not answer for each document".to_owned()))
    }

    /// Whether the query id belongs to this statement, now that its guard exists.
    async fn guarded_for(&self, query: &QueryId, statement: &StatementId) -> Result<bool, StoreError> {
        let found = self.find(state(ids::guard(query))).await?;
        let holder = reading(found, |f| wire::state::read_guard(&f.source).map(str::to_owned))?;
        holder.map(|h| h == statement.as_str()).ok_or(StoreError::Conflict)
    }

    pub(crate) async fn read_companion(
        &self,
        statement: &StatementId,
    ) -> Result<Option<(Version, Companion)>, StoreError> {
        reading(self.find(state(ids::companion(statement))).await?, |f| {
            Ok((f.version, wire::state::read_companion(&f.source)?))
        })
    }

    /// Changes a companion that exists, anew while others change it in between. `fields` are what is to be written to it as it is, if anything
    /// is. Gives it as it was then and its version after; None: there is none.
    async fn change_companion<E: From<StoreError>>(
        &self,
        statement: &StatementId,
        fields: impl Fn(&Companion) -> Result<Option<Map<String, Value>>, E>,
    ) -> Result<Option<(Version, Companion)>, E> {
        for _ in 0..ROUNDS {
            let Some((at, there)) = self.read_companion(statement).await? else { return Ok(None) };
            let Some(fields) = fields(&there)? else { return Ok(Some((at, there))) };
            let op = Op::Update { key: state(ids::companion(statement)), at, fields: text(&fields) };
            if let Some(version) = acknowledged(self.write(op, false).await)? {
                return Ok(Some((version, there)));
            }
        }
        Err(too_busy().into())
    }

    /// Makes an attempt the candidate of a companion that exists. The candidate only rises. The companion's version, if no other attempt has
    /// staged anything.
    async fn raise(
        &self,
        outcome: &Outcome<'_>,
        totals: Totals,
        labels: &[String],
    ) -> Result<Option<Version>, StageError> {
        let attempt = outcome.attempt;
        let raised = self.change_companion(&outcome.statement.id, |there| {
            if there.candidate > Some(attempt) {
                return Err(StageError::Superseded);
            }
            Ok((there.candidate != Some(attempt) || there.totals != Some(totals) || there.labels != labels).then(
                || {
                    let mut fields = wire::state::candidate(Some(attempt), Some(totals), labels);
                    fields.append(&mut staged_too(there, attempt));
                    fields
                },
            ))
        });
        let (version, there) = raised.await?.ok_or(StoreError::Conflict)?;
        Ok((!staged_by_others(&there, attempt)).then_some(version))
    }

    /// Notes in the companion that an attempt is about to stage something, before it does.
    pub(crate) async fn note_attempt(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let new = Companion { attempts: 1, staged: vec![outcome.attempt], ..plain(outcome.statement) };
        if acknowledged(self.write(new_companion(outcome.statement, &new), false).await)?.is_some() {
            return Ok(());
        }
        self.name_attempt(outcome).await
    }

    /// Sees to it that the companion names the attempt, and says that something is left.
    async fn name_attempt(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let attempt = outcome.attempt;
        let named = self.change_companion(&outcome.statement.id, |there| {
            let known = there.staged.contains(&attempt) && !there.published;
            Ok::<_, StoreError>((!known).then(|| staged_too(there, attempt)))
        });
        named.await?.map(drop).ok_or(StoreError::Conflict)
    }

    /// Publishes at this version. False: it is old.
    async fn publish_at(&self, outcome: &Outcome<'_>, at: Version) -> Result<bool, StoreError> {
        let key = results(ids::result(&outcome.statement.id, outcome.attempt));
        let op = Op::Update { key, at, fields: text(&wire::result::published(outcome)) };
        Ok(acknowledged(self.write(op, true).await)?.is_some())
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
            if result.source.get("jobRunId").is_some() {
                self.documents.refresh(Index::Results).await?;
            } else if !self.publish_at(outcome, result.version).await? {
                continue;
            }
            // What another attempt staged keeps the companion open, for a sweep.
            let done = there.published || staged_by_others(&there, outcome.attempt);
            return if done { Ok(()) } else { self.mark(statement, companion.version).await };
        }
        Err(too_busy())
    }

    /// Notes in a companion, if there is one, that nothing is left to be published.
    pub(crate) async fn settle_companion(&self, statement: &StatementId) -> Result<(), StoreError> {
        let done = |there: &Companion| Ok::<_, StoreError>((!there.published).then(|| wire::state::published(true)));
        self.change_companion(statement, done).await.map(drop)
    }
}

/// What the statement calls its columns, if a name is there twice.
fn labels(columns: &[Column]) -> Vec<String> {
    let repeated = columns.iter().any(|column| column.label.is_some());
    columns.iter().filter(|_| repeated).map(|column| column.label().to_owned()).collect()
}

/// A companion that says no more than whose statement's it is.
fn plain(statement: &Statement) -> Companion {
    Companion { session: statement.session.as_str().to_owned(), ..Companion::default() }
}

fn new_companion(statement: &Statement, companion: &Companion) -> Op {
    Op::Create {
        key: state(ids::companion(&statement.id)),
        body: text(&wire::state::companion(&statement.id, companion)),
    }
}

fn new_guard(query: &QueryId, statement: &Statement) -> Op {
    Op::Create { key: state(ids::guard(query)), body: text(&wire::state::guard(query, &statement.id)) }
}

fn staged_by_others(companion: &Companion, attempt: Attempt) -> bool {
    companion.staged.iter().any(|staged| *staged != attempt)
}

/// The fields that name one more attempt. A companion that said nothing was left says so no longer: one that wakes late is swept after.
fn staged_too(there: &Companion, attempt: Attempt) -> Map<String, Value> {
    let mut staged = there.staged.clone();
    if !staged.contains(&attempt) {
        staged.push(attempt);
    }
    let mut fields = wire::state::staged(&staged);
    fields.append(&mut wire::state::published(false));
    fields
}

#[async_trait]
impl<D: Documents> ResultStore for Store<D> {
    async fn stage_pages(&self, outcome: &Outcome<'_>, first: u32, pages: &[Page]) -> Result<(), StoreError> {
        if first == 0 {
            self.note_attempt(outcome).await?;
        }
        let (mut ops, mut bytes) = (Vec::new(), 0);
        for (n, page) in (first..).zip(pages) {
            let body = encoded(wire::result::page(outcome, n, page))?;
            if bytes + body.len() > MOST_BYTES && !ops.is_empty() {
                self.make_pages(std::mem::take(&mut ops)).await?;
                bytes = 0;
            }
            bytes += body.len();
            ops.push(Op::Create { key: state(ids::page(&outcome.statement.id, outcome.attempt, n)), body });
        }
        self.make_pages(ops).await
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
            attempts: 1,
            staged: vec![outcome.attempt],
            candidate: Some(outcome.attempt),
            totals: Some(totals),
            labels: labels(columns),
            ..plain(statement)
        };
        let staged = Op::Create {
            key: results(ids::result(&statement.id, outcome.attempt)),
            body: encoded(wire::result::staged(outcome, columns, rows, self.documents.now()))?,
        };
        // The companion first: what is staged can be found by it.
        let [made, result, guard] =
            self.bulk([new_companion(statement, &companion), staged, new_guard(query, statement)]).await?;
        self.look_at(Index::Results, &result);
        self.look_at(Index::State, &made);
        self.findable().await?;
        let result = acknowledged(result)?;
        if acknowledged(guard)?.is_none() && !self.guarded_for(query, &statement.id).await? {
            self.discard(outcome).await?;
            return Err(StageError::DuplicateQueryId);
        }
        let companion = match acknowledged(made)? {
            Some(version) => Some(version),
            None => match self.raise(outcome, totals, &companion.labels).await {
                Err(StageError::Superseded) => {
                    self.discard(outcome).await?;
                    return Err(StageError::Superseded);
                }
                raised => raised?,
            },
        };
        let staged = Staged { result, companion, guarded: true };
        self.staged().insert((statement.id.clone(), outcome.attempt), staged);
        Ok(())
    }

    async fn publish(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let name = (outcome.statement.id.clone(), outcome.attempt);
        let staged = self.staged().get(&name).copied().unwrap_or_default();
        match staged {
            Staged { result: Some(result), companion: Some(companion), .. }
                if self.publish_at(outcome, result).await? =>
            {
                self.mark(&outcome.statement.id, companion).await?;
            }
            _ => self.publish_what_is_there(outcome).await?,
        }
        self.staged().remove(&name);
        Ok(())
    }

    async fn announce(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = outcome.statement;
        let companion = new_companion(statement, &plain(statement));
        let (made, guard) = match &statement.query_id {
            None => (self.bulk([companion]).await?[0].clone(), None),
            Some(query) => {
                let [made, guard] = self.bulk([companion, new_guard(query, statement)]).await?;
                (made, Some(guard))
            }
        };
        let companion = acknowledged(made)?;
        let guarded = matches!(guard.map(acknowledged).transpose()?, None | Some(Some(_)));
        let staged = Staged { result: None, companion, guarded };
        self.staged().insert((statement.id.clone(), outcome.attempt), staged);
        Ok(())
    }

    async fn publish_failure(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let statement = outcome.statement;
        let name = (statement.id.clone(), outcome.attempt);
        let Staged { companion, guarded, .. } = self.staged().get(&name).copied().unwrap_or_default();
        // Whoever asks by another statement's query id asks for the other statement.
        if guarded || self.guard(outcome).await? {
            let key = results(ids::failure(&statement.id));
            let body = encoded(wire::result::failed(outcome, self.documents.now()))?;
            if acknowledged(self.write(Op::Create { key, body }, true).await)?.is_none() {
                self.documents.refresh(Index::Results).await?;
            }
        }
        match companion {
            Some(at) => self.mark(&statement.id, at).await?,
            None => self.settle_companion(&statement.id).await?,
        }
        self.staged().remove(&name);
        Ok(())
    }

    async fn settle(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.settle_statement(outcome).await
    }

    async fn discard(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        self.staged().remove(&(outcome.statement.id.clone(), outcome.attempt));
        self.remove(outcome).await
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
    /// Whether the query id, if there is one, is this statement's; claims it if it is nobody's.
    async fn guard(&self, outcome: &Outcome<'_>) -> Result<bool, StoreError> {
        let statement = outcome.statement;
        let Some(query) = &statement.query_id else { return Ok(true) };
        let made = acknowledged(self.write(new_guard(query, statement), false).await)?;
        Ok(made.is_some() || self.guarded_for(query, &statement.id).await?)
    }
}
