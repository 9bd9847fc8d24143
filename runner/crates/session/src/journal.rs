//! What a session is made of: the defines that succeeded, in order.

/// One define as the engine wrote it: opaque here, replayed by the engine that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(pub String);

/// The entries in force. A worker that has applied some prefix of it needs only the rest, unless the
/// `generation` changed: then an entry was taken back and the worker must be rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    generation: u64,
    entries: Vec<Entry>,
}

impl Journal {
    /// Adds an entry whose statement succeeded.
    pub fn append(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// A worker applied something that is not in force: whoever applied it must start anew.
    pub fn taint(&mut self) {
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
}
