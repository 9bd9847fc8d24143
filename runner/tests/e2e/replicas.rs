//! Three replicas of the control plane on one store, killed in turn while real clients submit through all of them.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, Running, finish, samples};
use crate::opensearch::Source;
use crate::serve::{end_jobs, python};

/// Statements that each kind of client submits, and how many clients of a kind there are.
const ASYNC: (usize, usize) = (4, 15);
const LIVY: (usize, usize) = (2, 8);
const EMR: (usize, usize) = (2, 2);

/// Each client goes on at another replica when one is gone, and sends again what was not answered: under an id of its own where the API has such
/// ids, else after it has looked. Each answer is told once it is there.
const CLIENTS: &str = r#"
import boto3, botocore, json, os, requests, sys, threading, time
from botocore.config import Config
from livy.client import LivyClient
from livy.models import SessionKind, StatementState
from opensearchpy import OpenSearch
urls, source, results = os.environ["URLS"].split(), os.environ["SOURCE"], os.environ["RESULTS"]
answers, failures, lock = {}, [], threading.Lock()
def answered(name, answer):
    with lock:
        assert name not in answers, name
        answers[name] = answer
        print(f"[{len(answers)}] answered", file=sys.stderr, flush=True)
def elsewhere(clients, first, lost, what):
    for attempt in range(500):
        try: return what(clients[(first + attempt) % len(clients)], attempt)
        except lost as error:
            status = getattr(getattr(error, "response", None), "status_code", None) if not isinstance(error, botocore.exceptions.ClientError) else error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status is not None and status < 500: raise
            time.sleep(0.05)
    raise SystemExit("nobody answers")
def async_query(k, count):
    client = OpenSearch(urls, max_retries=200, retry_on_timeout=True, timeout=30, dead_timeout=0.2)
    ask = client.transport.perform_request
    session = f"async-{k}"
    ask("POST", "/async_query/sessions", body={"sessionId": session})
    for n in range(count):
        query = f"{session}-{n}"
        made = ask("POST", "/_plugins/_async_query", body={"datasource": source, "lang": "sql", "sessionId": session, "queryId": query,
            "query": f"SELECT {k} AS k, {n} AS n, count(*) AS rows FROM airports"})
        assert made == {"queryId": query, "sessionId": session}, made
        while (answer := ask("GET", f"/_plugins/_async_query/{query}"))["status"] in ("waiting", "running"): time.sleep(0.02)
        answered(query, answer.get("datarows", answer))
def livy(k, count):
    clients, lost = [LivyClient(url) for url in urls], requests.RequestException
    session = elsewhere(clients, k, lost, lambda client, _: client.create_session(SessionKind.SQL)).session_id
    last = -1
    for n in range(count):
        code = f"SELECT {k} AS k, {n} AS n, 'livy' AS kind"
        def submit(client, attempt):
            # What is lost may be there: Livy has no ids of its clients' choice, but counts.
            for number in range(last + 1, last + 4) if attempt else ():
                try:
                    there = client.get_statement(session, number)
                    if there.code == code: return there
                except requests.HTTPError as error:
                    if error.response.status_code != 404: raise
            return client.create_statement(session, code)
        statement = elsewhere(clients, k + n, lost, submit)
        last = statement.statement_id
        while statement.state in (StatementState.WAITING, StatementState.RUNNING):
            time.sleep(0.02)
            statement = elsewhere(clients, k + n, lost, lambda client, _: client.get_statement(session, last))
        answered(f"livy-{k}-{n}", [session, statement.output.json["data"]])
def emr(clients, k, count):
    lost = (botocore.exceptions.HTTPClientError, botocore.exceptions.ClientError)
    for n in range(count):
        query = f"emr-{k}-{n}"
        parameters = f" --class org.apache.spark.sql.FlintJob --conf spark.flint.job.queryId={query}"
        driver = {"sparkSubmit": {"entryPoint": "x.jar", "entryPointArguments": [f"SELECT {k} AS k, {n} AS n", results], "sparkSubmitParameters": parameters}}
        start = lambda client, _: client.start_job_run(applicationId="app", clientToken=query, executionRoleArn="arn:aws:iam::000000000000:role/x", jobDriver=driver)
        run = elsewhere(clients, k + n, lost, start)["jobRunId"]
        state = lambda client, _: client.get_job_run(applicationId="app", jobRunId=run)["jobRun"]["state"]
        while (said := elsewhere(clients, k + n, lost, state)) in ("PENDING", "RUNNING"): time.sleep(0.1)
        answered(query, said)
def guarded(what, *arguments):
    try: what(*arguments)
    except BaseException as error:
        failures.append(f"{what.__name__}{arguments[-2:]}: {error!r}")
        print(failures[-1], file=sys.stderr, flush=True)
def aws(url):
    return boto3.client("emr-serverless", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s",
                        config=Config(retries={"total_max_attempts": 1}, read_timeout=60))
runs = [aws(url) for url in urls]
counts = json.loads(os.environ["COUNTS"])
threads = [threading.Thread(target=guarded, args=(async_query, k, counts["async"][1])) for k in range(counts["async"][0])]
threads += [threading.Thread(target=guarded, args=(livy, k, counts["livy"][1])) for k in range(counts["livy"][0])]
threads += [threading.Thread(target=guarded, args=(emr, runs, k, counts["emr"][1])) for k in range(counts["emr"][0])]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({"answers": answers, "failures": failures}))
"#;

/// The replicas, what they share, and what they launched, gone with them.
struct Replicas {
    source: Option<Source>,
    home: Home,
    ports: Vec<u16>,
    running: Vec<Option<Running>>,
}

