//! What attempts staged: found, fenced off and removed.
//!
//! A request whose sender is lost, or that got no answer, may still be on its way: a page, or the bulk with the result. Each page that is removed
//! therefore leaves a **fence** in its place, and so does the one that would come next: a few bytes that refuse it. A result that comes late is
//! found by its status, for it says that it is staged.

use firesteel_model::{Attempt, StatementId, Stored, Version};
use firesteel_session::ports::{Outcome, StoreError};

use crate::documents::{Documents, Field, Found, Index, Key, Op, Order, Search};
use crate::results::{acknowledged, results, too_busy};
use crate::store::{Scope, Store, state, text};
use crate::wire;
use crate::wire::ids;

/// How many pages are looked for at once.
const PAGES_AT_ONCE: u32 = 32;
/// How often a page may come before its fence.
const ROUNDS: u32 = 16;
/// How many staged results a sweep looks at; the next one looks at the rest.
const MOST_STAGED: usize = 500;

/// What is there of an attempt, with the versions at which it was found.
#[derive(Default)]
struct Parts {
    result: Option<Version>,
    /// In order, fences included.
    pages: Vec<(u32, Version)>,
}

impl<D: Documents> Store<D> {
    async fn parts(&self, statement: &StatementId, attempt: Attempt) -> Result<Parts, StoreError> {
        let mut parts = Parts::default();
        let mut first = 0;
        loop {
            let mut keys: Vec<Key> =
                (first..first + PAGES_AT_ONCE).map(|n| state(ids::page(statement, attempt, n))).collect();
            if first == 0 {
                keys.push(results(ids::result(statement, attempt)));
            }
            let mut found = self.documents.get(&keys, false).await?;
            if first == 0 {
                parts.result = found.pop().flatten().map(|result| result.version);
            }
            let before = parts.pages.len();
            parts.pages.extend((first..).zip(found).filter_map(|(n, page)| Some((n, page?.version))));
            if parts.pages.len() == before {
                return Ok(parts);
            }
            first += PAGES_AT_ONCE;
        }
    }

    /// Removes what an attempt staged, and sees to it that no page of it comes after that.
    pub(crate) async fn remove(&self, outcome: &Outcome<'_>) -> Result<(), StoreError> {
        let (statement, attempt) = (&outcome.statement.id, outcome.attempt);
        for _ in 0..ROUNDS {
            let parts = self.parts(statement, attempt).await?;
            let last = parts.pages.last().map(|(n, _)| *n);
            let fenced = match last {
                Some(n) => self.find(state(ids::page(statement, attempt, n))).await?.is_some_and(is_fence),
                None => false,
            };
            if !fenced {
                // Pages are sent one after the other: no later one is on its way.
                let n = last.map_or(0, |n| n + 1);
                let key = state(ids::page(statement, attempt, n));
                let body = text(&wire::result::fence(outcome, n));
                if acknowledged(self.write(Op::Create { key, body }, false).await)?.is_none() {
                    continue;
                }
            }
            return self.remove_parts(statement, attempt, &parts).await;
        }
        Err(too_busy())
    }

    async fn remove_parts(&self, id: &StatementId, attempt: Attempt, parts: &Parts) -> Result<(), StoreError> {
        let fields = text(&wire::result::into_fence());
        let empty = |(n, at): &(u32, Version)| Op::Update {
            key: state(ids::page(id, attempt, *n)),
            at: *at,
            fields: fields.clone(),
        };
        let mut ops: Vec<Op> = parts.pages.iter().map(empty).collect();
        ops.extend(parts.result.map(|at| Op::Delete { key: results(ids::result(id, attempt)), at }));
        for some in ops.chunks(PAGES_AT_ONCE as usize + 1) {
            for outcome in self.documents.bulk(some.to_vec(), false).await? {
                acknowledged(outcome)?;
            }
        }
        Ok(())
    }

    /// Makes these pages. One that is there was made by an earlier try of mine; or a fence is there, and the attempt is over.
    pub(crate) async fn make_pages(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        if ops.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = ops.iter().map(|op| op.key().clone()).collect();
        let mut there = Vec::new();
        for (key, outcome) in keys.into_iter().zip(self.documents.bulk(ops, false).await?) {
            if acknowledged(outcome)?.is_none() {
                there.push(key);
            }
        }
        if there.is_empty() || !self.documents.get(&there, true).await?.into_iter().flatten().any(is_fence) {
            return Ok(());
        }
        Err(StoreError::Conflict)
    }

    /// Sees to it that each staged result of a statement that has ended is named by a companion that says so: one that was staged beside a
    /// companion that was there before, or that came when all was over, is not.
    pub(crate) async fn name_staged(&self) -> Result<(), StoreError> {
        self.documents.refresh(Index::Results).await?;
        let search = Search {
            index: Index::Results,
            terms: vec![(Field::Status, vec![wire::result::STAGED.to_owned()])],
            or: Vec::new(),
            order: Order::Newest(Field::Updated),
            limit: MOST_STAGED,
        };
        let hits = self.documents.search(&search).await?;
        let staged: Vec<(StatementId, Attempt)> = hits.iter().filter_map(|hit| ids::of_result(&hit.id)).collect();
        if staged.is_empty() {
            return Ok(());
        }
        let ids: Vec<StatementId> = staged.iter().map(|(id, _)| id.clone()).collect();
        let companions: Vec<Key> = ids.iter().map(|id| state(ids::companion(id))).collect();
        let mut companions = self.documents.get(&companions, true).await?.into_iter();
        let mut requests = self.statements_in(Scope::Requests, &ids).await?.into_iter();
        let mut batches = self.statements_in(Scope::Batch, &ids).await?.into_iter();
        for (_, attempt) in staged {
            // One that cannot be read is left alone: it must not keep the others from being swept.
            let companion = companions.next().flatten().map(|f| wire::state::read_companion(&f.source));
            let named = companion.is_some_and(|c| c.map_or(true, |c| c.staged.contains(&attempt) && !c.published));
            let statement = [requests.next(), batches.next()].into_iter().flatten().flatten().next();
            if let Some(Stored { value, .. }) = statement.filter(|s| s.value.state.is_terminal() && !named) {
                tracing::debug!(statement = %value.id, %attempt, "a staged result was not named by its companion");
                let statement = &value;
                let outcome = Outcome { statement, attempt, job: "", application: "", job_type: "", run_millis: 0 };
                self.note_attempt(&outcome).await?;
            }
        }
        Ok(())
    }
}

fn is_fence(found: Found) -> bool {
    wire::result::is_fence(&found.source)
}
