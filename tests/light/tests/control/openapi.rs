//! The OpenAPI documents against the routes and against what the routes answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use firesteel_control::http::{Guard, Shared, User, routes};
use firesteel_control::openapi::DOCUMENTS;
use firesteel_model::{Attempt, Owner, RunnerId, SessionChange, StatementState};
use firesteel_session::ports::{Column, Outcome, ResultStore as _, SessionStore as _, Totals};
use firesteel_store::{Scope, Store};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{World, id};

/// A path without the names of what changes in it.
fn shape(path: &str) -> String {
    let named = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    path.split('/').map(named).collect::<Vec<_>>().join("/")
}

/// What the documents say there is: method and shape of the path, with the operation and its document.
fn operations() -> BTreeMap<(String, String), (Value, Value)> {
    let mut all = BTreeMap::new();
    for (name, text) in DOCUMENTS {
        let document: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(document["openapi"], "3.1.0", "{name}");
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let key = (method.clone(), shape(path));
                assert!(all.insert(key, (operation.clone(), document.clone())).is_none(), "{method} {path} twice");
            }
        }
    }
    all
}

/// What the sources route: each `.route("path", get(…).post(…))`.
fn routed() -> BTreeSet<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runner/crates/control/src/http");
    let mut all = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for route in text.split(".route(").skip(1) {
            let (path, rest) = route.trim_start().strip_prefix('"').unwrap().split_once('"').unwrap();
            let methods = rest.split(".merge(").next().unwrap().split("fn ").next().unwrap();
            for method in ["get", "post", "put", "patch", "delete"] {
                if methods.contains(&format!(" {method}(")) || methods.contains(&format!(".{method}(")) {
                    all.insert((method.to_owned(), shape(path)));
                }
            }
        }
    }
    all
}

#[test]
fn each_route_is_documented_and_nothing_else_is() {
    let documented: BTreeSet<_> = operations().into_keys().collect();
    // How the documents themselves are had.
    let own = BTreeSet::from([("get".to_owned(), "/openapi".to_owned()), ("get".to_owned(), "/openapi/{}".to_owned())]);
    let routed: BTreeSet<_> = routed().difference(&own).cloned().collect();
    assert!(routed.len() > 10, "the sources are read");
    assert_eq!(routed, documented);
}

/// A client that holds every answer against its document.
struct Client {
    world: World,
    shared: Shared,
    documented: BTreeMap<(String, String), (Value, Value)>,
    seen: BTreeSet<(String, u16)>,
}

impl Client {
    fn new() -> Client {
        let world = World::new();
        let registry = Arc::new(prometheus_client::registry::Registry::default());
        let shared = Shared { plane: world.plane(), guard: Arc::new(Guard::default()), registry };
        Client { world, shared, documented: operations(), seen: BTreeSet::new() }
    }

