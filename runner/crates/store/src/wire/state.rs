//! The documents of the state index: companions, markers, guards of query ids. Pages are in [`super::result`], the journal's records in
//! [`super::journal`].
//!
//! A partial write cannot take a field away and a null is never written, so a companion writes every field each
//! time, and what it lacks as an empty text or as -1.

use firesteel_model::{Attempt, QueryId, RunnerId, StatementId};
use firesteel_session::ports::{Companion, LargeResults, Marker, Progress, Totals};
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;

/// Rises when a reader of the old documents would misread the new ones.
pub const FORMAT_VERSION: u32 = 1;
/// `state` of a companion whose statement left nothing to do.
pub const PUBLISHED: &str = "published";
/// `state` of any other companion.
pub const UNPUBLISHED: &str = "unpublished";

/// The whole document of a companion, which is also what a change of it writes.
#[must_use]
pub fn companion(statement: &StatementId, companion: &Companion) -> Map<String, Value> {
    let mut document = object(json!({
        "kind": "companion",
        "formatVersion": FORMAT_VERSION,
        "statementId": statement.as_str(),
        "sessionId": companion.session,
        "timeoutMillis": companion.timeout.map_or(json!(-1), |t| json!(t)),
        "largeResults": match companion.large_results {
            None => "",
            Some(LargeResults::Fail) => "fail",
            Some(LargeResults::First) => "first",
            Some(LargeResults::Pages) => "pages",
        },
        "user": companion.user.as_deref().unwrap_or(""),
        "attempts": companion.attempts,
        "progressRows": companion.progress.map_or(json!(-1), |p| json!(p.rows)),
        "progressBytes": companion.progress.map_or(0, |p| p.bytes),
        "progressMillis": companion.progress.map_or(0, |p| p.elapsed_millis),
    }));
    document.append(&mut candidate(companion.candidate, companion.totals, &companion.labels));
    document.append(&mut staged(&companion.staged));
    document.append(&mut published(companion.published));
    document
}

/// The field of a companion that says whether anything is left to do.
#[must_use]
pub fn published(done: bool) -> Map<String, Value> {
    object(json!({ "state": if done { PUBLISHED } else { UNPUBLISHED } }))
}

/// The field of a companion that names the attempts that may have staged something.
#[must_use]
pub fn staged(attempts: &[Attempt]) -> Map<String, Value> {
    object(json!({ "staged": attempts.iter().map(Attempt::to_string).collect::<Vec<_>>() }))
}

/// The fields of a companion that staging writes.
#[must_use]
pub fn candidate(candidate: Option<Attempt>, totals: Option<Totals>, labels: &[String]) -> Map<String, Value> {
    object(json!({
        "candidate": candidate.map_or(String::new(), |a| a.to_string()),
        "rows": totals.map_or(json!(-1), |t| json!(t.rows)),
        "bytes": totals.map_or(0, |t| t.bytes),
        "pages": totals.map_or(0, |t| t.pages),
        "truncated": totals.is_some_and(|t| t.truncated),
        "labels": labels,
    }))
}

/// Reads a companion.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_companion(source: &Value) -> Result<Companion, BadField> {
    let fields = of_kind(source, "companion")?;
    let small = |field: &str| {
        let n = fields.number(field)?.unwrap_or(0);
        u32::try_from(n).map_err(|_| BadField::new(field, "a number below 2^32"))
    };
    Ok(Companion {
        session: fields.text("sessionId")?.to_owned(),
        timeout: fields.number("timeoutMillis")?,
        large_results: match fields.text("largeResults")? {
            "" => None,
            "fail" => Some(LargeResults::Fail),
            "first" => Some(LargeResults::First),
            "pages" => Some(LargeResults::Pages),
            _ => return Err(BadField::new("largeResults", "one of fail, first, pages")),
        },
        user: fields.some_text("user")?.map(str::to_owned),
        attempts: small("attempts")?,
        candidate: fields.some_text("candidate")?.map(|_| attempt(fields, "candidate")).transpose()?,
        staged: fields
            .texts("staged")?
            .into_iter()
            .map(|text| text.parse().map_err(|_| BadField::new("staged", "attempts, TERM.SEQ_NO.N")))
            .collect::<Result<_, _>>()?,
        published: fields.text("state")? == PUBLISHED,
        totals: match fields.number("rows")? {
            None => None,
            Some(rows) => Some(Totals {
                rows,
                bytes: fields.number("bytes")?.unwrap_or(0),
                pages: small("pages")?,
                truncated: fields.flag("truncated")?,
            }),
        },
        labels: fields.texts("labels")?.into_iter().map(str::to_owned).collect(),
        progress: match fields.number("progressRows")? {
            None => None,
            Some(rows) => Some(Progress {
                rows,
                bytes: fields.number("progressBytes")?.unwrap_or(0),
                elapsed_millis: fields.number("progressMillis")?.unwrap_or(0),
            }),
        },
    })
}

/// The whole document of a marker.
#[must_use]
pub fn marker(statement: &StatementId, marker: &Marker) -> Map<String, Value> {
    object(json!({
        "kind": "write",
        "formatVersion": FORMAT_VERSION,
        "statementId": statement.as_str(),
        "runnerId": marker.runner.as_str(),
        "attempt": marker.attempt.to_string(),
    }))
}

/// Reads a marker.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_marker(source: &Value) -> Result<Marker, BadField> {
    let fields = of_kind(source, "write")?;
    Ok(Marker {
        runner: RunnerId::new(fields.text("runnerId")?).map_err(|_| BadField::new("runnerId", "an id"))?,
        attempt: attempt(fields, "attempt")?,
    })
}

/// The whole document of a query id's guard.
#[must_use]
pub fn guard(query: &QueryId, statement: &StatementId) -> Map<String, Value> {
    object(json!({
        "kind": "query",
        "formatVersion": FORMAT_VERSION,
        "queryId": query.as_str(),
        "statementId": statement.as_str(),
    }))
}

/// Whose query id it is, by its guard.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_guard(source: &Value) -> Result<&str, BadField> {
    of_kind(source, "query")?.text("statementId")
}

pub(super) fn of_kind<'a>(source: &'a Value, kind: &str) -> Result<Fields<'a>, BadField> {
    let fields = Fields::of(source)?;
    if fields.text("kind")? != kind {
        return Err(BadField::new("kind", &format!("`{kind}`")));
    }
    match fields.number("formatVersion")? {
        Some(v) if v == u64::from(FORMAT_VERSION) => Ok(fields),
        _ => Err(BadField::new("formatVersion", &format!("{FORMAT_VERSION}: another version of firesteel wrote it"))),
    }
}

fn attempt(fields: Fields<'_>, field: &str) -> Result<Attempt, BadField> {
    fields.text(field)?.parse().map_err(|_| BadField::new(field, "an attempt, TERM.SEQ_NO.N"))
}
