//! The other replicas: each says in a book of its own that it lives, and the batches of one that has not said so for a lease are adopted.
//!
//! No clock is compared with another machine's: silence is what this replica has itself watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use firesteel_model::{Expect, Millis};
use firesteel_session::ports::StoreError;

use crate::plane::Plane;
use crate::refusal::Refusal;

/// What a replica knows of the others.
pub struct Peers {
    plane: Arc<Plane>,
    /// When each was last heard to say something new, and what that was.
    heard: BTreeMap<String, (u64, Millis)>,
}

fn book_of(instance: &str) -> String {
    format!("instance/{instance}")
}

impl Peers {
    /// Nobody was heard yet.
    #[must_use]
    pub fn new(plane: Arc<Plane>) -> Peers {
        Peers { plane, heard: BTreeMap::new() }
    }

    /// Says that this replica lives, and adopts the batches of those that have said nothing for `lease` milliseconds.
    ///
    /// # Errors
    /// The store's.
    pub async fn round(&mut self, lease: u64) -> Result<(), Refusal> {
        self.say().await?;
        let plane = Arc::clone(&self.plane);
        let open = plane.store.batches(None, true, 10_000).await?;
        let others: BTreeSet<&String> =
            open.iter().map(|(_, batch)| &batch.instance).filter(|name| **name != plane.settings.instance).collect();
        self.heard.retain(|name, _| others.contains(name));
        let names: Vec<String> = others.iter().map(|name| book_of(name)).collect();
        let (books, now) = (plane.store.books(&names).await?, plane.clock.now());
        for (name, book) in others.into_iter().zip(books) {
            let said = book.map_or(0, |book| book.value.last);
            let heard = self.heard.entry(name.clone()).or_insert((said, now));
            if heard.0 != said {
                *heard = (said, now);
            }
            if now.since(heard.1) < lease {
                continue;
            }
            for (id, _) in open.iter().filter(|(_, batch)| batch.instance == *name) {
                tracing::info!(batch = %id.escape_debug(), from = %name.escape_debug(), "adopted: its replica is silent");
                if let Err(error) = plane.adopt_batch(id, name).await {
                    tracing::warn!(batch = %id.escape_debug(), %error, "the batch was not adopted; the next look tries again");
                }
            }
        }
        Ok(())
    }

    async fn say(&self) -> Result<(), Refusal> {
        let (store, name) = (&self.plane.store, book_of(&self.plane.settings.instance));
        let stored = store.book(&name).await?;
        let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
        book.last = store.time().await?.max(book.last + 1);
        match store
            .write_book(&name, stored.map_or(Expect::Absent, |stored| Expect::Version(stored.version)), &book)
            .await
        {
            Ok(_) | Err(StoreError::Unknown(_)) => Ok(()),
            Err(StoreError::Conflict) => {
                tracing::warn!(instance = name, "another replica has this name: give each its own --instance");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
