//! The control plane: served with nothing configured, asked over HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, Running, finish, samples};

/// An HTTP answer.
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

/// A control plane, its home, and what it launches, gone with it.
pub struct Served {
    home: Home,
    running: Running,
    pub address: String,
}

impl Served {
    pub fn new(arguments: &[&str]) -> Served {
        Served::at(Home::new(), arguments)
    }

    pub fn at(home: Home, arguments: &[&str]) -> Served {
        let samples = samples();
        let all = [&["serve", "--listen", "127.0.0.1:0", "--data", &samples], arguments].concat();
        let mut running = home.start(&all);
        let line = running.says("serving the APIs");
        let address = line.split("address=").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
        Served { address: address.to_owned(), home, running }
    }

    /// One that knows a single user, by the key that they sign with.
    fn signed() -> Served {
        let home = Home::new();
        let users = home.file(
            "users.json",
            r#"[{"user": "plugin", "role": "owner", "access_key_id": "AKID", "secret_access_key": "secret"}]"#,
        );
        Served::at(home, &["--users", &users.display().to_string()])
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Kills the control plane, and starts another one in its place.
    pub fn again(mut self, arguments: &[&str]) -> Served {
        self.running.signal(Signal::KILL);
        let home = std::mem::replace(&mut self.home, Home::new());
        drop(self);
        Served::at(home, arguments)
    }

    pub fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it answers");
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("headers");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.ask_with(method, path, &[("Content-Type", "application/json")], &body)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &Value::Null)
    }

    /// Asks for something until it is so.
    #[track_caller]
    pub fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..3_000 {
            last = self.get(path).is(200);
            if is(&last) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it never was so: {last}");
    }

    /// Submits a statement, to this session if there is one: its query id and session.
    #[track_caller]
    pub fn submit(&self, session: Option<&str>, query: &str) -> (String, String) {
        let mut body = json!({ "datasource": "local", "lang": "sql", "query": query });
        if let Some(session) = session {
            body["sessionId"] = json!(session);
        }
        let made = self.ask("POST", "/_plugins/_async_query", &body).is(201);
        let text = |field: &str| made[field].as_str().expect("an id").to_owned();
        (text("queryId"), text("sessionId"))
    }

    /// The answer of a statement that has ended.
    #[track_caller]
    pub fn ended(&self, query: &str) -> Value {
        let path = format!("/_plugins/_async_query/{query}");
        self.until(&path, |answer| !["waiting", "running"].contains(&answer["status"].as_str().unwrap_or_default()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        end_jobs(&self.home);
    }
}

/// Ends the jobs of a home's control planes, whom they outlive, which is the point of them.
pub fn end_jobs(home: &Home) {
    let jobs = std::fs::read_dir(home.path().join(".local/share/firesteel/jobs")).into_iter().flatten();
    for job in jobs.filter_map(Result::ok) {
        let pid = std::fs::read_to_string(job.path().join("pid")).ok().and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw).filter(|_| !job.path().join("exit").exists()) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

#[test]
fn with_nothing_configured_a_query_is_answered_and_the_job_outlives_the_control_plane() {
    let served = Served::new(&[]);
    let (query, session) = served.submit(None, "SELECT count(*) AS n, 'a' AS x, 'b' AS x FROM airports");
    let answer = served.ended(&query);
    assert_eq!(answer["status"], "SUCCESS");
    assert_eq!(answer["datarows"], json!([[3376, "a", "b"]]), "both columns of one name");
    let names: Vec<&Value> = answer["schema"].as_array().expect("columns").iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["n", "x", "x"]);
    assert_eq!(answer["schema"][0], json!({ "name": "n", "type": "long" }));
    assert_eq!((&answer["total"], &answer["size"]), (&json!(1), &json!(1)));
    let (view, _) = served.submit(Some(&session), "CREATE VIEW v AS SELECT 7 AS seven");
    assert_eq!(served.ended(&view)["status"], "SUCCESS");
    let before = served.get(&format!("/async_query/sessions/{session}")).is(200);
    assert_eq!(before["state"], "running");

    let served = served.again(&[]);
    let (query, same) = served.submit(Some(&session), "SELECT * FROM v");
    assert_eq!(same, session);
    assert_eq!(served.ended(&query)["datarows"], json!([[7]]), "the same job, with the view in it");
    let after = served.get(&format!("/async_query/sessions/{session}")).is(200);
    assert_eq!(after["jobId"], before["jobId"]);

    let failed = served.ended(&served.submit(Some(&session), "SELECT nothing").0);
    assert_eq!(failed["status"], "FAILED");
    let error: Value = serde_json::from_str(failed["error"].as_str().expect("text")).expect("JSON");
    assert_eq!(
        (&error["code"], &error["stage"], &error["retryable"]),
        (&json!("ANALYSIS"), &json!("plan"), &json!(false))
    );

    let closed = served.ask("DELETE", &format!("/async_query/sessions/{session}?wait=10s"), &Value::Null).is(200);
    assert_eq!(closed["state"], "dead");
    let (_, new) = served.submit(Some(&session), "SELECT 1");
    assert_ne!(new, session, "a session that has ended is replaced, and the answer says by which");
}

#[test]
fn a_running_statement_is_cancelled_and_everything_is_listed() {
    let served = Served::new(&[]);
    let (query, session) = served.submit(None, "SELECT count(*) FROM routes a, routes b, routes c");
    let path = format!("/_plugins/_async_query/{query}");
    served.until(&path, |answer| answer["status"] == "running");
    assert_eq!(served.ask("DELETE", &path, &Value::Null).status, 204);
    assert_eq!(served.get(&path).is(200)["status"], "cancelled");
    let (next, _) = served.submit(Some(&session), "SELECT 1 AS one");
    assert_eq!(served.ended(&next)["status"], "SUCCESS");

    let statements = format!("/async_query/sessions/{session}/statements");
    let listed = served.get(&statements).is(200);
    let states: Vec<&Value> =
        listed["statements"].as_array().expect("a list").iter().map(|statement| &statement["state"]).collect();
    assert_eq!(states, ["success", "cancelled"], "newest first");
    let first = served.get(&format!("{statements}?limit=1")).is(200);
    assert_eq!(first["statements"][0]["queryId"], next.as_str());
    let cursor = first["cursor"].as_str().expect("there is more").replace('"', "%22").replace('[', "%5B");
    let rest = served.get(&format!("{statements}?limit=1&cursor={cursor}")).is(200);
    assert_eq!((&rest["statements"][0]["queryId"], &rest["cursor"]), (&json!(query), &Value::Null));
    assert_eq!(served.get(&format!("{statements}?state=running")).is(200)["statements"], json!([]));
    let refused = served.get(&format!("{statements}?state=runing")).is(400);
    assert!(refused["error"]["details"].as_str().expect("text").starts_with("state: `runing` is none of waiting,"));

    let sessions = served.get("/async_query/sessions?state=running").is(200);
    assert_eq!(sessions["sessions"][0]["sessionId"], session.as_str());
    let log = served.get(&format!("/async_query/sessions/{session}/log")).is(200);
    assert!(log["log"].to_string().contains("serving the session"), "{log}");
    assert!(served.get("/metrics").body.starts_with(b"# HELP firesteel_control_sessions_failed"));
    assert_eq!(served.get("/healthz").is(200), json!({ "status": "ok" }));
    assert_eq!(served.get("/readyz").is(200)["status"], "ok");
    assert_eq!(served.get("/nowhere").status, 404);
}

#[test]
fn a_large_result_comes_page_by_page_and_as_an_arrow_stream() {
    let served = Served::new(&["--document-bytes", "1000"]);
    let (query, _) =
        served.submit(None, "SELECT r.origin, r.destination, r.flights FROM routes r ORDER BY 1, 2 LIMIT 1500");
    let first = served.ended(&query);
    assert_eq!(first["total"], 1500);
    let path = format!("/_plugins/_async_query/{query}");
    let (mut rows, mut cursor) = (first["datarows"].as_array().expect("rows").len(), first["cursor"].clone());
    while let Some(at) = cursor.as_str() {
        let page = served.get(&format!("{path}?cursor={at}")).is(200);
        rows += page["datarows"].as_array().expect("rows").len();
        assert_eq!(page["total"], 1500);
        cursor = page["cursor"].clone();
    }
    assert_eq!(rows, 1500);
    let arrow = served.ask_with("GET", &path, &[("Accept", "application/vnd.apache.arrow.stream")], "");
    assert_eq!((arrow.status, arrow.headers["content-type"].as_str()), (200, "application/vnd.apache.arrow.stream"));
    let reader = arrow_ipc::reader::StreamReader::try_new(arrow.body.as_slice(), None).expect("a stream");
    let read: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(json!(read), first["size"]);
    assert_eq!(arrow.headers["x-firesteel-cursor"], first["cursor"].as_str().expect("more"));
    assert_eq!(served.get(&format!("{path}?cursor=x")).status, 400);
}

#[test]
fn a_full_queue_is_told_and_a_client_s_own_id_makes_a_submit_idempotent() {
    let served = Served::new(&["--max-queue", "2"]);
    let (_, session) = served.submit(None, "SELECT count(*) FROM routes a, routes b, routes c");
    let body = json!({ "lang": "sql", "query": "SELECT 1", "queryId": "mine" });
    let path = format!("/async_query/sessions/{session}/statements");
    assert_eq!(served.ask("POST", &path, &body).is(201), served.ask("POST", &path, &body).is(201));
    let other = json!({ "lang": "sql", "query": "SELECT 2" });
    let refused = served.ask("POST", &path, &other);
    assert_eq!(refused.headers["retry-after"], "1");
    let error = refused.is(429)["error"].clone();
    assert_eq!(error["type"], "ConcurrencyLimitExceededException");
    assert_eq!((&error["limit"]["value"], &error["limit"]["limit"]), (&json!(2), &json!(2)));
    served.ask("DELETE", &format!("/async_query/sessions/{session}"), &Value::Null).is(200);
}

#[test]
fn a_job_that_cannot_begin_fails_its_session_with_its_last_words() {
    let served = Served::new(&["--launcher", "process", "--spill-dir", "/proc/nowhere", "--watch-every", "200ms"]);
    let (query, session) = served.submit(None, "SELECT 1");
    let path = format!("/async_query/sessions/{session}");
    let failed = served.until(&path, |session| session["state"] == "fail");
    let error = failed["error"].as_str().expect("text");
    assert!(error.starts_with("its job failed: exit code ") && error.contains("/proc/nowhere"), "{error}");
    assert_eq!(
        served.get(&format!("/_plugins/_async_query/{query}")).is(200)["status"],
        "waiting",
        "it may be recovered"
    );
}

#[test]
fn users_say_who_they_are_and_see_what_is_theirs() {
    let home = Home::new();
    let users = home.file(
        "users.json",
        r#"[{"user": "ann", "role": "owner", "token": "a"}, {"user": "bob", "role": "owner", "password": "b"},
            {"user": "eve", "role": "viewer", "token": "e"}]"#,
    );
    let served = Served::at(home, &["--users", &users.display().to_string()]);
    let as_user = |authorization: &str, method: &str, path: &str, body: &str| {
        served.ask_with(method, path, &[("Authorization", authorization)], body)
    };
    let unknown = served.get("/async_query/sessions");
    assert!(unknown.headers["www-authenticate"].contains("Bearer"));
    assert_eq!(unknown.status, 401);
    let body = r#"{"datasource": "local", "lang": "sql", "query": "SELECT 1 AS one"}"#;
    let made = as_user("Bearer a", "POST", "/_plugins/_async_query", body).is(201);
    let path = format!("/_plugins/_async_query/{}", made["queryId"].as_str().expect("an id"));
    assert_eq!(as_user("Bearer a", "GET", &path, "").status, 200);
    assert_eq!(as_user("Bearer e", "GET", &path, "").status, 200);
    // `bob:b`
    let bob = "Basic Ym9iOmI=";
    assert_eq!(as_user(bob, "GET", &path, "").is(400)["error"]["type"], "AsyncQueryNotFoundException");
    assert_eq!(as_user(bob, "DELETE", &path, "").status, 400);
    assert_eq!(as_user(bob, "GET", "/async_query/sessions", "").is(200)["sessions"], json!([]));
    assert_eq!(as_user("Bearer e", "DELETE", &path, "").status, 403);
    assert_eq!(served.get("/healthz").status, 200, "who watches need not say who they are");
}

