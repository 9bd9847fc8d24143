//! Logs go to standard error. What is logged holds ids and codes, never a statement's text.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
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
    let filter = filter(text).ok_or_else(|| {
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

/// A word alone is a level: a part's name without a level would turn everything else off.
fn filter(text: &str) -> Option<Targets> {
    let is_right = |part: &str| part.contains('=') || LevelFilter::from_str(part).is_ok();
    text.split(',').all(is_right).then(|| Targets::from_str(text).ok())?
}

/// Whether to colour what goes to something that is, or is not, a terminal.
#[must_use]
pub fn coloured(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_for_all_or_by_part() {
        for (text, right) in
            [("info", true), ("off", true), ("firesteel_session=debug,warn", true), ("loud", false), ("a=loud", false)]
        {
            assert_eq!(filter(text).is_some(), right, "{text}");
        }
    }
}
