//! The result document and the pages beyond it.
//!
//! The document's other reader replaces every `'` by `"` before it parses a row or a column, so those hold none:
//! ours escape it, and what we read we treat as that reader does.

use firesteel_model::{Attempt, StatementId, StatementState};
use firesteel_session::ports::{Column, Outcome, Page, ResultDocument};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;
use super::state::{FORMAT_VERSION, of_kind};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Vec<String>>,
    application_id: &'a str,
    data_source_name: &'a str,
    status: &'a str,
    error: &'a str,
    query_text: &'a str,
    session_id: &'a str,
    job_type: &'a str,
    update_time: u64,
    query_run_time: u64,
}

impl<'a> Document<'a> {
    fn of(outcome: &'a Outcome<'_>, now: u64) -> Document<'a> {
        let (status, error) = match &outcome.statement.state {
            StatementState::Failed { error } => ("FAILED", error.as_str()),
            StatementState::Timeout { error } => ("TIMEOUT", error.as_str()),
            _ => ("SUCCESS", ""),
        };
        Document {
            result: None,
            schema: None,
            application_id: outcome.application,
            data_source_name: &outcome.statement.data_source,
            status,
            error,
            query_text: &outcome.statement.query.0,
            session_id: outcome.statement.session.as_str(),
            job_type: outcome.job_type,
            update_time: now,
            query_run_time: outcome.run_millis,
        }
    }
}

/// `status` of a result that no reader finds yet.
pub const STAGED: &str = "STAGED";

/// The document of a success, without the fields by which a reader finds it.
///
/// # Errors
/// Never for these types; a serializer's signature.
pub fn staged(outcome: &Outcome<'_>, columns: &[Column], rows: &[String], now: u64) -> serde_json::Result<String> {
    serde_json::to_string(&Document {
        result: Some(rows),
        schema: Some(columns.iter().map(column).collect()),
        status: STAGED,
        ..Document::of(outcome, now)
    })
}

/// The fields that make a staged result one that a reader finds.
#[must_use]
pub fn published(outcome: &Outcome<'_>) -> Map<String, Value> {
    let mut fields = object(json!({ "status": "SUCCESS" }));
    fields.append(&mut visible(outcome));
    fields
}

/// The fields by which a reader finds a result.
fn visible(outcome: &Outcome<'_>) -> Map<String, Value> {
    let mut fields = object(json!({ "jobRunId": outcome.job }));
    if let Some(query) = &outcome.statement.query_id {
        fields.insert("queryId".to_owned(), json!(query.as_str()));
    }
    fields
}

/// The document of a failure, visible at once; the statement's state says which.
///
/// # Errors
/// Never for these types; a serializer's signature.
pub fn failed(outcome: &Outcome<'_>, now: u64) -> serde_json::Result<String> {
    let mut document = object(serde_json::to_value(Document::of(outcome, now))?);
    document.append(&mut visible(outcome));
    serde_json::to_string(&document)
}

/// Reads a result document, the peer's too.
///
/// # Errors
/// Names the field that is wrong.
pub fn read(source: &Value) -> Result<ResultDocument, BadField> {
    let fields = Fields::of(source)?;
    let columns = fields.texts("schema")?.into_iter().map(|text| {
        let bad = || BadField::new("schema", "an array of texts {\"column_name\":..,\"data_type\":..}");
        let value: Value = serde_json::from_str(&text.replace('\'', "\"")).map_err(|_| bad())?;
        let part = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(bad);
        Ok(Column { name: part("column_name")?, data_type: part("data_type")?, label: None })
    });
    Ok(ResultDocument {
        status: fields.text("status")?.to_owned(),
        error: fields.text("error")?.to_owned(),
        columns: columns.collect::<Result<_, _>>()?,
        rows: fields.texts("result")?.into_iter().map(|row| row.replace('\'', "\"")).collect(),
        run_millis: fields.number("queryRunTime")?.unwrap_or(0),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageDocument<'a> {
    kind: &'a str,
    format_version: u32,
    statement_id: &'a str,
    session_id: &'a str,
    attempt: String,
    page: u32,
    result: &'a [String],
}

/// The document of page `n` beyond the result document.
///
/// # Errors
/// Never for these types; a serializer's signature.
pub fn page(outcome: &Outcome<'_>, n: u32, page: &Page) -> serde_json::Result<String> {
    serde_json::to_string(&PageDocument {
        kind: "page",
        format_version: FORMAT_VERSION,
        statement_id: outcome.statement.id.as_str(),
        session_id: outcome.statement.session.as_str(),
        attempt: outcome.attempt.to_string(),
        page: n,
        result: &page.rows,
    })
}

/// The fields that make a fence of a page, so that it cannot come any more.
#[must_use]
pub fn into_fence() -> Map<String, Value> {
    object(json!({ "kind": "fence", "result": [] }))
}

/// The document that takes the place of page `n` before that comes.
#[must_use]
pub fn fence(outcome: &Outcome<'_>, n: u32) -> Map<String, Value> {
    let mut fields = into_fence();
    fields.append(&mut object(json!({
        "formatVersion": FORMAT_VERSION,
        "statementId": outcome.statement.id.as_str(),
        "sessionId": outcome.statement.session.as_str(),
        "attempt": outcome.attempt.to_string(),
        "page": n,
    })));
    fields
}

/// Whether what stands in a page's place is a fence.
#[must_use]
pub fn is_fence(source: &Value) -> bool {
    of_kind(source, "fence").is_ok()
}

/// Reads a page, and checks that it is of this statement and attempt.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_page(statement: &StatementId, attempt: Attempt, source: &Value) -> Result<Page, BadField> {
    let fields = of_kind(source, "page")?;
    if fields.text("statementId")? != statement.as_str() {
        return Err(BadField::new("statementId", "the statement that was asked for"));
    }
    if fields.text("attempt")? != attempt.to_string() {
        return Err(BadField::new("attempt", "the attempt that was asked for"));
    }
    Ok(Page { rows: fields.texts("result")?.into_iter().map(str::to_owned).collect() })
}

/// A column as the document has it, an apostrophe escaped.
fn column(column: &Column) -> String {
    json!({ "column_name": column.name, "data_type": column.data_type }).to_string().replace('\'', "\\u0027")
}
