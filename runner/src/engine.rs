//! The engine of this program: workers of this same program.

use std::sync::Arc;

use firesteel_engine::{Settings, Workers};
use firesteel_session::ports::Engine;
use tokio::task::JoinSet;

/// An engine, its first worker being started meanwhile: it is there when the first statement is.
pub fn start(settings: &Settings, tasks: &mut JoinSet<()>) -> Arc<dyn Engine> {
    let workers = Arc::new(Workers::new(settings.clone()));
    let warming = Arc::clone(&workers);
    tasks.spawn(async move {
        if let Err(error) = warming.warm().await {
            tracing::warn!(%error, "a worker could not be started ahead");
        }
    });
    workers
}
