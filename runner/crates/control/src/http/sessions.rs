//! `/async_query/sessions`: sessions and their statements, with all that the control plane knows of them.

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use firesteel_model::{Statement, StatementState, Stored};
use firesteel_session::ports::control::Listing;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::answer::{self, Body};
use super::async_query::{self, Place};
use crate::access::Caller;
use crate::plane::{self, NewSession, SessionView};
use crate::refusal::Refusal;

/// The fields of a request for a session.
const SESSION: &[&str] = &["sessionId", "name", "datasource", "applicationId", "idleTimeoutMillis", "lifetimeMillis"];
/// The fields of a statement for a session that the path names.
const STATEMENT: &[&str] = &["datasource", "lang", "query", "queryId", "timeoutMillis"];
/// How many a listing shows unless it is asked for more, and how many at most.
const SHOWN: (usize, usize) = (100, 10_000);
/// The lines of a log that are shown unless more are asked for, and how many at most.
const LINES: (usize, usize) = (100, 10_000);
/// The longest that closing may wait, in milliseconds.
const LONGEST_WAIT: u64 = 24 * 3_600_000;

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/async_query/sessions", get(list).post(allocate))
        .route("/async_query/sessions/{id}", get(read).delete(close).post(recover))
        .route("/async_query/sessions/{id}/log", get(log))
        .route("/async_query/sessions/{id}/statements", get(statements).post(submit))
        .route("/async_query/sessions/{id}/statements/{statement}", get(statement))
        .route("/async_query/sessions/{id}/statements/{statement}/cancel", post(cancel))
}

/// A session as this API tells of it.
fn told(view: &SessionView) -> Value {
    let (session, allocation) = (&view.session.value, &view.allocation);
    json!({
        "sessionId": session.id.as_str(),
        "name": allocation.name,
        "state": session.state.name(),
        "datasource": session.data_source,
        "applicationId": session.application,
        "jobId": session.job.as_ref().map_or("", |job| job.as_str()),
        "user": allocation.user,
        "created": allocation.created,
        "lastUpdateTime": session.last_update,
        "draining": session.draining,
        "recovering": session.recovering,
        "recoveredFrom": allocation.recovered_from.as_ref().map_or("", |id| id.as_str()),
        "error": session.error,
    })
}

fn told_statement(statement: &Stored<Statement>) -> Value {
    let statement = &statement.value;
    let error = match &statement.state {
        StatementState::Failed { error } | StatementState::Timeout { error } => error.as_str(),
        _ => "",
    };
    json!({
        "statementId": statement.id.as_str(),
        "queryId": statement.query_id.as_ref().map_or("", |id| id.as_str()),
        "sessionId": statement.session.as_str(),
        "state": statement.state.name(),
        "lang": statement.lang,
        "datasource": statement.data_source,
        "submitTime": statement.submit_time,
        "error": error,
    })
}

/// What may follow the question mark of a listing's path.
#[derive(Deserialize)]
struct Shown {
    state: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

impl Shown {
    fn listing(&self, states: &[&str]) -> Result<Listing, Refusal> {
        let asked: Vec<String> =
            self.state.iter().flat_map(|text| text.split(',')).map(|state| state.trim().to_owned()).collect();
        if let Some(unknown) = asked.iter().find(|state| !states.contains(&state.as_str())) {
            let unknown: String = unknown.chars().take(40).collect();
            return Err(Refusal::Invalid(format!(
                "state: `{}` is none of {}",
                unknown.escape_debug(),
                states.join(", ")
            )));
        }
        let limit = self.limit.unwrap_or(SHOWN.0);
        if limit == 0 || limit > SHOWN.1 {
            return Err(Refusal::Invalid(format!("limit: from 1 to {}", SHOWN.1)));
        }
        Ok(Listing { session: None, states: asked, up_to: self.cursor()?.map(|(time, _)| time), limit })
    }

    /// The time that the last page ended at, and those of that time which it has shown.
    fn cursor(&self) -> Result<Option<(u64, Vec<String>)>, Refusal> {
        let bad = || Refusal::Invalid("cursor: it should be one that an answer has given".to_owned());
        self.cursor.as_deref().map(|text| serde_json::from_str(text).map_err(|_| bad())).transpose()
    }