#[test]
fn nobody_is_let_in_from_elsewhere_without_saying_who_they_are() {
    let answer = Home::new().run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.err,
        "firesteel: --listen: 0.0.0.0:0 is reached from elsewhere, and nobody would have to say who they are\n  \
         name who may ask with --users FILE, or listen on 127.0.0.1\n"
    );
}

#[test]
fn a_recovered_session_goes_on_in_another_job_with_its_views_and_what_waited() {
    let served = Served::new(&["--launcher", "process"]);
    let (view, old) = served.submit(None, "CREATE VIEW v AS SELECT 7 AS seven");
    assert_eq!(served.ended(&view)["status"], "SUCCESS");
    let (endless, _) = served.submit(Some(&old), "SELECT count(*) FROM routes a, routes b, routes c");
    served.until(&format!("/_plugins/_async_query/{endless}"), |answer| answer["status"] == "running");
    let (waiting, _) = served.submit(Some(&old), "SELECT * FROM v");
    let path = format!("/async_query/sessions/{old}?recover=true&applicationId=app2");
    let new = served.ask("POST", &path, &Value::Null).is(200);
    assert_eq!((&new["recoveredFrom"], &new["applicationId"]), (&json!(old), &json!("app2")));
    // It was running, and is run again, first.
    served.until(&format!("/_plugins/_async_query/{endless}"), |answer| answer["status"] == "running");
    assert_eq!(served.ask("DELETE", &format!("/_plugins/_async_query/{endless}"), &Value::Null).status, 204);
    let answer = served.ended(&waiting);
    assert_eq!((&answer["datarows"], &answer["sessionId"]), (&json!([[7]]), &new["sessionId"]));
    let ended = served.get(&format!("/async_query/sessions/{old}")).is(200);
    assert_eq!((&ended["state"], &ended["recovering"]), (&json!("fail"), &json!(true)));
    assert_eq!(served.ask("POST", &path, &Value::Null).is(200)["sessionId"], new["sessionId"], "again: the same");
    served.ask("DELETE", &format!("/async_query/sessions/{}", new["sessionId"].as_str().expect("an id")), &Value::Null);
}

