//! Stories of a real OpenSearch and the other programs that use it.

use std::collections::BTreeSet;

use firesteel_model::{SessionChange, SessionState, StatementState};
use firesteel_session::ports::{Open, Prepared, SessionStore, StageError, StoreError};
use firesteel_store::documents::Index;
use firesteel_store::{Documents as _, Scope};
use serde_json::{Value, json};

use crate::people::{attempt, columns, job, outcome, owner, query, rows, running, session, statement, totals};
use crate::stores::{Indices, server};

/// Tells a story if there is a server to tell it with.
async fn with(story: impl AsyncFnOnce(&Indices)) {
    if let Some(indices) = server() {
        story(&indices).await;
    }
}

fn put(indices: &Indices, path: &str, document: &Value) {
    let (status, answer) = indices.ask("PUT", path, &document.to_string());
    assert!(status < 300, "{path}: {answer}");
}

#[tokio::test]
async fn an_index_that_a_launcher_will_make_is_waited_for() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        let (s, st) = (session("s"), statement("st", 1));
        assert_eq!(stores.a.prepare(false).await, Ok(Prepared::NotYet));
        assert_eq!(indices.ask("HEAD", "/REQUEST", "").0, 404, "it is not made by us");
        assert_eq!(stores.a.session(&s.id).await, Ok(None));
        assert_eq!(stores.a.statement(&st.id).await, Ok(None));
        assert_eq!(stores.a.open_statements(&s.id, 10).await, Ok(Open::default()));
        assert_eq!(stores.a.every_open_statement(&s.id).await, Ok(Open::default()));
        assert_eq!(indices.ask("HEAD", "/REQUEST", "").0, 404, "nor by asking");
        assert_eq!(stores.b.prepare(true).await, Ok(Prepared::Ready));
        assert_eq!(stores.a.prepare(false).await, Ok(Prepared::Ready));
    })
    .await;
}

#[tokio::test]
async fn many_who_prepare_at_once_all_find_the_indices() {
    with(async |indices| {
        let stores: Vec<_> = (0..4).map(|_| indices.stores(Scope::Requests)).collect();
        let prepared = futures::future::join_all(stores.iter().map(|s| s.a.prepare(true))).await;
        assert_eq!(prepared, [const { Ok(Prepared::Ready) }; 4]);
    })
    .await;
}