    /// One page of what was found: without what the last page has shown, and with the cursor of the next one.
    fn page<T>(
        &self,
        found: Vec<T>,
        limit: usize,
        key: impl Fn(&T) -> (u64, String),
    ) -> Result<(Vec<T>, Option<String>), Refusal> {
        let shown = self.cursor()?.map(|(_, ids)| ids).unwrap_or_default();
        let more = found.len() > limit + shown.len();
        let mut page: Vec<T> = found.into_iter().filter(|item| !shown.contains(&key(item).1)).collect();
        page.truncate(limit);
        let Some(last) = page.last().map(|item| key(item).0).filter(|_| more) else { return Ok((page, None)) };
        let before = self.cursor()?.filter(|(time, _)| *time == last).map(|(_, ids)| ids).unwrap_or_default();
        let ids = page.iter().map(&key).filter(|(time, _)| *time == last).map(|(_, id)| id);
        let ids: Vec<String> = before.into_iter().chain(ids).collect();
        Ok((page, Some(json!([last, ids]).to_string())))
    }

    /// As many as a page has, those that the last one has shown, and one more, which tells that there is a next one.
    fn asked(&self, listing: &Listing) -> Result<Listing, Refusal> {
        let shown = self.cursor()?.map_or(0, |(_, ids)| ids.len());
        Ok(Listing { limit: listing.limit + shown + 1, ..listing.clone() })
    }
}

fn listed(what: &str, items: Vec<Value>, cursor: Option<String>) -> Response {
    let mut body = json!({ what: items });
    if let Some(cursor) = cursor {
        body["cursor"] = json!(cursor);
    }
    answer::json(200, &body)
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(shown): Query<Shown>,
) -> Result<Response, Refusal> {
    let listing = shown.listing(&["not_started", "running", "dead", "fail"])?;
    let found = shared.plane.sessions(&caller, &shown.asked(&listing)?).await?;
    let key = |view: &SessionView| (view.session.value.last_update, view.session.value.id.to_string());
    let (page, cursor) = shown.page(found, listing.limit, key)?;
    Ok(listed("sessions", page.iter().map(told).collect(), cursor))
}

async fn allocate(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let body = Body::read(&body, SESSION)?;
    let new = NewSession {
        id: body.text("sessionId")?.map(|id| plane::session_id("sessionId", &id)).transpose()?,
        name: body.text("name")?.unwrap_or_default(),
        data_source: body.text("datasource")?,
        application: body.text("applicationId")?,
        idle_timeout: body.number("idleTimeoutMillis")?,
        lifetime: body.number("lifetimeMillis")?,
        recovered_from: None,
    };
    Ok(answer::json(201, &told(&shared.plane.allocate(&caller, new).await?)))
}

async fn read(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let view = shared.plane.session(&caller, &plane::session_id("sessionId", &id)?).await?;
    Ok(answer::json(200, &told(&view)))
}

#[derive(Deserialize)]
struct Wait {
    wait: Option<String>,
}

/// A time such as `30mins`, `30min`, `10s`, `500ms`, in milliseconds.
fn time(field: &str, text: &str) -> Result<u64, Refusal> {
    let bad = || Refusal::Invalid(format!("{field}: it should be a time such as 30mins, 10s or 500ms"));
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let unit = match &text[digits..] {
        "ms" | "millis" => 1,
        "s" | "sec" | "secs" => 1_000,
        "m" | "min" | "mins" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        _ => return Err(bad()),
    };
    Ok(number.saturating_mul(unit))
}

async fn close(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(wait): Query<Wait>,
) -> Result<Response, Refusal> {
    let wait = wait.wait.as_deref().map_or(Ok(0), |text| time("wait", text))?;
    if wait > LONGEST_WAIT {
        return Err(Refusal::Invalid("wait: at most 24hours".to_owned()));
    }
    let closed = shared.plane.close(&caller, &plane::session_id("sessionId", &id)?, wait).await?;
    Ok(answer::json(200, &told(&closed)))
}

/// What may follow the question mark of a session's path where it is recovered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recover {
    recover: Option<bool>,
    application_id: Option<String>,
    wait: Option<String>,
}

