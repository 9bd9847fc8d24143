//! `/_plugins/_async_query`, as OpenSearch's SQL plugin has it: create, get, cancel. Ours beyond it: `queryId` and `timeoutMillis` in a
//! request, `cursor` and `sessionId` in an answer, and Arrow's stream for who accepts it.

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use firesteel_session::result::ipc;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Body};
use super::{Shared, rows};
use crate::access::Caller;
use crate::plane::{self, Answer, NewStatement, ResultPage, StatementView};
use crate::refusal::Refusal;

/// What asks for, and is, Arrow's stream.
const ARROW: &str = "application/vnd.apache.arrow.stream";
/// The fields of a request.
const FIELDS: &[&str] = &["datasource", "lang", "query", "sessionId", "queryId", "timeoutMillis"];

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/_plugins/_async_query", post(create))
        .route("/_plugins/_async_query/{id}", get(read).delete(cancel))
}

/// The statement that a body asks for; its session is in the body, or in the path.
pub fn statement(body: &Body) -> Result<NewStatement, Refusal> {
    let id = |field: &str, id: String| plane::statement_id(field, &id);
    Ok(NewStatement {
        id: body.text("queryId")?.map(|text| id("queryId", text)).transpose()?,
        session: body.text("sessionId")?.map(|id| plane::session_id("sessionId", &id)).transpose()?,
        data_source: body.text("datasource")?,
        lang: language(body)?,
        query: body.needed("query")?,
        timeout: body.number("timeoutMillis")?,
    })
}

fn language(body: &Body) -> Result<String, Refusal> {
    let lang = body.text("lang")?.unwrap_or_else(|| "sql".to_owned());
    if lang.is_empty() || lang.len() > 64 {
        return Err(Refusal::Invalid("lang: it should be the name of a language, such as sql".to_owned()));
    }
    Ok(lang)
}

async fn create(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let body = Body::read(&body, FIELDS)?;
    // As the plugin has it: nobody's default is guessed at.
    body.needed("datasource")?;
    body.needed("lang")?;
    let submitted = shared.plane.submit(&caller, statement(&body)?).await?;
    Ok(answer::json(201, &json!({ "queryId": submitted.id.as_str(), "sessionId": submitted.session.as_str() })))
}

/// What may follow the question mark of a result's path.
#[derive(Deserialize)]
pub struct Place {
    cursor: Option<String>,
}

async fn read(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
    headers: HeaderMap,
) -> Response {
    match result(&shared, &caller, &id, &place, &headers).await {
        Ok(response) => response,
        Err(refusal @ Refusal::NotFound { what: "statement", .. }) => unknown(&id, &refusal),
        Err(refusal) => refusal.into_response(),
    }
}

/// The plugin says that a query is unknown with a status of its own.
fn unknown(id: &str, refusal: &Refusal) -> Response {
    let id: String = id.chars().take(80).collect();
    let error = json!({
        "type": "AsyncQueryNotFoundException", "reason": "Invalid Request", "details": format!("QueryId: {id} not found"),
    });
    answer::with_headers(answer::json(400, &json!({ "error": error, "status": 400 })), refusal)
}

/// A result, or what there is of it.
pub async fn result(
    shared: &Shared,
    caller: &Caller,
    id: &str,
    place: &Place,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let page = place.cursor.as_deref().map(page_number).transpose()?;
    let (view, answer) = shared.plane.answer(caller, id, page).await?;
    if let Answer::Page(page) = &answer
        && wants_arrow(headers)
    {
        return arrow(page);
    }
    told(&view, &answer)
}

fn page_number(cursor: &str) -> Result<u32, Refusal> {
    let bad = || Refusal::Invalid("cursor: it should be one that an answer has given".to_owned());
    cursor.strip_prefix('p').ok_or_else(bad)?.parse().map_err(|_| bad())
}

fn wants_arrow(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted.iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(ARROW))
}

fn arrow(page: &ResultPage) -> Result<Response, Refusal> {
    let written = ipc::Stream::begin(Vec::new(), &page.columns).and_then(|mut stream| {
        stream.rows(&page.rows)?;
        stream.end()
    });
    let bytes = written.map_err(|e| Refusal::Broken(e.to_string()))?;
    let mut response = (StatusCode::OK, [(header::CONTENT_TYPE, ARROW)], bytes).into_response();
    if let Some(n) = page.next.and_then(|n| format!("p{n}").parse().ok()) {
        response.headers_mut().insert("x-firesteel-cursor", n);
    }
    Ok(response)
}

fn told(view: &StatementView, answer: &Answer) -> Result<Response, Refusal> {
    let session = view.statement.value.session.as_str();
    match answer {
        Answer::Pending { running } => {
            let status = if *running { "running" } else { "waiting" };
            let mut body = json!({ "status": status, "error": "", "sessionId": session });
            if let Some(progress) = view.companion.progress {
                body["progress"] = json!({
                    "rows": progress.rows, "bytes": progress.bytes, "elapsedMillis": progress.elapsed_millis,
                    "stage": "execute",
                });
            }
            Ok(answer::json(200, &body))
        }
        Answer::Failed { status, error } => {
            Ok(answer::json(200, &json!({ "status": status, "error": error, "sessionId": session })))
        }
        Answer::Page(page) => {
            let columns: Vec<Value> =
                page.columns.iter().map(|c| json!({ "name": c.label(), "type": c.data_type })).collect();
            // Written by hand, because a parsed number has lost digits.
            let mut text = format!(
                r#"{{"status":"SUCCESS","schema":{},"sessionId":{},"total":{},"size":{},"datarows":"#,
                Value::from(columns),
                json!(session),
                page.total,
                page.rows.len()
            );
            rows::append(&mut text, &page.columns, &page.rows)?;
            if let Some(next) = page.next {
                text.push_str(&format!(r#","cursor":"p{next}""#));
            }
            if page.truncated {
                text.push_str(r#","truncated":true"#);
            }
            text.push('}');
            Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/json; charset=UTF-8")], text).into_response())
        }
    }
}

async fn cancel(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match shared.plane.cancel(&caller, &id).await {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal @ Refusal::NotFound { .. }) => unknown(&id, &refusal),
        Err(refusal) => refusal.into_response(),
    }
}
