//! Guests as they are checked in, and a session around them that has one table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use firesteel_model::QueryText;
use firesteel_plugin_host::load::Given;
use firesteel_plugin_host::machine::Machine;
use firesteel_plugin_host::plugin::Loaded;
use firesteel_session::ports::plugins::{Asked, KeepError, Late, Level, Surroundings};

static MACHINE: LazyLock<Arc<Machine>> = LazyLock::new(|| Machine::new().unwrap());

pub struct Desk {
    zone: String,
    lines: Mutex<Vec<String>>,
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// The one table.
pub fn calls() -> SchemaRef {
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("phone", DataType::Utf8, true),
        Field::new("seconds", DataType::Int64, true),
        Field::new("at", zoned, true),
    ]))
}

impl Desk {
    pub fn new(zone: &str) -> Arc<Desk> {
        Arc::new(Desk { zone: zone.into(), lines: Mutex::default(), kept: Mutex::default() })
    }

    pub fn around(zone: &str) -> Arc<dyn Surroundings> {
        Desk::new(zone)
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Surroundings for Desk {
    fn now(&self) -> i64 {
        1_700_000_000_000_000
    }
    fn time_zone(&self) -> String {
        self.zone.clone()
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
    fn columns(&self, name: &[String], _: Duration) -> Result<Option<SchemaRef>, Late> {
        Ok(name.last().is_some_and(|last| last == "calls").then(calls))
    }
    fn tables(&self) -> Vec<Vec<String>> {
        vec![vec!["mys3".into(), "default".into(), "calls".into()]]
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
    fn keys(&self, _: &str, prefix: &str) -> Vec<String> {
        self.kept.lock().unwrap().keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }
    fn log(&self, _: &str, level: Level, line: &str) {
        self.lines.lock().unwrap().push(format!("{level:?}: {line}"));
    }
    fn take(&self, _: usize) -> bool {
        true
    }
    fn give(&self, _: usize) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// A guest with this configuration, and its size.
pub fn load(name: &str, config: &str) -> (Loaded, usize) {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plugins");
    let file = format!("{name}.wasm");
    let bytes = std::fs::read(plugins.join("bundled").join(&file))
        .or_else(|_| std::fs::read(plugins.join("examples/built").join(&file)))
        .unwrap();
    let component = MACHINE.compile(&bytes).unwrap();
    let given = Given { config: serde_json::from_str(config).unwrap(), ..Given::default() };
    (Loaded::load(&MACHINE, &component, &file, given, &Desk::around("UTC")).unwrap(), bytes.len())
}

pub fn asked(language: &str, text: &str) -> Asked {
    Asked { text: QueryText(text.into()), language: language.into(), settings: Vec::new() }
}
