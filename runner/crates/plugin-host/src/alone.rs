//! A call outside of any statement: when a plugin is added, checked or loaded.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::SchemaRef;
use firesteel_session::ports::plugins::{KeepError, Late, Level, Surroundings};

/// Where log lines go: the plugin's name, the level, the line.
pub type Log = Arc<dyn Fn(&str, Level, &str) + Send + Sync>;

/// No statement, no session, no tables: only a log.
pub struct Alone(pub Log);

impl Surroundings for Alone {
    fn now(&self) -> i64 {
        0
    }

    fn time_zone(&self) -> String {
        "UTC".into()
    }

    fn session_id(&self) -> String {
        String::new()
    }

    fn data_source(&self) -> String {
        String::new()
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn seed(&self) -> u64 {
        0
    }

    fn columns(&self, _: &[String], _: Duration) -> Result<Option<SchemaRef>, Late> {
        Ok(None)
    }

    fn tables(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    fn functions(&self) -> Vec<String> {
        Vec::new()
    }

    fn kept(&self, _: &str, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _: &str, _: &str, _: Option<Vec<u8>>) -> Result<(), KeepError> {
        Err(KeepError::ReadOnly)
    }

    fn keys(&self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn log(&self, plugin: &str, level: Level, line: &str) {
        (self.0)(plugin, level, line);
    }

    fn take(&self, _: usize) -> bool {
        true
    }

    fn give(&self, _: usize) {}

    fn stopped(&self) -> bool {
        false
    }
}
