//! Sessions: allocated, listed, closed.

use firesteel_model::steer::Steer;
use firesteel_model::{Expect, JobId, Session, SessionId, Stored};
use firesteel_session::ports::StoreError;
use firesteel_session::ports::control::{Allocation, Launch, LaunchError, Listing, Task};

use super::{Plane, SessionView};
use crate::access::Caller;
use crate::refusal::Refusal;

/// How often a document is read again because another changed it.
const ROUNDS: u32 = 32;
/// Between looks at a session that is drained, in milliseconds.
const LOOK: u64 = 100;
/// How often a launch is tried whose answer was lost.
const LAUNCHES: u32 = 3;

/// A session that somebody asks for.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its id, if the asker chooses one: asked for again, it is the same session.
    pub id: Option<SessionId>,
    /// What people see.
    pub name: String,
    /// Its data source; None: the one that there is.
    pub data_source: Option<String>,
    /// The application to launch its job in; None: as the operator set it.
    pub application: Option<String>,
    /// It ends after so many milliseconds without a statement.
    pub idle_timeout: Option<u64>,
    /// It ends after so many milliseconds.
    pub lifetime: Option<u64>,
    /// The session that it takes the place of, and how often that had been done.
    pub recovered_from: Option<(SessionId, u32)>,
}

impl Plane {
    /// Allocates a session and launches its job.
    ///
    /// # Errors
    /// A limit is reached and nothing was stored; the id is another's; the job was not launched, and the session has failed.
    pub async fn allocate(&self, caller: &Caller, new: NewSession) -> Result<SessionView, Refusal> {
        caller.may_change()?;
        let data_source = self.data_source(new.data_source.as_deref())?;
        let id = match &new.id {
            Some(id) => id.clone(),
            None => super::session_id("id", &(self.unique)())?,
        };
        if new.id.is_some()
            && let Some(there) = self.allocated(caller, &id, &data_source).await?
        {
            return Ok(there);
        }
        self.admission.session(&id, &caller.user).await?;
        match self.make(caller, &id, data_source, &new).await {
            Ok(made) => self.launch(made).await,
            Err(refused) => {
                self.admission.withdraw_session(&id, &caller.user).await;
                Err(refused)
            }
        }
    }

    /// The session that an earlier request of the same caller for this id has made.
    async fn allocated(
        &self,
        caller: &Caller,
        id: &SessionId,
        data_source: &str,
    ) -> Result<Option<SessionView>, Refusal> {
        let Some(session) = self.store.session(id).await? else { return Ok(None) };
        let allocation = self.store.allocation(id).await?.map(|stored| stored.value).unwrap_or_default();
        let theirs = allocation.user == caller.user && session.value.data_source == data_source;
        if !theirs {
            return Err(Refusal::Conflict(format!("the id `{}` is taken; choose another", id.as_str().escape_debug())));
        }
        Ok(Some(SessionView { session, allocation }))
    }

