//! Many sessions in one process: a loop each, as if each had a process of its own, but one poll and one heart for all.
//!
//! [`Pool::run`] finds the sessions and starts and ends their loops (that of [`shell::run`](crate::shell::run), which knows nothing of this).
//! Each loop asks a store of its own, a `Member`, that hands on what it is asked: its polls to `rounds`, where one search answers
//! all that are due; its reads of the session to `reads`; the rest to the store as it is. [`Hearts`] renews all leases by one request.

mod hearts;
mod member;
mod reads;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use firesteel_model::policy::Policy;
use firesteel_model::runner::{Exit, Identity};
use firesteel_model::{Millis, Pattern, RunnerId, Session, SessionId, SessionState, Stored};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::counters::Counters;
use crate::ports::{Clock, Engine, Prepared, Store, StoreError};
use crate::result::Limits;
use crate::shell::{self, Job, Shared};
pub use hearts::{Hearts, Members};
use member::Member;
use reads::Reads;
use rounds::Rounds;

/// The most requests of all sessions together that are on their way at once, beside the polls and the heart: so many connections
/// a store is asked to bear.
const REQUESTS: usize = 32;

/// Gives a session what runs its statements.
pub type Engines = Arc<dyn Fn(&SessionId) -> Arc<dyn Engine> + Send + Sync>;

/// What a process needs to serve many sessions.
pub struct Pool {
    /// Who it is: to all sessions the same runner. Its session is what the log calls it.
    pub me: Identity,
    /// Which sessions it serves.
    pub patterns: Vec<Pattern>,
    /// Each session's intervals and limits.
    pub policy: Policy,
    /// The limits of a result.
    pub limits: Limits,
    /// Where sessions, statements and results are.
    pub store: Arc<dyn Store>,
    /// What runs statements.
    pub engines: Engines,
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// What all sessions together count.
    pub counters: Counters,
    /// The leases, for the heart.
    pub members: Members,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("patterns", &self.patterns).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// What the members of a pool share.
struct Common {
    store: Arc<dyn Store>,
    requests: Semaphore,
    clock: Arc<dyn Clock>,
    counters: Counters,
    /// What the log calls all sessions together.
    name: SessionId,
    rounds: Rounds,
    reads: Reads,
}

impl Pool {
    /// The heart of all its sessions, which must beat beside [`Pool::run`]; `store` should be a connection of its own.
    #[must_use]
    pub fn hearts(&self, store: Arc<dyn Store>) -> Hearts {
        Hearts {
            members: self.members.clone(),
            store,
            clock: Arc::clone(&self.clock),
            counters: self.counters.clone(),
            name: self.me.session.clone(),
            policy: self.policy.clone(),
        }
    }

    /// Serves until it is told to stop and every session is left. Each message on `stop` is a request to stop: the second means at once.
    pub async fn run(self, mut stop: mpsc::UnboundedReceiver<()>) -> Exit {
        let exit = tokio::select! {
            biased;
            _ = stop.recv() => return Exit { code: 0, why: "stopped before a session was taken" },
            prepared = self.prepare() => prepared,
        };
        if let Err(exit) = exit {
            return exit;
        }
        let common = Arc::new(Common {
            store: Arc::clone(&self.store),
            requests: Semaphore::new(REQUESTS),
            clock: Arc::clone(&self.clock),
            counters: self.counters.clone(),
            name: self.me.session.clone(),
            rounds: Rounds::new(self.policy.clone()),
            reads: Reads::default(),
        });
        let (found, mut fresh) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let (asked, patterns) = (Arc::clone(&common), self.patterns.clone());
        tasks.spawn(async move { asked.rounds.run(&asked, &patterns, &found).await });
        let asked = Arc::clone(&common);
        tasks.spawn(async move { asked.reads.run(&asked).await });
        tasks.spawn(self.sweeps());
        let now = self.clock.now();
        let mut serving = Serving {
            common,
            sessions: BTreeMap::new(),
            loops: JoinSet::new(),
            left: BTreeMap::new(),
            stopping: false,
            code: 0,
            pool: &self,
        };
        let mut listing = self.list(now);
        let mut silent_since = None;
        let mut may_stop = true;
        loop {
            if serving.sessions.is_empty() {
                if serving.stopping {
                    return Exit { code: serving.code, why: "told to stop" };
                }
                if silent_since.is_some_and(|since| self.clock.now().since(since) >= self.policy.unreachable) {
                    return Exit { code: 1, why: "the store is out of reach" };
                }
            }
            tokio::select! {
                biased;
                signal = stop.recv(), if may_stop => match signal {
                    Some(()) => serving.stop(),
                    None => may_stop = false,
                },
                Some(ended) = serving.loops.join_next(), if !serving.loops.is_empty() => match ended {
                    Ok((session, exit)) => serving.ended(&session, exit),
                    Err(error) => tracing::error!(%error, "a session's loop failed inside"),
                },
                Some(sessions) = fresh.recv() => serving.found(sessions),
                answer = &mut listing => {
                    let now = self.clock.now();
                    silent_since = if answer.is_ok() { None } else { silent_since.or(Some(now)) };
                    let wait = if answer.is_ok() { self.policy.heartbeat } else { self.policy.retry_max.min(self.policy.heartbeat) };
                    if let Ok(sessions) = answer {
                        serving.listed(sessions);
                    }
                    listing = self.list(now.plus(wait));
                }
            }
        }
    }

