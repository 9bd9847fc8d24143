//! A session's place taken by another: what it was made of is copied, what waits in it is moved, each statement exactly once.
//!
//! The order is what makes it safe to break off anywhere and to begin again. First the target is written into the old session, so that every
//! later call goes on with the same one, and so that nobody fails what waits. The old session is ended and its journal is fenced by an epoch,
//! so that its runner can define nothing more. Then the journal is copied, the new session made, and the statements moved.

use firesteel_model::steer::Steer;
use firesteel_model::{RunnerId, Session, SessionId, Statement, StatementState, Stored};
use firesteel_session::journal::{Entry, Log, Record, What};
use firesteel_session::ports::StoreError;

use super::{NewSession, Plane, SessionView};
use crate::access::{Caller, Role};
use crate::refusal::Refusal;

/// How often something is begun again because another did the same.
const ROUNDS: u32 = 64;
/// Between looks at a session that is drained, in milliseconds.
const LOOK: u64 = 100;

impl Plane {
    /// Moves a session to a new one, in this application if one is named: first it takes no more statements and may finish what it has for
    /// `wait` milliseconds, then it ends and the new one goes on with what is left. Asked again, it goes on where it was, and gives the same
    /// session.
    ///
    /// # Errors
    /// There is no such session; a limit is reached, or the job of the new session was not launched: ask again. The store's.
    pub async fn recover(
        &self,
        caller: &Caller,
        id: &SessionId,
        application: Option<String>,
        wait: u64,
    ) -> Result<SessionView, Refusal> {
        caller.may_change()?;
        let old = self.session(caller, id).await?;
        let fresh = super::session_id("id", &(self.unique)())?;
        let steer = |session: &Session| (!session.recovering).then(|| Steer::RecoverTo(fresh.clone()));
        self.steer(id, steer).await?;
        let target = self.store.recovery_of(id).await?.ok_or_else(|| {
            Refusal::Conflict("the session was changed by another program while it was recovered; ask again".to_owned())
        })?;
        let until = self.clock.now().plus(wait);
        while self.clock.now() < until && !self.store.every_open_statement(id).await?.statements.is_empty() {
            self.clock.sleep_until(self.clock.now().plus(LOOK).min(until)).await;
        }
        // Not `dead`: what it has is not cancelled.
        self.end(id, &Steer::Fail { error: format!("recovered as session `{}`", target.as_str().escape_debug()) })
            .await?;
        let entries = self.entries(id).await?;
        let snapshot = Record { runner: self.somebody()?, what: What::Snapshot { entries } };
        match self.store.append_journal(&target, 0, &snapshot).await {
            // An earlier call copied the same: nothing was added since.
            Ok(()) | Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let theirs = Caller { user: old.allocation.user.clone(), role: Role::Owner };
        let new = NewSession {
            id: Some(target.clone()),
            name: old.allocation.name.clone(),
            data_source: Some(old.session.value.data_source.clone()),
            application: application.or_else(|| Some(old.session.value.application.clone())),
            idle_timeout: old.allocation.idle_timeout,
            lifetime: old.allocation.lifetime,
            recovered_from: Some((id.clone(), old.allocation.recoveries)),
        };
        let made = self.allocate(&theirs, new).await?;
        // One whose making was broken off has no job yet.
        let made = self.launch(made).await?;
        self.move_all(id, &target).await?;
        Ok(made)
    }

    fn somebody(&self) -> Result<RunnerId, Refusal> {
        RunnerId::new((self.unique)()).map_err(|bad| Refusal::Broken(bad.to_string()))
    }

    /// What the old session was made of, once nobody can add to it.
    async fn entries(&self, id: &SessionId) -> Result<Vec<Entry>, Refusal> {
        let epoch = Record { runner: self.somebody()?, what: What::Epoch };
        for _ in 0..ROUNDS {
            let log = Log::read(self.store.journal(id).await?);
            match self.store.append_journal(id, log.next(), &epoch).await {
                Ok(()) => {}
                Err(StoreError::Conflict | StoreError::Unknown(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut entries = log.entries().to_vec();
            if let Some(last) = log.last()
                && self.is_in_force(id, &last.statement).await?
            {
                entries.push(last.entry.clone());
            }
            return Ok(entries);
        }
        Err(StoreError::Conflict.into())
    }

    /// Whether the last define of the old session counts: if its statement is a success. One that is not decided is put back, so that it
    /// cannot become one, and is run again in the new session.
    async fn is_in_force(&self, old: &SessionId, id: &firesteel_model::StatementId) -> Result<bool, Refusal> {
        for _ in 0..ROUNDS {
            let Some(found) = self.store.statement(id).await? else { return Ok(false) };
            match found.value.state {
                StatementState::Success => return Ok(true),
                StatementState::Running { .. } if found.value.session == *old => {
                    let released = StatementState::Waiting;
                    match self.store.write_statement(id, found.version, &released).await {
                        Ok(_) | Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => return Ok(false),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// Moves what waits, oldest first, until a complete search finds nothing.
    async fn move_all(&self, from: &SessionId, to: &SessionId) -> Result<(), Refusal> {
        for _ in 0..ROUNDS {
            let open = self.store.every_open_statement(from).await?;
            if let Some((unreadable, why)) = open.unreadable.first() {
                tracing::warn!(session = %from, statement = unreadable.escape_debug().to_string(), why, "an unreadable statement is not moved");
            }
            if open.statements.is_empty() {
                return Ok(());
            }
            for statement in open.statements {
                self.move_one(from, to, statement).await?;
            }
        }
        Err(Refusal::NoStore("statements come to the session faster than they are moved; ask again".to_owned()))
    }

    async fn move_one(&self, from: &SessionId, to: &SessionId, found: Stored<Statement>) -> Result<(), Refusal> {
        let statement = &found.value;
        let writes = statement.state.is_running() && self.store.marker(&statement.id).await?.is_some();
        let done = if writes {
            let session = self.store.session(from).await?.map(|session| session.value);
            let session = session.unwrap_or_else(|| Session::new(from.clone(), statement.data_source.clone()));
            let error = self.left(statement, &session).await?;
            self.store.fail_statement(statement, found.version, &error).await
        } else {
            self.store.move_statement(&statement.id, found.version, to).await.map(|_| ())
        };
        match done {
            Ok(()) if writes => Ok(()),
            Ok(()) => {
                // Its slot goes with it. Where there is none, it keeps the one that it has.
                if self.admission.statement(to, &statement.id).await.is_ok() {
                    self.admission.withdraw(from, &statement.id).await;
                }
                Ok(())
            }
            // Another was first: what is left to be done, the next search shows.
            Err(StoreError::Conflict | StoreError::Unknown(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
