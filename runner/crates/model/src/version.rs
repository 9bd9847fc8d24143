//! What a conditional write compares, and the time that the model is given.

/// Milliseconds on the runner's own monotonic clock, which counts suspend. Never a wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// The time `ms` milliseconds later.
    #[must_use]
    pub fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`, 0 if `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A document's version: OpenSearch's `_primary_term` and `_seq_no`, in the order in which they rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The primary term: rises when another shard copy becomes the primary.
    pub term: u64,
    /// The sequence number: rises with each write to the shard.
    pub seq_no: u64,
}

/// What a write expects to find. There is no unconditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No document of this id.
    Absent,
    /// The document at this version.
    Version(Version),
}

/// A document's value, with the version at which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    /// What a conditional write must name.
    pub version: Version,
    /// What was read.
    pub value: T,
}