#[test]
fn all_sessions_are_migrated_to_another_application_then_drained_by_one_command_each() {
    let served = Served::new(&["--launcher", "process"]);
    let sessions: Vec<String> = ["one", "two"]
        .map(|name| {
            served.ask("POST", "/async_query/sessions", &json!({ "sessionId": name })).is(201)["sessionId"]
                .as_str()
                .expect("an id")
                .to_owned()
        })
        .into();
    for session in &sessions {
        let (view, _) = served.submit(Some(session), "CREATE VIEW v AS SELECT 7 AS seven");
        assert_eq!(served.ended(&view)["status"], "SUCCESS");
    }
    let data = samples();
    let admin = |more: &[&str]| {
        let all = [&["admin"], more, &["--launcher", "process", "--data", &data]].concat();
        served.home.run(&all)
    };
    let migrate = ["migrate", "--application", "app2", "--wait", "10s"];
    let said = admin(&migrate).ok();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let moved: Vec<&str> = lines
        .iter()
        .zip(&sessions)
        .map(|(line, session)| line.strip_prefix(&format!("{session}: goes on as ")).expect("where"))
        .collect();
    for session in &moved {
        let (query, same) = served.submit(Some(session), "SELECT * FROM v");
        assert_eq!((same.as_str(), &served.ended(&query)["datarows"]), (*session, &json!([[7]])));
        assert_eq!(served.get(&format!("/async_query/sessions/{session}")).is(200)["applicationId"], "app2");
    }
    assert_eq!(admin(&migrate).ok(), "", "nothing is left to be moved");
    assert_eq!(admin(&["drain"]).ok().lines().filter(|line| line.ends_with(": dead")).count(), 2);
    for session in &moved {
        assert_eq!(served.get(&format!("/async_query/sessions/{session}")).is(200)["state"], "dead");
    }
}

