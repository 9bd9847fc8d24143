//! EMR Serverless' API of job runs, as its clients speak it: OpenSearch's SQL plugin launches its jobs by it. A job run is a batch here; what it
//! is told to do is the launch contract's, of which only what a caller may say is passed on.

use axum::Router;
use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use firesteel_model::QueryText;
use firesteel_model::batch::BatchState;
use firesteel_session::ports::control::Task;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Shared;
use super::answer::{self, Body};
use crate::access::Caller;
use crate::launch::UNUSED_OPTIONS;
use crate::plane::{BatchView, NewBatch};
use crate::refusal::Refusal;

/// The classes whose place this program takes.
const CLASSES: [&str; 2] = ["org.apache.spark.sql.FlintREPL", "org.apache.spark.sql.FlintJob"];
/// How many job runs a listing has at most.
const MOST: usize = 50;

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/applications/{application}/jobruns", post(start).get(list))
        .route("/applications/{application}/jobruns/{id}", get(read).delete(cancel))
}

/// What the paths of this API begin with.
pub const ROOT: &str = "/applications/";

/// A refusal as AWS's clients read it.
pub fn failed(refusal: &Refusal) -> Response {
    let kind = match refusal {
        Refusal::Invalid(_) | Refusal::NoDataSource { .. } => "ValidationException",
        Refusal::Unauthenticated(_) | Refusal::Forbidden(_) => "AccessDeniedException",
        Refusal::NotFound { .. } => "ResourceNotFoundException",
        Refusal::Conflict(_) => "ConflictException",
        Refusal::Limit { .. } => "ThrottlingException",
        Refusal::NoStore(_) | Refusal::NotLaunched(_) | Refusal::Broken(_) => "InternalServerException",
    };
    let status = if matches!(refusal, Refusal::Unauthenticated(_)) { 403 } else { refusal.status() };
    let mut response = answer::with_headers(answer::json(status, &json!({ "message": refusal.to_string() })), refusal);
    response.headers_mut().insert("x-amzn-errortype", axum::http::HeaderValue::from_static(kind));
    response
}

fn or_failed(answer: Result<Value, Refusal>) -> Response {
    match answer {
        Ok(body) => answer::json(200, &body),
        Err(refusal) => failed(&refusal),
    }
}

fn arn(application: &str, id: &str) -> String {
    format!("arn:aws:emr-serverless:local:000000000000:/applications/{application}/jobruns/{id}")
}

fn state(state: BatchState) -> &'static str {
    match state {
        BatchState::Pending | BatchState::Submitting => "PENDING",
        BatchState::Running => "RUNNING",
        BatchState::Finished => "SUCCESS",
        BatchState::Error => "FAILED",
        BatchState::Killed => "CANCELLED",
    }
}

/// The words of a submit-parameter string; a quoted part belongs to its word, its quotes and escapes included.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                word.push(c);
                word.extend(chars.next());
            }
            c if c.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                quoted ^= c == '"';
                word.push(c);
            }
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// What a caller may say of a job: the class, and Spark's settings. The rest of the command line is the operator's.
fn contract(parameters: &str, arguments: &[String]) -> Result<Task, Refusal> {
    let bad = |what: String| Refusal::Invalid(format!("sparkSubmitParameters: {what}"));
    let (mut class, mut conf) = (String::new(), Vec::new());
    let mut words = words(parameters).into_iter();
    while let Some(option) = words.next() {
        let (option, value) = match option.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
            _ => (option, None),
        };
        let shown: String = option.chars().take(40).collect::<String>().escape_debug().to_string();
        let value = value.or_else(|| words.next()).ok_or_else(|| bad(format!("`{shown}` has no value")))?;
        match option.as_str() {
            "--class" => class = value,
            "--conf" => conf.push(QueryText(value)),
            option if option.starts_with("--") && !option.starts_with("--firesteel") => {
                // What else `spark-submit` takes means nothing here.
                if !UNUSED_OPTIONS.contains(&option) {
                    return Err(bad(format!("`{shown}` is none of spark-submit's options that are known here")));
                }
            }
            _ => return Err(bad(format!("`{shown}` is no option"))),
        }
    }
    task("sparkSubmitParameters", class, conf, arguments)
}

/// What a job of the contract is to do; `field` is where its class is to be named.
pub fn task(field: &str, class: String, conf: Vec<QueryText>, arguments: &[String]) -> Result<Task, Refusal> {
    if !CLASSES.contains(&class.as_str()) {
        return Err(Refusal::Invalid(format!("{field}: its class should be one of {}", CLASSES.join(", "))));
    }
    let of_spark = |pair: &QueryText| pair.0.trim_start_matches('"').starts_with("spark.");
    if !conf.iter().all(of_spark) {
        let said = "its settings should be Spark's only (spark.…): the others are the operator's";
        return Err(Refusal::Invalid(format!("{field}: {said}")));
    }
    let (query, result_index) = match arguments {
        [] => (None, None),
        [index] => (None, Some(index.clone())),
        [query, index] => (Some(QueryText(query.clone())), Some(index.clone())),
        _ => return Err(Refusal::Invalid("arguments: at most two, [QUERY] RESULT_INDEX".to_owned())),
    };
    Ok(Task::Contract { class, conf, query, result_index })
}

async fn start(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(application): Path<String>,
    body: Bytes,
) -> Response {
    or_failed(started(&shared, &caller, application, &body).await)
}

