//! Logs go to standard error. What is logged holds ids and codes, never a statement's text.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::field::{MakeVisitor, VisitFmt, VisitOutput};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::DefaultFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
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
    let layer = match settings.log_format {
        LogFormat::Json => {
            tracing_subscriber::fmt::layer().with_writer(std::io::stderr).json().flatten_event(true).boxed()
        }
        LogFormat::Text => as_text(std::io::stderr, coloured(std::io::stderr().is_terminal())),
    };
    // A second subscriber can only be a test's.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    Ok(())
}

/// One line for each event, whatever its fields hold.
fn as_text<S, W>(writer: W, colours: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let fields = OnOneLine(DefaultFields::new());
    tracing_subscriber::fmt::layer().with_writer(writer).fmt_fields(fields).with_ansi(colours).boxed()
}

/// Fields as the inner visitor writes them, their control characters escaped: an id is another's, and must not look like an event.
#[derive(Debug)]
struct OnOneLine<V>(V);

impl<T, V: MakeVisitor<T>> MakeVisitor<T> for OnOneLine<V> {
    type Visitor = OnOneLine<V::Visitor>;

    fn make_visitor(&self, target: T) -> Self::Visitor {
        OnOneLine(self.0.make_visitor(target))
    }
}

impl<V: Visit> Visit for OnOneLine<V> {
    // All other kinds of values come here, too.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.record_debug(field, &format_args!("{}", escaped(&format!("{value:?}"))));
    }
}

impl<O, V: VisitOutput<O>> VisitOutput<O> for OnOneLine<V> {
    fn finish(self) -> O {
        self.0.finish()
    }
}

impl<V: VisitFmt> VisitFmt for OnOneLine<V> {
    fn writer(&mut self) -> &mut dyn fmt::Write {
        self.0.writer()
    }
}

fn escaped(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
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
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_id_that_holds_a_line_break_forges_no_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let writer = Arc::new(file.reopen().expect("the file"));
        let id = firesteel_model::StatementId::new("a\n2026-01-01T00:00:00Z  INFO forged\u{1b}[2J").expect("an id");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(as_text(writer, false)), || {
            let span = tracing::info_span!("statement", %id);
            let _entered = span.enter();
            tracing::info!(session = "s\r", statement = %id, n = 1, "ended {id}");
        });
        let text = std::fs::read_to_string(file.path()).expect("text");
        assert_eq!(text.matches(|c: char| c.is_control()).count(), 1, "only the end of the line: {text}");
        let shown = r"a\n2026-01-01T00:00:00Z  INFO forged\u{1b}[2J";
        assert_eq!(text.matches(shown).count(), 3, "span, field and message: {text}");
        assert!(text.contains(r#"session="s\r""#) && text.ends_with("n=1\n"), "{text}");
    }

    #[test]
    fn levels_for_all_or_by_part() {
        for (text, right) in
            [("info", true), ("off", true), ("firesteel_session=debug,warn", true), ("loud", false), ("a=loud", false)]
        {
            assert_eq!(filter(text).is_some(), right, "{text}");
        }
    }
}
