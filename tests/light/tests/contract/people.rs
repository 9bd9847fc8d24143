//! Who appears in the stories: a session, its statements, their results.

use firesteel_model::{
    Attempt, JobId, Owner, QueryId, QueryText, RunnerId, Session, SessionId, SessionState, Statement, StatementId,
    StatementState, Version,
};
use firesteel_session::ports::{Column, Outcome, Totals};

pub fn session(id: &str) -> Session {
    Session {
        id: SessionId::new(id).unwrap(),
        state: SessionState::NotStarted,
        data_source: "mys3".to_owned(),
        application: "app1".to_owned(),
        job: None,
        excluded: Vec::new(),
        owner: None,
        last_update: 0,
        draining: false,
        recovering: false,
        error: String::new(),
    }
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
    vec![Column { name: "it's".to_owned(), data_type: "integer".to_owned() }]
}

pub fn rows() -> Vec<String> {
    vec![r#"{"it\u0027s":1}"#.to_owned(), "{}".to_owned()]
}

pub fn totals() -> Totals {
    Totals { rows: 2, bytes: 17, pages: 0, truncated: false }
}
