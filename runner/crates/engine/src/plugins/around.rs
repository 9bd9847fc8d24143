//! What surrounds the calls of one statement.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arrow_schema::SchemaRef;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::session_state::SessionState;
use firesteel_session::ports::plugins::{About, Decision, KeepError, Late, Level, Surroundings};
use tokio::runtime::Handle;

use crate::catalog::SCHEMA;
use crate::knobs;
use crate::plugins::Log;
use crate::tables::Tables;

/// What all keys and values of a plugin in a session may have together, in bytes.
const MOST: usize = 1 << 20;
/// A policy that asks the catalog which asks policies ends here.
const DEEPEST: u32 = 3;

/// What plugins keep in a session, by plugin and key.
pub type Kept = BTreeMap<(String, String), Vec<u8>>;

/// What a statement changes of it; None: it is forgotten.
type Changed = BTreeMap<(String, String), Option<Vec<u8>>>;

/// What is the same for all statements of a session.
pub struct Of {
    /// The data source.
    pub source: String,
    /// The session's tables.
    pub tables: Weak<Tables>,
    /// The session's state, as long as there is one.
    pub asks: OnceLock<Box<dyn Fn() -> Option<SessionState> + Send + Sync>>,
    /// What plugins keep.
    pub kept: Mutex<Kept>,
    /// Where their log goes.
    pub log: Log,
}

/// One statement.
pub struct Around {
    of: Arc<Of>,
    session: String,
    now: i64,
    seed: u64,
    stop: Arc<AtomicBool>,
    handle: Option<Handle>,
    memory: Mutex<Option<MemoryReservation>>,
    /// What was kept and forgotten since it began.
    changed: Mutex<Changed>,
    decided: Mutex<HashMap<(String, String), Arc<Decision>>>,
    depth: AtomicU32,
    touched: Mutex<Vec<String>>,
    writes: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Around {
    /// A statement of this session. `now`: microseconds since 1970. It is stopped when `stop` is set.
    pub fn new(of: &Arc<Of>, session: &str, statement: &str, now: i64, stop: Arc<AtomicBool>) -> Arc<Around> {
        // FNV-1a: the same for the same statement, wherever it runs.
        let seed = statement
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Arc::new(Around {
            of: Arc::clone(of),
            session: session.to_owned(),
            now,
            seed,
            stop,
            handle: Handle::try_current().ok(),
            memory: Mutex::default(),
            changed: Mutex::default(),
            decided: Mutex::default(),
            depth: AtomicU32::new(0),
            touched: Mutex::default(),
            writes: AtomicBool::new(false),
        })
    }

    /// A plugin did something to the statement.
    pub fn touched(&self, plugin: &About, what: &str) {
        if plugin.writes {
            self.writes.store(true, Ordering::Relaxed);
        }
        let line = format!("{}: {what}", plugin.label());
        let mut touched = lock(&self.touched);
        if !touched.contains(&line) {
            touched.push(line);
        }
    }

    /// The plugins that touched it, and how.
    pub fn touches(&self) -> Vec<String> {
        lock(&self.touched).clone()
    }

    /// A plugin that touched it has effects outside.
    pub fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    /// Guest memory counts there from now on.
    pub fn remember(&self, memory: MemoryReservation) {
        *lock(&self.memory) = Some(memory);
    }

    /// What plugins keep after it, all of it. None: nothing has changed.
    pub fn kept_after(&self) -> Option<Kept> {
        let changed = lock(&self.changed);
        if changed.is_empty() {
            return None;
        }
        let mut kept = lock(&self.of.kept).clone();
        for (key, value) in &*changed {
            match value {
                Some(value) => kept.insert(key.clone(), value.clone()),
                None => kept.remove(key),
            };
        }
        Some(kept)
    }

    fn state(&self) -> Option<SessionState> {
        self.of.asks.get()?()
    }

    /// The settings and their values, those that have one.
    pub fn set_values(&self) -> Vec<(String, String)> {
        let Some(state) = self.state() else { return Vec::new() };
        let values = state.config().options().entries();
        knobs::keys()
            .filter_map(|key| {
                let value = values.iter().find(|e| e.key == key)?.value.clone()?;
                Some((key.to_owned(), value))
            })
            .collect()
    }

    /// A plugin's decision about a table, if it was asked before.
    pub fn decision(&self, plugin: &str, table: &str) -> Option<Arc<Decision>> {
        lock(&self.decided).get(&(plugin.to_owned(), table.to_owned())).cloned()
    }

    /// A plugin's decision about a table.
    pub fn decide(&self, plugin: &str, table: &str, decision: &Arc<Decision>) {
        lock(&self.decided).insert((plugin.to_owned(), table.to_owned()), Arc::clone(decision));
    }
}

impl Surroundings for Around {
    fn now(&self) -> i64 {
        self.now
    }