#[test]
fn a_control_plane_launches_its_sessions_by_the_emr_api_of_another() {
    let service = Served::signed();
    let endpoint = format!("http://{}", service.address);
    let start = |secret: &str| {
        let mut serve = service.home.command(&["serve", "--listen", "127.0.0.1:0", "--instance", "two"]);
        serve.args(["--launcher", "emr-serverless", "--emr-endpoint", &endpoint, "--emr-application", "app"]);
        serve.args(["--emr-role", "arn:aws:iam::000000000000:role/x", "--region", "us-east-1"]);
        serve.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", secret).env_remove("AWS_SESSION_TOKEN");
        let mut running = Running::new(serve);
        let line = running.says("serving the APIs");
        let address = line.split("address=").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
        (address.to_owned(), running)
    };
    let (address, running) = start("secret");
    let client = Served { home: Home::new(), running, address };
    let (query, session) = client.submit(None, "SELECT count(*) AS n FROM airports");
    let path = format!("/async_query/sessions/{session}");
    assert_eq!(client.ended(&query)["datarows"], json!([[3376]]));
    let told = client.get(&path).is(200);
    assert_eq!((&told["state"], &told["applicationId"]), (&json!("running"), &json!("app")));
    let closed = client.ask("DELETE", &format!("{path}?wait=10s"), &Value::Null).is(200);
    assert_eq!(closed["state"], "dead");

    let (address, running) = start("wrong");
    let client = Served { home: Home::new(), running, address };
    let body = json!({ "datasource": "local", "lang": "sql", "query": "SELECT 1" });
    let refused = client.ask("POST", "/_plugins/_async_query", &body).is(503);
    let said = refused["error"]["details"].as_str().expect("text");
    assert!(
        said.starts_with("the job was not launched: EMR Serverless refused it (403 Forbidden): the signature"),
        "{said}"
    );
}

