//! The session document.

use firesteel_model::session::{Owner, Session, SessionChange, SessionState};
use firesteel_model::{JobId, RunnerId, SessionId};
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};

/// The lease of an owner that names itself but no lease: the longest there is, the peer's.
const UNTOLD_LEASE_MILLIS: u64 = 180_000;

/// The whole document of a new session, renewed at `now`.
#[must_use]
pub fn new(session: &Session, now: u64) -> Map<String, Value> {
    let mut document = object(json!({
        "version": "1.0",
        "type": "session",
        "sessionType": "interactive",
        "sessionId": session.id.as_str(),
        "state": session.state.name(),
        "dataSourceName": session.data_source,
        "applicationId": session.application,
        "jobId": session.job.as_ref().map_or("", JobId::as_str),
        "excludeJobIds": joined(&session.excluded),
        "lastUpdateTime": now,
        "jobStartTime": 0,
        "error": session.error,
    }));
    if let Some(owner) = &session.owner {
        own(&mut document, owner);
    }
    if session.draining {
        document.insert("draining".to_owned(), json!(true));
    }
    document
}

/// The fields that a change writes, at the store's time `now`.
#[must_use]
pub fn change(change: &SessionChange, now: u64) -> Map<String, Value> {
    let mut fields = object(json!({ "lastUpdateTime": now }));
    let mut set = |field: &str, value: Value| {
        fields.insert(field.to_owned(), value);
    };
    match change {
        SessionChange::Own { owner, job, application, excluded } => {
            set("state", json!(SessionState::Running.name()));
            set("jobStartTime", json!(now));
            if let Some(job) = job {
                set("jobId", json!(job.as_str()));
            }
            if let Some(application) = application {
                set("applicationId", json!(application));
            }
            if !excluded.is_empty() {
                set("excludeJobIds", json!(joined(excluded)));
            }
            own(&mut fields, owner);
        }
        SessionChange::Renew => {}
        SessionChange::GiveUp => set("leaseMillis", json!(0)),
        SessionChange::End => set("state", json!(SessionState::Dead.name())),
        SessionChange::Fail { error } => {
            set("state", json!(SessionState::Fail.name()));
            set("error", json!(error));
        }
    }
    fields
}

/// Reads a session.
///
/// # Errors
/// Names the field that is wrong.
pub fn read(id: &SessionId, source: &Value) -> Result<Session, BadField> {
    let fields = Fields::of(source)?;
    if fields.text("type")? != "session" {
        return Err(BadField::new("type", "`session`"));
    }
    let state = match fields.text("state")? {
        "not_started" => SessionState::NotStarted,
        "running" => SessionState::Running,
        "dead" => SessionState::Dead,
        "fail" => SessionState::Fail,
        _ => return Err(BadField::new("state", "one of not_started, running, dead, fail")),
    };
    let owner = match fields.some_text("runnerId")? {
        None => None,
        Some(runner) => Some(Owner {
            runner: RunnerId::new(runner).map_err(|_| BadField::new("runnerId", "an id"))?,
            lease_millis: fields.number("leaseMillis")?.unwrap_or(UNTOLD_LEASE_MILLIS),
        }),
    };
    Ok(Session {
        id: id.clone(),
        state,
        data_source: fields.text("dataSourceName")?.to_owned(),
        application: fields.text("applicationId")?.to_owned(),
        job: fields.some_text("jobId")?.and_then(|j| JobId::new(j).ok()),
        // A name that is too long to be a job's excludes none.
        excluded: fields.names("excludeJobIds")?.into_iter().filter_map(|j| JobId::new(j).ok()).collect(),
        owner,
        last_update: fields.time("lastUpdateTime")?,
        draining: fields.flag("draining")?,
        recovering: fields.some_text("recoverTo")?.is_some(),
        error: fields.text("error")?.to_owned(),
    })
}

fn own(fields: &mut Map<String, Value>, owner: &Owner) {
    fields.insert("runnerId".to_owned(), json!(owner.runner.as_str()));
    fields.insert("leaseMillis".to_owned(), json!(owner.lease_millis));
}

fn joined(jobs: &[JobId]) -> String {
    jobs.iter().map(JobId::as_str).collect::<Vec<_>>().join(",")
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
