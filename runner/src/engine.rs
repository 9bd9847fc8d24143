//! The engine of this program: workers of this same program.

use std::sync::Arc;

use firesteel_engine::Pool;
use tokio::task::JoinSet;

use crate::conf::Configuration;
use crate::plugins;
use crate::problem::Problem;

/// The workers, the first of them being started meanwhile: it is there when the first statement is.
///
/// # Errors
/// A folder that is to hold tables is none; statements can't spill.
pub fn start(configuration: &Configuration, tasks: &mut JoinSet<()>) -> Result<Arc<Pool>, Problem> {
    let mut settings = configuration.engine.clone();
    let plugins = plugins::Given::new(configuration)?;
    settings.plugins = plugins.set()?;
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
    let pool = Pool::with_plugins(settings, Some(plugins.bring()));
    pool.try_spill().map_err(|e| Problem::usage(format!("--spill-dir: {e}")))?;
    plugins.watch(&pool, tasks);
    let warming = Arc::clone(&pool);
    tasks.spawn(async move {
        if let Err(error) = warming.warm() {
            tracing::warn!(%error, "a worker could not be started ahead");
        }
    });
    Ok(pool)
}