async fn recover(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(asked): Query<Recover>,
) -> Result<Response, Refusal> {
    if asked.recover != Some(true) {
        return Err(Refusal::Invalid("a session is posted to with ?recover=true&applicationId=…".to_owned()));
    }
    let wait = asked.wait.as_deref().map_or(Ok(0), |text| time("wait", text))?;
    let id = plane::session_id("sessionId", &id)?;
    let application = asked.application_id.filter(|id| !id.is_empty());
    let recovered = shared.plane.recover(&caller, &id, application, wait.min(LONGEST_WAIT)).await?;
    Ok(answer::json(200, &told(&recovered)))
}

#[derive(Deserialize)]
struct Lines {
    lines: Option<usize>,
}

async fn log(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(lines): Query<Lines>,
) -> Result<Response, Refusal> {
    let view = shared.plane.session(&caller, &plane::session_id("sessionId", &id)?).await?;
    let lines = shared.plane.log(&caller, &view.session.value, lines.lines.unwrap_or(LINES.0).min(LINES.1)).await?;
    Ok(answer::json(200, &json!({ "sessionId": id, "log": lines })))
}

async fn statements(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Response, Refusal> {
    let states = ["waiting", "running", "success", "failed", "timeout", "cancelled"];
    let listing = Listing { session: Some(plane::session_id("sessionId", &id)?), ..shown.listing(&states)? };
    let found = shared.plane.statements(&caller, &shown.asked(&listing)?).await?;
    let key = |statement: &Stored<Statement>| (statement.value.submit_time, statement.value.id.to_string());
    let (page, cursor) = shown.page(found, listing.limit, key)?;
    Ok(listed("statements", page.iter().map(told_statement).collect(), cursor))
}

async fn submit(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let mut new = async_query::statement(&Body::read(&body, STATEMENT)?)?;
    new.session = Some(plane::session_id("sessionId", &id)?);
    let submitted = shared.plane.submit(&caller, new).await?;
    Ok(answer::json(201, &json!({ "queryId": submitted.id.as_str(), "sessionId": submitted.session.as_str() })))
}

async fn statement(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, statement)): Path<(String, String)>,
    Query(place): Query<Place>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    shared.plane.look(&caller, &plane::session_id("sessionId", &id)?, &statement).await?;
    async_query::result(&shared, &caller, &statement, &place, &headers).await
}

async fn cancel(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, statement)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    shared.plane.look(&caller, &plane::session_id("sessionId", &id)?, &statement).await?;
    let state = shared.plane.cancel(&caller, &statement).await?;
    Ok(answer::json(200, &json!({ "queryId": statement, "state": state.name() })).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_with_a_unit() {
        let read = |text| time("wait", text).ok();
        let texts = ["30mins", "10s", "500ms", "1hour", "30", "", "mins", "-1s", "1 s"];
        assert_eq!(
            texts.map(read),
            [Some(1_800_000), Some(10_000), Some(500), Some(3_600_000), None, None, None, None, None]
        );
    }

    #[test]
    fn pages_of_a_listing_show_everything_once_though_times_are_equal() {
        let all: Vec<(u64, &str)> = vec![(9, "a"), (7, "b"), (7, "c"), (7, "d"), (7, "e"), (3, "f")];
        let mut shown = Shown { state: None, limit: Some(2), cursor: None };
        let mut seen = Vec::new();
        for _ in 0..4 {
            let listing = shown.listing(&[]).expect("a listing");
            let asked = shown.asked(&listing).expect("a cursor");
            let found: Vec<_> = all
                .iter()
                .filter(|(time, _)| asked.up_to.is_none_or(|up| *time <= up))
                .take(asked.limit)
                .copied()
                .collect();
            let (page, cursor) = shown.page(found, 2, |(time, id)| (*time, (*id).to_owned())).expect("a page");
            seen.extend(page.iter().map(|(_, id)| *id));
            shown.cursor = cursor;
            if shown.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e", "f"]);
    }
}
