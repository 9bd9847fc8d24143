//! The statement document. Its other reader refuses unknown fields: nothing may be added here.

use firesteel_model::{JobId, QueryId, QueryText, SessionId, Statement, StatementId, StatementState};
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;

/// The whole document of a new statement.
#[must_use]
pub fn new(statement: &Statement) -> Map<String, Value> {
    let mut document = object(json!({
        "version": "1.0",
        "type": "statement",
        "statementId": statement.id.as_str(),
        "sessionId": statement.session.as_str(),
        "applicationId": "",
        "jobId": "",
        "lang": statement.lang,
        "dataSourceName": statement.data_source,
        "query": statement.query.0,
        "submitTime": statement.submit_time,
        "error": "",
    }));
    if let Some(query_id) = &statement.query_id {
        document.insert("queryId".to_owned(), json!(query_id.as_str()));
    }
    document.append(&mut state(&statement.state));
    document
}

/// The fields that a step to `state` writes.
#[must_use]
pub fn state(state: &StatementState) -> Map<String, Value> {
    let mut fields = object(json!({ "state": state.name() }));
    match state {
        StatementState::Running { job: Some(job) } => {
            fields.insert("jobId".to_owned(), json!(job.as_str()));
        }
        StatementState::Failed { error } | StatementState::Timeout { error } => {
            fields.insert("error".to_owned(), json!(error));
        }
        StatementState::Running { job: None }
        | StatementState::Waiting
        | StatementState::Success
        | StatementState::Cancelled => {}
    }
    fields
}

/// Reads a statement. `id`: the document's, unless that was made from the statement's.
///
/// # Errors
/// Names the field that is wrong.
pub fn read(id: Option<&str>, source: &Value) -> Result<Statement, BadField> {
    let fields = Fields::of(source)?;
    if fields.text("type")? != "statement" {
        return Err(BadField::new("type", "`statement`"));
    }
    let error = || fields.text("error").map(str::to_owned);
    let state = match fields.text("state")? {
        "waiting" => StatementState::Waiting,
        "running" => StatementState::Running { job: fields.some_text("jobId")?.and_then(|j| JobId::new(j).ok()) },
        "success" => StatementState::Success,
        "failed" => StatementState::Failed { error: error()? },
        "timeout" => StatementState::Timeout { error: error()? },
        "cancelled" => StatementState::Cancelled,
        _ => return Err(BadField::new("state", "one of waiting, running, success, failed, timeout, cancelled")),
    };
    let id = match id {
        Some(id) => id,
        None => fields.text("statementId")?,
    };
    Ok(Statement {
        id: StatementId::new(id).map_err(|_| BadField::new("statementId", "an id"))?,
        session: SessionId::new(fields.text("sessionId")?).map_err(|_| BadField::new("sessionId", "an id"))?,
        // One that is too long is as good as none: the statement is answered with a failure that says so.
        query_id: fields.some_text("queryId")?.and_then(|q| QueryId::new(q).ok()),
        lang: fields.text("lang")?.to_owned(),
        query: QueryText(fields.text("query")?.to_owned()),
        data_source: fields.text("dataSourceName")?.to_owned(),
        submit_time: fields.time("submitTime")?,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn document(query_id: &str) -> Value {
        json!({ "type": "statement", "state": "waiting", "statementId": "a", "sessionId": "s", "lang": "sql",
            "query": "SELECT 1", "dataSourceName": "d", "submitTime": 1, "queryId": query_id })
    }

    #[test]
    fn a_query_id_that_is_too_long_is_as_good_as_none_and_the_statement_can_still_be_answered() {
        let read =
            |query_id: &str| super::read(Some("a"), &document(query_id)).map(|s| s.query_id.map(|q| q.to_string()));
        assert_eq!(read("q").expect("a statement"), Some("q".to_owned()));
        assert_eq!(read(&"x".repeat(512)).expect("a statement"), Some("x".repeat(512)));
        assert_eq!(read(&"x".repeat(600)).expect("a statement"), None);
    }
}