async fn started(shared: &Shared, caller: &Caller, application: String, body: &[u8]) -> Result<Value, Refusal> {
    let body = Body::read_any(body)?;
    let submit = body.get("jobDriver").and_then(|driver| driver.get("sparkSubmit")).and_then(Value::as_object);
    let submit = submit.ok_or_else(|| Refusal::Invalid("jobDriver.sparkSubmit: it is missing".to_owned()))?;
    let parameters = submit.get("sparkSubmitParameters").and_then(Value::as_str).unwrap_or_default();
    let bad = || Refusal::Invalid("entryPointArguments: they should be texts".to_owned());
    let arguments: Vec<String> = match submit.get("entryPointArguments").filter(|value| !value.is_null()) {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(bad)).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(bad()),
    };
    let id = body.text("clientToken")?;
    let new = NewBatch {
        // The token is the client's, the id must be short and new for each client.
        id: id.map(|token| format!("{}-{token}", caller.user)).filter(|id| id.len() <= 150),
        name: body.text("name")?.unwrap_or_default(),
        application: application.clone(),
        task: contract(parameters, &arguments)?,
    };
    let view = shared.plane.submit_batch(caller, new).await?;
    Ok(json!({ "applicationId": application, "jobRunId": view.id, "arn": arn(&application, &view.id) }))
}

/// What a job run and its line in a listing have alike.
fn told(view: &BatchView) -> Map<String, Value> {
    let batch = &view.batch;
    let seconds = |millis: u64| json!(millis as f64 / 1_000.0);
    let told = json!({
        "applicationId": batch.application,
        "name": batch.name,
        "arn": arn(&batch.application, &view.id),
        "createdBy": batch.user,
        "createdAt": seconds(batch.created),
        "updatedAt": seconds(batch.updated),
        "executionRole": "arn:aws:iam::000000000000:role/firesteel",
        "state": state(view.state),
        "stateDetails": batch.error,
        "releaseLabel": "firesteel",
        "mode": "BATCH",
        "attempt": 1,
    });
    match told {
        Value::Object(told) => told,
        _ => Map::new(),
    }
}

async fn of_application(shared: &Shared, caller: &Caller, application: &str, id: &str) -> Result<BatchView, Refusal> {
    let view = shared.plane.batch(caller, id).await?;
    if view.batch.application != application {
        return Err(Refusal::not_found("job run", id));
    }
    Ok(view)
}

async fn read(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((application, id)): Path<(String, String)>,
) -> Response {
    or_failed(of_application(&shared, &caller, &application, &id).await.map(|view| {
        let mut run = told(&view);
        run.insert("jobRunId".to_owned(), json!(view.id));
        let arguments: &[&str] = &[];
        let submit =
            json!({ "entryPoint": "firesteel", "entryPointArguments": arguments, "sparkSubmitParameters": "" });
        run.insert("jobDriver".to_owned(), json!({ "sparkSubmit": submit }));
        json!({ "jobRun": run })
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    max_results: Option<usize>,
    states: Option<String>,
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(application): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let listed = shared.plane.batches(&caller, 1_000).await.map(|views| {
        let wanted = |view: &BatchView| {
            view.batch.application == application
                && asked.states.as_deref().is_none_or(|states| states == state(view.state))
        };
        let line = |view: BatchView| {
            let mut run = told(&view);
            run.insert("id".to_owned(), json!(view.id));
            run.insert("type".to_owned(), json!("SPARK_SUBMIT"));
            Value::Object(run)
        };
        let runs: Vec<Value> =
            views.into_iter().filter(wanted).take(asked.max_results.unwrap_or(MOST).min(MOST)).map(line).collect();
        json!({ "jobRuns": runs })
    });
    or_failed(listed)
}

async fn cancel(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((application, id)): Path<(String, String)>,
) -> Response {
    let cancelled = async {
        of_application(&shared, &caller, &application, &id).await?;
        shared.plane.close_batch(&caller, &id).await?;
        Ok(json!({ "applicationId": application, "jobRunId": id }))
    };
    or_failed(cancelled.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_says_the_class_and_spark_s_settings_and_nothing_of_the_operator_s() {
        let told =
            |parameters: &str| contract(parameters, &["index".to_owned()]).map_err(|refused| refused.to_string());
        let query = r#""spark.flint.job.query=SELECT \"a b\"""#;
        let given = format!(r#" --class org.apache.spark.sql.FlintJob --conf {query} --conf spark.x=1 --name n"#);
        assert_eq!(
            told(&given),
            Ok(Task::Contract {
                class: CLASSES[1].to_owned(),
                conf: vec![QueryText(query.to_owned()), QueryText("spark.x=1".to_owned())],
                query: None,
                result_index: Some("index".to_owned()),
            })
        );
        for (parameters, refused) in [
            ("--class org.Other", "its class should be one of"),
            ("", "its class should be one of"),
            (
                "--class org.apache.spark.sql.FlintREPL --conf firesteel.data=/etc",
                "its settings should be Spark's only",
            ),
            ("--class org.apache.spark.sql.FlintREPL --data /etc", "`--data` is none of spark-submit's options"),
            ("--class org.apache.spark.sql.FlintREPL --conf", "`--conf` has no value"),
            ("--class org.apache.spark.sql.FlintREPL x y", "`x` is no option"),
        ] {
            assert!(told(parameters).is_err_and(|said| said.contains(refused)), "{parameters}");
        }
    }
}
