//! The library that every API uses: allocates, lists and closes sessions; submits, finds and cancels statements; reads results.
//!
//! A session is written before its job is launched, under the id that is also the launch's token, so that an answer that is lost starts
//! nothing twice. A statement's id is the user's own if they chose one: submitted again, it is found.

mod batches;
mod migration;
mod recovery;
mod results;
mod sessions;
mod statements;

use std::sync::Arc;

use firesteel_model::{Session, SessionId, Statement, StatementId, Stored};
use firesteel_session::ports::control::{Allocation, ControlStore, Launcher};
use firesteel_session::ports::{Clock, Companion};

use crate::access::Caller;
use crate::admission::Admission;
use crate::refusal::Refusal;

pub use batches::{BatchView, NewBatch};
pub use results::{Answer, ResultPage};
pub use sessions::NewSession;
pub use statements::{NewStatement, Submitted};

/// What an operator says of a control plane.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The one data source whose sessions it allocates.
    pub data_source: String,
    /// The application that jobs are launched in, unless a request names another; empty where there are none.
    pub application: String,
    /// The longest that a statement may run, in milliseconds: a request may name less.
    pub execution_timeout: u64,
    /// What this replica is called, the same after a restart: its batches belong to it by this name.
    pub instance: String,
}

/// The control plane, as one replica has it.
pub struct Plane {
    /// The documents.
    pub store: Arc<dyn ControlStore>,
    /// What starts jobs.
    pub launcher: Arc<dyn Launcher>,
    /// Who may have how much.
    pub admission: Admission,
    /// This process's time.
    pub clock: Arc<dyn Clock>,
    /// An id that nobody else has.
    pub unique: fn() -> String,
    /// What the operator said.
    pub settings: Settings,
}

/// A session and what is kept of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// The session.
    pub session: Stored<Session>,
    /// What is kept of it; nothing of one that another program made.
    pub allocation: Allocation,
}

/// A statement and what is kept of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementView {
    /// The statement.
    pub statement: Stored<Statement>,
    /// What is kept of it.
    pub companion: Companion,
}

/// An id that came from outside.
///
/// # Errors
/// Says what is wrong with it, and in which field.
pub fn session_id(field: &str, id: &str) -> Result<SessionId, Refusal> {
    SessionId::new(id).map_err(|bad| Refusal::Invalid(format!("{field}: {bad}")))
}

/// An id that came from outside.
///
/// # Errors
/// Says what is wrong with it, and in which field.
pub fn statement_id(field: &str, id: &str) -> Result<StatementId, Refusal> {
    StatementId::new(id).map_err(|bad| Refusal::Invalid(format!("{field}: {bad}")))
}

impl Plane {
    /// That the data source is the one that there is; the one that there is if none is named.
    fn data_source(&self, asked: Option<&str>) -> Result<String, Refusal> {
        match asked {
            Some(asked) if asked != self.settings.data_source => Err(Refusal::NoDataSource {
                asked: asked.chars().take(80).collect::<String>().escape_debug().to_string(),
                there: self.settings.data_source.clone(),
            }),
            _ => Ok(self.settings.data_source.clone()),
        }
    }

    /// A session that the caller may see.
    ///
    /// # Errors
    /// There is none; the store's.
    pub async fn session(&self, caller: &Caller, id: &SessionId) -> Result<SessionView, Refusal> {
        let allocation = self.store.allocation(id).await?.map(|stored| stored.value).unwrap_or_default();
        match self.store.session(id).await? {
            Some(session) if caller.sees(&allocation.user) => Ok(SessionView { session, allocation }),
            // That there is one is nothing for those who may not see it.
            _ => Err(Refusal::not_found("session", id.as_str())),
        }
    }

    /// A statement that the caller may see, by its own id or by its query id.
    ///
    /// # Errors
    /// There is none; the store's.
    pub async fn statement(&self, caller: &Caller, id: &str) -> Result<StatementView, Refusal> {
        let unknown = || Refusal::not_found("statement", id);
        let by_id = StatementId::new(id).map_err(|_| unknown())?;
        let statement = match self.store.statement(&by_id).await? {
            Some(statement) => statement,
            None => {
                let query_id = firesteel_model::QueryId::new(id).map_err(|_| unknown())?;
                let filter = firesteel_session::ports::Filter { session: None, query_id: Some(query_id), limit: 1 };
                self.store.statements(&filter).await?.pop().ok_or_else(unknown)?
            }
        };
        let companion = self.store.companion(&statement.value.id).await?;
        let companion = companion.map(|stored| stored.value).unwrap_or_default();
        if !caller.sees(companion.user.as_deref().unwrap_or_default()) {
            return Err(unknown());
        }
        Ok(StatementView { statement, companion })
    }
}