/// A script of Python's with these packages of pip's; None, said aloud: they cannot be installed here.
pub fn python(home: &Home, packages: &[&str], script: &str) -> Option<std::process::Command> {
    let folder = home.path().join("python").display().to_string();
    let mut install = std::process::Command::new("python3");
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", &folder])
        .args(packages);
    let installed = install.output().is_ok_and(|output| output.status.success());
    if !installed {
        assert!(std::env::var_os("CI").is_none(), "{packages:?} cannot be installed by pip");
        eprintln!("SKIPPED: needs {packages:?} from pip");
        return None;
    }
    let mut python = home.program("python3");
    python.args(["-c", script]).env("PYTHONPATH", &folder);
    Some(python)
}

/// What a real client of another language does with a control plane.
fn client(served: &Served, packages: &[&str], script: &str) -> Option<String> {
    let mut python = python(&served.home, packages, script)?;
    python.env("URL", format!("http://{}", served.address));
    Some(finish(python, "").ok())
}

#[test]
fn boto3_starts_watches_lists_and_cancels_job_runs_signed_with_its_key() {
    let served = Served::signed();
    let script = r#"
import boto3, botocore, os, time
from botocore.config import Config
def client(secret):
    return boto3.client("emr-serverless", endpoint_url=os.environ["URL"], region_name="us-east-1", aws_access_key_id="AKID",
                        aws_secret_access_key=secret, config=Config(retries={"max_attempts": 1}))
emr = client("secret")
def start(token, cls, conf, arguments):
    parameters = " --class org.apache.spark.sql." + cls + "".join(f" --conf {pair}" for pair in conf)
    return emr.start_job_run(applicationId="app", clientToken=token, executionRoleArn="arn:aws:iam::000000000000:role/x" , name="run",
        jobDriver={"sparkSubmit": {"entryPoint": "x.jar", "entryPointArguments": arguments, "sparkSubmitParameters": parameters}})["jobRunId"]
def state(run):
    return emr.get_job_run(applicationId="app", jobRunId=run)["jobRun"]["state"]
def until(run, wanted):
    for _ in range(600):
        if state(run) in wanted: return state(run)
        time.sleep(0.05)
    raise SystemExit(f"it is {emr.get_job_run(applicationId='app', jobRunId=run)}")
batch = start("t1", "FlintJob", ['"spark.flint.job.query=SELECT count(*) AS n FROM airports"', "spark.flint.job.queryId=q1"], ["results"])
assert batch == start("t1", "FlintJob", ['"spark.flint.job.query=SELECT count(*) AS n FROM airports"', "spark.flint.job.queryId=q1"], ["results"])
print(until(batch, ["SUCCESS", "FAILED"]))
failing = start("t2", "FlintJob", ["spark.flint.job.queryId=q2"], ["SELECT nothing", "results"])
print(until(failing, ["SUCCESS", "FAILED"]))
session = start("t3", "FlintREPL", ["spark.flint.job.sessionId=s1"], ["results"])
print(until(session, ["RUNNING"]))
emr.cancel_job_run(applicationId="app", jobRunId=session)
print(until(session, ["CANCELLED"]))
print(sorted(run["state"] for run in emr.list_job_runs(applicationId="app")["jobRuns"]))
for what in [lambda: start("t4", "FlintREPL", ["firesteel.data=/etc"], []), lambda: state("none"), lambda: client("other").list_job_runs(applicationId="app")]:
    try: what()
    except botocore.exceptions.ClientError as e: print(e.response["Error"]["Code"])
"#;
    let Some(said) = client(&served, &["boto3"], script) else { return };
    let expected =
        ["SUCCESS", "FAILED", "RUNNING", "CANCELLED", "['CANCELLED', 'FAILED', 'SUCCESS']", "ValidationException"];
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..6], expected);
    assert_eq!(lines[6], "ResourceNotFoundException");
    assert_eq!(lines[7], "AccessDeniedException");
}