/// A port that is free, and that no connection is given: a replica is to come back on it.
fn free_port(after: u16) -> u16 {
    (after + 1..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

impl Replicas {
    fn new(count: u16) -> Replicas {
        let (source, home) = (Source::new("replicas"), Home::new());
        let first = 20_000 + u16::try_from(std::process::id() % 10_000).expect("a small number");
        let mut ports = Vec::new();
        for _ in 0..count {
            ports.push(free_port(ports.last().copied().unwrap_or(first)));
        }
        let mut replicas = Replicas { source, home, ports, running: Vec::new() };
        for n in 0..replicas.ports.len() {
            replicas.running.push(None);
            replicas.start(n);
        }
        replicas
    }

    fn start(&mut self, n: usize) {
        let store = self.source.as_ref().map_or_else(Vec::new, Source::options);
        let (listen, instance, data) = (self.address(n), format!("replica-{n}"), samples());
        let mut all = vec!["serve", "--listen", &listen, "--instance", &instance, "--data", &data];
        all.extend(["--watch-every", "500ms"]);
        all.extend(store.iter().map(String::as_str));
        let mut running = self.home.start(&all);
        running.says("serving the APIs");
        self.running[n] = Some(running);
    }

    fn kill(&mut self, n: usize) {
        let running = self.running[n].take().expect("it runs");
        running.signal(Signal::KILL);
    }

    fn address(&self, n: usize) -> String {
        format!("127.0.0.1:{}", self.ports[n])
    }

    fn clients(&self) -> Option<Running> {
        let mut python = python(&self.home, &["boto3", "livy", "opensearch-py", "requests"], CLIENTS)?;
        let urls: Vec<String> = (0..self.ports.len()).map(|n| format!("http://{}", self.address(n))).collect();
        let source = self.source.as_ref().map_or("local", |source| source.name.as_str());
        let results = self.source.as_ref().map_or_else(|| "query_execution_result_local".to_owned(), Source::results);
        let counts = json!({ "async": ASYNC, "livy": LIVY, "emr": EMR }).to_string();
        python.env("URLS", urls.join(" ")).env("SOURCE", source).env("RESULTS", results).env("COUNTS", counts);
        Some(Running::new(python))
    }

    /// The query ids of a session's statements, each of which succeeded, as the first replica lists them.
    fn statements(&self, session: &str) -> Vec<String> {
        // A listing is a search, which may lag behind.
        if let Some(source) = &self.source {
            source.http("POST", &format!("/{}/_refresh", source.requests()), None);
        }
        let url = format!("http://{}/async_query/sessions/{session}/statements?limit=1000", self.address(0));
        let mut curl = self.home.program("curl");
        curl.args(["-fsS", &url]);
        let listed: Value = serde_json::from_str(&finish(curl, "").ok()).expect("JSON");
        let mut ids = Vec::new();
        for statement in listed["statements"].as_array().expect("a list") {
            assert_eq!(statement["state"], "success", "{statement}");
            ids.push(statement["queryId"].as_str().expect("an id").to_owned());
        }
        ids.sort();
        ids
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        self.running.clear();
        end_jobs(&self.home);
    }
}

#[test]
fn three_replicas_are_killed_in_turn_under_load_and_every_statement_is_answered_once() {
    let mut replicas = Replicas::new(3);
    let Some(mut clients) = replicas.clients() else { return };
    let all = ASYNC.0 * ASYNC.1 + LIVY.0 * LIVY.1 + EMR.0 * EMR.1;
    let turns = 6;
    for turn in 0..turns {
        clients.says(&format!("[{}] answered", (turn + 1) * all / (turns + 2)));
        replicas.kill(turn % 3);
        // One alone serves until the one before it is back.
        if turn > 0 {
            replicas.start((turn - 1) % 3);
        }
    }
    replicas.start((turns - 1) % 3);
    let said: Value = serde_json::from_str(&clients.ends().ok()).expect("JSON");
    assert_eq!(said["failures"], json!([]));
    let answers = said["answers"].as_object().expect("answers");
    assert_eq!(answers.len(), all);

    let mut queries = Vec::new();
    for k in 0..ASYNC.0 {
        let ids: Vec<String> = (0..ASYNC.1).map(|n| format!("async-{k}-{n}")).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(answers[id], json!([[k, n, 3376]]), "{id}");
        }
        let mut sorted = ids.clone();
        sorted.sort();
        assert_eq!(replicas.statements(&format!("async-{k}")), sorted, "each was submitted once");
        queries.extend(ids);
    }
    for k in 0..LIVY.0 {
        let answers: Vec<&Value> = (0..LIVY.1).map(|n| &answers[&format!("livy-{k}-{n}")]).collect();
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(answer[1], json!([[k, n, "livy"]]));
        }
        let submitted = replicas.statements(&format!("livy-{}", answers[0][0]));
        assert_eq!(submitted.len(), LIVY.1, "each was submitted once: {submitted:?}");
        queries.extend(submitted);
    }
    for (k, n) in (0..EMR.0).flat_map(|k| (0..EMR.1).map(move |n| (k, n))) {
        assert_eq!(answers[&format!("emr-{k}-{n}")], "SUCCESS");
        queries.push(format!("emr-{k}-{n}"));
    }
    let Some(source) = &replicas.source else { return };
    for query in &queries {
        assert_eq!(source.hits("queryId", query).len(), 1, "{query} has one result");
    }
    let count = json!({ "query": { "exists": { "field": "queryId" } } });
    let found = source.http("POST", &format!("/{}/_count", source.results()), Some(&count));
    assert_eq!(found["count"], json!(queries.len()), "and there are no others");
}
