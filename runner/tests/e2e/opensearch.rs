//! Against an OpenSearch: documents as other programs write and read them.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{Home, Running, samples};

/// Where the OpenSearch is, or None after saying so aloud.
pub fn url() -> Option<String> {
    let url = std::env::var("OPENSEARCH_URL").ok().filter(|url| !url.is_empty());
    if url.is_none() {
        assert!(std::env::var_os("FIRESTEEL_REQUIRE_OPENSEARCH").is_none_or(|v| v != "1"), "OPENSEARCH_URL is not set");
        eprintln!("SKIPPED: needs OPENSEARCH_URL (scripts/opensearch start)");
    }
    url
}

/// One data source's indices, gone with it.
pub struct Source {
    pub home: Home,
    url: String,
    pub name: String,
}

impl Source {
    pub fn new(name: &str) -> Option<Source> {
        let home = Home::new();
        let unique = home
            .path()
            .file_name()
            .expect("it has a name")
            .to_string_lossy()
            .to_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "");
        Some(Source { home, url: url()?, name: format!("e2e{name}{unique}") })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn requests(&self) -> String {
        format!(".query_execution_request_{}", self.name)
    }

    pub fn results(&self) -> String {
        format!("query_execution_result_{}", self.name)
    }

    /// The settings of the launch contract.
    fn launch(&self, session: &str) -> String {
        let (host, port) =
            self.url.trim_start_matches("http://").trim_end_matches('/').rsplit_once(':').expect("host:port");
        format!(
            " --class org.apache.spark.sql.FlintREPL --conf spark.datasource.flint.host={host} --conf spark.datasource.flint.port={port} \
             --conf spark.flint.job.requestIndex={} --conf spark.flint.job.sessionId={session} --conf spark.flint.datasource.name={} \
             --conf firesteel.state-index={} --conf firesteel.data={}",
            self.requests(),
            self.name,
            self.state(),
            samples(),
        )
    }

    fn state(&self) -> String {
        format!("firesteel_state_{}", self.name)
    }

    fn runner(&self, session: &str) -> Running {
        let mut runner = self.home.start(&[&self.launch(session), &self.results()]);
        runner.says("serving the session");
        runner
    }

