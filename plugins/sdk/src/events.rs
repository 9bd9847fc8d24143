//! What has happened.

/// Is told of what has happened, maybe late.
pub trait Events {
    /// Takes note.
    fn notify(&self, event: &Event);
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker serves the session from here on, for the first time or again.
    SessionOpened,
    /// The worker is done with the session: it has ended, or rests.
    SessionClosed,
    /// A statement has ended.
    StatementEnded(Ended),
}

/// How a statement ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// `sql`, `ppl`: as it was submitted.
    pub language: String,
    /// `read`, `define`, `write`; None: it failed before that was known.
    pub kind: Option<String>,
    /// The code of its failure; None: it succeeded.
    pub failure: Option<String>,
    /// Rows of the result.
    pub rows: u64,
    /// Since it was taken up.
    pub milliseconds: u64,
}
