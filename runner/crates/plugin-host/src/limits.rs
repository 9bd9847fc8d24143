//! What limits a plugin. Each limit has a name, which is in the error of whoever goes beyond it.

use std::sync::Arc;

use firesteel_session::ports::plugins::{Surroundings, Wrong};
use serde::{Deserialize, Serialize};
use wasmtime::ResourceLimiter;

const MIB: u64 = 1 << 20;

/// The stack of a guest, in bytes: one for all, because it is a property of the machine that runs them.
pub const STACK: usize = 1 << 20;

/// A plugin's limits; the operator may change each. Sizes in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// What all memories of one instance hold.
    pub memory: u64,
    /// How long a call that is not part of a running query may take.
    pub time: u64,
    /// What one call may return.
    pub result: u64,
    /// How many columns a table may have.
    pub columns: u32,
    /// How deep a type may nest.
    pub nesting: u32,
    /// How many characters the name of a column may have.
    pub name: u32,
    /// How many log lines a call may write.
    pub log: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory: 64 * MIB, time: 1_000, result: 16 * MIB, columns: 1_000, nesting: 8, name: 255, log: 100 }
    }
}

/// The largest memory that a plugin may be given, in bytes: address space is reserved for it.
pub const MOST_MEMORY: u64 = 4 << 30;

/// A size as people write it.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 && b.is_multiple_of(1 << 30) => format!("{} GiB", b >> 30),
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{} MiB", b / MIB),
        b if b >= 1024 && b.is_multiple_of(1024) => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
}

/// Counts what an instance holds, against its own limit and the statement's memory.
pub struct Meter {
    limit: usize,
    held: usize,
    /// Whose memory is used.
    around: Option<Arc<dyn Surroundings>>,
    /// Why it got no more, since the last call began.
    refused: Option<Wrong>,
}

impl Meter {
    /// Counts against this limit, in bytes.
    pub fn new(limit: u64) -> Meter {
        Meter { limit: usize::try_from(limit).unwrap_or(usize::MAX), held: 0, around: None, refused: None }
    }

    /// What is held counts for this statement from here on. False: it has not so much left.
    pub fn charge(&mut self, around: &Arc<dyn Surroundings>) -> bool {
        self.refused = None;
        if !around.take(self.held) {
            return false;
        }
        self.around = Some(Arc::clone(around));
        true
    }

    /// It no longer counts for anybody.
    pub fn release(&mut self) {
        if let Some(around) = self.around.take() {
            around.give(self.held);
        }
    }

    /// What it holds, in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Why it got no more.
    pub fn refused(&mut self) -> Option<Wrong> {
        self.refused.take()
    }

    fn grow(&mut self, by: usize) -> bool {
        if self.held.saturating_add(by) > self.limit {
            self.refused = Some(Wrong::Limit(
                "memory",
                format!("it wanted more than {}; the operator may raise `limits.memory`", size(self.limit as u64)),
            ));
            return false;
        }
        if self.around.as_ref().is_some_and(|around| !around.take(by)) {
            self.refused = Some(Wrong::Memory(format!(
                "it wanted {} more than the statement's memory has left (setting `memory`)",
                size(by as u64)
            )));
            return false;
        }
        self.held += by;
        true
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.release();
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current).saturating_mul(size_of::<usize>())))
    }
}
