//! A machine, a statement around it, and plugins on it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use firesteel_model::QueryText;
use firesteel_plugin_host::limits::Limits;
use firesteel_plugin_host::load::{Given, LoadError};
use firesteel_plugin_host::machine::Machine;
use firesteel_plugin_host::plugin::Loaded;
use firesteel_session::ports::plugins::{Asked, Fault, KeepError, Late, Level, Plugin, Surroundings, Verdict};

/// One for all tests, as one is for all plugins of a worker.
pub static MACHINE: LazyLock<Arc<Machine>> = LazyLock::new(|| Machine::new().unwrap());

/// A statement of which everything is written down.
#[derive(Default)]
pub struct Desk {
    pub lines: Mutex<Vec<(Level, String)>>,
    pub kept: Mutex<BTreeMap<String, Vec<u8>>>,
    pub taken: AtomicUsize,
    /// What the statement's memory has, if there is a limit.
    pub memory: Option<usize>,
    pub stopped: AtomicBool,
    /// How long the catalog takes.
    pub slow: Duration,
}

impl Desk {
    pub fn new() -> Arc<Desk> {
        Arc::default()
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().map(|(level, line)| format!("{level:?}: {line}")).collect()
    }
}

impl Surroundings for Desk {
    fn now(&self) -> i64 {
        1_700_000_000_000_000
    }
    fn time_zone(&self) -> String {
        "UTC".into()
    }
    fn session_id(&self) -> String {
        "s1".into()
    }
    fn data_source(&self) -> String {
        "mys3".into()
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn seed(&self) -> u64 {
        7
    }
    fn columns(&self, _: &[String], within: Duration) -> Result<Option<SchemaRef>, Late> {
        std::thread::sleep(self.slow.min(within));
        if self.slow > within { Err(Late) } else { Ok(None) }
    }
    fn tables(&self) -> Vec<Vec<String>> {
        Vec::new()
    }
    fn functions(&self) -> Vec<String> {
        Vec::new()
    }
    fn kept(&self, _: &str, key: &str) -> Option<Vec<u8>> {
        self.kept.lock().unwrap().get(key).cloned()
    }
    fn keep(&self, _: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KeepError> {
        self.kept.lock().unwrap().insert(key.to_owned(), value.unwrap_or_default());
        Ok(())
    }
    fn keys(&self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn log(&self, _: &str, level: Level, line: &str) {
        self.lines.lock().unwrap().push((level, line.to_owned()));
    }
    fn take(&self, bytes: usize) -> bool {
        let fits = self.memory.is_none_or(|memory| self.taken.load(Ordering::SeqCst) + bytes <= memory);
        if fits {
            self.taken.fetch_add(bytes, Ordering::SeqCst);
        }
        fits
    }
    fn give(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::SeqCst);
    }
    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

/// Short times, so that tests are.
pub fn given() -> Given {
    Given { limits: Limits { time: 200, ..Limits::default() }, ..Given::default() }
}

pub fn load_with(component: &[u8], given: Given) -> Result<Loaded, LoadError> {
    let component = MACHINE.compile(component).map_err(LoadError::Unfit)?;
    let around: Arc<dyn Surroundings> = Desk::new();
    Loaded::load(&MACHINE, &component, "guest.wasm", given, &around)
}

pub fn load(component: &[u8]) -> Loaded {
    load_with(component, given()).unwrap()
}

pub fn asked(text: &str) -> Asked {
    Asked { text: QueryText(text.into()), language: "sql".into(), settings: Vec::new() }
}

/// A call's fault in words, and that it came in time: not long after the limit.
pub fn fault<R>(call: impl FnOnce() -> Result<R, Fault>) -> String {
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    let began = Instant::now();
    let fault = call().err().expect("it must fail").to_string();
    assert!(began.elapsed() < Duration::from_secs(5), "{fault}: took {:?}", began.elapsed());
    fault
}

/// The plugin answers as if nothing had been.
pub fn still_answers(plugin: &Loaded, desk: &Arc<Desk>) {
    let around: Arc<dyn Surroundings> = Arc::<Desk>::clone(desk);
    assert!(matches!(plugin.handle(&around, &asked("SELECT 1")), Ok(Verdict::Pass)));
}
