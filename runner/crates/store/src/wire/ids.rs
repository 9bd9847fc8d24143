//! How the ids of documents are made from the ids of things.

use std::fmt::Write as _;

use firesteel_model::ids::MAX_ID_BYTES;
use firesteel_model::{Attempt, QueryId, SessionId, StatementId};
use sha2::{Digest, Sha256};

/// `kind-rest`, or `kind-sha256:…` where that is longer than the store takes. No two pairs share an id.
fn id(kind: &str, rest: &str) -> String {
    let plain = format!("{kind}-{rest}");
    // What looks like another form is hashed as well, so that nobody can name a document of that form.
    let looks_alike = rest.starts_with("sha256:") || (kind == "batch" && rest.starts_with("session-"));
    if plain.len() <= MAX_ID_BYTES && !looks_alike {
        return plain;
    }
    let mut hashed = format!("{kind}-sha256:");
    for byte in Sha256::digest(rest.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hashed, "{byte:02x}");
    }
    hashed
}

/// State index: what only Firesteel keeps of a statement.
#[must_use]
pub fn companion(statement: &StatementId) -> String {
    id("companion", statement.as_str())
}

/// State index: the proof that a statement that writes was begun.
#[must_use]
pub fn marker(statement: &StatementId) -> String {
    id("write", statement.as_str())
}

/// State index: which statement a query id belongs to.
#[must_use]
pub fn guard(query: &QueryId) -> String {
    id("query", query.as_str())
}

/// State index: a page of a result. The last two parts hold no slash, so ids with slashes stay apart.
#[must_use]
pub fn page(statement: &StatementId, attempt: Attempt, n: u32) -> String {
    id("page", &format!("{statement}/{attempt}/{n}"))
}

/// State index: record `n` of a session's journal. The last part is a number, so ids with slashes stay apart.
#[must_use]
pub fn record(session: &SessionId, n: u64) -> String {
    id("journal", &format!("{session}/{n}"))
}

/// State index: which record of a session's journal is its newest snapshot.
#[must_use]
pub fn journal_head(session: &SessionId) -> String {
    id("journal", &format!("{session}/head"))
}

/// State index: the session of a batch job.
#[must_use]
pub fn batch_session(session: &SessionId) -> String {
    id("batch-session", session.as_str())
}

/// State index: the statement of a batch job.
#[must_use]
pub fn batch(statement: &StatementId) -> String {
    id("batch", statement.as_str())
}

/// State index: what the control plane keeps of a session.
#[must_use]
pub fn allocation(session: &SessionId) -> String {
    id("allocation", session.as_str())
}

/// State index: a batch of the control plane.
#[must_use]
pub fn job_run(id: &str) -> String {
    self::id("jobrun", id)
}

/// State index: the slots under a limit.
#[must_use]
pub fn permits(name: &str) -> String {
    id("permits", name)
}

/// Result index: the result of one attempt.
#[must_use]
pub fn result(statement: &StatementId, attempt: Attempt) -> String {
    id("result", &format!("{statement}/{attempt}"))
}

/// Whose result a document of the result index is, by its id: None if that says nothing of it.
#[must_use]
pub fn of_result(id: &str) -> Option<(StatementId, Attempt)> {
    let (statement, attempt) = id.strip_prefix("result-")?.rsplit_once('/')?;
    Some((StatementId::new(statement).ok()?, attempt.parse().ok()?))
}

/// Result index: the result of a failed statement, whoever makes it.
#[must_use]
pub fn failure(statement: &StatementId) -> String {
    id("failure", statement.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use firesteel_model::Version;

    #[test]
    fn a_long_id_is_hashed_and_no_short_one_can_pose_as_it() {
        let statement = |s: &str| StatementId::new(s).expect("legal");
        let long = companion(&statement(&"é".repeat(256)));
        assert_eq!(long.len(), "companion-sha256:".len() + 64);
        assert_eq!(companion(&statement("a/\"\n")), "companion-a/\"\n");
        let posing = long.strip_prefix("companion-").expect("prefixed");
        assert_ne!(companion(&statement(posing)), long);
    }

    #[test]
    fn a_batch_statement_and_a_batch_session_never_share_a_document() {
        let session = batch_session(&SessionId::new("x").expect("legal"));
        assert_eq!(session, "batch-session-x");
        assert_ne!(batch(&StatementId::new("session-x").expect("legal")), session);
    }

    #[test]
    fn pages_of_statements_with_slashes_stay_apart() {
        let a = Attempt { claim: Version { term: 1, seq_no: 2 }, n: 3 };
        let one = page(&StatementId::new("s").expect("legal"), a, 0);
        let other = page(&StatementId::new("s/1.2.3/0").expect("legal"), a, 0);
        assert_eq!((one.as_str(), other.as_str()), ("page-s/1.2.3/0", "page-s/1.2.3/0/1.2.3/0"));
    }
}