    /// Asks, checks the answer, and returns it.
    async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = Request::builder().method(method.to_uppercase().as_str()).uri(path);
        let request = request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap();
        let response = routes(self.shared.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 10_000_000).await.unwrap();
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);

        let plain = path.split('?').next().unwrap();
        let (operation, document) = self.operation(method, plain);
        let name = operation["operationId"].as_str().unwrap().to_owned();
        let described = &operation["responses"][status.to_string()];
        assert!(described.is_object(), "{method} {path}: {status} is not documented: {answer}");
        let described = match described["$ref"].as_str() {
            Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
            None => described,
        };
        let schema = &described["content"]["application/json"]["schema"];
        if schema.is_object() {
            let mut schema = schema.clone();
            schema["components"] = document["components"].clone();
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            let wrong: Vec<String> = validator.iter_errors(&answer).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{method} {path} {status}: {wrong:?}\n{answer}");
        } else {
            assert_eq!(answer, Value::Null, "{method} {path}: its body is not documented");
        }
        self.seen.insert((name, status));
        (status, answer)
    }

    fn operation(&self, method: &str, path: &str) -> (Value, Value) {
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |shape: &str| {
            let shape: Vec<&str> = shape.split('/').collect();
            shape.len() == parts.len() && shape.iter().zip(&parts).all(|(s, p)| *s == "{}" || s == p)
        };
        let found = self.documented.iter().find(|((m, shape), _)| m == method && fits(shape));
        found.unwrap_or_else(|| panic!("{method} {path} is not documented")).1.clone()
    }

    async fn get(&mut self, path: &str) -> (u16, Value) {
        self.ask("get", path, None).await
    }

    async fn post(&mut self, path: &str, body: Value) -> (u16, Value) {
        self.ask("post", path, Some(body)).await
    }

    async fn delete(&mut self, path: &str) -> (u16, Value) {
        self.ask("delete", path, None).await
    }

    /// A runner takes the session.
    async fn owned(&self, session: &str) {
        let there = self.world.store.session(&id(session)).await.unwrap().unwrap();
        let owner = Owner { runner: RunnerId::new("r").unwrap(), lease_millis: 60_000 };
        let own = SessionChange::Own { owner, job: None, application: None, excluded: vec![] };
        self.world.store.write_session(&id(session), there.version, &own).await.unwrap();
    }

    /// A runner claims the session's first statement, and ends it like this.
    async fn ended(&self, session: &str, end: StatementState) {
        let store = Store::new(self.world.memory.clone(), Scope::Requests);
        let hit = store.open_statements(&id(session), 1).await.unwrap().statements.remove(0);
        let statement = hit.value;
        let claim =
            store.write_statement(&statement.id, hit.version, &StatementState::Running { job: None }).await.unwrap();
        let attempt = Attempt { claim, n: 1 };
        let outcome = Outcome {
            statement: &statement,
            attempt,
            job: "j",
            application: "a",
            job_type: "interactive",
            run_millis: 1,
        };
        if end == StatementState::Success {
            let columns = [Column { name: "n".to_owned(), data_type: "integer".to_owned(), label: None }];
            let totals = Totals { rows: 1, bytes: 7, pages: 0, truncated: false };
            store.stage(&outcome, &columns, &[r#"{"n":1}"#.to_owned()], totals).await.unwrap();
            store.write_statement(&statement.id, claim, &end).await.unwrap();
            store.publish(&outcome).await.unwrap();
        } else {
            store.write_statement(&statement.id, claim, &end).await.unwrap();
        }
    }

    /// Which operations had which answers.
    fn saw(&self, expected: &[(&str, u16)]) {
        let expected: BTreeSet<_> = expected.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect();
        assert_eq!(self.seen, expected);
    }
}

fn failure() -> StatementState {
    StatementState::Failed { error: json!({ "code": "PLANNING", "message": "no table" }).to_string() }
}

#[tokio::test(start_paused = true)]
async fn async_queries_are_answered_as_documented() {
    let mut client = Client::new();
    let create = |query: &str| json!({ "datasource": "d", "lang": "sql", "query": query });
    let (_, first) = client.post("/_plugins/_async_query", create("SELECT 1 AS n")).await;
    let (session, query) = (first["sessionId"].as_str().unwrap(), first["queryId"].as_str().unwrap());
    let path = format!("/_plugins/_async_query/{query}");
    assert_eq!(client.get(&path).await.1["status"], "waiting");
    client.owned(session).await;
    client.ended(session, StatementState::Success).await;
    assert_eq!(client.get(&path).await.1["datarows"], json!([[1]]));
    let mut again = create("SELECT x");
    again["sessionId"] = json!(session);
    let (_, second) = client.post("/_plugins/_async_query", again.clone()).await;
    client.ended(session, failure()).await;
    let failed = client.get(&format!("/_plugins/_async_query/{}", second["queryId"].as_str().unwrap())).await.1;
    assert_eq!(failed["status"], "FAILED");
    let (_, third) = client.post("/_plugins/_async_query", again).await;
    let third = format!("/_plugins/_async_query/{}", third["queryId"].as_str().unwrap());
    assert_eq!(client.delete(&third).await.0, 204);
    assert_eq!(client.get(&third).await.1["status"], "cancelled");
    assert_eq!(client.post("/_plugins/_async_query", json!({})).await.0, 400);
    assert_eq!(client.get("/_plugins/_async_query/none").await.0, 400);
    client.saw(&[("create", 201), ("create", 400), ("get", 200), ("get", 400), ("cancel", 204)]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_answered_as_documented() {
    let mut client = Client::new();
    for name in ["s", "t"] {
        client.post("/async_query/sessions", json!({ "sessionId": name, "name": "mine" })).await;
    }
    client.owned("s").await;
    assert_eq!(client.get("/async_query/sessions?limit=1").await.1["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/async_query/sessions/s").await.1["state"], "running");
    assert_eq!(client.get("/async_query/sessions/none").await.0, 404);
    assert_eq!(client.get("/async_query/sessions?state=odd").await.0, 400);
    client.get("/async_query/sessions/s/log").await;
    let statements = "/async_query/sessions/s/statements";
    client.post(statements, json!({ "query": "SELECT 1 AS n", "queryId": "q" })).await;
    assert_eq!(client.post(statements, json!({ "query": "SELECT 2", "queryId": "q" })).await.0, 409);
    client.get(&format!("{statements}/q")).await;
    client.ended("s", StatementState::Success).await;
    client.get(&format!("{statements}/q")).await;
    client.post(statements, json!({ "query": "SELECT 2", "queryId": "r" })).await;
    client.post(&format!("{statements}/r/cancel"), json!({})).await;
    assert_eq!(client.get(statements).await.1["statements"].as_array().unwrap().len(), 2);
    client.post("/async_query/sessions/s?recover=true&applicationId=b", json!({})).await;
    client.delete("/async_query/sessions/t").await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(client.get(path).await.0, 200);
    }
    client.saw(&[
        ("allocate", 201),
        ("cancel", 200),
        ("close", 200),
        ("healthz", 200),
        ("listSessions", 200),
        ("listSessions", 400),
        ("listStatements", 200),
        ("log", 200),
        ("readyz", 200),
        ("recover", 200),
        ("session", 200),
        ("session", 404),
        ("statement", 200),
        ("submit", 201),
        ("submit", 409),
    ]);
}

#[tokio::test(start_paused = true)]
async fn livy_s_sessions_are_answered_as_documented() {
    let mut client = Client::new();
    client.get("/version").await;
    let (_, session) = client.post("/sessions", json!({ "kind": "sql" })).await;
    let (number, name) = (session["id"].as_u64().unwrap(), format!("livy-{}", session["id"]));
    let path = format!("/sessions/{number}");
    client.owned(&name).await;
    assert_eq!(client.get(&path).await.1["state"], "idle");
    assert_eq!(client.get(&format!("{path}/state")).await.1["state"], "idle");
    client.get(&format!("{path}/log")).await;
    assert_eq!(client.get("/sessions").await.1["total"], 1);
    let statements = format!("{path}/statements");
    for (end, state) in [(StatementState::Success, "ok"), (failure(), "error")] {
        let (_, statement) = client.post(&statements, json!({ "code": "SELECT 1 AS n" })).await;
        assert_eq!(statement["state"], "waiting");
        client.ended(&name, end).await;
        let (_, done) = client.get(&format!("{statements}/{}", statement["id"])).await;
        assert_eq!((&done["state"], &done["output"]["status"]), (&json!("available"), &json!(state)));
    }
    let (_, last) = client.post(&statements, json!({ "code": "SELECT 2" })).await;
    client.post(&format!("{statements}/{}/cancel", last["id"]), json!({})).await;
    assert_eq!(client.get(&statements).await.1["total_statements"], 3);
    client.delete(&path).await;
    assert_eq!(client.get("/sessions/77").await.0, 404);
    assert_eq!(client.post("/sessions", json!({ "kind": "pyspark" })).await.0, 400);
    let batch =
        json!({ "file": "x.jar", "className": "org.apache.spark.sql.FlintJob", "args": ["SELECT 1", "results"] });
    let (_, batch) = client.post("/batches", batch).await;
    let path = format!("/batches/{}", batch["id"]);
    for part in ["", "/state", "/log"] {
        client.get(&format!("{path}{part}")).await;
    }
    assert_eq!(client.get("/batches").await.1["total"], 1);
    client.delete(&path).await;
    client.saw(&[
        ("batch", 200),
        ("batchLog", 200),
        ("batchState", 200),
        ("createBatch", 201),
        ("deleteBatch", 200),
        ("listBatches", 200),
        ("version", 200),
        ("cancelStatement", 200),
        ("createSession", 201),
        ("createSession", 400),
        ("deleteSession", 200),
        ("listSessions", 200),
        ("listStatements", 200),
        ("log", 200),
        ("runStatement", 201),
        ("session", 200),
        ("session", 404),
        ("state", 200),
        ("statement", 200),
    ]);
}

#[tokio::test(start_paused = true)]
async fn job_runs_are_answered_as_documented() {
    let mut client = Client::new();
    let runs = "/applications/app/jobruns";
    let submit = json!({ "entryPoint": "x.jar", "entryPointArguments": ["results"],
        "sparkSubmitParameters": "--class org.apache.spark.sql.FlintREPL" });
    let (_, run) = client.post(runs, json!({ "clientToken": "t", "jobDriver": { "sparkSubmit": submit } })).await;
    let one = format!("{runs}/{}", run["jobRunId"].as_str().unwrap());
    client.get(&one).await;
    assert_eq!(client.get(runs).await.1["jobRuns"].as_array().unwrap().len(), 1);
    client.delete(&one).await;
    assert_eq!(client.post(runs, json!({})).await.0, 400);
    assert_eq!(client.get(&format!("{runs}/none")).await.0, 404);
    client.saw(&[
        ("CancelJobRun", 200),
        ("GetJobRun", 200),
        ("GetJobRun", 404),
        ("ListJobRuns", 200),
        ("StartJobRun", 200),
        ("StartJobRun", 400),
    ]);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_known_and_a_store_that_is_away_are_answered_as_documented() {
    let mut client = Client::new();
    let user = json!({ "user": "ann", "role": "viewer", "token": "t" });
    let users: Vec<User> = serde_json::from_value(json!([user])).unwrap();
    client.shared.guard = Arc::new(Guard::new(&users, 0).unwrap());
    let refused = [
        client.get("/async_query/sessions").await.0,
        client.get("/_plugins/_async_query/q").await.0,
        client.get("/sessions").await.0,
        client.get("/applications/app/jobruns").await.0,
    ];
    assert_eq!(refused, [401, 401, 401, 403]);
}
