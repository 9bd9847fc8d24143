//! Who appears in the stories: a session, its statements, their results.

use firesteel_model::{
    Attempt, JobId, Owner, QueryId, QueryText, RunnerId, Session, SessionId, Statement, StatementId, StatementState,
    Version,
};
use firesteel_session::ports::{Column, Outcome, Totals};
use firesteel_store::documents::{Field, Index, Order, Search};

use crate::stores::Stores;

pub fn session(id: &str) -> Session {
    Session { application: "app1".to_owned(), ..Session::new(SessionId::new(id).unwrap(), "mys3") }
}

pub fn owner(runner: &str) -> Owner {
    Owner { runner: RunnerId::new(runner).unwrap(), lease_millis: 60_000 }
}

pub fn job(id: &str) -> JobId {
    JobId::new(id).unwrap()
}

pub fn query(id: &str) -> QueryId {
    QueryId::new(id).unwrap()
}

/// A waiting statement of session `s`, with the query id `q-<id>` as far as that is one.
pub fn statement(id: &str, submit_time: u64) -> Statement {
    Statement {
        id: StatementId::new(id).unwrap(),
        session: SessionId::new("s").unwrap(),
        query_id: QueryId::new(format!("q-{id}")).ok(),
        lang: "sql".to_owned(),
        query: QueryText("SELECT 'it''s'".to_owned()),
        data_source: "mys3".to_owned(),
        submit_time,
        state: StatementState::Waiting,
    }
}

pub fn running(by: &str) -> StatementState {
    StatementState::Running { job: Some(job(by)) }
}

pub fn failed(error: &str) -> StatementState {
    StatementState::Failed { error: error.to_owned() }
}

pub fn attempt(claim: Version, n: u32) -> Attempt {
    Attempt { claim, n }
}

pub fn outcome(statement: &Statement, attempt: Attempt) -> Outcome<'_> {
    Outcome { statement, attempt, job: "job1", application: "app1", job_type: "interactive", run_millis: 683 }
}

pub fn columns() -> Vec<Column> {
    vec![Column { name: "it's".to_owned(), data_type: "integer".to_owned(), label: None }]
}

pub fn rows() -> Vec<String> {
    vec![r#"{"it\u0027s":1}"#.to_owned(), "{}".to_owned()]
}

pub fn totals() -> Totals {
    Totals { rows: 2, bytes: 17, pages: 0, truncated: false }
}

/// A claimed statement and its first attempt.
pub async fn claimed(stores: &Stores, id: &str) -> (Statement, Attempt) {
    stores.a.prepare(true).await.unwrap();
    let st = statement(id, 1);
    let made = stores.a.create_statement(&st, None).await.unwrap();
    let claim = stores.a.write_statement(&st.id, made, &running("job1")).await.unwrap();
    (Statement { state: running("job1"), ..st }, attempt(claim, 1))
}

/// Ids of all documents of session `s` in the result index.
pub async fn in_results(stores: &Stores) -> Vec<String> {
    stores.raw.refresh(Index::Results).await.unwrap();
    let search = Search {
        index: Index::Results,
        terms: vec![(Field::Session, vec!["s".to_owned()])],
        or: Vec::new(),
        order: Order::Newest(Field::Updated),
        limit: 100,
    };
    stores.raw.search(&search).await.unwrap().into_iter().map(|found| found.id).collect()
}
