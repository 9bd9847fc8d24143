//! A store in one SQLite file, for several processes at once.
//!
//! One thread owns the connection, so no async thread ever waits for a disk, and its prepared statements live as
//! long as it does. What is searched are columns that SQLite itself computes from the JSON text. One sequence number
//! rises over all documents and is never used twice.

mod connection;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use tokio::sync::oneshot;

use crate::ambient;
use crate::documents::{Documents, Found, Index, Key, Op, Opened, Search};
use connection::{Connection, Failed};

/// When a write is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is acknowledged: nothing is lost to a power cut.
    #[default]
    Full,
    /// Soon after: a power cut may lose the last writes, never the file. A process that dies loses nothing.
    Normal,
}

/// How a file is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// When a write is on the disk.
    pub synchronous: Synchronous,
    /// How long to wait for other processes' writes.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions { synchronous: Synchronous::Full, busy_timeout: Duration::from_secs(10) }
    }
}

type Job = Box<dyn FnOnce(&mut Connection<'_>) + Send>;

/// Documents in a file. Dropping it closes the file.
pub struct Sqlite {
    path: PathBuf,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.path).finish()
    }
}

impl Sqlite {
    /// Opens a file, made with its folder if it is missing, readable by its owner only.
    ///
    /// # Errors
    /// `Refused`: it can't be opened, is no SQLite file, or a newer version made it; `Unavailable`: others
    /// hold it.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Sqlite, StoreError> {
        let (opened, wait) = mpsc::channel();
        let (jobs, queue) = mpsc::channel::<Job>();
        let (file, options) = (path.to_owned(), options.clone());
        let run = move || match connection::open(&file, &options) {
            Err(error) => {
                let _ = opened.send(Err(error));
            }
            Ok(sqlite) => {
                let mut connection = Connection::over(&sqlite);
                let _ = opened.send(Ok(()));
                // Ends when the last sender is dropped.
                for job in queue {
                    job(&mut connection);
                }
            }
        };
        let refused = |e: std::io::Error| StoreError::Refused(format!("no thread for `{}`: {e}", path.display()));
        let thread = std::thread::Builder::new().name("sqlite".to_owned()).spawn(run).map_err(refused)?;
        let gone = || StoreError::Unavailable("the thread of the SQLite file ended".to_owned());
        wait.recv().map_err(|_| gone())??;
        Ok(Sqlite { path: path.to_owned(), jobs: Some(jobs), thread: Some(thread) })
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, wait) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let _ = done.send(job(connection));
        });
        let gone = || StoreError::Unknown("the thread of the SQLite file ended".to_owned());
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?.map_err(|failed| failed.at(&self.path))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Until the file is closed: whoever opens it next finds no log to recover.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Documents for Sqlite {
    async fn open(&self, _index: Index, _create: bool) -> Result<Opened, StoreError> {
        Ok(Opened::Ours)
    }

    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        let keys = keys.to_vec();
        self.run(move |c| c.get(&keys, sources)).await
    }

    async fn bulk(&self, ops: Vec<Op>, _refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        self.run(move |c| c.bulk(&ops)).await
    }

    async fn refresh(&self, _index: Index) -> Result<(), StoreError> {
        Ok(())
    }

    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        let search = search.clone();
        self.run(move |c| c.search(&search)).await
    }

    async fn measure(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn now(&self) -> u64 {
        ambient::wall_clock()
    }
}
