//! What belongs to one instance of a plugin while it lives, and what the plugin may ask for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use firesteel_session::ports::plugins::{KeepError, Level, Surroundings, Wrong};

use crate::bindings::firesteel::plugin as wit;
use crate::clock;
use crate::limits::{Limits, Meter};
use crate::wasi::Wasi;

/// A log line is cut here, in bytes.
const LINE: usize = 4096;
/// The longest key and value that a plugin may keep, in bytes.
const KEY: usize = 255;
const VALUE: usize = 65_536;
/// How many table names a plugin is told.
const TABLES: usize = 10_000;

/// What is the same for all instances of a plugin.
#[derive(Debug)]
pub struct Facts {
    /// Its name: under it, it keeps what it keeps and writes its log.
    pub name: String,
    /// Its name and version.
    pub label: String,
    /// What the operator configured, an object.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Its limits.
    pub limits: Limits,
}

/// The host's side of an instance.
pub struct Guest {
    pub facts: Arc<Facts>,
    pub meter: Meter,
    pub wasi: Option<Box<Wasi>>,
    call: Call,
}

/// The call that is under way.
#[derive(Default)]
struct Call {
    around: Option<Arc<dyn Surroundings>>,
    until: Option<Instant>,
    limit: Duration,
    may_keep: bool,
    lines: u32,
    /// The last line of level `error`: what a plugin says before it traps.
    last_words: Option<String>,
    random: u64,
}

/// How long a call may take, and what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// The plugin's time; in a handler's call it may change what it keeps.
    Handler,
    /// The plugin's time.
    Short,
    /// As long as the statement.
    Statement,
}

/// Ends a call from inside.
#[derive(Debug)]
pub struct Stop(pub Wrong);

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Wrong::Limit(name, _) => name,
            _ => "stopped",
        })
    }
}

impl std::error::Error for Stop {}

impl Guest {
    pub fn new(facts: Arc<Facts>, wasi: Option<Box<Wasi>>) -> Guest {
        Guest { meter: Meter::new(facts.limits.memory), facts, wasi, call: Call::default() }
    }

    /// A call begins. `Err`: the statement has no memory left for what the instance holds.
    pub fn begin(&mut self, around: &Arc<dyn Surroundings>, budget: Budget) -> Result<(), Wrong> {
        if !self.meter.charge(around) {
            return Err(Wrong::Memory("the statement's memory is used up (setting `memory`)".into()));
        }
        let limit = Duration::from_millis(self.facts.limits.time);
        self.call = Call {
            until: (budget != Budget::Statement).then(|| clock::now() + limit),
            limit,
            may_keep: budget == Budget::Handler,
            random: around.seed(),
            around: Some(Arc::clone(around)),
            ..Call::default()
        };
        if let Some(wasi) = &mut self.wasi {
            wasi.begin(around);
        }
        Ok(())
    }

    /// A call is over. What it said last, if it was an error.
    pub fn end(&mut self) -> Option<String> {
        if let Some(wasi) = &mut self.wasi {
            for line in wasi.lines() {
                self.log(Level::Error, &line);
            }
        }
        let call = std::mem::take(&mut self.call);
        if let Some(around) = &call.around
            && call.lines > self.facts.limits.log
        {
            let more = call.lines - self.facts.limits.log;
            let line = format!("limit `log`: {more} more lines of this call are not written");
            around.log(&self.facts.name, Level::Warn, &line);
        }
        self.meter.release();
        call.last_words
    }

    /// Why the call may not go on, if it may not.
    pub fn due(&self) -> Option<Wrong> {
        let around = self.call.around.as_ref()?;
        if around.stopped() {
            return Some(Wrong::Stopped);
        }
        self.call.until.filter(|until| clock::now() >= *until).map(|_| self.late())
    }

    /// What it is to be late.
    pub fn late(&self) -> Wrong {
        let limit = self.call.limit.as_millis();
        Wrong::Limit("time", format!("a call took longer than {limit} ms; the operator may raise `limits.time`"))
    }

    /// When the call must be over, if it must.
    pub fn until(&self) -> Option<Instant> {
        self.call.until
    }

