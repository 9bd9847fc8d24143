//! The stores that every story is told with: two handles on the same documents, as two processes would have them.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_session::ports::control::ControlStore as Ports;
use firesteel_store::documents::{Found, Index, Key, Op, Opened, Search};
use firesteel_store::{
    Documents, Memory, OpenSearch, OpenSearchOptions, Scope, Settings, Sqlite, SqliteOptions, Store, Synchronous,
};

use crate::http;

/// What a story is given.
pub struct Stores {
    /// One process's handle.
    pub a: Arc<dyn Ports>,
    /// Another's.
    pub b: Arc<dyn Ports>,
    /// The documents themselves, for what other programs do to them.
    pub raw: Arc<dyn Documents>,
    /// How many requests `a` has made.
    pub requests: Arc<AtomicU64>,
}

/// Counts the requests that go through it.
struct Counted<D>(D, Arc<AtomicU64>);

impl<D> Counted<D> {
    fn count(&self) -> &D {
        self.1.fetch_add(1, Ordering::SeqCst);
        &self.0
    }
}

#[async_trait]
impl<D: Documents> Documents for Counted<D> {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        self.count().open(index, create).await
    }
    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        self.count().get(keys, sources).await
    }
    async fn bulk(&self, ops: Vec<Op>, refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        self.count().bulk(ops, refresh).await
    }
    async fn refresh(&self, index: Index) -> Result<(), StoreError> {
        self.count().refresh(index).await
    }
    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        self.count().search(search).await
    }
    async fn measure(&self) -> Result<(), StoreError> {
        self.0.measure().await
    }
    fn now(&self) -> u64 {
        self.0.now()
    }
}

fn handles<D: Documents>(open: impl Fn() -> D, scope: Scope) -> Stores {
    let requests = Arc::new(AtomicU64::new(0));
    Stores {
        a: Arc::new(Store::new(Counted(open(), Arc::clone(&requests)), scope)),
        b: Arc::new(Store::new(open(), scope)),
        raw: Arc::new(open()),
        requests,
    }
}

/// Stores in memory, at a time that stands still.
pub fn memory(scope: Scope) -> Stores {
    let memory = Memory::new(|| 1_796_032_000_000);
    handles(|| memory.clone(), scope)
}

/// Stores in one file. The folder goes with the second value.
pub fn sqlite(scope: Scope) -> (Stores, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
    let stores = handles(|| Sqlite::open(&folder.path().join("new/store.db"), &options).unwrap(), scope);
    (stores, folder)
}

/// A server for this tier, and index names that nothing else uses. `None`, said loudly: there is none.
pub fn server() -> Option<Indices> {
    static SAID: Once = Once::new();
    match std::env::var("OPENSEARCH_URL") {
        Ok(url) if !url.is_empty() => Some(Indices::new(&url)),
        _ => {
            let required = std::env::var("FIRESTEEL_REQUIRE_OPENSEARCH").is_ok_and(|v| v == "1");
            assert!(!required, "FIRESTEEL_REQUIRE_OPENSEARCH=1, and OPENSEARCH_URL is not set");
            // Written past the test harness, which keeps what a passing test prints to itself.
            SAID.call_once(|| {
                std::io::stderr().write_all(b"SKIPPED: opensearch contract tier (set OPENSEARCH_URL)\n").unwrap();
            });
            None
        }
    }
}

/// Three indices of one test, deleted when it is over.
pub struct Indices {
    pub url: String,
    pub settings: Settings,
}

impl Indices {
    fn new(url: &str) -> Indices {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let own = format!("{nanos}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let settings = Settings {
            request_index: format!("contract-{own}-request"),
            result_index: format!("contract-{own}-result"),
            state_index: format!("contract-{own}-state"),
            scope: Scope::Requests,
        };
        Indices { url: url.to_owned(), settings }
    }

    pub fn open(&self) -> OpenSearch {
        OpenSearch::new(OpenSearchOptions::new(&self.url).unwrap(), self.settings.clone()).unwrap()
    }

    pub fn stores(&self, scope: Scope) -> Stores {
        handles(|| self.open(), scope)
    }

    /// Asks the server past our client, as other programs do.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let path = path
            .replace("REQUEST", &self.settings.request_index)
            .replace("RESULT", &self.settings.result_index)
            .replace("STATE", &self.settings.state_index);
        http::ask(&self.url, method, &path, body)
    }
}

impl Drop for Indices {
    fn drop(&mut self) {
        for index in ["REQUEST", "RESULT", "STATE"] {
            self.ask("DELETE", &format!("/{index}"), "");
        }
    }
}

/// Each story, told with each store.
#[macro_export]
macro_rules! stories {
    ($scope:ident; $($(#[$doc:meta])* $name:ident)*) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(&$crate::stores::memory(firesteel_store::Scope::$scope)).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let (stores, _folder) = $crate::stores::sqlite(firesteel_store::Scope::$scope);
                super::$name(&stores).await;
            })*
        }
        mod opensearch {
            $(#[tokio::test] async fn $name() {
                if let Some(indices) = $crate::stores::server() {
                    super::$name(&indices.stores(firesteel_store::Scope::$scope)).await;
                }
            })*
        }
    };
}
