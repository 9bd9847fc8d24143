//! What a user is told when a statement fails: a stable code and a message that says what to do.
//!
//! Each code has a page `docs/errors/<CODE>.md`; a test compares the two lists.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A stable name for a kind of failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as documents, logs and the error pages have it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The text is not a statement of its language.
    Syntax = "SYNTAX",
    /// The statement is empty.
    Empty = "EMPTY_STATEMENT",
    /// No engine takes this language.
    Language = "UNKNOWN_LANGUAGE",
    /// A table, column or function that does not exist, or types that do not fit.
    Analysis = "ANALYSIS",
    /// What the statement asks for is not allowed here.
    Refused = "NOT_ALLOWED",
    /// What the statement asks for does not exist yet.
    Unsupported = "NOT_SUPPORTED",
    /// It failed while it ran.
    Execution = "EXECUTION",
    /// A memory limit was reached.
    Memory = "MEMORY_LIMIT",
    /// The spill folder's limit was reached.
    Spill = "SPILL_LIMIT",
    /// The result is larger than its limit.
    ResultTooLarge = "RESULT_TOO_LARGE",
    /// The result could not be written to the store.
    ResultWrite = "RESULT_WRITE_FAILED",
    /// Its process died under it, more than once.
    WorkerDied = "WORKER_DIED",
    /// It writes, and whether its effect took place is not known.
    Interrupted = "INTERRUPTED",
    /// It was started as often as a statement may be.
    Attempts = "TOO_MANY_ATTEMPTS",
    /// The document lacks something that a statement must have.
    BadStatement = "BAD_STATEMENT",
    /// Another statement has the same query id.
    DuplicateQueryId = "DUPLICATE_QUERY_ID",
    /// A plugin reached a limit.
    PluginLimit = "PLUGIN_LIMIT",
    /// A plugin failed, or could not be loaded.
    Plugin = "PLUGIN_FAILED",
    /// The runner was told to stop.
    Stopped = "RUNNER_STOPPED",
    /// The runner itself is at fault.
    Internal = "INTERNAL",
}

impl Code {
    /// The code with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|c| c.as_str() == text)
    }
}

/// Where in a statement's life it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before it was planned.
    Accept,
    /// While it was parsed and planned.
    Plan,
    /// While it ran.
    Execute,
    /// While its result was written.
    Result,
}

impl Stage {
    /// The stage as documents have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Accept => "accept",
            Stage::Plan => "plan",
            Stage::Execute => "execute",
            Stage::Result => "result",
        }
    }

    /// The stage with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Stage> {
        [Stage::Accept, Stage::Plan, Stage::Execute, Stage::Result].into_iter().find(|s| s.as_str() == text)
    }
}

/// A statement's failure, as its user sees it. May quote the statement: it belongs in documents, not in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind, which is all that a log may show.
    pub code: Code,
    /// Where it happened.
    pub stage: Stage,
    /// Names the thing, what was expected and what to do; lower case, no full stop.
    pub message: String,
    /// The same statement may succeed later, unchanged.
    pub retryable: bool,
}

impl Failure {
    /// A failure that the same statement will meet again.
    #[must_use]
    pub fn new(code: Code, stage: Stage, message: impl Into<String>) -> Failure {
        Failure { code, stage, message: message.into(), retryable: false }
    }

    /// The same, but worth another try.
    #[must_use]
    pub fn retryable(mut self) -> Failure {
        self.retryable = true;
        self
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} (<{} bytes>)", self.code.as_str(), self.stage.as_str(), self.message.len())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    /// The JSON text that a statement's `error` holds: `message`, `code`, `stage`, `retryable`.
    #[must_use]
    pub fn to_document(&self) -> String {
        let mut message = String::with_capacity(self.message.len());
        for c in self.message.chars() {
            match c {
                '"' => message.push_str("\\\""),
                '\\' => message.push_str("\\\\"),
                '\n' => message.push_str("\\n"),
                c if u32::from(c) < 0x20 => message.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => message.push(c),
            }
        }
        let (code, stage) = (self.code.as_str(), self.stage.as_str());
        format!(r#"{{"message":"{message}","code":"{code}","stage":"{stage}","retryable":{}}}"#, self.retryable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_written_as_json_whatever_its_message_holds() {
        let f = Failure::new(Code::Syntax, Stage::Plan, "a \"quote\", a \\ and a\nline\u{1}").retryable();
        assert_eq!(
            f.to_document(),
            r#"{"message":"a \"quote\", a \\ and a\nline\u0001","code":"SYNTAX","stage":"plan","retryable":true}"#
        );
        assert_eq!(format!("{f:?}"), "SYNTAX at plan (<26 bytes>)", "a log shows no text");
    }

    #[test]
    fn every_code_and_stage_reads_back() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
        assert_eq!(Code::parse("NO_SUCH"), None);
        assert_eq!(Stage::parse("plan"), Some(Stage::Plan));
    }
}