#[tokio::test]
async fn our_indices_are_as_the_mappings_say() {
    with(async |indices| {
        indices.stores(Scope::Requests).a.prepare(true).await.unwrap();
        for (name, index) in [("REQUEST", Index::Requests), ("RESULT", Index::Results), ("STATE", Index::State)] {
            let ours: Value = serde_json::from_str(firesteel_store::wire::mapping::body(index)).unwrap();
            let (_, found) = indices.ask("GET", &format!("/{name}/_mapping"), "");
            assert_eq!(found.as_object().unwrap().values().next().unwrap()["mappings"], ours["mappings"], "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_mapping_with_more_is_taken_and_one_that_contradicts_is_refused() {
    with(async |indices| {
        let body: Value = serde_json::from_str(firesteel_store::wire::mapping::body(Index::Requests)).unwrap();
        let mut more = body.clone();
        more["mappings"]["properties"]["more"] = json!({ "type": "long" });
        put(indices, "/REQUEST", &more);
        assert_eq!(indices.stores(Scope::Requests).a.prepare(true).await, Ok(Prepared::Ready));

        for (mapped, found) in [(json!({ "type": "text" }), "text"), (Value::Null, "nothing")] {
            indices.ask("DELETE", "/REQUEST", "");
            let mut other = body.clone();
            match &mapped {
                Value::Null => drop(other["mappings"]["properties"].as_object_mut().unwrap().remove("sessionId")),
                mapped => other["mappings"]["properties"]["sessionId"] = mapped.clone(),
            }
            put(indices, "/REQUEST", &other);
            let refused = indices.stores(Scope::Requests).a.prepare(true).await;
            let name = &indices.settings.request_index;
            assert_eq!(
                refused,
                Err(StoreError::Refused(format!(
                    "index `{name}`: field `sessionId` should be mapped as keyword, found {found}; \
                     correct the mapping or name another index"
                )))
            );
            let (_, there) = indices.ask("GET", "/REQUEST/_mapping", "");
            assert_eq!(there[name]["mappings"], other["mappings"], "nothing was altered");
        }
    })
    .await;
}

#[tokio::test]
async fn statements_written_by_hand_are_read_and_the_unreadable_block_nobody() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        let least = |id: &str, more: Value| {
            let mut document = json!({
                "version": "1.0", "type": "statement", "state": "waiting", "statementId": id, "sessionId": "s",
                "lang": "sql", "query": "SELECT 1", "queryId": format!("q-{id}"), "submitTime": 5, "dataSourceName": "mys3",
            });
            document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            put(indices, &format!("/REQUEST/_doc/{id}?refresh=true"), &document);
        };
        least("iso", json!({ "submitTime": "1970-01-01T00:00:00.003Z" }));
        least("nulls", json!({ "error": null, "jobId": null, "applicationId": null, "accountId": null }));
        least("no-time", json!({ "submitTime": null }));
        least("a-source", json!({ "dataSourceName": 7 }));
        least("b-lang", json!({ "lang": 7 }));
        least("c-query-id", json!({ "queryId": "x".repeat(513) }));
        least("newest", json!({ "submitTime": 6 }));
        let open = stores.a.every_open_statement(&session("s").id).await.unwrap();
        let ids: Vec<&str> = open.statements.iter().map(|s| s.value.id.as_str()).collect();
        assert_eq!(ids, ["no-time", "iso", "c-query-id", "nulls", "newest"]);
        assert_eq!(open.statements[2].value.query_id, None, "one too long is as good as none, and can be answered");
        let mut unreadable = open.unreadable;
        unreadable.sort();
        assert_eq!(
            unreadable,
            [
                ("a-source", "field `dataSourceName` should be text"),
                ("b-lang", "field `lang` should be text"),
            ]
            .map(|(id, why)| (id.to_owned(), why.to_owned()))
        );
    })
    .await;
}

#[tokio::test]
async fn what_another_program_put_into_a_session_stays() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        let s = session("s");
        let document = json!({
            "version": "1.0", "type": "session", "sessionType": "interactive", "sessionId": "s", "state": "not_started",
            "dataSourceName": "mys3", "applicationId": "app1", "jobId": "job1", "accountId": null,
            "lastUpdateTime": "2026-11-30T13:48:03.491Z", "error": null, "excludeJobIds": ["x", "y"], "theirs": [1, { "a": "b" }],
        });
        put(indices, "/REQUEST/_create/s", &document);
        let found = stores.a.session(&s.id).await.unwrap().unwrap();
        assert_eq!((found.value.state, found.value.last_update), (SessionState::NotStarted, 1_796_046_483_491));
        assert_eq!(found.value.excluded, [job("x"), job("y")]);
        let own = SessionChange::Own { owner: owner("r"), job: None, application: None, excluded: vec![] };
        let version = stores.a.write_session(&s.id, found.version, &own).await.unwrap();
        stores.a.write_session(&s.id, version, &SessionChange::End).await.unwrap();
        let (_, there) = indices.ask("GET", "/REQUEST/_doc/s", "");
        let mut expected = document.clone();
        for (field, value) in [("state", json!("dead")), ("runnerId", json!("r")), ("leaseMillis", json!(60_000))] {
            expected[field] = value;
        }
        for field in ["lastUpdateTime", "jobStartTime"] {
            assert!(there["_source"][field].as_u64().unwrap() > 1_700_000_000_000, "{field}");
            expected[field] = there["_source"][field].clone();
        }
        assert_eq!(there["_source"], expected);
    })
    .await;
}