    fn log(&mut self, level: Level, message: &str) {
        let mut end = message.len().min(LINE);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        let line: String = message[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.call.lines += 1;
        if let Some(around) = &self.call.around
            && self.call.lines <= self.facts.limits.log
        {
            around.log(&self.facts.name, level, &line);
        }
        if level == Level::Error {
            self.call.last_words = Some(line);
        }
    }

    fn around(&self) -> wasmtime::Result<&Arc<dyn Surroundings>> {
        self.call.around.as_ref().ok_or_else(|| wasmtime::Error::msg("the host was asked outside of a call"))
    }
}

/// The next number of a sequence that a seed begins (SplitMix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl wit::log::Host for Guest {
    fn write(&mut self, level: wit::log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            wit::log::Level::Error => Level::Error,
            wit::log::Level::Warn => Level::Warn,
            wit::log::Level::Info => Level::Info,
            wit::log::Level::Debug => Level::Debug,
            wit::log::Level::Trace => Level::Trace,
        };
        self.log(level, &message);
        Ok(())
    }
}

impl wit::types::Host for Guest {}

impl wit::catalog::Host for Guest {
    fn columns(&mut self, name: Vec<String>) -> wasmtime::Result<Option<Vec<wit::catalog::Field>>> {
        let left = self.call.until.map_or(Duration::MAX, |until| until.saturating_duration_since(clock::now()));
        let schema =
            self.around()?.columns(&name, left).map_err(|_| Stop(self.due().unwrap_or_else(|| self.late())))?;
        Ok(schema.map(|schema| crate::tables::fields_to_guest(&schema)))
    }

    fn tables(&mut self) -> wasmtime::Result<Vec<Vec<String>>> {
        let mut names = self.around()?.tables();
        names.sort();
        names.truncate(TABLES);
        Ok(names)
    }

    fn functions(&mut self) -> wasmtime::Result<Vec<String>> {
        let mut names = self.around()?.functions();
        names.sort();
        Ok(names)
    }
}

impl wit::session::Host for Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.around()?.kept(&self.facts.name, &key))
    }

    fn set(&mut self, key: String, value: Option<Vec<u8>>) -> wasmtime::Result<Result<(), wit::session::Refusal>> {
        use wit::session::Refusal;
        if !self.call.may_keep {
            return Ok(Err(Refusal::ReadOnly));
        }
        if key.len() > KEY || value.as_ref().is_some_and(|v| v.len() > VALUE) {
            return Ok(Err(Refusal::TooLarge));
        }
        Ok(self.around()?.keep(&self.facts.name, &key, value).map_err(|e| match e {
            KeepError::ReadOnly => Refusal::ReadOnly,
            KeepError::TooLarge => Refusal::TooLarge,
            KeepError::Full => Refusal::Full,
        }))
    }

    fn keys(&mut self, prefix: String) -> wasmtime::Result<Vec<String>> {
        Ok(self.around()?.keys(&self.facts.name, &prefix))
    }
}

impl wit::config::Host for Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.facts.config.get(&key).map(|value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        }))
    }

    fn json(&mut self) -> wasmtime::Result<String> {
        Ok(serde_json::to_string(&self.facts.config)?)
    }
}

impl wit::random::Host for Guest {
    fn next(&mut self) -> wasmtime::Result<u64> {
        Ok(random(&mut self.call.random))
    }
}

impl wit::statement::Host for Guest {
    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(self.around()?.now())
    }

    fn time_zone(&mut self) -> wasmtime::Result<String> {
        Ok(self.around()?.time_zone())
    }

    fn session_id(&mut self) -> wasmtime::Result<String> {
        Ok(self.around()?.session_id())
    }

    fn data_source(&mut self) -> wasmtime::Result<String> {
        Ok(self.around()?.data_source())
    }

    fn setting(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.around()?.setting(&key))
    }
}

/// Lines that a guest with WASI writes to its standard output and error.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// What may be kept of a call's output, in bytes.
    const MOST: usize = 64 << 10;

    /// Takes what was written; what is too much is lost.
    pub fn write(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = Lines::MOST.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The lines, which are then forgotten.
    pub fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).lines().filter(|l| !l.trim().is_empty()).map(str::to_owned).collect()
    }
}
