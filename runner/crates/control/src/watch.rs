//! What a replica does by itself: asks about sessions that have fallen silent, ends those whose time is up, settles what is left in sessions
//! that have ended, and has the books tell what is in use.
//!
//! Several replicas do it at once: each decision is a conditional write, and the second one finds nothing left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use firesteel_model::steer::{self, Care, Patience, Silence, Steer};
use firesteel_model::{Millis, Pattern, Session, SessionId, SessionState, Statement, Stored};
use firesteel_session::ports::StoreError;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::access::Caller;
use crate::peers::Peers;
use crate::plane::Plane;
use crate::refusal::Refusal;

/// When a replica does what, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Between two looks at everything.
    pub every: u64,
    /// When silence is suspect.
    pub patience: Patience,
    /// How long statements of a session that has ended may wait for its recovery.
    pub sweep: u64,
    /// Whether sessions that failed are recovered without being asked.
    pub recovery: Option<Recovery>,
}

/// How failed sessions are recovered without being asked.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// A session, with those that it was recovered from, is recovered at most so often.
    pub most: u32,
    /// So many sessions at most in a minute, by each replica.
    pub a_minute: u32,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds { every: 5_000, patience: Patience { stale: 900_000, watched: 60_000 }, sweep: 30_000, recovery: None }
    }
}

/// What a replica counts.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Sessions that were failed because they fell silent, or because their job ended.
    pub failed: Counter,
    /// Sessions that were ended because their time was up.
    pub expired: Counter,
    /// Sessions that were recovered, without being asked or where a recovery had been broken off.
    pub recovered: Counter,
    /// Recoveries that did not succeed; they are tried again.
    pub unrecovered: Counter,
    /// Statements that were failed because their session had ended.
    pub swept: Counter,
    /// Sessions that have not ended.
    pub sessions: Gauge,
    /// Slots that queues hold.
    pub slots: Gauge,
}

impl Seen {
    /// Has them told at `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "firesteel_control_sessions_failed",
            "Sessions failed by the control plane",
            self.failed.clone(),
        );
        registry.register("firesteel_control_sessions_expired", "Sessions whose time was up", self.expired.clone());
        registry.register("firesteel_control_sessions_recovered", "Sessions recovered", self.recovered.clone());
        registry.register("firesteel_control_recoveries_failed", "Recoveries that failed", self.unrecovered.clone());
        registry.register(
            "firesteel_control_statements_swept",
            "Statements failed with their session",
            self.swept.clone(),
        );
        registry.register("firesteel_control_sessions", "Sessions that have not ended", self.sessions.clone());
        registry.register("firesteel_control_slots", "Slots that sessions' queues hold", self.slots.clone());
    }
}

/// Since when something was seen as it is.
struct Watched {
    last_update: u64,
    since: Millis,
}

/// A replica's watch over everything.
pub struct Watch {
    plane: Arc<Plane>,
    peers: Peers,
    rounds: Rounds,
    seen: Seen,
    sessions: BTreeMap<SessionId, Watched>,
    left: BTreeMap<SessionId, Millis>,
    /// When sessions were recovered, in the last minute.
    recovered: Vec<Millis>,
}

impl Watch {
    /// A watch that has seen nothing yet.
    #[must_use]
    pub fn new(plane: Arc<Plane>, rounds: Rounds, seen: Seen) -> Watch {
        let (peers, sessions, left) = (Peers::new(Arc::clone(&plane)), BTreeMap::new(), BTreeMap::new());
        Watch { plane, peers, rounds, seen, sessions, left, recovered: Vec::new() }
    }

