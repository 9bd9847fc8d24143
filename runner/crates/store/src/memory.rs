//! A store in this process's memory: for simulation and tests. Deterministic; its clock is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use serde_json::Value;

use crate::documents::{Documents, Field, Found, Index, Key, Op, Opened, Or, Order, Search};

/// Documents in memory. Clones share them, as the processes of a cluster would.
#[derive(Clone)]
pub struct Memory {
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    made: BTreeSet<Index>,
    documents: BTreeMap<Key, (Version, Value)>,
    seq_no: u64,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} documents)", self.lock().documents.len())
    }
}

impl Memory {
    /// An empty store whose time, in epoch milliseconds, is what `clock` says.
    pub fn new(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Memory {
        Memory { clock: Arc::new(clock), shared: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Whoever panicked left the map whole: each write is one insert or remove.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn apply(&mut self, op: Op) -> Result<Version, StoreError> {
        let version = Version { term: 1, seq_no: self.seq_no };
        match op {
            Op::Create { key, body } => {
                if self.documents.contains_key(&key) {
                    return Err(StoreError::Conflict);
                }
                self.made.insert(key.index);
                self.documents.insert(key, (version, parse(&body)?));
            }
            Op::Update { key, at, fields } => {
                let (found, document) = self.documents.get_mut(&key).ok_or(StoreError::Conflict)?;
                if *found != at {
                    return Err(StoreError::Conflict);
                }
                merge(document, parse(&fields)?);
                *found = version;
            }
            Op::Delete { key, at } => {
                if self.documents.get(&key).is_none_or(|(found, _)| *found != at) {
                    return Err(StoreError::Conflict);
                }
                self.documents.remove(&key);
            }
        }
        self.seq_no += 1;
        Ok(version)
    }
}

#[async_trait]
impl Documents for Memory {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        let mut shared = self.lock();
        if create {
            shared.made.insert(index);
        }
        Ok(if shared.made.contains(&index) { Opened::Ours } else { Opened::Missing })
    }

    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        let shared = self.lock();
        let found = keys.iter().map(|key| {
            let (version, source) = shared.documents.get(key)?;
            let source = if sources { source.clone() } else { Value::Null };
            Some(Found { id: key.id.clone(), version: *version, source })
        });
        Ok(found.collect())
    }

    async fn bulk(&self, ops: Vec<Op>, _refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        let mut shared = self.lock();
        Ok(ops.into_iter().map(|op| shared.apply(op)).collect())
    }

    async fn refresh(&self, _index: Index) -> Result<(), StoreError> {
        Ok(())
    }

    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        let shared = self.lock();
        let matches = |source: &Value| has(source, &search.terms) || search.or.iter().any(|or| is_like(source, or));
        let mut hits: Vec<Found> = shared
            .documents
            .iter()
            .filter(|(key, (_, source))| key.index == search.index && matches(source))
            .map(|(key, (version, source))| Found { id: key.id.clone(), version: *version, source: source.clone() })
            .collect();
        let number = |found: &Found, field: Field| found.source[field.name()].as_u64().unwrap_or(0);
        match search.order {
            Order::Oldest(field) => hits.sort_by_key(|hit| (number(hit, field), hit.id.clone())),
            Order::Newest(field) => hits.sort_by_key(|hit| std::cmp::Reverse(number(hit, field))),
            Order::NewestUpTo(field, most) => {
                hits.retain(|hit| number(hit, field) <= most);
                hits.sort_by_key(|hit| std::cmp::Reverse(number(hit, field)));
            }
            Order::OldestOfEachSession(field) => {
                hits.sort_by_key(|hit| (number(hit, field), hit.id.clone()));
                let mut seen = BTreeSet::new();
                hits.retain(|hit| seen.insert(hit.source["sessionId"].to_string()));
            }
        }
        hits.truncate(search.limit);
        Ok(hits)
    }

    async fn measure(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }
}

fn has(source: &Value, terms: &[(Field, Vec<String>)]) -> bool {
    terms
        .iter()
        .all(|(field, values)| source[field.name()].as_str().is_some_and(|v| values.iter().any(|wanted| wanted == v)))
}

fn is_like(source: &Value, or: &Or) -> bool {
    let id = source[Field::Session.name()].as_str().unwrap_or_default();
    has(source, &or.terms) && (or.patterns.is_empty() || or.patterns.iter().any(|pattern| pattern.matches(id)))
}

fn parse(body: &str) -> Result<Value, StoreError> {
    serde_json::from_str(body).map_err(|_| StoreError::Refused("a document is to be a JSON object".to_owned()))
}

/// As a partial update merges: objects field by field, anything else replaces.
fn merge(into: &mut Value, fields: Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (name, value) in fields {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}