    /// The options by which our own commands find it.
    pub fn options(&self) -> Vec<String> {
        let pairs = [
            ("--store", self.url.clone()),
            ("--request-index", self.requests()),
            ("--state-index", self.state()),
            ("--data-source", self.name.clone()),
        ];
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    fn run(&self, arguments: &[&str]) -> crate::harness::Answer {
        let options = self.options();
        let all: Vec<&str> = arguments.iter().copied().chain(options.iter().map(String::as_str)).collect();
        self.home.run(&all)
    }

    pub fn http(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.send(method, path, &body.map(Value::to_string).unwrap_or_default())
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Value {
        let host = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(host).expect("OpenSearch answers");
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{method} {path}: {answer}"))
    }

    /// Writes a statement as the SQL plugin does.
    fn writes(&self, session: &str, id: &str, query: &str) {
        let document = json!({
            "version": "1.0", "type": "statement", "state": "waiting", "statementId": id, "sessionId": session, "accountId": null,
            "applicationId": "app", "jobId": "job", "lang": "sql", "dataSourceName": self.name, "query": query, "queryId": id,
            "submitTime": 1_796_032_083_631_u64, "error": "",
        });
        let made = self.http("PUT", &format!("/{}/_create/{id}?refresh=wait_for", self.requests()), Some(&document));
        assert_eq!(made["result"], "created", "{made}");
    }

    fn statement(&self, id: &str) -> Value {
        self.http("GET", &format!("/{}/_doc/{id}", self.requests()), None)
    }

    /// Reads the statement until it is in this state.
    fn reaches(&self, id: &str, state: &str) {
        let mut last = Value::Null;
        for _ in 0..20_000 {
            last = self.statement(id);
            if last["_source"]["state"] == state {
                return;
            }
        }
        panic!("{id} never was {state}: {last}");
    }

    /// Searches for the results of a query until there are some.
    fn result(&self, member: &str, id: &str) -> Value {
        for _ in 0..20_000 {
            let found = self.hits(member, id);
            if let [hit] = found.as_slice() {
                return hit["_source"].clone();
            }
            assert!(found.is_empty(), "{found:?}");
        }
        panic!("no result of {id}");
    }

    pub fn hits(&self, member: &str, id: &str) -> Vec<Value> {
        let query = json!({"query": {"term": {member: id}}});
        let found = self.http("POST", &format!("/{}/_search?ignore_unavailable=true", self.results()), Some(&query));
        found["hits"]["hits"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for index in [self.requests(), self.results(), self.state()] {
                self.http("DELETE", &format!("/{index}?ignore_unavailable=true"), None);
            }
        }
    }
}

#[test]
fn a_statement_written_by_another_program_is_answered() {
    let Some(source) = Source::new("hand") else { return };
    let runner = source.runner("s");
    source.writes("s", "q1", "SELECT `city`, name AS `it's` FROM airports WHERE iata = 'ORD'");
    let result = source.result("queryId", "q1");
    assert_eq!(result["status"], "SUCCESS");
    assert_eq!(result["result"], json!([r#"{"city":"Chicago","it\u0027s":"Chicago O\u0027Hare International"}"#]));
    assert_eq!(
        result["schema"],
        json!([
            r#"{"column_name":"city","data_type":"string"}"#,
            r#"{"column_name":"it\u0027s","data_type":"string"}"#
        ])
    );
    assert_eq!(source.statement("q1")["_source"]["state"], "success");
    source.writes("s", "q2", "SELECT * FROM nowhere");
    source.reaches("q2", "failed");
    let failed = source.result("queryId", "q2");
    assert_eq!((failed["status"].as_str(), failed.get("result"), failed.get("schema")), (Some("FAILED"), None, None));
    let error: Value = serde_json::from_str(failed["error"].as_str().expect("text")).expect("JSON");
    assert_eq!((error["code"].as_str(), error["stage"].as_str()), (Some("ANALYSIS"), Some("plan")));
    assert_eq!(runner.stops().code, 0);
    let session = source.http("GET", &format!("/{}/_doc/s", source.requests()), None);
    assert_eq!(session["_source"]["state"], "dead");
}

#[test]
fn documents_that_are_wrong_are_answered_or_passed_over_and_the_next_one_is_served() {
    let Some(source) = Source::new("wrong") else { return };
    let mut runner = source.runner("s");
    let long = format!("long-{}", "x".repeat(507));
    // Written in one request, in this order of submission, all before the good one.
    let documents: Vec<(&str, Value, Option<&str>)> = vec![
        ("no-query-id", json!({"queryId": null}), Some("BAD_STATEMENT")),
        ("empty", json!({"query": "  "}), Some("EMPTY_STATEMENT")),
        ("language", json!({"lang": "klingon"}), Some("UNKNOWN_LANGUAGE")),
        ("state", json!({"state": {"is": "no text"}}), None),
        ("number", json!({"query": 7}), None),
        ("it's \"quoted\"/../\n🦀", json!({"query": "SELECT 1 AS one"}), Some("success")),
        (&long, json!({"query": "SELECT 1 AS one"}), Some("success")),
        ("old", json!({"query": "SELECT 2 AS two", "submitTime": "2020-01-01T00:00:00.000Z"}), Some("success")),
    ];
    let mut bulk = String::new();
    for (n, (id, change, _)) in documents.iter().enumerate() {
        let mut document = json!({
            "version": "1.0", "type": "statement", "state": "waiting", "statementId": id, "sessionId": "s", "lang": "sql",
            "dataSourceName": source.name, "query": "SELECT 1", "queryId": id, "submitTime": 1_796_000_000_000_u64 + n as u64, "error": "",
        });
        for (member, value) in change.as_object().expect("an object") {
            document[member] = value.clone();
        }
        bulk += &format!("{}\n{document}\n", json!({"create": {"_id": id}}));
    }
    source.send("POST", &format!("/{}/_bulk?refresh=true", source.requests()), &bulk);
    source.writes("s", "good", "SELECT 3 AS three");
    assert_eq!(source.result("queryId", "good")["result"], json!([r#"{"three":3}"#]));
    for (id, _, expected) in documents {
        let Some(expected) = expected else { continue };
        let found = source.http("POST", &format!("/{}/_mget", source.requests()), Some(&json!({"ids": [id]})));
        let statement = &found["docs"][0]["_source"];
        let is_so =
            statement["state"] == expected || statement["error"].as_str().is_some_and(|error| error.contains(expected));
        assert!(is_so, "{id}: {statement}");
    }
    runner.says("state=\"success\"");
    assert_eq!(runner.stops().code, 0);
}

#[test]
fn a_cancelled_statement_has_no_result() {
    let Some(source) = Source::new("cancel") else { return };
    let runner = source.runner("s");
    source.writes("s", "slow", "SELECT count(*) FROM routes a, routes b, routes c");
    source.reaches("slow", "running");
    let seen = source.statement("slow");
    let path = format!(
        "/{}/_update/slow?if_seq_no={}&if_primary_term={}",
        source.requests(),
        seen["_seq_no"],
        seen["_primary_term"]
    );
    assert_eq!(source.http("POST", &path, Some(&json!({"doc": {"state": "cancelled"}})))["result"], "updated");
    source.writes("s", "next", "SELECT 1 AS one");
    assert_eq!(source.result("queryId", "next")["result"], json!([r#"{"one":1}"#]));
    assert_eq!(source.statement("slow")["_source"]["state"], "cancelled");
    assert!(source.hits("queryId", "slow").is_empty());
    assert_eq!(runner.stops().code, 0);
}

#[test]
fn a_batch_jobs_result_is_found_by_its_job() {
    let Some(source) = Source::new("batch") else { return };
    let launch = source.launch("unused").replace("FlintREPL", "FlintJob");
    let mut command = source.home.command(&[&format!("{launch} --conf spark.flint.job.query=\"SELECT iata FROM airports WHERE iata = \\\"JFK\\\"\" --conf spark.flint.job.queryId=b1"), &source.results()]);
    command.env("SERVERLESS_EMR_JOB_ID", "job-7").env("SERVERLESS_EMR_VIRTUAL_CLUSTER_ID", "app-1");
    let answer = crate::harness::finish(command, "");
    assert_eq!(answer.code, 0, "{}", answer.err);
    let result = source.result("jobRunId", "job-7");
    assert_eq!(result["result"], json!([r#"{"iata":"JFK"}"#]));
    assert_eq!(
        (result["queryId"].as_str(), result["jobType"].as_str(), result["applicationId"].as_str()),
        (Some("b1"), Some("batch"), Some("app-1"))
    );
}

#[test]
fn our_own_commands_work_on_it_too() {
    let Some(source) = Source::new("own") else { return };
    let waiting = source.run(&["submit", "--session", "s", "--timeout", "3s", "SELECT 1"]);
    assert_eq!(waiting.code, 4, "{}", waiting.err);
    assert!(
        waiting.err.contains(&format!("start a runner: firesteel run --store {} --session s", source.url)),
        "{}",
        waiting.err
    );
    let runner = source.runner("s");
    let out = source.run(&["submit", "--session", "s", "--format", "csv", "SELECT count(*) AS n FROM airports"]).ok();
    assert_eq!(out, "n\n3376\n");
    let pages = source
        .run(&[
            "submit",
            "--session",
            "s",
            "--format",
            "csv",
            "SELECT b.origin AS x, a.* FROM routes a CROSS JOIN (SELECT * FROM routes LIMIT 40) b",
        ])
        .ok();
    assert_eq!(pages.lines().count(), 1 + 5_366 * 40);
    let status = source.run(&["status", "--session", "s"]).ok();
    assert!(status.contains(" running ") && status.matches(" success ").count() == 2, "{status}");
    assert_eq!(runner.stops().code, 0);
}

#[test]
fn a_job_of_a_launcher_waits_for_the_control_plane() {
    let Some(source) = Source::new("launch") else { return };
    let mut command = source.home.command(&[&source.launch("s"), &source.results()]);
    command.env("SERVERLESS_EMR_JOB_ID", "job-1").env("SERVERLESS_EMR_VIRTUAL_CLUSTER_ID", "app-1");
    let mut runner = Running::new(command);
    runner.says("started");
    // The control plane makes the request index after it has started the job.
    let mapping: Value = serde_json::from_str(
        &std::fs::read_to_string(crate::harness::repository().join("mappings/request_index.json")).expect("a mapping"),
    )
    .expect("JSON");
    let mapping = if mapping.get("mappings").is_some() { mapping } else { json!({"mappings": mapping}) };
    assert_eq!(source.http("PUT", &format!("/{}", source.requests()), Some(&mapping))["acknowledged"], true);
    let session = json!({
        "version": "1.0", "type": "session", "sessionType": "interactive", "sessionId": "s", "state": "not_started", "dataSourceName": source.name,
        "applicationId": "app-1", "jobId": "job-1", "accountId": null, "lastUpdateTime": 1_796_032_073_491_u64, "error": "", "excludeJobIds": "",
    });
    source.http("PUT", &format!("/{}/_create/s?refresh=true", source.requests()), Some(&session));
    runner.says("serving the session");
    source.writes("s", "q", "SELECT 1 AS one");
    assert_eq!(source.result("queryId", "q")["jobRunId"], "job-1");
    assert_eq!(runner.stops().code, 0);
}