#[test]
fn a_livy_client_runs_sql_in_a_session() {
    let served = Served::new(&[]);
    let script = r#"
import os, requests
from livy import LivySession, SessionKind
url = os.environ["URL"]
with LivySession.create(url, kind=SessionKind.SQL, check=False) as session:
    output = session.run("SELECT count(*) AS n, 'x' AS name FROM airports")
    print(output.status.value, output.json["schema"]["fields"][0]["name"], output.json["data"])
    failed = session.run("SELECT nothing")
    print(failed.status.value, failed.ename)
    number = session.session_id
    listed = requests.get(f"{url}/sessions").json()
    print(listed["total"], listed["sessions"][0]["state"])
    statements = requests.get(f"{url}/sessions/{number}/statements").json()
    print(statements["total_statements"], [s["state"] for s in statements["statements"]])
    slow = requests.post(f"{url}/sessions/{number}/statements", json={"code": "SELECT count(*) FROM routes a, routes b, routes c"}).json()
    print(requests.post(f"{url}/sessions/{number}/statements/{slow['id']}/cancel").json())
print(requests.get(f"{url}/sessions/{number}/state").json()["state"], requests.get(f"{url}/sessions/77").status_code)
"#;
    let Some(said) = client(&served, &["livy", "requests"], script) else { return };
    let expected = [
        "OK n [[3376, 'x']]",
        "ERROR ANALYSIS",
        "1 idle",
        "2 ['available', 'available']",
        "{'msg': 'canceled'}",
        "dead 404",
    ];
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0].to_ascii_lowercase(), expected[0].to_ascii_lowercase());
    assert_eq!(lines[1].to_ascii_lowercase(), expected[1].to_ascii_lowercase());
    assert_eq!(lines[2..], expected[2..]);
}

