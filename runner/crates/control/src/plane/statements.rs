//! Statements: submitted, listed, cancelled.

use firesteel_model::runner::{Beside, Fault, sweep};
use firesteel_model::statement::{self, Event};
use firesteel_model::steer::{self, Shut};
use firesteel_model::{QueryId, QueryText, Session, SessionId, Statement, StatementId, StatementState, Stored};
use firesteel_session::ports::control::Listing;
use firesteel_session::ports::{Companion, LargeResults, StoreError};

use super::{NewSession, Plane, StatementView};
use crate::access::Caller;
use crate::refusal::Refusal;

/// How often a document is read again because another changed it.
const ROUNDS: u32 = 32;
/// The longest text of a statement, in bytes.
pub const LONGEST: usize = 16_000_000;

/// A statement that somebody submits.
#[derive(Clone, Debug, Default)]
pub struct NewStatement {
    /// Its query id, which is also its document's, if the submitter chooses one: submitted again, it is the same statement.
    pub id: Option<StatementId>,
    /// The session; None, or one that has ended: a new one.
    pub session: Option<SessionId>,
    /// The data source; None: the one that there is.
    pub data_source: Option<String>,
    /// Its language.
    pub lang: String,
    /// Its text.
    pub query: String,
    /// Its own limit on execution, in milliseconds.
    pub timeout: Option<u64>,
}

/// What a submitter is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The query id.
    pub id: StatementId,
    /// The session that is to run it.
    pub session: SessionId,
}

impl Plane {
    /// Submits a statement: to the session that is named, or to a new one if that has ended, or if none is named.
    ///
    /// # Errors
    /// A limit is reached and nothing was stored; the session takes no statements; the id is another's; the store's.
    pub async fn submit(&self, caller: &Caller, new: NewStatement) -> Result<Submitted, Refusal> {
        caller.may_change()?;
        let data_source = self.data_source(new.data_source.as_deref())?;
        self.check(&new)?;
        let id = match &new.id {
            Some(id) => id.clone(),
            None => super::statement_id("queryId", &(self.unique)())?,
        };
        if new.id.is_some()
            && let Some(there) = self.submitted(caller, &id, &new).await?
        {
            return Ok(there);
        }
        // Before a session is made for it: who is refused leaves nothing.
        self.admission.user_statement(&caller.user, &id).await?;
        let made = self.let_in(caller, &id, data_source, &new).await;
        if made.is_err() {
            self.admission.withdraw_user_statement(&caller.user, &id).await;
        }
        made
    }

    /// Gives the statement a session, and a place in its queue.
    async fn let_in(
        &self,
        caller: &Caller,
        id: &StatementId,
        data_source: String,
        new: &NewStatement,
    ) -> Result<Submitted, Refusal> {
        let session = self.session_for(caller, new.session.as_ref(), &data_source).await?;
        let submit_time = self.admission.statement(&session, id).await?;
        let statement = Statement {
            id: id.clone(),
            session: session.clone(),
            query_id: QueryId::new(id.as_str()).ok(),
            lang: new.lang.clone(),
            query: QueryText(new.query.clone()),
            data_source,
            submit_time,
            state: StatementState::Waiting,
        };
        let made = self.place(caller, &statement, new).await;
        if made.is_err() {
            self.admission.withdraw(&session, id).await;
        }
        made
    }

    fn check(&self, new: &NewStatement) -> Result<(), Refusal> {
        let limit = self.settings.execution_timeout;
        if new.query.trim().is_empty() {
            Err(Refusal::Invalid("query: it is empty; give a statement".to_owned()))
        } else if new.query.len() > LONGEST {
            Err(Refusal::Invalid(format!(
                "query: a statement has at most {LONGEST} bytes, this one has {}",
                new.query.len()
            )))
        } else if new.timeout.is_some_and(|timeout| timeout == 0 || timeout > limit) {
            Err(Refusal::Invalid(format!("timeoutMillis: from 1 to the domain's limit, {limit}")))
        } else {
            Ok(())
        }
    }

    /// What an earlier request with this id has submitted, if it was the same.
    async fn submitted(
        &self,
        caller: &Caller,
        id: &StatementId,
        new: &NewStatement,
    ) -> Result<Option<Submitted>, Refusal> {
        let Some(there) = self.store.statement(id).await? else { return Ok(None) };
        let companion = self.store.companion(id).await?.map(|stored| stored.value).unwrap_or_default();
        let same = companion.user.as_deref().unwrap_or_default() == caller.user
            && there.value.query.0 == new.query
            && there.value.lang == new.lang;
        if !same {
            let message =
                format!("the query id `{}` is another statement's; choose another", id.as_str().escape_debug());
            return Err(Refusal::Conflict(message));
        }
        Ok(Some(Submitted { id: id.clone(), session: there.value.session }))
    }

    /// The session to submit to: the one that was asked for if it takes statements, else a new one.
    async fn session_for(
        &self,
        caller: &Caller,
        asked: Option<&SessionId>,
        data_source: &str,
    ) -> Result<SessionId, Refusal> {
        let mut new = NewSession { data_source: Some(data_source.to_owned()), ..NewSession::default() };
        if let Some(asked) = asked {
            let view = self.session(caller, asked).await?;
            match steer::takes(&view.session.value, data_source) {
                Ok(()) => return Ok(asked.clone()),
                Err(Shut::Ended(_)) => new.name = view.allocation.name,
                Err(shut) => return Err(refused(asked, &shut)),
            }
        }
        Ok(self.allocate(caller, new).await?.session.value.id)
    }

