//! The engine of this program: workers of this same program.

use std::sync::Arc;

use firesteel_engine::{Settings, Workers};
use firesteel_session::ports::Engine;
use tokio::task::JoinSet;

use crate::problem::Problem;

/// An engine, its first worker being started meanwhile: it is there when the first statement is.
///
/// # Errors
/// A folder that is to hold tables is none; statements can't spill.
pub fn start(settings: &Settings, tasks: &mut JoinSet<()>) -> Result<Arc<dyn Engine>, Problem> {
    let mut settings = settings.clone();
    // Workers run in a folder of their own.
    for folder in &mut settings.data {
        *folder = folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
            let message = format!("--data: {} is no folder", folder.display());
            Problem::usage_with(message, "name one that holds CSV, JSON lines, Parquet or Arrow files")
        })?;
    }
    if let Some(folder) = &mut settings.export {
        *folder = folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
            Problem::usage_with(
                format!("--export: {} is no folder", folder.display()),
                "name one that statements may write into",
            )
        })?;
    }
    if let Some(folder) = &mut settings.spill_dir {
        *folder = std::path::absolute(&folder)?;
    }
    let workers = Arc::new(Workers::new(settings));
    workers.try_spill().map_err(|e| Problem::usage(format!("--spill-dir: {e}")))?;
    let warming = Arc::clone(&workers);
    tasks.spawn(async move {
        if let Err(error) = warming.warm().await {
            tracing::warn!(%error, "a worker could not be started ahead");
        }
    });
    Ok(workers)
}
