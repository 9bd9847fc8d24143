//! Jobs as EMR Serverless has them: by the real service's API, or by one that is like it, another `firesteel serve` for one.

use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use firesteel_model::JobId;
use firesteel_model::steer::JobState;
use firesteel_session::ports::control::{Launch, LaunchError, Launcher, Task};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::sigv4::{self, Key};

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many pages of a listing are read.
const MOST_PAGES: usize = 200;
/// The service's word for the size of a page.
const PAGE: usize = 50;

/// How the service is reached, and what jobs are started with.
#[derive(Clone)]
pub struct EmrOptions {
    /// Where it is: `https://emr-serverless.REGION.amazonaws.com`, or another place with the same API.
    pub endpoint: String,
    /// For the signature.
    pub region: String,
    /// Whose requests they are.
    pub key: Key,
    /// The role that jobs run as.
    pub role: String,
    /// What runs: the jar with the class, or the image's.
    pub entry_point: String,
    /// The application of jobs that name none.
    pub application: String,
    /// Where results go.
    pub result_index: String,
    /// Spark's settings that each job is given: where the documents are, above all.
    pub conf: Vec<(String, String)>,
    /// Epoch milliseconds.
    pub now: fn() -> u64,
}

/// Jobs by EMR Serverless' API.
pub struct EmrServerless {
    options: EmrOptions,
    endpoint: Uri,
    client: Client,
}

/// What a request brought.
enum Answer {
    Done(Value),
    Missing,
    Refused(String),
}

