//! The indices: made if they are missing, and with mappings by which searches find what is in them.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use firesteel_model::Version;
use firesteel_session::ports::{Prepared, StoreError};
use serde_json::Value;

use crate::documents::{Documents, Index, Opened};
use crate::store::{Scope, Store};
use crate::wire;

/// What is known of the indices' mappings.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// We made these, and no document is in them yet.
    empty: BTreeSet<Index>,
    /// A document was the first in these, and we did not make them: somebody deleted them, and the store made them again and guessed.
    doubtful: BTreeSet<Index>,
    /// Gaps that were logged.
    told: BTreeSet<String>,
}

impl<D: Documents> Store<D> {
    pub(crate) async fn prepare_indices(&self, create: bool) -> Result<Prepared, StoreError> {
        let mut prepared = Prepared::Ready;
        for index in [Index::Requests, Index::Results, Index::State] {
            let contract = index == Index::Requests;
            if contract && self.scope == Scope::Batch {
                continue;
            }
            match self.documents.open(index, create || !contract).await? {
                Opened::Missing => prepared = Prepared::NotYet,
                Opened::Ours => {
                    self.mappings().empty.insert(index);
                }
                Opened::Theirs(mappings) => self.fitting(index, mappings)?,
            }
        }
        self.documents.measure().await?;
        Ok(prepared)
    }

    fn mappings(&self) -> MutexGuard<'_, Mappings> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an index has the mappings that searches need.
    fn fitting(&self, index: Index, mappings: Vec<(String, Value)>) -> Result<(), StoreError> {
        for (name, mapping) in mappings {
            for gap in wire::mapping::check(index, &name, &mapping)? {
                if self.mappings().told.insert(gap.clone()) {
                    tracing::warn!(gap, "an existing mapping differs where nothing is searched");
                }
            }
        }
        Ok(())
    }

    /// Notes whether a document was the first in its index.
    pub(crate) fn look_at(&self, index: Index, written: &Result<Version, StoreError>) {
        let mut mappings = self.mappings();
        if written.as_ref().is_ok_and(|version| version.seq_no == 0) && !mappings.empty.remove(&index) {
            mappings.doubtful.insert(index);
        }
    }

    /// That what is staged will be found: no index was made by a guess.
    ///
    /// # Errors
    /// `Refused`: one was; says which, and what to do.
    pub(crate) async fn findable(&self) -> Result<(), StoreError> {
        let doubtful = self.mappings().doubtful.clone();
        for index in doubtful {
            if let Opened::Theirs(mappings) = self.documents.open(index, false).await? {
                self.fitting(index, mappings)?;
            }
            self.mappings().doubtful.remove(&index);
        }
        Ok(())
    }
}
