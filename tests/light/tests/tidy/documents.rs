//! The mappings against the page that tells of the documents.

use std::collections::{BTreeMap, BTreeSet};

use firesteel_model::{
    Attempt, JobId, Owner, QueryId, RunnerId, Session, SessionChange, SessionId, Statement, StatementId,
    StatementState, Version,
};
use firesteel_session::ports::{Column, Outcome};
use firesteel_store::wire;
use firesteel_tests_light::read;
use serde_json::{Map, Value};

use crate::table;

/// Field → type, from the mapping and from the table of docs/documents.md that begins with `first`.
fn check(mapping: &str, first: &str) {
    let index: Value = serde_json::from_str(&read(mapping)).unwrap();
    let mappings = index.get("mappings").unwrap_or(&index);
    assert_eq!(
        mappings["dynamic"].to_string().trim_matches('"'),
        "false",
        "{mapping}: other programs add fields of their own"
    );
    let kind = |field: &Value| match (field["type"].as_str(), field["format"].as_str()) {
        (Some("date"), format) => {
            assert_eq!(format, Some("strict_date_time||epoch_millis"), "{mapping}");
            "date".to_owned()
        }
        (kind, _) => kind.unwrap_or("object").to_owned(),
    };
    let mapped: BTreeMap<String, String> =
        mappings["properties"].as_object().unwrap().iter().map(|(name, field)| (name.clone(), kind(field))).collect();
    let rows = table(&read("docs/documents.md"), first);
    let told: BTreeMap<String, String> =
        rows.into_iter().filter(|r| r[1] != "–").map(|r| (r[0].clone(), r[1].clone())).collect();
    assert_eq!(mapped, told, "{mapping} (left) and docs/documents.md (right)");
}

#[test]
fn the_request_index_has_the_fields_that_the_page_tells() {
    check("mappings/request_index.json", "field of the request index");
}

#[test]
fn the_result_index_has_the_fields_that_the_page_tells() {
    check("mappings/result_index.json", "field of the result index");
}

/// The fields of the table that begins with `first` whose cell in `column` is not empty.
fn told(first: &str, column: usize) -> BTreeSet<String> {
    let rows = table(&read("docs/documents.md"), first);
    rows.into_iter().filter(|r| !r[column].is_empty()).map(|r| r[0].clone()).collect()
}

fn keys(documents: impl IntoIterator<Item = Map<String, Value>>) -> BTreeSet<String> {
    documents.into_iter().flat_map(|d| d.into_iter().map(|(key, _)| key)).collect()
}

fn undocumented(written: &BTreeSet<String>, told: &BTreeSet<String>) -> Vec<String> {
    written.difference(told).cloned().collect()
}

#[test]
fn what_is_written_is_on_the_page() {
    let statement = Statement {
        id: StatementId::new("st").unwrap(),
        session: SessionId::new("s").unwrap(),
        query_id: Some(QueryId::new("q").unwrap()),
        lang: "sql".to_owned(),
        query: Default::default(),
        data_source: "local".to_owned(),
        submit_time: 1,
        state: StatementState::Waiting,
    };
    let states = [
        StatementState::Running { job: Some(JobId::new("j").unwrap()) },
        StatementState::Failed { error: "e".to_owned() },
        StatementState::Cancelled,
    ];
    let mut written = keys(states.iter().map(wire::statement::state));
    written.extend(keys([wire::statement::new(&statement)]));
    assert_eq!(undocumented(&written, &told("field of the request index", 3)), Vec::<String>::new(), "in a statement");

    let owner = Owner { runner: RunnerId::new("r").unwrap(), lease_millis: 1 };
    let session = Session {
        application: "a".to_owned(),
        job: Some(JobId::new("j").unwrap()),
        excluded: vec![JobId::new("x").unwrap()],
        owner: Some(owner.clone()),
        last_update: 1,
        draining: true,
        error: "e".to_owned(),
        ..Session::new(statement.session.clone(), "local")
    };
    let own =
        SessionChange::Own { owner, job: session.job.clone(), application: Some("a".to_owned()), excluded: vec![] };
    let changes = [own, SessionChange::Renew, SessionChange::GiveUp, SessionChange::End];
    let mut written = keys(changes.iter().map(|c| wire::session::change(c, 1)));
    written.extend(keys([wire::session::new(&session, 1)]));
    assert_eq!(undocumented(&written, &told("field of the request index", 2)), Vec::<String>::new(), "in a session");

    let attempt = Attempt { claim: Version { term: 1, seq_no: 1 }, n: 1 };
    let outcome =
        Outcome { statement: &statement, attempt, job: "j", application: "a", job_type: "interactive", run_millis: 1 };
    let column = Column { name: "a".to_owned(), data_type: "long".to_owned(), label: None };
    let staged = wire::result::staged(&outcome, &[column], &["{}".to_owned()], 1).unwrap();
    let written = keys([serde_json::from_str(&staged).unwrap(), wire::result::published(&outcome)]);
    assert_eq!(written, told("field of the result index", 2), "a result (left) and docs/documents.md (right)");
}