#[tokio::test]
async fn a_statement_s_document_never_has_a_field_more() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        let st = statement("st", 1);
        let fields = || {
            let (_, there) = indices.ask("GET", "/REQUEST/_doc/st", "");
            assert!(there["_source"].as_object().unwrap().values().all(|v| !v.is_null()), "{there}");
            there["_source"].as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>()
        };
        let mut version = stores.a.create_statement(&st, None).await.unwrap();
        let at_first = fields();
        for state in [running("j"), StatementState::Waiting, running("k"), crate::people::failed("why")] {
            version = stores.a.write_statement(&st.id, version, &state).await.unwrap();
            assert_eq!(fields(), at_first, "{state:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_read_takes_four_requests_on_the_wire() {
    with(async |indices| {
        let store = firesteel_store::Store::new(indices.open(), Scope::Requests);
        use firesteel_session::ports::ResultStore as _;
        store.prepare(true).await.unwrap();
        let st = statement("st", 1);
        store.create_statement(&st, None).await.unwrap();
        let hit = store.open_statements(&st.session, 10).await.unwrap().statements.remove(0);
        let before = store.documents().requests();
        let claim = store.write_statement(&st.id, hit.version, &running("job1")).await.unwrap();
        let outcome = outcome(&st, attempt(claim, 1));
        store.stage(&outcome, &columns(), &rows(), totals()).await.unwrap();
        store.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
        store.publish(&outcome).await.unwrap();
        assert_eq!(store.documents().requests() - before, 4);

        // And another program finds it at once.
        let search = json!({ "query": { "term": { "queryId": "q-st" } } }).to_string();
        let (_, found) = indices.ask("POST", "/RESULT/_search", &search);
        assert_eq!(found["hits"]["hits"].as_array().unwrap().len(), 1);
        let shown = &found["hits"]["hits"][0]["_source"];
        assert_eq!((&shown["jobRunId"], &shown["result"]), (&json!("job1"), &json!(rows())));
        assert_eq!(store.result(&query("q-st")).await.unwrap().unwrap().rows, rows());
    })
    .await;
}

#[tokio::test]
async fn a_document_that_is_no_session_is_not_taken_for_one() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        stores.a.create_statement(&statement("s", 1), None).await.unwrap();
        let read = stores.a.session(&session("s").id).await;
        assert_eq!(read, Err(StoreError::Corrupt("document `s`: field `type` should be `session`".to_owned())));
    })
    .await;
}

#[tokio::test]
async fn a_document_that_is_too_large_for_the_server_is_refused_with_what_to_do() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        let (st, claim) = (statement("st", 1), firesteel_model::Version { term: 1, seq_no: 0 });
        // The server takes 100 MB.
        let rows = vec!["x".repeat(1 << 20); 101];
        let staged = stores.a.stage(&outcome(&st, attempt(claim, 1)), &columns(), &rows, totals()).await;
        let told = staged.unwrap_err().to_string();
        assert!(told.starts_with("OpenSearch answered 413 ") || told.contains("store did not say"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn the_store_s_clock_is_the_server_s() {
    with(async |indices| {
        let documents = indices.open();
        documents.measure().await.unwrap();
        let (_, stats) = indices.ask("GET", "/_nodes/_local/stats/http", "");
        let theirs = stats["nodes"].as_object().unwrap().values().next().unwrap()["timestamp"].as_u64().unwrap();
        assert!(documents.now().abs_diff(theirs) < 5_000, "{} {theirs}", documents.now());
        let asked = documents.requests();
        documents.measure().await.unwrap();
        assert_eq!(documents.requests(), asked, "a minute has not passed");
    })
    .await;
}

#[tokio::test]
async fn a_result_index_that_was_deleted_and_made_again_by_a_guess_is_told_of_and_not_believed() {
    with(async |indices| {
        let stores = indices.stores(Scope::Requests);
        stores.a.prepare(true).await.unwrap();
        let claimed = async |id: &str| {
            let st = statement(id, 1);
            let made = stores.a.create_statement(&st, None).await.unwrap();
            let claim = stores.a.write_statement(&st.id, made, &running("job1")).await.unwrap();
            (st, attempt(claim, 1))
        };
        let staged = async |id: &str| {
            let (st, first) = claimed(id).await;
            stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await
        };
        assert_eq!(staged("before").await, Ok(()));
        assert_eq!(indices.ask("DELETE", "/RESULT", "").0, 200);
        for id in ["first", "second"] {
            let Err(StageError::Store(StoreError::Refused(told))) = staged(id).await else { panic!("{id} is staged") };
            assert!(told.contains("-result`: field `jobRunId` should be mapped as keyword"), "{told}");
        }
        // Deleted again, it is made as it should be, by the next runner or the next sweep.
        assert_eq!(indices.ask("DELETE", "/RESULT", "").0, 200);
        assert_eq!(stores.a.prepare(false).await, Ok(Prepared::Ready));
        assert_eq!(staged("after").await, Ok(()));
    })
    .await;
}
