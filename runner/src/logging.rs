//! Logs go to standard error. What is logged holds ids and codes, never a statement's text.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::conf::{Configuration, LogFormat};
use crate::problem::Problem;

/// Begins to log, at `level` unless the settings say another.
///
/// # Errors
/// The settings' level is none.
pub fn start(settings: &Configuration, level: &str) -> Result<(), Problem> {
    let text = settings.log.as_deref().unwrap_or(level);
    let filter = Targets::from_str(text).map_err(|_| {
        let message = format!("--log: `{text}` is not a level");
        Problem::usage_with(message, "error, warn, info, debug or trace, or by part: firesteel_session=debug,info")
    })?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match settings.log_format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Text => layer.with_ansi(coloured(std::io::stderr().is_terminal())).boxed(),
    };
    // A second subscriber can only be a test's.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    Ok(())
}

/// Whether to colour what goes to something that is, or is not, a terminal.
#[must_use]
pub fn coloured(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
