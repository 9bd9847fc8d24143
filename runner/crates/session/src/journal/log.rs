//! The journal as it is stored: records numbered from 0, each made once by whoever owns the session and never changed.
//!
//! Making record n fences every earlier owner: its next record has the number n too, and is refused. Only the last define can be
//! undecided, since an owner decides one before it begins another, and takes it out again if it was not to be.

use firesteel_model::{Attempt, RunnerId, StatementId};

use super::{Entry, compacted};

/// After so many records that say what a session is made of, a snapshot says it in one.
const SNAPSHOT_EVERY: u64 = 256;
/// A snapshot with more text than this, in bytes, would not fit into one document of every service; the records stay.
const MOST_SNAPSHOT_BYTES: usize = 4 << 20;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who made it.
    pub runner: RunnerId,
    /// What it says.
    pub what: What,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// This runner owns the session from here on.
    Epoch,
    /// An attempt at a statement defined this. In force if the statement is `success`.
    Define {
        /// The statement.
        statement: StatementId,
        /// Its attempt.
        attempt: Attempt,
        /// What it defined.
        entry: Entry,
    },
    /// That attempt's define is not in force.
    Void {
        /// The statement.
        statement: StatementId,
        /// Its attempt.
        attempt: Attempt,
    },
    /// These entries are in force, and nothing before this record counts.
    Snapshot {
        /// Oldest first.
        entries: Vec<Entry>,
    },
}

/// A journal as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The number of the first record.
    pub first: u64,
    /// The newest snapshot and what follows it, or all records.
    pub records: Vec<Record>,
}

/// The last define, which may be undecided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last {
    /// Its statement.
    pub statement: StatementId,
    /// Its attempt.
    pub attempt: Attempt,
    /// What it defined.
    pub entry: Entry,
}

/// What the records say so far.
#[derive(Clone, Debug, Default)]
pub struct Log {
    next: u64,
    since_snapshot: u64,
    owner: Option<RunnerId>,
    entries: Vec<Entry>,
    last: Option<Last>,
}

impl Log {
    /// Reads a journal from its start, or from a snapshot.
    #[must_use]
    pub fn read(found: Found) -> Log {
        let mut log = Log { next: found.first, ..Log::default() };
        for record in found.records {
            log.take(record);
        }
        log
    }

    /// The next record, as it is now stored.
    pub fn take(&mut self, record: Record) {
        self.next += 1;
        self.since_snapshot += 1;
        match record.what {
            What::Epoch => self.owner = Some(record.runner),
            What::Define { statement, attempt, entry } => {
                self.entries.extend(self.last.take().map(|last| last.entry));
                self.last = Some(Last { statement, attempt, entry });
            }
            What::Void { statement, attempt } => {
                self.last.take_if(|last| last.statement == statement && last.attempt == attempt);
            }
            What::Snapshot { entries } => {
                self.last = None;
                self.entries = entries;
                self.since_snapshot = 0;
            }
        }
    }

    /// The number of the next record.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Who opened the last epoch.
    #[must_use]
    pub fn owner(&self) -> Option<&RunnerId> {
        self.owner.as_ref()
    }

    /// The last define, unless it was taken out.
    #[must_use]
    pub fn last(&self) -> Option<&Last> {
        self.last.as_ref()
    }

    /// The entries before the last define; those are in force.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A snapshot, if it is time for one. The last define must have been decided.
    #[must_use]
    pub fn snapshot(&self) -> Option<What> {
        if self.since_snapshot < SNAPSHOT_EVERY {
            return None;
        }
        let mut entries = self.entries.clone();
        entries.extend(self.last.iter().map(|last| last.entry.clone()));
        let entries = compacted(&entries);
        let bytes: usize = entries.iter().map(|e| e.text.len()).sum();
        (bytes <= MOST_SNAPSHOT_BYTES).then_some(What::Snapshot { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firesteel_model::Version;

    fn by(runner: &str, what: What) -> Record {
        Record { runner: RunnerId::new(runner).expect("short"), what }
    }

    fn attempt(n: u32) -> Attempt {
        Attempt { claim: Version { term: 1, seq_no: 5 }, n }
    }

    fn define(statement: &str, n: u32, text: &str) -> What {
        let entry = Entry { text: text.to_owned(), key: Some(text.chars().take(1).collect()) };
        What::Define { statement: StatementId::new(statement).expect("short"), attempt: attempt(n), entry }
    }

    fn void(statement: &str, n: u32) -> What {
        What::Void { statement: StatementId::new(statement).expect("short"), attempt: attempt(n) }
    }

    fn log(records: impl IntoIterator<Item = What>) -> Log {
        Log::read(Found { first: 0, records: records.into_iter().map(|what| by("r", what)).collect() })
    }

    fn texts(log: &Log) -> (Vec<&str>, Option<&str>) {
        (log.entries().iter().map(|e| e.text.as_str()).collect(), log.last().map(|l| l.entry.text.as_str()))
    }

    #[test]
    fn a_define_is_undecided_until_the_next_one_or_a_void_of_the_same_attempt() {
        let log1 = log([What::Epoch, define("s1", 1, "a"), define("s2", 1, "b")]);
        assert_eq!((texts(&log1), log1.next()), ((vec!["a"], Some("b")), 3));
        assert_eq!(texts(&log([define("s1", 1, "a"), define("s2", 1, "b"), void("s2", 1)])), (vec!["a"], None));
        assert_eq!(texts(&log([define("s2", 2, "b"), void("s2", 1)])), (vec![], Some("b")), "of another attempt");
        assert_eq!(texts(&log([define("s1", 1, "a"), define("s2", 1, "b"), void("s1", 1)])), (vec!["a"], Some("b")));
    }

    #[test]
    fn an_epoch_says_who_owns_it_and_decides_nothing() {
        let mut one = log([define("s1", 1, "a")]);
        one.take(by("successor", What::Epoch));
        assert_eq!((texts(&one), one.owner().map(RunnerId::as_str)), ((vec![], Some("a")), Some("successor")));
    }

    #[test]
    fn ten_thousand_settings_are_replayed_from_a_snapshot_and_a_few_records() {
        let mut one = Log::default();
        for n in 0..10_000_u32 {
            if let Some(snapshot) = one.snapshot() {
                one.take(by("r", snapshot));
            }
            one.take(by("r", define("s", n, &format!("{}={n}", n % 3))));
        }
        assert!(one.since_snapshot <= SNAPSHOT_EVERY);
        let snapshot = What::Snapshot { entries: compacted(one.entries()) };
        one.take(by("r", snapshot));
        assert_eq!(texts(&one), (vec!["0=9996", "1=9997", "2=9998"], None));
        assert!(one.next() < 10_050);
    }

    #[test]
    fn a_snapshot_that_fits_into_no_document_is_not_made() {
        let entry = Entry::new("v".repeat(20_000));
        let views = (0..300).map(|n| What::Define {
            statement: StatementId::new(format!("s{n}")).expect("short"),
            attempt: attempt(1),
            entry: entry.clone(),
        });
        assert_eq!(log(views).snapshot(), None);
    }
}
