//! The line that shows how far a statement is.

use std::io::IsTerminal;

use firesteel_session::ports::{Progress, Watched};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::span;

/// A statement that takes no longer shows no line.
const PATIENCE: u64 = 300;

/// A line on standard error, if that is a terminal.
pub struct Line {
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Line {
    /// Nothing is shown yet.
    pub fn new() -> Line {
        Line { bar: None, terminal: std::io::stderr().is_terminal() }
    }

    /// Shows what a look at the statement showed, `took` milliseconds after it was submitted.
    pub fn show(&mut self, watched: &Watched, took: u64) {
        if !self.terminal || took < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
        });
        let state = watched.statement.as_ref().map_or("", |s| s.value.state.name());
        let progress = watched.companion.as_ref().and_then(|c| c.value.progress);
        bar.set_message(text(state, progress, took));
        bar.tick();
    }

    /// Says something that stays, on standard error.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn text(state: &str, progress: Option<Progress>, took: u64) -> String {
    match progress {
        Some(p) if p.rows > 0 || p.bytes > 0 => {
            format!("{} rows, {} read, {}", count(p.rows), size(p.bytes), span(took))
        }
        _ => format!("{state}, {}", span(took)),
    }
}

/// `1,234,567`.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `34.5 MB`.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")] {
        if bytes >= unit {
            return format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_read_or_what_is_waited_for() {
        let progress = Progress { rows: 1_234_567, bytes: 34_560_000, elapsed_millis: 1 };
        assert_eq!(text("running", Some(progress), 3_400), "1,234,567 rows, 34.5 MB read, 3.4 s");
        assert_eq!(text("waiting", None, 400), "waiting, 400 ms");
        assert_eq!(size(999), "999 B");
        assert_eq!(count(100), "100");
    }
}
