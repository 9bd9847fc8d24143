//! Livy's API: sessions, their statements, logs and states, under the numbers that its clients call them by. A session that was made here is
//! `livy-N`, its statement M is the query `livy-N-M`.

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use firesteel_model::{SessionState, Statement, StatementState, Stored};
use firesteel_session::ports::control::Listing;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Body};
use super::{Shared, rows};
use crate::access::Caller;
use crate::plane::{self, Answer, NewSession, NewStatement, SessionView, StatementView};
use crate::refusal::Refusal;

/// How many a listing has unless it is asked for another number, and at most.
const SHOWN: (usize, usize) = (20, 1_000);
/// How many lines of a log are shown unless it is asked for another number.
const LINES: usize = 100;
/// How many sessions, and lines of a log, are looked through.
const MOST: usize = 10_000;
/// What begins the id of a session that was made here.
const PREFIX: &str = "livy-";

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/version", get(|| async { answer::json(200, &json!({ "version": "0.8.0", "user": "firesteel" })) }))
        .route("/sessions", get(list).post(allocate))
        .route("/sessions/{id}", get(read).delete(close))
        .route("/sessions/{id}/state", get(state))
        .route("/sessions/{id}/log", get(log))
        .route("/sessions/{id}/statements", get(statements).post(submit))
        .route("/sessions/{id}/statements/{statement}", get(statement))
        .route("/sessions/{id}/statements/{statement}/cancel", post(cancel))
}

pub fn said(answer: Result<(u16, Value), Refusal>) -> Response {
    match answer {
        Ok((status, body)) => answer::json(status, &body),
        Err(refusal) => failed(&refusal),
    }
}

/// Whether a path is of Livy's API.
pub fn is_path(path: &str) -> bool {
    ["/sessions", "/batches"]
        .iter()
        .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// A refusal as Livy's clients read it.
pub fn failed(refusal: &Refusal) -> Response {
    answer::with_headers(answer::json(refusal.status(), &json!({ "msg": refusal.to_string() })), refusal)
}

fn session_id(number: &str) -> Result<firesteel_model::SessionId, Refusal> {
    let known: u64 = number.parse().map_err(|_| Refusal::not_found("session", number))?;
    plane::session_id("id", &format!("{PREFIX}{known}"))
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix(PREFIX)?.parse().ok()
}

/// Livy's word for how a session is.
fn word(state: SessionState, busy: bool) -> &'static str {
    match state {
        SessionState::NotStarted => "starting",
        SessionState::Running if busy => "busy",
        SessionState::Running => "idle",
        SessionState::Dead => "dead",
        SessionState::Fail => "error",
    }
}

async fn is_busy(shared: &Shared, view: &SessionView) -> Result<bool, Refusal> {
    let session = &view.session.value;
    if session.state != SessionState::Running {
        return Ok(false);
    }
    Ok(!shared.plane.store.open_statements(&session.id, 1).await?.statements.is_empty())
}

async fn told(shared: &Shared, view: &SessionView) -> Result<Value, Refusal> {
    let session = &view.session.value;
    let busy = is_busy(shared, view).await?;
    Ok(json!({
        "id": number_of(session.id.as_str()),
        "name": view.allocation.name,
        "appId": session.job.as_ref().map_or("", |job| job.as_str()),
        "owner": view.allocation.user,
        "proxyUser": view.allocation.user,
        "kind": "sql",
        "state": word(session.state, busy),
        "appInfo": {},
        "log": if session.error.is_empty() { json!([]) } else { json!([session.error]) },
    }))
}

async fn view(shared: &Shared, caller: &Caller, number: &str) -> Result<SessionView, Refusal> {
    shared.plane.session(caller, &session_id(number)?).await
}

