//! `firesteel status`: sessions and their last statements.

use std::io::{self, Write};

use clap::ArgMatches;
use firesteel_model::{Session, Statement, StatementState};
use firesteel_session::ports::{Companion, Filter, StoreError};
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
    let place = Place::of(settings, false);
    if let Place::Sqlite(file) = &place
        && !file.exists()
    {
        let (file, option) = (file.display(), place.option());
        let message = format!("no store at {file}: start one with `firesteel run{option}`");
        return Err(Problem::Store(StoreError::Refused(message)));
    }
    let store = place.open(settings, Scope::Requests, true)?;
    let session = settings.session.as_deref().map(client::session_id).transpose()?;
    let limit = usize::from(matches.get_one::<u16>("limit").copied().unwrap_or(20));
    let filter = Filter { session, query_id: None, limit };
    let now = store.time().await?;
    // A search may lag behind what was written: it says which there are, and each is then read.
    let mut sessions = Vec::new();
    for found in store.sessions(&filter).await? {
        let read = store.session(&found.value.id).await?.unwrap_or(found);
        sessions.push(session_row(&read.value, now));
    }
    let mut statements = Vec::new();
    for found in store.statements(&filter).await? {
        let read = store.watch(&found.value.session, &found.value.id).await?;
        let companion = read.companion.map(|companion| companion.value).unwrap_or_default();
        let statement = read.statement.unwrap_or(found).value;
        statements.push(statement_row(&statement, &companion, now, matches.get_flag("queries")));
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
            columns.push(("query", "query"));
        }
        writeln!(out, "\n{}", table("statements", &columns, &statements, look))?;
    }
    Ok(())
}

/// A member of the rows, and what stands above its column.
type Shown = (&'static str, &'static str);

const SESSION: &[Shown] = &[
    ("sessionId", "session"),
    ("state", "state"),
    ("dataSourceName", "data source"),
    ("runnerId", "runner"),
    ("jobId", "job"),
    ("renewedMillisAgo", "renewed"),
    ("error", "error"),
];
const STATEMENT: &[Shown] = &[
    ("queryId", "query id"),
    ("sessionId", "session"),
    ("state", "state"),
    ("submittedMillisAgo", "submitted"),
    ("rows", "rows"),
    ("rowsRead", "read"),
    ("error", "error"),
];

/// Ages are in milliseconds of the store's time.
fn session_row(session: &Session, now: u64) -> Value {
    json!({
        "type": "session",
        "sessionId": session.id.as_str(),
        "state": session.state.name(),
        "dataSourceName": session.data_source,
        "runnerId": session.owner.as_ref().map(|owner| owner.runner.as_str()),
        "jobId": session.job.as_ref().map(|job| job.as_str()),
        "renewedMillisAgo": now.saturating_sub(session.last_update),
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
        "queryId": statement.query_id.as_ref().map(|id| id.as_str()),
        "statementId": statement.id.as_str(),
        "sessionId": statement.session.as_str(),
        "state": statement.state.name(),
        "lang": statement.lang,
        "submittedMillisAgo": now.saturating_sub(statement.submit_time),
        "rows": companion.totals.filter(|_| statement.state == StatementState::Success).map(|totals| totals.rows),
        "rowsRead": companion.progress.map(|progress| progress.rows),
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

fn table(title: &str, columns: &[Shown], rows: &[Value], look: Look) -> String {
    if rows.is_empty() {
        return format!("no {title}");
    }
    let is_age = |member: &str| member.ends_with("MillisAgo");
    let numbers: Vec<bool> = columns.iter().map(|(member, _)| is_age(member) || member.starts_with("rows")).collect();
    let cell = |row: &Value, member: &str| match &row[member] {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Number(ms) if is_age(member) => Some(format!("{} ago", span(ms.as_u64().unwrap_or(0)))),
        other => Some(other.to_string()),
    };
    let cells = rows.iter().map(|row| columns.iter().map(|(member, _)| cell(row, member)).collect()).collect();
    let header: Vec<&str> = columns.iter().map(|(_, above)| *above).collect();
    grid(&header, &numbers, cells, look)
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
