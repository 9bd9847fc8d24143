//! One execution of a statement, and what a statement does to the world.

use std::fmt;

use crate::version::Version;

/// How often a statement is executed at the most, all runners together.
pub const MAX_ATTEMPTS: u32 = 3;

/// One execution under one claim. Every document staged for it carries its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The version that the claim's write got.
    pub claim: Version,
    /// Counts executions under that claim, from 1.
    pub n: u32,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.claim.term, self.claim.seq_no, self.n)
    }
}

/// The text is not an attempt's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAttempt;

impl fmt::Display for BadAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an attempt is written TERM.SEQ_NO.N")
    }
}

impl std::error::Error for BadAttempt {}

impl std::str::FromStr for Attempt {
    type Err = BadAttempt;

    fn from_str(text: &str) -> Result<Self, BadAttempt> {
        let mut parts = text.split('.');
        let mut part = || parts.next().and_then(|p| p.parse::<u64>().ok()).ok_or(BadAttempt);
        let claim = Version { term: part()?, seq_no: part()? };
        let n = u32::try_from(part()?).map_err(|_| BadAttempt)?;
        if parts.next().is_some() { Err(BadAttempt) } else { Ok(Attempt { claim, n }) }
    }
}

/// What a statement's plan does, decided before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every node of the plan reads: it may run again.
    Read,
    /// Its only effect is an entry in the session's journal.
    Define,
    /// Anything else: it runs once or is reported as interrupted.
    Write,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_reads_back_what_it_prints_and_nothing_else() {
        let a = Attempt { claim: Version { term: 1, seq_no: 83 }, n: 2 };
        assert_eq!(a.to_string(), "1.83.2");
        assert_eq!("1.83.2".parse(), Ok(a));
        for bad in ["", "1.83", "1.83.2.4", "1.-83.2", "a.b.c", "1.83.4294967296"] {
            assert_eq!(bad.parse::<Attempt>(), Err(BadAttempt), "{bad}");
        }
    }
}