    /// Makes the statement, then reads its session again: if that has ended or is drained meanwhile, nobody would ever look at it.
    async fn place(&self, caller: &Caller, statement: &Statement, new: &NewStatement) -> Result<Submitted, Refusal> {
        let companion = Companion {
            session: statement.session.as_str().to_owned(),
            timeout: new.timeout,
            large_results: Some(LargeResults::Pages),
            user: Some(caller.user.clone()).filter(|user| !user.is_empty()),
            ..Companion::default()
        };
        match self.store.create_statement(statement, Some(&companion)).await {
            Ok(_) => {}
            // An earlier try of this request, or a twin of it, has made it.
            Err(StoreError::Conflict | StoreError::Unknown(_)) => {
                return self.submitted(caller, &statement.id, new).await?.ok_or_else(|| {
                    Refusal::NoStore("it is not known whether the statement was submitted; send the same id".to_owned())
                });
            }
            Err(error) => return Err(error.into()),
        }
        let id = &statement.session;
        let shut = match self.store.session(id).await? {
            Some(session) => steer::takes(&session.value, &statement.data_source).err(),
            None => return Err(Refusal::not_found("session", id.as_str())),
        };
        let Some(shut) = shut else {
            return Ok(Submitted { id: statement.id.clone(), session: id.clone() });
        };
        let refusal = refused(id, &shut);
        match self.fail(&statement.id, &refusal.to_string()).await? {
            // Its runner took it before the end.
            StatementState::Success => Ok(Submitted { id: statement.id.clone(), session: id.clone() }),
            _ => Err(refusal),
        }
    }

    /// Fails a statement that has not ended; the state that it is in then.
    pub(crate) async fn fail(&self, id: &StatementId, error: &str) -> Result<StatementState, Refusal> {
        for _ in 0..ROUNDS {
            let found = self.store.statement(id).await?.ok_or_else(|| Refusal::not_found("statement", id.as_str()))?;
            if found.value.state.is_terminal() {
                return Ok(found.value.state);
            }
            match self.store.fail_statement(&found.value, found.version, error).await {
                Ok(()) => return Ok(StatementState::Failed { error: error.to_owned() }),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// What a statement fails with that is left in a session which is over.
    pub(crate) async fn left(&self, statement: &Statement, session: &Session) -> Result<String, Refusal> {
        let marker = match statement.state {
            StatementState::Running { .. } => self.store.marker(&statement.id).await?.map(|marker| marker.attempt),
            _ => None,
        };
        let beside = Beside { marker, attempts: 0, companion: None, candidate: None };
        Ok(match sweep::left(&beside) {
            Fault::Failure(failure) => failure.to_document(),
            _ if session.error.is_empty() => "session ended".to_owned(),
            _ => format!("session ended: {}", session.error),
        })
    }

    /// Cancels a statement, waiting or running; the state that it is in then.
    ///
    /// # Errors
    /// There is none that the caller may see; they may only look; the store's.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<StatementState, Refusal> {
        caller.may_change()?;
        let view = self.statement(caller, id).await?;
        self.cancel_stored(view.statement).await
    }

    pub(crate) async fn cancel_stored(&self, mut found: Stored<Statement>) -> Result<StatementState, Refusal> {
        for _ in 0..ROUNDS {
            let Ok(next) = statement::next(&found.value.state, Event::Cancel) else { return Ok(found.value.state) };
            let id = &found.value.id;
            match self.store.write_statement(id, found.version, &next).await {
                Ok(_) => return Ok(next),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
            found = self.store.statement(id).await?.ok_or_else(|| Refusal::not_found("statement", id.as_str()))?;
        }
        Err(StoreError::Conflict.into())
    }

    /// The statements that the caller may see, newest first.
    ///
    /// # Errors
    /// The session is none that the caller may see; the store's.
    pub async fn statements(&self, caller: &Caller, listing: &Listing) -> Result<Vec<Stored<Statement>>, Refusal> {
        if let Some(session) = &listing.session {
            self.session(caller, session).await?;
            return Ok(self.store.list_statements(listing).await?);
        }
        match caller.only() {
            None => Ok(self.store.list_statements(listing).await?),
            Some(user) => {
                let mut all = Vec::new();
                for (session, _) in self.store.allocations(Some(user), 1_000).await? {
                    let of = Listing { session: Some(session), ..listing.clone() };
                    all.extend(self.store.list_statements(&of).await?);
                }
                all.sort_by_key(|statement| std::cmp::Reverse(statement.value.submit_time));
                all.truncate(listing.limit);
                Ok(all)
            }
        }
    }

    /// How a statement is, and how far.
    ///
    /// # Errors
    /// There is none that the caller may see; the store's.
    pub async fn look(&self, caller: &Caller, session: &SessionId, id: &str) -> Result<StatementView, Refusal> {
        let view = self.statement(caller, id).await?;
        if view.statement.value.session != *session {
            return Err(Refusal::not_found("statement", id));
        }
        Ok(view)
    }
}

fn refused(session: &SessionId, shut: &Shut) -> Refusal {
    let id = session.as_str().escape_debug();
    Refusal::Conflict(match shut {
        Shut::Ended(state) => format!("session `{id}` has ended ({}); submit without it, or to another", state.name()),
        Shut::Draining => format!("session `{id}` takes no more statements; submit without it, or to another"),
        Shut::DataSource(its) => {
            format!("session `{id}` is of data source `{}`; name that one, or another session", its.escape_debug())
        }
    })
}