async fn allocate(State(shared): State<Shared>, Extension(caller): Extension<Caller>, body: Bytes) -> Response {
    let made = async {
        let body = Body::read_any(&body)?;
        // Spark's other kinds are programs, which nothing here runs.
        let kind = body.text("kind")?.unwrap_or_else(|| "sql".to_owned());
        if !matches!(kind.as_str(), "sql" | "spark" | "shared") {
            return Err(Refusal::Invalid("kind: sql is the only one whose statements can be run".to_owned()));
        }
        caller.may_change()?;
        let number = shared.plane.next_number("livy").await?;
        let new = NewSession {
            id: Some(session_id(&number.to_string())?),
            name: body.text("name")?.unwrap_or_default(),
            idle_timeout: body.number("heartbeatTimeoutInSecond")?.filter(|s| *s > 0).map(|seconds| seconds * 1_000),
            ..NewSession::default()
        };
        let view = shared.plane.allocate(&caller, new).await?;
        Ok((201, told(&shared, &view).await?))
    };
    said(made.await)
}

/// What part of a listing or of a log is asked for.
#[derive(Deserialize)]
pub struct Part {
    from: Option<usize>,
    size: Option<usize>,
}

impl Part {
    pub fn of<T>(&self, all: Vec<T>) -> (usize, Vec<T>) {
        let (from, size) = (self.from.unwrap_or(0), self.size.unwrap_or(SHOWN.0).min(SHOWN.1));
        (from, all.into_iter().skip(from).take(size).collect())
    }

    /// The lines from a number on, or the last ones if none is named.
    pub fn of_log(&self, id: Option<u64>, mut lines: Vec<String>) -> Value {
        let (total, size) = (lines.len(), self.size.unwrap_or(LINES));
        let from = self.from.unwrap_or(total.saturating_sub(size)).min(total);
        let shown: Vec<String> = lines.drain(from..).take(size).collect();
        json!({ "id": id, "from": from, "total": total, "log": shown })
    }
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(part): Query<Part>,
) -> Response {
    let listed = async {
        let states = ["not_started", "running"].map(str::to_owned).to_vec();
        let all = shared.plane.sessions(&caller, &Listing { states, limit: MOST, ..Listing::default() }).await?;
        let mut numbered: Vec<(u64, SessionView)> =
            all.into_iter().filter_map(|view| Some((number_of(view.session.value.id.as_str())?, view))).collect();
        numbered.sort_by_key(|(number, _)| *number);
        let total = numbered.len();
        let (from, page) = part.of(numbered);
        let mut sessions = Vec::new();
        for (_, view) in page {
            sessions.push(told(&shared, &view).await?);
        }
        Ok((200, json!({ "from": from, "total": total, "sessions": sessions })))
    };
    said(listed.await)
}

async fn read(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let found = async { Ok((200, told(&shared, &view(&shared, &caller, &id).await?).await?)) };
    said(found.await)
}

async fn state(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let found = async {
        let told = told(&shared, &view(&shared, &caller, &id).await?).await?;
        Ok((200, json!({ "id": told["id"], "state": told["state"] })))
    };
    said(found.await)
}

async fn close(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let closed = async {
        shared.plane.close(&caller, &session_id(&id)?, 0).await?;
        Ok((200, json!({ "msg": "deleted" })))
    };
    said(closed.await)
}

async fn log(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let found = async {
        let view = view(&shared, &caller, &id).await?;
        let lines = shared.plane.log(&caller, &view.session.value, MOST).await?;
        Ok((200, part.of_log(number_of(view.session.value.id.as_str()), lines)))
    };
    said(found.await)
}

fn statement_number(id: &str) -> Option<u64> {
    id.rsplit_once('-')?.1.parse().ok()
}

fn query_id(session: &firesteel_model::SessionId, number: &str) -> Result<String, Refusal> {
    let known: u64 = number.parse().map_err(|_| Refusal::not_found("statement", number))?;
    Ok(format!("{session}-{known}"))
}

