//! `firesteel status`: sessions and their last statements.

use std::io::{self, Write};

use clap::ArgMatches;
use firesteel_model::{Session, Statement, StatementState};
use firesteel_session::ports::{Companion, Filter};
use firesteel_store::Scope;
use serde_json::{Map, Value, json};

use crate::client;
use crate::conf::Configuration;
use crate::output::{Look, grid, span};
use crate::problem::Problem;
use crate::stores::Place;

/// Does what the command line asks.
///
/// # Errors
/// The store's.
pub async fn status(matches: &ArgMatches, settings: &Configuration) -> Result<(), Problem> {
    let store = Place::of(settings, false).open(settings, Scope::Requests, true)?;
    let session = settings.session.as_deref().map(client::session_id).transpose()?;
    let limit = usize::from(matches.get_one::<u16>("limit").copied().unwrap_or(20));
    let filter = Filter { session, query_id: None, limit };
    let now = store.time().await?;
    let sessions: Vec<Value> = store.sessions(&filter).await?.iter().map(|s| session_row(&s.value, now)).collect();
    let mut statements = Vec::new();
    for found in store.statements(&filter).await? {
        let companion = store.companion(&found.value.id).await?.map(|c| c.value).unwrap_or_default();
        statements.push(statement_row(&found.value, &companion, now, matches.get_flag("queries")));
    }
    let mut out = io::stdout().lock();
    if matches.get_one::<String>("format").is_some_and(|f| f == "json") {
        for row in sessions.iter().chain(&statements) {
            writeln!(out, "{row}")?;
        }
    } else {
        let look = Look::of_stdout();
        writeln!(out, "{}", table("sessions", SESSION, &sessions, look))?;
        let mut columns = STATEMENT.to_vec();
        if matches.get_flag("queries") {
            columns.push("query");
        }
        writeln!(out, "\n{}", table("statements", &columns, &statements, look))?;
    }
    Ok(())
}

const SESSION: &[&str] = &["session", "state", "data source", "runner", "job", "renewed", "error"];
const STATEMENT: &[&str] = &["query id", "session", "state", "submitted", "rows", "read", "error"];

/// Ages are in milliseconds of the store's time.
fn session_row(session: &Session, now: u64) -> Value {
    json!({
        "type": "session",
        "session": session.id.as_str(),
        "state": session.state.name(),
        "data source": session.data_source,
        "runner": session.owner.as_ref().map(|owner| owner.runner.as_str()),
        "job": session.job.as_ref().map(|job| job.as_str()),
        "renewed": now.saturating_sub(session.last_update),
        "draining": session.draining,
        "error": none_if_empty(&session.error),
    })
}

fn statement_row(statement: &Statement, companion: &Companion, now: u64, with_query: bool) -> Value {
    let error = match &statement.state {
        StatementState::Failed { error } | StatementState::Timeout { error } => code(error),
        _ => None,
    };
    let mut row = json!({
        "type": "statement",
        "query id": statement.query_id.as_ref().map(|id| id.as_str()),
        "statement": statement.id.as_str(),
        "session": statement.session.as_str(),
        "state": statement.state.name(),
        "lang": statement.lang,
        "submitted": now.saturating_sub(statement.submit_time),
        "rows": companion.totals.filter(|_| statement.state == StatementState::Success).map(|totals| totals.rows),
        "read": companion.progress.map(|progress| progress.rows),
        "error": error,
    });
    if with_query && let Some(members) = row.as_object_mut() {
        members.insert("query".to_owned(), Value::from(statement.query.0.as_str()));
    }
    row
}

/// Of an error only its code: its message may quote the statement.
fn code(error: &str) -> Option<String> {
    let json: Option<Map<String, Value>> = serde_json::from_str(error).ok();
    let code = json.as_ref().and_then(|json| json.get("code")).and_then(Value::as_str);
    match (code, error) {
        (Some(code), _) => Some(code.to_owned()),
        (None, "timeout" | "wait timeout" | "session ended") => Some(error.to_owned()),
        (None, "") => None,
        (None, _) => Some("error".to_owned()),
    }
}

fn none_if_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn table(title: &str, columns: &[&str], rows: &[Value], look: Look) -> String {
    if rows.is_empty() {
        return format!("no {title}");
    }
    let numbers: Vec<bool> =
        columns.iter().map(|column| matches!(*column, "rows" | "read" | "renewed" | "submitted")).collect();
    let cell = |row: &Value, column: &str| match &row[column] {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Number(ms) if matches!(column, "renewed" | "submitted") => {
            Some(format!("{} ago", span(ms.as_u64().unwrap_or(0))))
        }
        other => Some(other.to_string()),
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    grid(columns, &numbers, cells, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_its_code_alone() {
        for (error, expected) in [
            (r#"{"message":"no column `secret`","code":"ANALYSIS"}"#, Some("ANALYSIS")),
            ("timeout", Some("timeout")),
            ("Fail to run query: SELECT secret", Some("error")),
            ("", None),
        ] {
            assert_eq!(code(error).as_deref(), expected);
        }
    }
}
