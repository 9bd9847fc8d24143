//! The stores: OpenSearch, SQLite and memory behind the ports [`SessionStore`](firesteel_session::ports::SessionStore)
//! and [`ResultStore`](firesteel_session::ports::ResultStore).
//!
//! ```no_run
//! # async fn example() -> Result<(), firesteel_session::ports::StoreError> {
//! use std::sync::Arc;
//! use firesteel_session::ports::{SessionStore, Store};
//! use firesteel_store::{Settings, SqliteOptions, open_sqlite};
//!
//! let store: Arc<dyn Store> = Arc::new(open_sqlite("firesteel.db", &SqliteOptions::default(), Settings::default())?);
//! store.prepare(true).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`open_opensearch`] takes an [`OpenSearchOptions`] (`OpenSearchOptions::new("https://host:9200")?`, then its fields);
//! it connects at the first request, so a store that is down at start is an `Unavailable`, not a failure to open.
//!
//! [`Store`] is written once, over [`Documents`]: read `store.rs`, `many.rs` and `results.rs` for the protocol, `wire` for the
//! documents, then one of `memory.rs`, `sqlite.rs`, `opensearch.rs`. A heart on another runtime needs a store of its own:
//! an HTTP connection lives on the runtime that opened it. A test makes faults by wrapping a [`Memory`] in its own [`Documents`]:
//! `Store::new(Faulty(Memory::new(clock)), Scope::Requests)`; clones of a [`Memory`] share their documents.

mod ambient;
mod control;
pub mod documents;
mod journal;
mod many;
mod memory;
mod opensearch;
mod prepare;
mod results;
mod sqlite;
mod staged;
mod store;
mod sweeps;
pub mod wire;

use std::path::Path;

use firesteel_session::ports::StoreError;

pub use documents::Documents;
pub use memory::Memory;
pub use opensearch::{Auth, OpenSearch, OpenSearchOptions};
pub use sqlite::{Sqlite, SqliteOptions, Synchronous};
pub use store::{Scope, Settings, Store};

/// A store in a SQLite file, which is made if it is missing.
///
/// # Errors
/// `Refused`: it can't be opened, is no SQLite file, or a newer version made it; `Unavailable`: others
/// hold it.
pub fn open_sqlite(
    path: impl AsRef<Path>,
    options: &SqliteOptions,
    settings: Settings,
) -> Result<Store<Sqlite>, StoreError> {
    Ok(Store::new(Sqlite::open(path.as_ref(), options)?, settings.scope))
}

/// A store in OpenSearch, which is reached at the first request.
///
/// # Errors
/// `Refused`: a name can't be that of an index.
pub fn open_opensearch(options: OpenSearchOptions, settings: Settings) -> Result<Store<OpenSearch>, StoreError> {
    let scope = settings.scope;
    Ok(Store::new(OpenSearch::new(options, settings)?, scope))
}

/// An empty store in memory, whose time in epoch milliseconds is what `clock` says.
pub fn memory(clock: impl Fn() -> u64 + Send + Sync + 'static, settings: Settings) -> Store<Memory> {
    Store::new(Memory::new(clock), settings.scope)
}
