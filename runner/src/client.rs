//! What stands on the other side of the store: submits statements, watches them, reads their results.

use std::sync::Arc;

use firesteel_model::statement::Event;
use firesteel_model::{Millis, QueryId, Session, SessionId, Statement, StatementId, StatementState, statement};
use firesteel_session::ports::{Clock, Companion, LargeResults, ResultDocument, Store, StoreError, Watched};

use crate::ambient;
use crate::output::{Printer, Summary};
use crate::problem::Problem;

/// How long a store that is out of reach is asked again, in milliseconds.
const PATIENCE: u64 = 10_000;
/// How long a decided result may take to be readable, in milliseconds.
const PUBLISHING: u64 = 60_000;
/// The most sessions that are looked at for one that has not ended.
const MOST_SESSIONS: u32 = 10_000;

/// A statement as it is handed in.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The text.
    pub text: String,
    /// Its language.
    pub lang: String,
    /// Its own limit on execution, in milliseconds.
    pub timeout: Option<u64>,
}

/// Both of a statement's ids.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// The document's.
    pub statement: StatementId,
    /// The user's.
    pub query: QueryId,
}

/// Submits to one session.
#[derive(Clone)]
pub struct Client {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The session.
    pub session: SessionId,
    /// The data source of a session that has to be made.
    pub data_source: String,
    /// Its time.
    pub clock: Arc<dyn Clock>,
}

/// The session to use where none was named: the first of `default`, `default-2`, … that has not ended, because an ended one never
/// runs again. The runner and those who submit go by the same rule.
///
/// # Errors
/// The store's.
pub async fn default_session(store: &dyn Store) -> Result<SessionId, Problem> {
    for n in 1..=MOST_SESSIONS {
        let name = if n == 1 { "default".to_owned() } else { format!("default-{n}") };
        let id = session_id(&name)?;
        if store.session(&id).await?.is_none_or(|session| !session.value.state.is_ended()) {
            return Ok(id);
        }
    }
    Err(Problem::usage("name a session with --session"))
}

/// The session of this name.
///
/// # Errors
/// It can't be an id.
pub fn session_id(name: &str) -> Result<SessionId, Problem> {
    SessionId::new(name).map_err(|bad| Problem::usage(format!("--session: {bad}")))
}