/// A setting as a submit-parameter string has it: quoted, with Java's escapes, so that nothing in it ends it.
fn setting(key: &str, value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:/*@,+%".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return format!(" --conf {key}={value}");
    }
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c => text.push(c),
        }
    }
    format!(" --conf {key}=\"{text}\"")
}

impl EmrServerless {
    /// A client of the service.
    ///
    /// # Errors
    /// `Refused`: the endpoint is no URL.
    pub fn new(options: EmrOptions) -> Result<EmrServerless, LaunchError> {
        let bad = || LaunchError::Refused(format!("`{}` is no http(s)://HOST[:PORT]", options.endpoint));
        let endpoint: Uri = options.endpoint.trim_end_matches('/').parse().map_err(|_| bad())?;
        if !matches!(endpoint.scheme_str(), Some("http" | "https")) || endpoint.host().is_none() {
            return Err(bad());
        }
        let client = Client::builder().timeout(PATIENCE).no_proxy().build();
        let client = client.map_err(|e| LaunchError::Refused(format!("no client for EMR Serverless: {e}")))?;
        Ok(EmrServerless { options, endpoint, client })
    }

    fn application<'a>(&'a self, named: &'a str) -> &'a str {
        if named.is_empty() { &self.options.application } else { named }
    }

    /// Sends one signed request below `/applications/{application}/jobruns`.
    async fn ask(&self, method: Method, application: &str, rest: &str, body: &str) -> Result<Answer, LaunchError> {
        let path = format!("/applications/{}/jobruns{rest}", encoded(self.application(application)));
        let uri: Uri = path.parse().map_err(|_| LaunchError::Refused(format!("`{path}` is no path")))?;
        let host = self.endpoint.authority().map_or("", |authority| authority.as_str());
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_str(host).map_err(|e| LaunchError::Refused(e.to_string()))?);
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let signed = sigv4::sign(
            &self.options.key,
            (&self.options.region, "emr-serverless"),
            (&method, &uri),
            headers,
            body.as_bytes(),
            (self.options.now)(),
        );
        let headers = signed.ok_or_else(|| LaunchError::Refused("the request cannot be signed".to_owned()))?;
        let url = format!("{}{path}", self.options.endpoint.trim_end_matches('/'));
        let sent = self.client.request(method.clone(), url).headers(headers).body(body.to_owned()).send().await;
        // What was never sent did nothing; a start whose answer is lost may have been made.
        let lost = |why: String| {
            if method == Method::POST { LaunchError::Unknown(why) } else { LaunchError::Unavailable(why) }
        };
        let answer = sent.map_err(|e| {
            let never_sent = e.is_connect();
            let why = format!("EMR Serverless at {host} does not answer: {}", e.without_url());
            if never_sent { LaunchError::Unavailable(why) } else { lost(why) }
        })?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(|e| lost(e.without_url().to_string()))?;
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let said = value["message"].as_str().or_else(|| value["Message"].as_str()).unwrap_or_default();
        let said: String = said.chars().take(1_000).collect();
        match status {
            status if status.is_success() => Ok(Answer::Done(value)),
            StatusCode::NOT_FOUND => Ok(Answer::Missing),
            StatusCode::TOO_MANY_REQUESTS => {
                Err(LaunchError::Unavailable(format!("EMR Serverless takes no more requests now: {said}")))
            }
            status if status.is_server_error() => Err(lost(format!("EMR Serverless answered {status}: {said}"))),
            status => Ok(Answer::Refused(format!("EMR Serverless refused it ({status}): {said}"))),
        }
    }

    /// The submit-parameter string and the arguments.
    fn contract(&self, launch: &Launch) -> (String, Vec<String>) {
        let (class, mut index) = (
            match &launch.task {
                Task::Session(_) => "org.apache.spark.sql.FlintREPL",
                Task::Batch { .. } => "org.apache.spark.sql.FlintJob",
                Task::Contract { class, .. } => class,
            },
            self.options.result_index.clone(),
        );
        let mut parameters = format!("--class {class}");
        for (key, value) in &self.options.conf {
            parameters.push_str(&setting(key, value));
        }
        let mut query = None;
        match &launch.task {
            Task::Session(session) => parameters.push_str(&setting("spark.flint.job.sessionId", session.as_str())),
            Task::Batch { query_id, query } => {
                parameters.push_str(&setting("spark.flint.job.queryId", query_id));
                parameters.push_str(&setting("spark.flint.job.query", &query.0));
            }
            Task::Contract { conf, query: its, result_index, .. } => {
                for pair in conf {
                    parameters.push_str(" --conf ");
                    parameters.push_str(&pair.0);
                }
                query = its.as_ref().map(|query| query.0.clone());
                index = result_index.clone().unwrap_or(index);
            }
        }
        if !matches!(launch.task, Task::Contract { .. }) {
            parameters.push_str(&setting("spark.flint.datasource.name", &launch.data_source));
        }
        for (key, value) in &launch.settings {
            // The contract's name of the one that there is.
            if let Some(millis) = value.strip_suffix("ms").filter(|_| key == "firesteel.inactivity") {
                parameters.push_str(&setting("spark.flint.job.inactivityLimitMillis", millis));
            }
        }
        (parameters, query.into_iter().chain([index]).collect())
    }
}

/// One part of a path.
fn encoded(part: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    part.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The service's states of a job run.
fn state(run: &Value) -> JobState {
    match run["state"].as_str().unwrap_or_default() {
        "SUCCESS" => JobState::Succeeded,
        "FAILED" => JobState::Failed { why: run["stateDetails"].as_str().unwrap_or_default().to_owned() },
        "CANCELLED" => JobState::Cancelled,
        "RUNNING" | "CANCELLING" => JobState::Running,
        _ => JobState::Pending,
    }
}

#[async_trait]
impl Launcher for EmrServerless {
    fn name(&self) -> &'static str {
        "emr-serverless"
    }

    async fn start(&self, launch: &Launch) -> Result<JobId, LaunchError> {
        let (parameters, arguments) = self.contract(launch);
        // The service's tokens have at most 64 characters.
        let token: String = Sha256::digest(launch.token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut body = json!({
            "clientToken": token,
            "executionRoleArn": self.options.role,
            "jobDriver": { "sparkSubmit": {
                "entryPoint": self.options.entry_point,
                "entryPointArguments": arguments,
                "sparkSubmitParameters": parameters,
            } },
        });
        if !launch.name.is_empty() {
            body["name"] = json!(launch.name.chars().take(64).collect::<String>());
        }
        match self.ask(Method::POST, &launch.application, "", &body.to_string()).await? {
            Answer::Done(made) => {
                let id = made["jobRunId"].as_str().unwrap_or_default();
                JobId::new(id).map_err(|bad| LaunchError::Unknown(format!("the answer's jobRunId: {bad}")))
            }
            Answer::Missing => {
                let application = self.application(&launch.application);
                Err(LaunchError::Refused(format!(
                    "EMR Serverless has no application `{application}`; name one that it has"
                )))
            }
            Answer::Refused(why) => Err(LaunchError::Refused(why)),
        }
    }

    async fn state(&self, application: &str, job: &JobId) -> Result<JobState, LaunchError> {
        let rest = format!("/{}", encoded(job.as_str()));
        match self.ask(Method::GET, application, &rest, "").await? {
            Answer::Done(found) => Ok(state(&found["jobRun"])),
            Answer::Missing => Ok(JobState::Gone),
            Answer::Refused(why) => Err(LaunchError::Refused(why)),
        }
    }

    async fn cancel(&self, application: &str, job: &JobId) -> Result<(), LaunchError> {
        let rest = format!("/{}", encoded(job.as_str()));
        match self.ask(Method::DELETE, application, &rest, "").await? {
            Answer::Done(_) | Answer::Missing => Ok(()),
            // One that has ended is refused.
            Answer::Refused(_) if self.state(application, job).await?.is_over() => Ok(()),
            Answer::Refused(why) => Err(LaunchError::Refused(why)),
        }
    }

    async fn list(&self, application: &str) -> Result<Vec<(JobId, JobState)>, LaunchError> {
        let (mut jobs, mut rest) = (Vec::new(), format!("?maxResults={PAGE}"));
        for _ in 0..MOST_PAGES {
            let Answer::Done(page) = self.ask(Method::GET, application, &rest, "").await? else { break };
            for run in page["jobRuns"].as_array().into_iter().flatten() {
                if let Ok(job) = JobId::new(run["id"].as_str().unwrap_or_default()) {
                    jobs.push((job, state(run)));
                }
            }
            match page["nextToken"].as_str() {
                Some(next) => rest = format!("?maxResults={PAGE}&nextToken={}", encoded(next)),
                None => break,
            }
        }
        Ok(jobs)
    }

    /// The service puts logs where its application was told to, which is not asked here.
    async fn log(&self, _application: &str, _job: &JobId, _lines: usize) -> Result<Vec<String>, LaunchError> {
        Ok(Vec::new())
    }

    fn shares_jobs(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_one_whatever_is_in_it() {
        for (value, expected) in [
            ("s-1", " --conf k=s-1"),
            ("a b", r#" --conf k="a b""#),
            ("x --class Y", r#" --conf k="x --class Y""#),
            ("say \"a\\b\"\nc", r#" --conf k="say \"a\\b\"\nc""#),
            ("", r#" --conf k="""#),
        ] {
            assert_eq!(setting("k", value), expected);
        }
    }

    #[test]
    fn the_service_s_words_are_ours() {
        let of = |word: &str| state(&json!({ "state": word, "stateDetails": "why" }));
        assert_eq!(of("SUBMITTED"), JobState::Pending);
        assert_eq!(of("CANCELLING"), JobState::Running);
        assert_eq!(of("FAILED"), JobState::Failed { why: "why".to_owned() });
        assert_eq!([of("SUCCESS"), of("CANCELLED")], [JobState::Succeeded, JobState::Cancelled]);
    }
}