async fn submit(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    let made = async {
        let body = Body::read_any(&body)?;
        let session = session_id(&id)?;
        // Livy says so; it never makes a session in another's place.
        let view = shared.plane.session(&caller, &session).await?;
        if view.session.value.state.is_ended() {
            let state = word(view.session.value.state, false);
            return Err(Refusal::Invalid(format!("session {id} is {state}; make another one")));
        }
        let number = shared.plane.next_number(session.as_str()).await?;
        let query = query_id(&session, &number.to_string())?;
        let new = NewStatement {
            id: Some(plane::statement_id("id", &query)?),
            session: Some(session.clone()),
            lang: "sql".to_owned(),
            query: body.needed("code")?,
            ..NewStatement::default()
        };
        shared.plane.submit(&caller, new).await?;
        Ok((201, described(&shared, &caller, &query).await?))
    };
    said(made.await)
}

/// A statement with its output, if it has one.
async fn described(shared: &Shared, caller: &Caller, query: &str) -> Result<Value, Refusal> {
    let (view, answer) = shared.plane.answer(caller, query, None).await?;
    let StatementView { statement, .. } = &view;
    let (state, output) = match &answer {
        Answer::Pending { running: false } => ("waiting", Value::Null),
        Answer::Pending { running: true } => ("running", Value::Null),
        Answer::Failed { status: "cancelled", .. } => ("cancelled", Value::Null),
        Answer::Failed { error, .. } => {
            let json: Value = serde_json::from_str(error).unwrap_or_default();
            let (code, message) = (json["code"].as_str().unwrap_or("Error"), json["message"].as_str().unwrap_or(error));
            ("available", json!({ "status": "error", "ename": code, "evalue": message, "traceback": [] }))
        }
        Answer::Page(page) => {
            let field =
                |name: &str, kind: &str| json!({ "name": name, "type": kind, "nullable": true, "metadata": {} });
            let fields: Vec<Value> = page.columns.iter().map(|c| field(c.label(), &c.data_type)).collect();
            let mut text = String::new();
            rows::append(&mut text, &page.columns, &page.rows)?;
            let data: Value = serde_json::from_str(&text).map_err(|e| Refusal::Broken(format!("the result: {e}")))?;
            let table = json!({ "schema": { "type": "struct", "fields": fields }, "data": data });
            ("available", json!({ "status": "ok", "data": { "application/json": table } }))
        }
    };
    let mut output = output;
    if let Some(output) = output.as_object_mut() {
        output.insert("execution_count".to_owned(), json!(statement_number(statement.value.id.as_str())));
    }
    Ok(json!({
        "id": statement_number(statement.value.id.as_str()),
        "code": statement.value.query.0,
        "state": state,
        "output": output,
        "progress": if state == "available" { 1.0 } else { 0.0 },
        "started": statement.value.submit_time,
        "completed": 0,
    }))
}

async fn statements(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let listed = async {
        let listing = Listing { session: Some(session_id(&id)?), limit: MOST, ..Listing::default() };
        let mut all: Vec<Stored<Statement>> = shared.plane.statements(&caller, &listing).await?;
        all.reverse();
        let total = all.len();
        let (_, page) = part.of(all);
        let mut statements = Vec::new();
        for statement in page {
            statements.push(described(&shared, &caller, statement.value.id.as_str()).await?);
        }
        Ok((200, json!({ "total_statements": total, "statements": statements })))
    };
    said(listed.await)
}

async fn statement(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, number)): Path<(String, String)>,
) -> Response {
    let found = async { Ok((200, described(&shared, &caller, &query_id(&session_id(&id)?, &number)?).await?)) };
    said(found.await)
}

async fn cancel(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, number)): Path<(String, String)>,
) -> Response {
    let cancelled = async {
        match shared.plane.cancel(&caller, &query_id(&session_id(&id)?, &number)?).await? {
            StatementState::Cancelled => Ok((200, json!({ "msg": "canceled" }))),
            state => Err(Refusal::Invalid(format!("statement {number} has ended before: {}", state.name()))),
        }
    };
    said(cancelled.await)
}
