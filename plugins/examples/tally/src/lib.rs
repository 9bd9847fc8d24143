//! Events: one line in the log for each statement that has ended, with how many there were.

use std::cell::Cell;

use firesteel_plugin::{Event, Events, Plugin, host::log};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("tally", env!("CARGO_PKG_VERSION"), "counts statements in the log").events(Tally::default())
}

/// Counts since the plugin was started: what has to last longer belongs into a log that is kept.
#[derive(Default)]
struct Tally {
    ended: Cell<u64>,
    failed: Cell<u64>,
}

impl Events for Tally {
    fn notify(&self, event: &Event) {
        let Event::StatementEnded(ended) = event else { return };
        self.ended.set(self.ended.get() + 1);
        if ended.failure.is_some() {
            self.failed.set(self.failed.get() + 1);
        }
        let outcome = ended.failure.as_deref().unwrap_or("success");
        let line = format!(
            "statement {} ({} so far failed): {}, {outcome}, {} rows, {} ms",
            self.ended.get(),
            self.failed.get(),
            ended.language,
            ended.rows,
            ended.milliseconds
        );
        log::write(log::Level::Info, &line);
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    use firesteel_plugin::Ended;
    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn statements_are_counted_with_their_outcome() {
        let (host, plugin) = (Host::new(), plugin());
        let ended = Ended { language: "sql".into(), rows: 3, milliseconds: 12, ..Ended::default() };
        host.notify(&plugin, &Event::SessionOpened);
        host.notify(&plugin, &Event::StatementEnded(ended.clone()));
        host.notify(&plugin, &Event::StatementEnded(Ended { failure: Some("SYNTAX".into()), ..ended }));
        let lines = [
            "info: statement 1 (0 so far failed): sql, success, 3 rows, 12 ms",
            "info: statement 2 (1 so far failed): sql, SYNTAX, 3 rows, 12 ms",
        ];
        assert_eq!(host.log(), lines);
    }
}
