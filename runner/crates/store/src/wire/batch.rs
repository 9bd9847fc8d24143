//! The document of a batch of the control plane, in the state index.

use firesteel_model::batch::BatchState;
use firesteel_model::{JobId, QueryText};
use firesteel_session::ports::control::{Batch, Task};
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;
use super::state::{FORMAT_VERSION, of_kind};

/// The whole document, which is also what a change writes.
#[must_use]
pub fn document(id: &str, batch: &Batch) -> Map<String, Value> {
    object(json!({
        "kind": "jobrun",
        "formatVersion": FORMAT_VERSION,
        "name": batch.name,
        "record": id,
        "user": batch.user,
        "applicationId": batch.application,
        "holders": task(&batch.task).to_string(),
        "jobId": batch.job.as_ref().map_or("", JobId::as_str),
        "state": batch.state.name(),
        "error": batch.error,
        "submitTime": batch.created,
        "lastUpdateTime": batch.updated,
        "instance": batch.instance,
        "peerInstanceClosed": batch.closed_by_peer,
    }))
}

fn task(task: &Task) -> Value {
    match task {
        Task::Session(session) => json!({ "session": session.as_str() }),
        Task::Batch { query_id, query } => json!({ "queryId": query_id, "query": query.0 }),
        Task::Contract { class, conf, query, result_index } => {
            let conf: Vec<&str> = conf.iter().map(|pair| pair.0.as_str()).collect();
            let query = query.as_ref().map(|query| query.0.as_str());
            json!({ "class": class, "conf": conf, "query": query, "resultIndex": result_index })
        }
    }
}

fn read_task(text: &str) -> Result<Task, BadField> {
    let bad = || BadField::new("holders", "what the job is to do, as text");
    let json: Value = serde_json::from_str(text).map_err(|_| bad())?;
    let fields = Fields::of(&json)?;
    if let Some(session) = fields.some_text("session")? {
        return firesteel_model::SessionId::new(session).map(Task::Session).map_err(|_| bad());
    }
    let query = fields.some_text("query")?.map(|query| QueryText(query.to_owned()));
    match fields.some_text("class")? {
        Some(class) => Ok(Task::Contract {
            class: class.to_owned(),
            conf: fields.texts("conf")?.into_iter().map(|pair| QueryText(pair.to_owned())).collect(),
            query,
            result_index: fields.some_text("resultIndex")?.map(str::to_owned),
        }),
        None => Ok(Task::Batch { query_id: fields.text("queryId")?.to_owned(), query: query.unwrap_or_default() }),
    }
}

/// Reads a batch and its id.
///
/// # Errors
/// Names the field that is wrong.
pub fn read(source: &Value) -> Result<(String, Batch), BadField> {
    let fields = of_kind(source, "jobrun")?;
    let state = BatchState::parse(fields.text("state")?);
    let batch = Batch {
        user: fields.text("user")?.to_owned(),
        name: fields.text("name")?.to_owned(),
        application: fields.text("applicationId")?.to_owned(),
        task: read_task(fields.text("holders")?)?,
        job: fields.some_text("jobId")?.and_then(|job| JobId::new(job).ok()),
        state: state.ok_or_else(|| BadField::new("state", "a state of a batch"))?,
        error: fields.text("error")?.to_owned(),
        created: fields.time("submitTime")?,
        updated: fields.time("lastUpdateTime")?,
        instance: fields.text("instance")?.to_owned(),
        closed_by_peer: fields.flag("peerInstanceClosed")?,
    };
    Ok((fields.text("record")?.to_owned(), batch))
}