impl Client {
    /// Puts the statement into the session, which is made if it does not exist.
    ///
    /// # Errors
    /// The session has ended or takes no more statements; the store's errors.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, Problem> {
        self.accepting().await?;
        let ids = Submitted { statement: fresh(StatementId::new)?, query: fresh(QueryId::new)? };
        let statement = Statement {
            id: ids.statement.clone(),
            session: self.session.clone(),
            query_id: Some(ids.query.clone()),
            lang: submission.lang,
            query: firesteel_model::QueryText(submission.text),
            data_source: self.data_source.clone(),
            submit_time: self.store.time().await?,
            state: StatementState::Waiting,
        };
        let companion = Companion {
            session: self.session.as_str().to_owned(),
            timeout: submission.timeout,
            large_results: Some(LargeResults::Pages),
            user: ambient::user(),
            ..Companion::default()
        };
        self.store.create_statement(&statement, Some(&companion)).await?;
        // The session may have ended in between: then nobody would ever look at the statement.
        if let Err(refused) = self.accepting().await {
            let error = refused.to_string();
            self.settle(&ids.statement, |_| Event::Fail { error: error.clone() }).await?;
            return Err(refused);
        }
        Ok(ids)
    }

    /// Makes the session if it is missing.
    async fn accepting(&self) -> Result<(), Problem> {
        loop {
            let id = &self.session;
            match self.store.session(id).await? {
                Some(found) if found.value.state.is_ended() => {
                    let message = format!(
                        "session `{}` has ended ({}) and never runs again",
                        id.as_str().escape_debug(),
                        found.value.state.name()
                    );
                    return Err(Problem::usage_with(message, "name another with --session"));
                }
                Some(found) if found.value.draining => {
                    let message = format!("session `{}` takes no more statements", id.as_str().escape_debug());
                    return Err(Problem::usage_with(message, "name another with --session"));
                }
                Some(_) => return Ok(()),
                None => {
                    let session = Session {
                        last_update: self.store.time().await?,
                        ..Session::new(id.clone(), self.data_source.clone())
                    };
                    match self.store.create_session(&session).await {
                        Ok(_) => return Ok(()),
                        // Somebody else made it just now.
                        Err(StoreError::Conflict) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// The statement of this query id or statement id.
    ///
    /// # Errors
    /// There is none; the store's errors.
    pub async fn find(&self, id: &str) -> Result<StatementId, Problem> {
        let unknown = || {
            Problem::usage_with(format!("no statement `{}`", id.escape_debug()), "firesteel status shows what there is")
        };
        let query = QueryId::new(id).map_err(|_| unknown())?;
        let filter = firesteel_session::ports::Filter { session: None, query_id: Some(query), limit: 1 };
        if let Some(found) = self.store.statements(&filter).await?.into_iter().next() {
            return Ok(found.value.id);
        }
        let statement = StatementId::new(id).map_err(|_| unknown())?;
        self.store.statement(&statement).await?.map(|found| found.value.id).ok_or_else(unknown)
    }

    /// Cancels the statement, waiting or running; returns the state it is in.
    ///
    /// # Errors
    /// The store's.
    pub async fn cancel(&self, id: &StatementId) -> Result<StatementState, Problem> {
        self.settle(id, |_| Event::Cancel).await
    }

    /// Lets an event happen to the statement, unless it has ended, whoever else writes it meanwhile.
    async fn settle(
        &self,
        id: &StatementId,
        event: impl Fn(&StatementState) -> Event,
    ) -> Result<StatementState, Problem> {
        loop {
            let Some(found) = self.store.statement(id).await? else {
                return Err(Problem::usage(format!("no statement `{}`", id.as_str().escape_debug())));
            };
            let state = found.value.state;
            let Ok(next) = statement::next(&state, event(&state)) else { return Ok(state) };
            match self.store.write_statement(id, found.version, &next).await {
                Ok(_) => return Ok(next),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Watches the statement until it has ended, and tells each look.
    ///
    /// # Errors
    /// The store has been out of reach for a while, or the statement's document is gone.
    pub async fn ended(
        &self,
        id: &StatementId,
        mut seen: impl FnMut(&Watched, u64),
    ) -> Result<StatementState, Problem> {
        let began = self.clock.now();
        let mut away_since: Option<Millis> = None;
        loop {
            let now = self.clock.now();
            let took = now.since(began);
            match self.store.watch(&self.session, id).await {
                Ok(watched) => {
                    away_since = None;
                    seen(&watched, took);
                    match watched.statement.map(|s| s.value.state) {
                        Some(state) if state.is_terminal() => return Ok(state),
                        Some(_) => {}
                        None => return Err(Problem::Other("the statement's document is gone".to_owned())),
                    }
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                    let since = *away_since.get_or_insert(now);
                    if now.since(since) > PATIENCE {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            // Often at first, for a short statement's sake, then less so.
            self.clock.sleep_until(now.plus((took / 10).clamp(5, 200))).await;
        }
    }

    /// Prints a success's result, page by page, and how long it took since it `began`.
    ///
    /// # Errors
    /// It is not readable, or the output's error.
    pub async fn print(
        &self,
        ids: &Submitted,
        began: Option<Millis>,
        printer: &mut dyn Printer,
    ) -> Result<(), Problem> {
        let document = self.published(&ids.query).await?;
        printer.begin(&document.columns)?;
        printer.rows(&document.rows)?;
        let mut summary = Summary { rows: document.rows.len() as u64, ..Summary::default() };
        let companion = self.store.companion(&ids.statement).await?.map(|found| found.value).unwrap_or_default();
        if let (Some(attempt), Some(totals)) = (companion.candidate, companion.totals) {
            for n in 0..totals.pages {
                let page = self.store.page(&ids.statement, attempt, n).await?;
                summary.rows += page.rows.len() as u64;
                printer.rows(&page.rows)?;
            }
            if summary.rows != totals.rows {
                let message = format!("the result has {} rows, of which {} could be read", totals.rows, summary.rows);
                return Err(Problem::Other(message));
            }
            summary.truncated = totals.truncated;
        }
        summary.millis = began.map(|began| self.clock.now().since(began));
        printer.end(&summary)?;
        if summary.truncated && !printer.shows_summary() {
            eprintln!("firesteel: {} rows; the result is longer: a limit was reached", summary.rows);
        }
        Ok(())
    }

    async fn published(&self, query: &QueryId) -> Result<ResultDocument, Problem> {
        let began = self.clock.now();
        loop {
            if let Some(document) = self.store.result(query).await? {
                return Ok(document);
            }
            let now = self.clock.now();
            if now.since(began) > PUBLISHING {
                return Err(Problem::Other("the statement succeeded, but its result cannot be found".to_owned()));
            }
            self.clock.sleep_until(now.plus(5)).await;
        }
    }
}

/// What a statement that has not succeeded tells its user.
#[must_use]
pub fn told(state: &StatementState) -> Problem {
    match state {
        StatementState::Failed { error } | StatementState::Timeout { error }
            if matches!(error.as_str(), "timeout" | "wait timeout") =>
        {
            Problem::Stopped(format!("the statement failed: {error}"))
        }
        StatementState::Failed { error } | StatementState::Timeout { error } => failure(error),
        StatementState::Cancelled => Problem::Stopped("the statement was cancelled".to_owned()),
        other => Problem::Other(format!("the statement is {}", other.name())),
    }
}

fn failure(error: &str) -> Problem {
    let json: Option<serde_json::Value> = serde_json::from_str(error).ok();
    let member = |name: &str| Some(json.as_ref()?.get(name)?.as_str()?.to_owned());
    let message = member("message").unwrap_or_else(|| error.to_owned());
    let hint = member("code").map(|code| format!("{code}: see docs/errors/{code}.md"));
    Problem::Statement { message, hint }
}

/// An id that nobody else has.
fn fresh<T, E: std::fmt::Display>(make: impl Fn(String) -> Result<T, E>) -> Result<T, Problem> {
    make(ambient::unique()).map_err(|bad| Problem::Other(bad.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(error: &str) -> (String, Option<String>) {
        let problem = told(&StatementState::Failed { error: error.to_owned() });
        (problem.to_string(), problem.hint())
    }

    #[test]
    fn a_failure_tells_its_message_and_where_to_read_more() {
        assert_eq!(
            told_of(r#"{"message":"table `x` not found","code":"ANALYSIS","stage":"plan"}"#),
            ("table `x` not found".to_owned(), Some("ANALYSIS: see docs/errors/ANALYSIS.md".to_owned()))
        );
        assert_eq!(told_of("some text of the peer"), ("some text of the peer".to_owned(), None));
        assert_eq!(told_of("wait timeout"), ("the statement failed: wait timeout".to_owned(), None));
        assert!(matches!(told(&StatementState::Cancelled), Problem::Stopped(_)));
    }
}