    /// Makes the documents. What only the control plane keeps comes first: who finds the session finds whose it is.
    async fn make(
        &self,
        caller: &Caller,
        id: &SessionId,
        data_source: String,
        new: &NewSession,
    ) -> Result<SessionView, Refusal> {
        let now = self.store.time().await?;
        let allocation = Allocation {
            user: caller.user.clone(),
            name: new.name.clone(),
            created: now,
            idle_timeout: new.idle_timeout,
            lifetime: new.lifetime,
            recovered_from: new.recovered_from.as_ref().map(|(from, _)| from.clone()),
            recoveries: new.recovered_from.as_ref().map_or(0, |(_, times)| times + 1),
        };
        match self.store.write_allocation(id, Expect::Absent, &allocation).await {
            Ok(_) | Err(StoreError::Unknown(_)) => {}
            Err(StoreError::Conflict) => {
                // An earlier try of the same request, or another user's.
                let there = self.store.allocation(id).await?.map(|stored| stored.value.user);
                if there.as_deref() != Some(caller.user.as_str()) {
                    let message = format!("the id `{}` is taken; choose another", id.as_str().escape_debug());
                    return Err(Refusal::Conflict(message));
                }
            }
            Err(error) => return Err(error.into()),
        }
        let session = Session {
            application: new.application.clone().unwrap_or_else(|| self.settings.application.clone()),
            last_update: now,
            ..Session::new(id.clone(), data_source)
        };
        match self.store.create_session(&session).await {
            Ok(version) => Ok(SessionView { session: Stored { version, value: session }, allocation }),
            // Read below what became of it.
            Err(StoreError::Conflict | StoreError::Unknown(_)) => {
                let session = self.store.session(id).await?.ok_or_else(|| {
                    Refusal::NoStore("it is not known whether the session was made; ask for the same id".to_owned())
                })?;
                Ok(SessionView { session, allocation })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Launches the job of a session that has none, and notes it. A session whose job cannot be launched has failed.
    pub(super) async fn launch(&self, made: SessionView) -> Result<SessionView, Refusal> {
        let session = &made.session.value;
        if session.job.is_some() || session.state.is_ended() {
            return Ok(made);
        }
        let launch = Launch {
            token: session.id.as_str().to_owned(),
            known_as: None,
            name: made.allocation.name.clone(),
            application: session.application.clone(),
            task: Task::Session(session.id.clone()),
            data_source: session.data_source.clone(),
            settings: made
                .allocation
                .idle_timeout
                .map(|ms| ("firesteel.inactivity".to_owned(), format!("{ms}ms")))
                .into_iter()
                .collect(),
        };
        match self.start(&launch).await {
            Ok(job) => {
                let launched = Steer::Launched { job, application: session.application.clone() };
                let note =
                    |session: &Session| (session.job.is_none() && !session.state.is_ended()).then(|| launched.clone());
                let session = self.steer(&session.id, note).await?;
                Ok(SessionView { session, ..made })
            }
            Err(error) => {
                let why = Steer::Fail { error: error.to_string() };
                self.steer(&session.id, |session| (!session.state.is_ended()).then(|| why.clone())).await?;
                self.admission.withdraw_session(&session.id, &made.allocation.user).await;
                Err(error.into())
            }
        }
    }

    pub(crate) async fn start(&self, launch: &Launch) -> Result<JobId, LaunchError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.launcher.start(launch).await {
                // The token makes it the same job.
                Err(LaunchError::Unknown(_)) if tries < LAUNCHES => {}
                done => return done,
            }
        }
    }

    /// Writes to a session what `steer` asks for, whoever else writes it meanwhile; nothing if it asks for nothing. The session as it is then.
    ///
    /// # Errors
    /// There is no such session; the store's.
    pub async fn steer(
        &self,
        id: &SessionId,
        steer: impl Fn(&Session) -> Option<Steer>,
    ) -> Result<Stored<Session>, Refusal> {
        for _ in 0..ROUNDS {
            let found = self.store.session(id).await?.ok_or_else(|| Refusal::not_found("session", id.as_str()))?;
            let Some(change) = steer(&found.value) else { return Ok(found) };
            match self.store.steer_session(id, found.version, &change).await {
                Ok(_) | Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// The sessions that the caller may see, newest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn sessions(&self, caller: &Caller, listing: &Listing) -> Result<Vec<SessionView>, Refusal> {
        let Some(user) = caller.only() else {
            let sessions = self.store.list_sessions(listing).await?;
            let mut known: std::collections::BTreeMap<SessionId, Allocation> =
                self.store.allocations(None, 10_000).await?.into_iter().collect();
            let with = |session: Stored<Session>| {
                let allocation = known.remove(&session.value.id).unwrap_or_default();
                SessionView { session, allocation }
            };
            return Ok(sessions.into_iter().map(with).collect());
        };
        let allocated = self.store.allocations(Some(user), 10_000).await?;
        let ids: Vec<SessionId> = allocated.iter().map(|(id, _)| id.clone()).collect();
        let mut views = Vec::new();
        for (some, ids) in allocated.chunks(500).zip(ids.chunks(500)) {
            for ((_, allocation), session) in some.iter().zip(self.store.sessions_at(ids).await?) {
                let Ok(Some(session)) = session else { continue };
                let wanted =
                    listing.states.is_empty() || listing.states.iter().any(|state| state == session.value.state.name());
                if wanted && listing.up_to.is_none_or(|time| session.value.last_update <= time) {
                    views.push(SessionView { session, allocation: allocation.clone() });
                }
            }
        }
        views.sort_by_key(|view| std::cmp::Reverse(view.session.value.last_update));
        views.truncate(listing.limit);
        Ok(views)
    }

    /// Closes a session: at once it takes no more statements; when those that it has are done, or after `wait` milliseconds, it ends, and its
    /// job is cancelled. Asked again, it goes on where it was.
    ///
    /// # Errors
    /// There is no such session; the store's.
    pub async fn close(&self, caller: &Caller, id: &SessionId, wait: u64) -> Result<SessionView, Refusal> {
        caller.may_change()?;
        let view = self.session(caller, id).await?;
        let drain = |session: &Session| (!session.state.is_ended() && !session.draining).then_some(Steer::Drain);
        self.steer(id, drain).await?;
        let until = self.clock.now().plus(wait);
        while wait > 0 && self.clock.now() < until {
            if self.store.every_open_statement(id).await?.statements.is_empty() {
                break;
            }
            self.clock.sleep_until(self.clock.now().plus(LOOK).min(until)).await;
        }
        self.end(id, &Steer::End).await?;
        self.session(caller, id).await.map(|closed| SessionView { allocation: view.allocation, ..closed })
    }

    /// Ends a session that is to end: its statements are cancelled, then it is written, then its job is cancelled if it is that session's
    /// alone.
    pub(crate) async fn end(&self, id: &SessionId, how: &Steer) -> Result<Stored<Session>, Refusal> {
        if matches!(how, Steer::End) {
            for statement in self.store.every_open_statement(id).await?.statements {
                self.cancel_stored(statement).await?;
            }
        }
        let ended = self.steer(id, |session| (!session.state.is_ended()).then(|| how.clone())).await?;
        if let Some(job) = ended.value.job.as_ref().filter(|_| !self.launcher.shares_jobs()) {
            // A runner that sees its session ended leaves by itself: this only makes it sooner.
            if let Err(error) = self.launcher.cancel(&ended.value.application, job).await {
                tracing::warn!(session = %id, %error, "the session has ended, and its job could not be cancelled");
            }
        }
        Ok(ended)
    }
}

impl Plane {
    /// The last lines of the log of a session's job. A job that serves others' sessions too has a log that is an admin's.
    ///
    /// # Errors
    /// They may not see it; the launcher's.
    pub async fn log(&self, caller: &Caller, session: &Session, lines: usize) -> Result<Vec<String>, Refusal> {
        if self.launcher.shares_jobs() && caller.only().is_some() {
            return Err(Refusal::Forbidden(
                "the job serves other sessions too: only an admin or a viewer sees its log".to_owned(),
            ));
        }
        match &session.job {
            None => Ok(Vec::new()),
            Some(job) => Ok(self.launcher.log(&session.application, job, lines).await?),
        }
    }
}

impl Plane {
    /// The next number under this name, from 0. No two askers get the same.
    ///
    /// # Errors
    /// The store's.
    pub async fn next_number(&self, name: &str) -> Result<u64, Refusal> {
        let name = format!("numbers/{name}");
        for _ in 0..ROUNDS {
            let stored = self.store.book(&name).await?;
            let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
            let number = book.last;
            book.last += 1;
            let expect = stored.map_or(Expect::Absent, |stored| Expect::Version(stored.version));
            match self.store.write_book(&name, expect, &book).await {
                Ok(_) => return Ok(number),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }
}
