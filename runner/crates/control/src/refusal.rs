//! Why the control plane did not do as asked, in words that every API says in its own form.

use firesteel_session::ports::StoreError;
use firesteel_session::ports::control::LaunchError;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong; says what would be right.
    #[error("{0}")]
    Invalid(String),
    /// The data source is not known, or not to be had.
    #[error("no datasource exist: `{asked}`; there is `{there}`")]
    NoDataSource {
        /// The one that was asked for.
        asked: String,
        /// The one that there is.
        there: String,
    },
    /// Who asks is not known.
    #[error("{0}")]
    Unauthenticated(String),
    /// Who asks may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// There is none, or none that the asker may see.
    #[error("no {what} `{id}`")]
    NotFound {
        /// What it would be.
        what: &'static str,
        /// By which id it was asked for.
        id: String,
    },
    /// It exists and is another, or is in a state that does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// A limit is reached; nothing was stored.
    #[error("{which}: {value} of {limit} are in use; try again in {retry_after} s")]
    Limit {
        /// Which limit.
        which: String,
        /// How many are in use.
        value: u32,
        /// How many may be.
        limit: u32,
        /// In how many seconds it may be worth another try.
        retry_after: u32,
    },
    /// The documents cannot be reached.
    #[error("no session store available: {0}")]
    NoStore(String),
    /// The launcher did not start the job.
    #[error("{0}")]
    NotLaunched(String),
    /// What is stored is not what it should be.
    #[error("{0}")]
    Broken(String),
}

impl Refusal {
    /// No such thing, by an id that may be hostile.
    #[must_use]
    pub fn not_found(what: &'static str, id: &str) -> Refusal {
        Refusal::NotFound { what, id: id.chars().take(80).collect::<String>().escape_debug().to_string() }
    }

    /// The status that HTTP has for it.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Invalid(_) | Refusal::NoDataSource { .. } => 400,
            Refusal::Unauthenticated(_) => 401,
            Refusal::Forbidden(_) => 403,
            Refusal::NotFound { .. } => 404,
            Refusal::Conflict(_) => 409,
            Refusal::Limit { .. } => 429,
            Refusal::Broken(_) => 500,
            Refusal::NoStore(_) | Refusal::NotLaunched(_) => 503,
        }
    }

    /// In how many seconds another try may succeed, if one may.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Refusal::Limit { retry_after, .. } => Some(*retry_after),
            Refusal::NoStore(_) | Refusal::NotLaunched(_) => Some(5),
            _ => None,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::Unavailable(why) | StoreError::Unknown(why) => Refusal::NoStore(why),
            StoreError::Conflict => Refusal::NoStore("the document is changed by others all the time".to_owned()),
            StoreError::Refused(why) => Refusal::NoStore(why),
            StoreError::Corrupt(_) => Refusal::Broken(error.to_string()),
        }
    }
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Refusal {
        Refusal::NotLaunched(format!("the job was not launched: {error}"))
    }
}