#[test]
fn a_livy_client_runs_batches_and_what_changes_something_needs_livy_s_header_if_that_is_set() {
    let served = Served::new(&["--csrf-protection"]);
    let script = r#"
import os, requests, time
from livy.client import LivyClient
from livy.models import SessionState
url = os.environ["URL"]
try: LivyClient(url).create_batch("x.jar", "org.apache.spark.sql.FlintJob")
except requests.HTTPError as e: print(e.response.status_code, e.response.json()["msg"])
asks = requests.Session()
asks.headers["X-Requested-By"] = "me"
livy = LivyClient(url, requests_session=asks)
def until(number, state):
    while (is_now := livy.get_batch(number).state) != state:
        if is_now in (SessionState.DEAD, SessionState.SUCCESS, SessionState.KILLED): return is_now.value
        time.sleep(0.05)
    return is_now.value
def batch(query, n):
    return livy.create_batch("x.jar", "org.apache.spark.sql.FlintJob", [query, "results"], name=f"batch {n}", spark_conf={"spark.flint.job.queryId": f"q{n}"}).batch_id
print(until(batch("SELECT count(*) AS n FROM airports", 0), SessionState.SUCCESS))
print(until(batch("SELECT nothing", 1), SessionState.DEAD))
endless = batch("SELECT count(*) FROM routes a, routes b, routes c WHERE 'secret' <> 'text'", 2)
print(until(endless, SessionState.RUNNING))
while not livy.get_batch_log(endless).lines: time.sleep(0.05)
print(livy.get_batch_log(endless, 0, 1).total > 0, len(livy.get_batch_log(endless, 0, 1).lines))
lines = [open(f"/proc/{pid}/cmdline").read() for pid in os.listdir("/proc") if pid.isdigit() and os.path.exists(f"/proc/{pid}/cmdline")]
print(any("--arguments-file" in line for line in lines), any("routes c WHERE 'secret'" in line for line in lines if "python" not in line))
livy.delete_batch(endless)
print(until(endless, SessionState.KILLED))
print([batch.state.value for batch in livy.list_batches()], livy.get_batch(77), asks.get(f"{url}/batches/0/state").json())
print(asks.post(f"{url}/batches", json={"file": "x", "className": "org.Other"}).json()["msg"])
print(asks.post(f"{url}/batches", json={"file": "x", "className": "org.apache.spark.sql.FlintJob", "conf": {"firesteel.data": "/"}}).status_code)
print(requests.post(f"{url}/_plugins/_async_query", json={}, headers={"Origin": "http://elsewhere"}).status_code)
"#;
    let Some(said) = client(&served, &["livy", "requests"], script) else { return };
    let expected = [
        "400 Missing Required Header for CSRF protection: X-Requested-By",
        "success",
        "dead",
        "running",
        "True 1",
        "True False",
        "killed",
        "['success', 'dead', 'killed'] None {'id': 0, 'state': 'success'}",
        "className: its class should be one of org.apache.spark.sql.FlintREPL, org.apache.spark.sql.FlintJob",
        "400",
        "403",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}