    /// Watches until the future is dropped.
    pub async fn forever(mut self) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "a look at the sessions was not finished: the next one goes on");
            }
            let clock = &self.plane.clock;
            clock.sleep_until(clock.now().plus(self.rounds.every)).await;
        }
    }

    /// Looks once at everything.
    ///
    /// # Errors
    /// The store's; what was done is done.
    pub async fn round(&mut self) -> Result<(), Refusal> {
        let plane = Arc::clone(&self.plane);
        let all = Pattern::new("*").map_err(|bad| Refusal::Broken(bad.to_string()))?;
        let live = plane.store.live_sessions(&[all]).await?;
        self.sessions.retain(|id, _| live.iter().any(|session| session.value.id == *id));
        let time = plane.store.time().await?;
        for session in &live {
            let silence = self.silence(&session.value, time);
            if let Err(error) = self.care(session, silence, time).await {
                tracing::warn!(session = %session.value.id, %error, "the session was not looked after");
            }
        }
        self.sweep().await?;
        self.peers.round(self.rounds.patience.watched).await?;
        plane.drive_batches().await?;
        plane.admission.collect().await?;
        let (sessions, slots) = plane.admission.in_use().await?;
        self.seen.sessions.set(i64::from(sessions));
        self.seen.slots.set(i64::from(slots));
        Ok(())
    }

    fn silence(&mut self, session: &Session, time: u64) -> Silence {
        let now = self.plane.clock.now();
        let fresh = Watched { last_update: session.last_update, since: now };
        let watched = self.sessions.entry(session.id.clone()).or_insert(fresh);
        if watched.last_update != session.last_update {
            *watched = Watched { last_update: session.last_update, since: now };
        }
        Silence { told: time.saturating_sub(session.last_update), watched: now.since(watched.since) }
    }

    async fn care(&self, session: &Stored<Session>, silence: Silence, time: u64) -> Result<(), Refusal> {
        let (plane, id) = (&self.plane, &session.value.id);
        if steer::is_suspect(&session.value, silence, self.rounds.patience) {
            let (application, job) = (&session.value.application, session.value.job.as_ref());
            let state = match job {
                Some(job) => plane.launcher.state(application, job).await?,
                None => steer::JobState::Gone,
            };
            if let Care::Fail { cancel, error } = steer::care(&session.value, silence, self.rounds.patience, &state) {
                if let Some(job) = job.filter(|_| cancel) {
                    plane.launcher.cancel(application, job).await?;
                }
                return self.fail(session, &error).await;
            }
        }
        let Some(allocation) = plane.store.allocation(id).await?.map(|stored| stored.value) else { return Ok(()) };
        let age = time.saturating_sub(allocation.created);
        if allocation.lifetime.is_some_and(|most| age >= most) {
            tracing::info!(session = %id, "the session's time is up");
            plane.end(id, &Steer::End).await?;
            self.seen.expired.inc();
        }
        Ok(())
    }

    /// At the version that was looked at: a heartbeat that came meanwhile wins.
    async fn fail(&self, session: &Stored<Session>, error: &str) -> Result<(), Refusal> {
        let fail = Steer::Fail { error: error.to_owned() };
        match self.plane.store.steer_session(&session.value.id, session.version, &fail).await {
            Ok(_) => {
                tracing::warn!(session = %session.value.id, error, "the session has failed");
                self.seen.failed.inc();
                Ok(())
            }
            Err(StoreError::Conflict | StoreError::Unknown(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What is left in sessions that have ended: it is moved where somebody recovers them, else it is failed.
    async fn sweep(&mut self) -> Result<(), Refusal> {
        let left = self.plane.store.left_open().await?;
        let now = self.plane.clock.now();
        self.left.retain(|id, _| left.iter().any(|left| left.statement.value.session == *id));
        let mut recovered = BTreeSet::new();
        for left in left {
            let Some(session) = left.session.map(|session| session.value) else { continue };
            let since = *self.left.entry(session.id.clone()).or_insert(now);
            if recovered.contains(&session.id) {
                continue;
            }
            if self.is_to_be_recovered(&session, now.since(since), now).await? {
                recovered.insert(session.id.clone());
                self.recover(&session.id, now).await;
            } else if !session.recovering && now.since(since) >= self.rounds.sweep {
                self.fail_left(&session, &left.statement).await?;
            }
        }
        Ok(())
    }

    /// A recovery that somebody began and broke off is gone on with; one that nobody asked for is begun if that is set, and not too often.
    async fn is_to_be_recovered(&mut self, session: &Session, waited: u64, now: Millis) -> Result<bool, Refusal> {
        if session.recovering {
            return Ok(waited >= self.rounds.sweep);
        }
        let Some(Recovery { most, a_minute }) = self.rounds.recovery else { return Ok(false) };
        if session.state != SessionState::Fail {
            return Ok(false);
        }
        self.recovered.retain(|at| now.since(*at) < 60_000);
        if self.recovered.len() >= a_minute as usize {
            return Ok(false);
        }
        let allocation = self.plane.store.allocation(&session.id).await?;
        Ok(allocation.is_some_and(|stored| stored.value.recoveries < most))
    }

    async fn recover(&mut self, id: &SessionId, now: Millis) {
        self.recovered.push(now);
        match self.plane.recover(&Caller::anybody(), id, None, 0).await {
            Ok(new) => {
                tracing::info!(session = %id, to = %new.session.value.id, "the session was recovered");
                self.seen.recovered.inc();
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "the session was not recovered: it is tried again");
                self.seen.unrecovered.inc();
            }
        }
    }

    async fn fail_left(&self, session: &Session, found: &Stored<Statement>) -> Result<(), Refusal> {
        let statement = &found.value;
        let error = self.plane.left(statement, session).await?;
        match self.plane.store.fail_statement(statement, found.version, &error).await {
            Ok(()) => {
                tracing::info!(session = %session.id, statement = %statement.id, "failed with its session");
                self.seen.swept.inc();
            }
            Err(StoreError::Conflict | StoreError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
