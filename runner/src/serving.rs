//! A runner in this process: the loop, the heart beside it, and the requests to stop.

use std::sync::Arc;
use std::time::Duration;

use firesteel_model::runner::{Exit, Identity};
use firesteel_session::clock::SystemClock;
use firesteel_session::counters::Counters;
use firesteel_session::ports::{Engine, Store};
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

/// Hands each SIGTERM and SIGINT on as a request to stop.
///
/// # Errors
/// The operating system's.
pub fn on_signals(tasks: &mut JoinSet<()>) -> Result<mpsc::UnboundedReceiver<()>, Problem> {
    let (stop, stopped) = mpsc::unbounded_channel();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tasks.spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.send(()).is_err() {
                return;
            }
        }
    });
    Ok(stopped)
}
