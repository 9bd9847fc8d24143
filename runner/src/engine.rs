//! The engine of this program: workers of this same program.

use std::path::Path;
use std::sync::Arc;

use firesteel_engine::{Pool, Settings};
use tokio::task::JoinSet;

use crate::plugins;
use crate::problem::Problem;

/// The workers, the first of them being started meanwhile: it is there when the first statement is.
///
/// # Errors
/// A folder that is to hold tables is none; statements can't spill.
pub fn start(settings: &Settings, plugins: Option<&Path>, tasks: &mut JoinSet<()>) -> Result<Arc<Pool>, Problem> {
    let mut settings = settings.clone();
    let plugins = plugins.map(std::path::absolute).transpose()?;
    if let Some(folder) = &plugins {
        settings.plugins = plugins::ready(folder)?;
    }
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
    let pool = Pool::new(settings);
    pool.try_spill().map_err(|e| Problem::usage(format!("--spill-dir: {e}")))?;
    if let Some(folder) = plugins {
        plugins::watch(folder, &pool, tasks);
    }
    let warming = Arc::clone(&pool);
    tasks.spawn(async move {
        if let Err(error) = warming.warm() {
            tracing::warn!(%error, "a worker could not be started ahead");
        }
    });
    Ok(pool)
}
