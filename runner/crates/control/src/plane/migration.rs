//! All sessions at once: which are to be drained, and which are to be moved to another application. Asked again after somebody broke off, it
//! names what is left to be done.

use std::collections::BTreeSet;

use firesteel_model::{Pattern, Session, SessionId};
use firesteel_session::ports::control::Listing;

use super::Plane;
use crate::refusal::Refusal;

/// How many sessions that have ended are looked through for recoveries that were broken off.
const MOST: usize = 10_000;

impl Plane {
    /// The sessions that have not ended.
    ///
    /// # Errors
    /// The store's.
    pub async fn to_drain(&self) -> Result<BTreeSet<SessionId>, Refusal> {
        self.live(|_| true).await
    }

    /// The sessions that have not ended and are in another application than this, and those whose recovery was broken off.
    ///
    /// # Errors
    /// The store's.
    pub async fn to_migrate(&self, application: &str) -> Result<BTreeSet<SessionId>, Refusal> {
        let mut sessions = self.live(|session| session.application != application).await?;
        let left = self.store.left_open().await?.into_iter().filter_map(|left| left.session);
        sessions.extend(left.filter(|session| session.value.recovering).map(|session| session.value.id));
        let failed = Listing { states: vec!["fail".to_owned()], limit: MOST, ..Listing::default() };
        for session in self.store.list_sessions(&failed).await? {
            let id = &session.value.id;
            if session.value.recovering && !sessions.contains(id) && !self.is_recovered(id).await? {
                sessions.insert(id.clone());
            }
        }
        Ok(sessions)
    }

    async fn live(&self, wanted: impl Fn(&Session) -> bool) -> Result<BTreeSet<SessionId>, Refusal> {
        let all = Pattern::new("*").map_err(|bad| Refusal::Broken(bad.to_string()))?;
        let live = self.store.live_sessions(&[all]).await?;
        Ok(live.into_iter().map(|session| session.value).filter(wanted).map(|session| session.id).collect())
    }

    /// Whether the session that takes this one's place was made and has, or had, a job.
    async fn is_recovered(&self, id: &SessionId) -> Result<bool, Refusal> {
        let Some(target) = self.store.recovery_of(id).await? else { return Ok(true) };
        let made = self.store.session(&target).await?.map(|session| session.value);
        Ok(made.is_some_and(|session| session.job.is_some() || session.state.is_ended()))
    }
}