    fn time_zone(&self) -> String {
        self.setting("datafusion.execution.time_zone").filter(|zone| !zone.is_empty()).unwrap_or("UTC".into())
    }

    fn session_id(&self) -> String {
        self.session.clone()
    }

    fn data_source(&self) -> String {
        self.of.source.clone()
    }

    fn setting(&self, key: &str) -> Option<String> {
        let key = knobs::key(key).ok()?;
        self.state()?.config().options().entries().into_iter().find(|e| e.key == key)?.value
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn columns(&self, name: &[String], within: Duration) -> Result<Option<SchemaRef>, Late> {
        let (Some(tables), Some(handle), [.., table]) = (self.of.tables.upgrade(), &self.handle, name) else {
            return Ok(None);
        };
        let place = &name[..name.len() - 1];
        let here = match place {
            [] => true,
            [schema] => schema.eq_ignore_ascii_case(SCHEMA),
            [source, schema] => source.eq_ignore_ascii_case(&self.of.source) && schema.eq_ignore_ascii_case(SCHEMA),
            _ => false,
        };
        if !here || self.depth.fetch_add(1, Ordering::SeqCst) >= DEEPEST {
            return Ok(None);
        }
        let found = tokio::task::block_in_place(|| {
            handle.block_on(async { tokio::time::timeout(within, tables.needed(table)).await })
        });
        self.depth.fetch_sub(1, Ordering::SeqCst);
        // Why a table cannot be read is told to whoever reads it.
        found.map(|table| table.ok().flatten().map(|table| table.schema())).map_err(|_| Late)
    }

    fn tables(&self) -> Vec<Vec<String>> {
        use datafusion::catalog::SchemaProvider;
        let names = self.of.tables.upgrade().map(|tables| tables.table_names()).unwrap_or_default();
        names.into_iter().map(|name| vec![self.of.source.clone(), SCHEMA.to_owned(), name]).collect()
    }

    fn functions(&self) -> Vec<String> {
        let Some(state) = self.state() else { return Vec::new() };
        let mut names: Vec<String> = state
            .scalar_functions()
            .keys()
            .chain(state.aggregate_functions().keys())
            .chain(state.window_functions().keys())
            .chain(state.table_functions().keys())
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn kept(&self, plugin: &str, key: &str) -> Option<Vec<u8>> {
        let key = (plugin.to_owned(), key.to_owned());
        match lock(&self.changed).get(&key) {
            Some(value) => value.clone(),
            None => lock(&self.of.kept).get(&key).cloned(),
        }
    }

    fn keep(&self, plugin: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KeepError> {
        let others: usize = self
            .keys(plugin, "")
            .iter()
            .filter(|k| *k != key)
            .map(|k| k.len() + self.kept(plugin, k).map_or(0, |v| v.len()))
            .sum();
        if let Some(value) = &value
            && others + key.len() + value.len() > MOST
        {
            return Err(KeepError::Full);
        }
        lock(&self.changed).insert((plugin.to_owned(), key.to_owned()), value);
        Ok(())
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Vec<String> {
        let fits = |(of, key): &(String, String)| of == plugin && key.starts_with(prefix);
        let mut keys: Vec<String> =
            lock(&self.of.kept).keys().filter(|k| fits(k)).map(|(_, key)| key.clone()).collect();
        for (key, value) in &*lock(&self.changed) {
            if !fits(key) {
                continue;
            }
            keys.retain(|k| *k != key.1);
            if value.is_some() {
                keys.push(key.1.clone());
            }
        }
        keys.sort();
        keys
    }

    fn log(&self, plugin: &str, level: Level, line: &str) {
        (self.of.log)(plugin, level, line);
    }

    fn take(&self, bytes: usize) -> bool {
        match &*lock(&self.memory) {
            Some(memory) => memory.try_grow(bytes).is_ok(),
            None => true,
        }
    }

    fn give(&self, bytes: usize) {
        if let Some(memory) = &*lock(&self.memory) {
            // What was taken before there was a pool was not counted.
            memory.shrink(bytes.min(memory.size()));
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
