//! What a session is made of: the defines that succeeded, in order.
//!
//! In the store it is a log of [`Record`]s, each made once and never changed; [`Log`] reads it. In memory, and for workers, it is a
//! [`Journal`]: the entries in force.

mod log;

use std::sync::Arc;

pub use log::{Found, Last, Log, Record, What};

/// One define as the engine wrote it: opaque here, replayed by the engine that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is replayed.
    pub text: String,
    /// What it sets, if all that an earlier entry with the same key did is undone by this one, and if it changes nothing that entries with
    /// other keys do. Settings have one, views have none.
    pub key: Option<String>,
}

impl Entry {
    /// An entry that replaces no other.
    #[must_use]
    pub fn new(text: String) -> Entry {
        Entry { text, key: None }
    }
}

/// The entries in force. A worker that has applied some prefix of it needs only the rest, unless the
/// `generation` changed: then an entry was taken back and the worker must be rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    generation: u64,
    entries: Arc<Vec<Entry>>,
}

impl Journal {
    /// Adds an entry whose statement succeeded.
    pub fn append(&mut self, entry: Entry) {
        Arc::make_mut(&mut self.entries).push(entry);
    }

    /// A worker applied something that is not in force: whoever applied it must start anew.
    pub fn taint(&mut self) {
        self.generation += 1;
    }

    /// These entries are in force and no others.
    pub fn replace(&mut self, entries: Vec<Entry>) {
        self.entries = Arc::new(entries);
        self.generation += 1;
    }

    /// Changes whenever a worker must be rebuilt from the start.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The entries in force, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What a worker that has applied `applied` lacks. None: it applied something else, and must start anew.
    #[must_use]
    pub fn missing(&self, applied: &[Entry]) -> Option<Vec<Entry>> {
        let rest = self.entries.strip_prefix(applied)?;
        Some(if applied.is_empty() { compacted(rest) } else { rest.to_vec() })
    }
}

/// The shortest list that makes the same session: of the entries with keys that follow each other, the last of each key.
#[must_use]
pub fn compacted(entries: &[Entry]) -> Vec<Entry> {
    let mut kept: Vec<&Entry> = Vec::new();
    // Where the run of entries with keys began that is at the end of `kept`.
    let mut run = 0;
    for entry in entries {
        match &entry.key {
            None => run = kept.len() + 1,
            Some(key) => {
                if let Some(before) = kept[run..].iter().position(|e| e.key.as_ref() == Some(key)) {
                    kept.remove(run + before);
                }
            }
        }
        kept.push(entry);
    }
    kept.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        Entry { text: text.to_owned(), key: text.split_once('=').map(|(key, _)| key.to_owned()) }
    }

    fn entries(texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|t| entry(t)).collect()
    }

    #[test]
    fn a_setting_replaces_an_earlier_one_unless_a_view_that_may_hang_on_it_is_between() {
        assert_eq!(compacted(&entries(&["a=1", "b=1", "a=2"])), entries(&["b=1", "a=2"]));
        assert_eq!(compacted(&entries(&["a=1", "v", "a=2", "a=3", "w"])), entries(&["a=1", "v", "a=3", "w"]));
        assert_eq!(compacted(&entries(&["v", "v"])), entries(&["v", "v"]));
    }

    #[test]
    fn a_worker_lacks_what_came_after_what_it_applied_and_a_fresh_one_lacks_the_compacted_whole() {
        let mut journal = Journal::default();
        for e in entries(&["a=1", "a=2", "v"]) {
            journal.append(e);
        }
        assert_eq!(journal.missing(&[]), Some(entries(&["a=2", "v"])));
        assert_eq!(journal.missing(&entries(&["a=1"])), Some(entries(&["a=2", "v"])));
        assert_eq!(journal.missing(&entries(&["a=2"])), None);
        assert_eq!(journal.missing(&entries(&["a=1", "a=2", "v"])), Some(vec![]));
    }
}