    /// Waits for the indices, once for all sessions.
    async fn prepare(&self) -> Result<(), Exit> {
        let began = self.clock.now();
        loop {
            let answer = self.store.prepare(self.me.job.is_none()).await;
            let now = self.clock.now();
            self.counters.heard(now, &self.me.session, "prepare", &answer);
            match answer {
                Ok(Prepared::Ready) => return Ok(()),
                Ok(Prepared::NotYet) if now.since(began) < self.policy.launch_grace => {}
                Ok(Prepared::NotYet) => return Err(Exit { code: 1, why: "the index was not created in time" }),
                Err(StoreError::Refused(why)) => {
                    tracing::error!(why, "the store cannot be used");
                    return Err(Exit { code: 1, why: "a fatal error" });
                }
                Err(_) if now.since(began) >= self.policy.unreachable => {
                    return Err(Exit { code: 1, why: "the store is out of reach" });
                }
                Err(_) => {}
            }
            self.clock.sleep_until(now.plus(self.policy.watch)).await;
        }
    }

    /// All sessions that there are to serve, asked for at `at`: those, too, that somebody has begun to serve and left.
    fn list(&self, at: Millis) -> BoxFuture<'_, Result<Vec<Stored<Session>>, StoreError>> {
        async move {
            self.clock.sleep_until(at).await;
            let answer = self.store.live_sessions(&self.patterns).await;
            self.counters.heard(self.clock.now(), &self.me.session, "list the sessions", &answer);
            answer
        }
        .boxed()
    }

    /// What dead runners left is looked for once for all sessions.
    fn sweeps(&self) -> impl Future<Output = ()> + use<> {
        let job = Job {
            me: self.me.clone(),
            policy: self.policy.clone(),
            limits: self.limits,
            store: Arc::clone(&self.store),
            engine: (self.engines)(&self.me.session),
            clock: Arc::clone(&self.clock),
            counters: self.counters.clone(),
        };
        let members = self.members.clone();
        shell::sweep::forever(job, || true, move |statement| members.has_in_hand(statement))
    }

    /// One session's loop, from its start to its end.
    fn start(&self, common: &Arc<Common>, id: &SessionId) -> (mpsc::UnboundedSender<()>, BoxFuture<'static, Exit>) {
        let me = Identity { session: id.clone(), ..self.me.clone() };
        // The rounds keep the intervals between searches: a loop that was answered asks again.
        let policy = Policy { poll: 1, poll_busy: 1, poll_idle: 1, ..self.policy.clone() };
        let shared = Shared::new(me.clone(), policy.clone());
        self.members.add(id, &shared);
        let job = Job {
            me,
            policy,
            limits: self.limits,
            store: Arc::new(Member::new(Arc::clone(common), id.clone())),
            engine: (self.engines)(id),
            clock: Arc::clone(&self.clock),
            counters: self.counters.clone(),
        };
        let (stop, stopped) = mpsc::unbounded_channel();
        (stop, shell::serve(job, shared, stopped, std::future::pending()).boxed())
    }
}

/// The sessions that have a loop.
struct Serving<'a> {
    pool: &'a Pool,
    common: Arc<Common>,
    sessions: BTreeMap<SessionId, Served>,
    loops: JoinSet<(SessionId, Exit)>,
    /// Sessions that were left to a living owner.
    left: BTreeMap<SessionId, Option<RunnerId>>,
    stopping: bool,
    code: u8,
}

/// A session that has a loop.
struct Served {
    stop: mpsc::UnboundedSender<()>,
    /// Who owned it when it was found.
    owner: Option<RunnerId>,
}

impl Serving<'_> {
    fn listed(&mut self, sessions: Vec<Stored<Session>>) {
        let live: BTreeSet<&SessionId> = sessions.iter().map(|session| &session.value.id).collect();
        self.left.retain(|id, _| live.contains(id));
        self.found(sessions);
    }

    fn found(&mut self, sessions: Vec<Stored<Session>>) {
        for session in sessions {
            let Session { id, state, owner, .. } = session.value;
            let free = state == SessionState::NotStarted || owner.as_ref().is_some_and(|o| o.lease_millis == 0);
            let owner = owner.map(|o| o.runner);
            let anothers = !free && self.left.get(&id).is_some_and(|left| *left == owner);
            if self.stopping || anothers || self.sessions.contains_key(&id) {
                continue;
            }
            let (stop, run) = self.pool.start(&self.common, &id);
            self.sessions.insert(id.clone(), Served { stop, owner });
            self.loops.spawn(async move { (id, run.await) });
        }
    }

    fn ended(&mut self, id: &SessionId, exit: Exit) {
        let served = self.sessions.remove(id);
        self.pool.members.remove(id);
        self.common.rounds.forget(id);
        if exit.code == 0 {
            tracing::info!(session = id.as_str(), why = exit.why, "left the session");
        } else {
            tracing::error!(session = id.as_str(), why = exit.why, "left the session");
        }
        // A stand-by looks again, and so does who could not do as it should.
        if let Some(served) = served.filter(|_| !self.pool.policy.standby && exit.code == 0) {
            self.left.insert(id.clone(), served.owner);
        }
        if self.stopping {
            self.code = self.code.max(exit.code);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        for served in self.sessions.values() {
            // One that does not hear it has just ended.
            let _ = served.stop.send(());
        }
        self.common.rounds.release();
    }
}
