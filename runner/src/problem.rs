//! What ends the program early, and by which exit code.

use std::process::ExitCode;

use firesteel_session::ports::StoreError;

/// Why a command did not do what it was asked to. Its text is one line, lower case, without a full stop.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The command line or a setting is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What would be right.
        hint: Option<String>,
    },
    /// The store can't be reached, or refuses.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The statement ended without a result.
    #[error("{message}")]
    Statement {
        /// What its user is told.
        message: String,
        /// Where to read more.
        hint: Option<String>,
    },
    /// Time ran out, or somebody cancelled.
    #[error("{0}")]
    Stopped(String),
    /// Who reads the output has gone, and so there is nothing to say.
    #[error("the output is closed")]
    Closed,
    /// Anything else, such as a file that can't be written.
    #[error("{0}")]
    Other(String),
}

impl Problem {
    /// A wrong command line, without a hint.
    pub fn usage(message: impl Into<String>) -> Problem {
        Problem::Usage { message: message.into(), hint: None }
    }

    /// A wrong command line, and what would be right.
    pub fn usage_with(message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// A line that says what to do, if there is more to say than the message does.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Problem::Usage { hint, .. } | Problem::Statement { hint, .. } => hint.clone(),
            Problem::Store(StoreError::Unavailable(_) | StoreError::Unknown(_)) => {
                Some("is it running, and is --store right?".to_owned())
            }
            Problem::Store(_) | Problem::Stopped(_) | Problem::Closed | Problem::Other(_) => None,
        }
    }

    /// The exit code, as `--help` lists them.
    #[must_use]
    pub fn exit(&self) -> ExitCode {
        ExitCode::from(match self {
            Problem::Closed => 0,
            Problem::Statement { .. } | Problem::Other(_) => 1,
            Problem::Usage { .. } => 2,
            Problem::Store(_) => 3,
            Problem::Stopped(_) => 4,
        })
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Problem::Closed } else { Problem::Other(error.to_string()) }
    }
}

/// What the exit codes mean, for `--help` and the manual.
pub const EXIT_CODES: &str = "Exit codes: 0 success, 1 the statement failed, 2 wrong usage, 3 the store can't be reached or \
                              refuses, 4 timed out or cancelled.";

/// The same of the job, which tells its supervisor.
pub const JOB_EXIT_CODES: &str = "Exit codes: 0 the session ended, excluded this job, was handed over or is another runner's, or the \
                                  batch's statement succeeded; 1 the job failed, the store was out of reach for too long, or the batch's \
                                  statement failed; 2 wrong usage.";

/// Says on standard error what went wrong, and what to do.
pub fn tell(problem: &Problem) {
    if matches!(problem, Problem::Closed) {
        return;
    }
    eprintln!("firesteel: {problem}");
    if let Some(hint) = problem.hint() {
        eprintln!("  {hint}");
    }
}
