//! Query plugins: those of this program, those of the operator's folder, and `firesteel plugin`.

mod cases;
mod command;
mod given;
mod new;
mod tried;

use std::path::PathBuf;
use std::sync::Arc;

use firesteel_engine::plugins::Log;
use firesteel_plugin_host::shelf;
use firesteel_session::ports::plugins::Plugin;

pub use command::plugin;
pub use given::Given;

/// Loads plugins in a worker.
///
/// # Errors
/// One cannot be loaded.
pub fn load(specs: &[serde_json::Value], log: &Log) -> Result<Vec<Arc<dyn Plugin>>, String> {
    shelf::load(specs, log)
}

/// This very program, even if its file was replaced since.
fn program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}
