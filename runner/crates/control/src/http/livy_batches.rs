//! Livy's batches: jobs by the launch contract under the numbers that its clients call them by. One that was made here is the batch `livy-batch-N`.

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use firesteel_model::QueryText;
use firesteel_model::batch::BatchState;
use firesteel_session::ports::control::Task;
use serde_json::{Value, json};

use super::answer::Body;
use super::livy::{Part, said};
use super::{Shared, emr};
use crate::access::Caller;
use crate::plane::{BatchView, NewBatch};
use crate::refusal::Refusal;

/// How many batches are looked through.
const MOST: usize = 10_000;
/// What begins the id of a batch that was made here.
const PREFIX: &str = "livy-batch-";

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/batches", get(list).post(submit))
        .route("/batches/{id}", get(read).delete(close))
        .route("/batches/{id}/state", get(state))
        .route("/batches/{id}/log", get(log))
}

fn batch_id(number: &str) -> Result<String, Refusal> {
    let known: u64 = number.parse().map_err(|_| Refusal::not_found("batch", number))?;
    Ok(format!("{PREFIX}{known}"))
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix(PREFIX)?.parse().ok()
}

/// Livy's word for where a batch stands.
fn word(state: BatchState) -> &'static str {
    match state {
        BatchState::Pending | BatchState::Submitting => "starting",
        BatchState::Running => "running",
        BatchState::Finished => "success",
        BatchState::Error => "dead",
        BatchState::Killed => "killed",
    }
}

fn told(view: &BatchView) -> Value {
    let batch = &view.batch;
    json!({
        "id": number_of(&view.id),
        "name": batch.name,
        "appId": batch.job.as_ref().map_or("", |job| job.as_str()),
        "owner": batch.user,
        "proxyUser": batch.user,
        "state": word(view.state),
        "appInfo": {},
        "log": if batch.error.is_empty() { json!([]) } else { json!([batch.error]) },
    })
}

/// What a batch is to do: the class, its arguments, and Spark's settings. `file` is the jar, in whose place this program stands.
fn task(body: &Body) -> Result<Task, Refusal> {
    let texts = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let arguments = match body.get("args") {
        None => Vec::new(),
        Some(args) => texts(args).ok_or_else(|| Refusal::Invalid("args: they should be texts".to_owned()))?,
    };
    let mut conf = Vec::new();
    if let Some(settings) = body.get("conf") {
        let bad = || Refusal::Invalid("conf: it should be an object of texts, numbers and truths".to_owned());
        for (key, value) in settings.as_object().ok_or_else(bad)? {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(bad()),
            };
            conf.push(QueryText(format!("{key}={value}")));
        }
    }
    emr::task("className", body.text("className")?.unwrap_or_default(), conf, &arguments)
}

async fn submit(State(shared): State<Shared>, Extension(caller): Extension<Caller>, body: Bytes) -> Response {
    let made = async {
        let body = Body::read_any(&body)?;
        let (task, name) = (task(&body)?, body.text("name")?.unwrap_or_default());
        caller.may_change()?;
        let number = shared.plane.next_number("livy-batch").await?;
        let application = shared.plane.settings.application.clone();
        let new = NewBatch { id: Some(format!("{PREFIX}{number}")), name, application, task };
        Ok((201, told(&shared.plane.submit_batch(&caller, new).await?)))
    };
    said(made.await)
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(part): Query<Part>,
) -> Response {
    let listed = async {
        let views = shared.plane.batches(&caller, MOST).await?;
        let mut numbered: Vec<(u64, BatchView)> =
            views.into_iter().filter_map(|view| Some((number_of(&view.id)?, view))).collect();
        numbered.sort_by_key(|(number, _)| *number);
        let total = numbered.len();
        let (from, page) = part.of(numbered);
        let sessions: Vec<Value> = page.iter().map(|(_, view)| told(view)).collect();
        Ok((200, json!({ "from": from, "total": total, "sessions": sessions })))
    };
    said(listed.await)
}

async fn read(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let found = async { Ok((200, told(&shared.plane.batch(&caller, &batch_id(&id)?).await?))) };
    said(found.await)
}

async fn state(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let found = async {
        let view = shared.plane.batch(&caller, &batch_id(&id)?).await?;
        Ok((200, json!({ "id": number_of(&view.id), "state": word(view.state) })))
    };
    said(found.await)
}

async fn log(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let found = async {
        let batch = batch_id(&id)?;
        let lines = shared.plane.batch_log(&caller, &batch, MOST).await?;
        Ok((200, part.of_log(number_of(&batch), lines)))
    };
    said(found.await)
}

async fn close(State(shared): State<Shared>, Extension(caller): Extension<Caller>, Path(id): Path<String>) -> Response {
    let closed = async {
        shared.plane.close_batch(&caller, &batch_id(&id)?).await?;
        Ok((200, json!({ "msg": "deleted" })))
    };
    said(closed.await)
}
