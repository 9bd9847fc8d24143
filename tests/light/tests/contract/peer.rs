//! Our documents beside those that FlintREPL left, and its documents read by us.

use std::collections::BTreeSet;

use firesteel_model::{Session, SessionId, SessionState, Statement, StatementState, Version};
use firesteel_session::ports::Column;
use firesteel_store::documents::Index;
use firesteel_store::wire;
use serde_json::{Value, json};

use crate::people::{attempt, columns, job, outcome, query, rows, session, statement};

fn golden() -> Value {
    serde_json::from_str(include_str!("../../golden/flintrepl-documents.json")).unwrap()
}

fn source(hit: &str) -> Value {
    golden()[hit][0]["_source"].clone()
}

/// The fields of a document; the peer's nulls are none, for ours never has one.
fn fields(document: &Value) -> BTreeSet<String> {
    let object = document.as_object().unwrap();
    object.iter().filter(|(_, v)| !v.is_null()).map(|(k, _)| k.clone()).collect()
}

#[test]
fn the_peer_s_documents_are_read() {
    let id = SessionId::new("s3").unwrap();
    let read = wire::session::read(&id, &source("session_hit")).unwrap();
    let expected = Session {
        id: id.clone(),
        state: SessionState::Running,
        job: Some(job("job1")),
        last_update: 1_796_032_073_491,
        ..session("s3")
    };
    assert_eq!(read, expected);

    let read = wire::statement::read(Some("stmt67b5c9c2e5c24130"), &source("statement_hit")).unwrap();
    assert_eq!((read.session, read.query_id), (id, Some(query("q3c9c8029b9f9426d"))));
    assert_eq!((read.lang.as_str(), read.query.0.as_str(), read.data_source.as_str()), ("sql", "SELECT 1", "mys3"));
    assert_eq!((read.submit_time, read.state), (1_796_032_083_631, StatementState::Success));

    let read = wire::result::read(&source("result_hit")).unwrap();
    assert_eq!((read.status.as_str(), read.error.as_str(), read.run_millis), ("SUCCESS", "", 683));
    assert_eq!(read.columns, [Column { name: "1".to_owned(), data_type: "integer".to_owned(), label: None }]);
    assert_eq!(read.rows, [r#"{"1":1}"#]);
}

#[test]
fn our_documents_have_the_peer_s_fields_and_a_statement_no_other() {
    let ours = Value::Object(wire::session::new(&session("s"), 5));
    assert_eq!(fields(&ours), fields(&source("session_hit")));
    let ours = Value::Object(wire::statement::new(&statement("st", 1)));
    assert_eq!(fields(&ours), fields(&source("statement_hit")));
    for (field, theirs) in source("statement_hit").as_object().unwrap() {
        let same_type = match theirs {
            Value::Null => ours.get(field).is_none(),
            Value::String(_) => ours[field].is_string(),
            _ => ours[field].is_u64(),
        };
        assert!(same_type, "{field}: {} for {theirs}", ours[field]);
    }

    let st = statement("st", 1);
    let outcome = outcome(&st, attempt(Version { term: 1, seq_no: 2 }, 3));
    let staged: Value = serde_json::from_str(&wire::result::staged(&outcome, &columns(), &rows(), 7).unwrap()).unwrap();
    let mut published = staged.clone();
    published.as_object_mut().unwrap().extend(wire::result::published(&outcome));
    assert_eq!(fields(&published), fields(&source("result_hit")));
    let hidden: Vec<String> = fields(&published).difference(&fields(&staged)).cloned().collect();
    assert_eq!(hidden, ["jobRunId", "queryId"]);
    assert_eq!(
        published,
        json!({
            "result": [r#"{"it\u0027s":1}"#, "{}"],
            "schema": [r#"{"column_name":"it\u0027s","data_type":"integer"}"#],
            "jobRunId": "job1",
            "applicationId": "app1",
            "dataSourceName": "mys3",
            "status": "SUCCESS",
            "error": "",
            "queryId": "q-st",
            "queryText": "SELECT 'it''s'",
            "sessionId": "s",
            "jobType": "interactive",
            "updateTime": 7,
            "queryRunTime": 683,
        })
    );
}

#[test]
fn a_failure_has_neither_rows_nor_columns() {
    let st = Statement { state: crate::people::failed("why"), ..statement("st", 1) };
    let outcome = outcome(&st, attempt(Version { term: 1, seq_no: 2 }, 3));
    let failed: Value = serde_json::from_str(&wire::result::failed(&outcome, 7).unwrap()).unwrap();
    let mut without = fields(&source("result_hit"));
    assert!(without.remove("result") && without.remove("schema"));
    assert_eq!(fields(&failed), without);
    assert_eq!((&failed["status"], &failed["error"]), (&json!("FAILED"), &json!("why")));
}

#[test]
fn no_document_of_a_session_holds_anything_but_scalars() {
    let own = firesteel_model::SessionChange::Own {
        owner: crate::people::owner("r"),
        job: Some(job("j")),
        application: None,
        excluded: vec![job("a"), job("b")],
    };
    let full =
        Session { excluded: vec![job("a")], draining: true, owner: Some(crate::people::owner("r")), ..session("s") };
    for document in [wire::session::new(&full, 5), wire::session::change(&own, 5)] {
        let nested: Vec<_> = document.iter().filter(|(_, v)| v.is_object() || v.is_array() || v.is_null()).collect();
        assert_eq!(nested, [], "the control plane's parser breaks on it");
    }
}

#[test]
fn our_mappings_are_the_peer_s_as_far_as_the_fields_go() {
    for (index, golden_index) in [(Index::Requests, "request_index"), (Index::Results, "result_index")] {
        let ours: Value = serde_json::from_str(wire::mapping::body(index)).unwrap();
        let golden = golden();
        let theirs = golden[golden_index].as_object().unwrap().values().next().unwrap();
        let mut mapping = ours["mappings"].clone();
        let gaps = wire::mapping::check(index, "x", &theirs["mappings"]).unwrap();
        if index == Index::Requests {
            // The one field that the peer has in its documents, not in its mapping; another control plane maps it.
            assert_eq!(gaps, ["index `x`: field `accountId` should be mapped as keyword, found nothing"]);
            mapping["properties"].as_object_mut().unwrap().remove("accountId");
        } else {
            assert_eq!(gaps, [""; 0]);
        }
        assert_eq!(mapping, theirs["mappings"], "{golden_index}");
    }
}
