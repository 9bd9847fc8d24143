//! A runner in this process: the loop, the heart beside it, and the requests to stop.

use std::sync::Arc;
use std::time::Duration;

use firesteel_engine::Pool as Workers;
use firesteel_model::Millis;
use firesteel_model::runner::{Exit, Identity};
use firesteel_session::clock::SystemClock;
use firesteel_session::counters::Counters;
use firesteel_session::pool::{Members, Pool};
use firesteel_session::ports::{Clock, Engine, Store};
use firesteel_session::shell::{self, Job, Shared, heart};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::conf::Configuration;
use crate::problem::Problem;

/// Serves the session of `me` until the runner is to leave. The heart has a connection of its own, so that no statement's traffic
/// delays it.
///
/// # Errors
/// The heart's thread could not be started.
pub async fn serve(
    me: Identity,
    settings: &Configuration,
    store: Arc<dyn Store>,
    heart: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    counters: Counters,
    stop: mpsc::UnboundedReceiver<()>,
) -> Result<Exit, Problem> {
    let clock = Arc::new(SystemClock);
    let shared = Shared::new(me.clone(), settings.policy.clone());
    let patience = Duration::from_millis(settings.policy.heartbeat);
    let beating = heart::on_its_own_thread(
        me.session.clone(),
        Arc::clone(&shared),
        heart,
        clock.clone(),
        counters.clone(),
        patience,
    )?;
    let job = Job { me, policy: settings.policy.clone(), limits: settings.limits, store, engine, clock, counters };
    let exit = shell::run(job, shared, stop).await;
    // It ends by itself once the lease has; nothing that it does after the loop's end counts.
    drop(beating);
    Ok(exit)
}

/// Serves all sessions of the settings' patterns until the runner is told to leave.
///
/// # Errors
/// The heart's thread could not be started.
pub async fn serve_many(
    me: Identity,
    settings: &Configuration,
    store: Arc<dyn Store>,
    heart: Arc<dyn Store>,
    workers: Arc<Workers>,
    counters: Counters,
    stop: mpsc::UnboundedReceiver<()>,
) -> Result<Exit, Problem> {
    let engines = Arc::clone(&workers);
    let pool = Pool {
        me,
        patterns: settings.sessions.clone(),
        policy: settings.policy.clone(),
        limits: settings.limits,
        store,
        engines: Arc::new(move |_| Arc::new(engines.session())),
        clock: Arc::new(SystemClock),
        counters,
        members: Members::default(),
    };
    let mut tasks = JoinSet::new();
    let stop = match settings.exit_idle {
        Some(idle) => or_idle(stop, idle, pool.counters.clone(), &mut tasks),
        None => stop,
    };
    let beating = pool.hearts(heart).on_its_own_thread()?;
    let exit = pool.run(stop).await;
    // It beats for nobody now, and ends with the process.
    drop(beating);
    workers.close().await;
    Ok(exit)
}

/// Between looks whether any session is served, in milliseconds.
const LOOK: u64 = 1_000;

/// The requests to stop, and one more when no session was served for `idle` milliseconds.
fn or_idle(
    mut stop: mpsc::UnboundedReceiver<()>,
    idle: u64,
    counters: Counters,
    tasks: &mut JoinSet<()>,
) -> mpsc::UnboundedReceiver<()> {
    let (both, stopped) = mpsc::unbounded_channel();
    tasks.spawn(async move {
        let clock = SystemClock;
        let mut since = clock.now();
        loop {
            let now = clock.now();
            if counters.sessions_active.get() > 0 {
                since = now;
            }
            let is_idle = now.since(since) >= idle;
            if is_idle {
                tracing::info!("no session was served for a while");
            }
            let asked = tokio::select! {
                asked = stop.recv() => asked.is_some(),
                () = clock.sleep_until(now.plus(LOOK.min(idle))), if !is_idle => false,
                () = std::future::ready(()), if is_idle => true,
            };
            if (asked && both.send(()).is_err()) || is_idle {
                return;
            }
        }
    });
    stopped
}

/// Signals that come within so many milliseconds of the first are one request: `timeout`, shells and supervisors of process groups send
/// the same signal twice.
const TOGETHER: u64 = 500;

/// Tells the first signal, and those that are no echo of it.
struct Requests {
    together: u64,
    first: Option<Millis>,
}

impl Requests {
    fn is_new(&mut self, now: Millis) -> bool {
        let since = self.first.map(|first| now.since(first));
        self.first.get_or_insert(now);
        since.is_none_or(|since| since >= self.together)
    }
}

/// Hands SIGTERM and SIGINT on as requests to stop.
///
/// # Errors
/// The operating system's.
pub fn on_signals(tasks: &mut JoinSet<()>) -> Result<mpsc::UnboundedReceiver<()>, Problem> {
    let (stop, stopped) = mpsc::unbounded_channel();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tasks.spawn(async move {
        let clock = SystemClock;
        let mut requests = Requests { together: TOGETHER, first: None };
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if requests.is_new(clock.now()) && stop.send(()).is_err() {
                return;
            }
        }
    });
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one_request() {
        let mut requests = Requests { together: 500, first: None };
        for (at, is_new) in [(7, true), (7, false), (300, false), (506, false), (507, true), (508, true)] {
            assert_eq!(requests.is_new(Millis(at)), is_new, "at {at}");
        }
    }
}
