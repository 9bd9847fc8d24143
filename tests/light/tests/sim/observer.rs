//! The store itself: a memory that tells the ledger of every write, with what was there before and what is there after.

use std::fmt;

use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_store::Memory;
use firesteel_store::documents::{Documents, Field, Found, Index, Key, Op, Opened, Search};
use futures::FutureExt;

use crate::ledger::Ledger;

/// The store as one process reaches it.
#[derive(Clone)]
pub struct Observed {
    memory: Memory,
    ledger: Ledger,
    by: String,
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("by", &self.by).finish_non_exhaustive()
    }
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("memory answers at once")
}

impl Observed {
    pub fn new(memory: Memory, ledger: Ledger, by: &str) -> Observed {
        Observed { memory, ledger, by: by.to_owned() }
    }

    pub fn by(&self) -> &str {
        &self.by
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Milliseconds since the world began.
    pub fn now_true(&self) -> u64 {
        self.ledger.now()
    }

    pub fn now(&self) -> u64 {
        self.memory.now()
    }

    pub fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        at_once(self.memory.open(index, create))
    }

    pub fn refresh(&self, index: Index) -> Result<(), StoreError> {
        at_once(self.memory.refresh(index))
    }

    pub fn search(&self, search: &Search) -> Vec<Found> {
        if search.limit == usize::MAX
            && let Some((_, sessions)) = search.terms.iter().find(|(field, _)| *field == Field::Session)
        {
            sessions.iter().for_each(|session| self.ledger.searched(&self.by, session));
        }
        at_once(self.memory.search(search)).expect("memory fails never")
    }

    pub fn get(&self, keys: &[Key], sources: bool) -> Vec<Option<Found>> {
        at_once(self.memory.get(keys, sources)).expect("memory fails never")
    }

    pub fn find(&self, key: &Key) -> Option<Found> {
        self.get(std::slice::from_ref(key), true).pop().flatten()
    }

    pub fn write(&self, op: Op) -> Result<Version, StoreError> {
        let key = op.key().clone();
        let before = self.find(&key);
        let done = at_once(self.memory.bulk(vec![op], false)).expect("memory fails never").remove(0);
        match &done {
            Ok(_) => self.ledger.wrote(self, &key, before.as_ref(), self.find(&key).as_ref()),
            Err(StoreError::Conflict) => self.ledger.fenced(&self.by),
            Err(other) => self.ledger.wrong(format!("{} wrote what no store takes: {other}", self.by)),
        }
        done
    }
}
