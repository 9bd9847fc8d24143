//! A query handler: a language of its own, `notes`, in which a session writes things down and reads them again.
//!
//! `add TEXT` keeps a note, `find TEXT` asks the engine for the notes that hold a text, `list` shows all of them without the engine.

use firesteel_plugin::{Column, Field, Handler, Plugin, Rejection, Statement, Table, Verdict, host, schema};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("notes", env!("CARGO_PKG_VERSION"), "notes that a session keeps").handler(Notes)
}

struct Notes;

impl Handler for Notes {
    fn languages(&self) -> Vec<String> {
        vec!["notes".to_owned()]
    }

    fn handle(&self, statement: &Statement) -> Verdict {
        let text = statement.text.trim();
        let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (command, rest.trim()) {
            ("list", "") => answer(&notes()),
            ("add", "") => Rejection::at(1, 4, "there is nothing to write down").expecting("a text").into(),
            ("add", note) => {
                let all = notes();
                // A key sorts as its number does.
                let key = format!("note-{:06}", all.len());
                match host::session::set(&key, Some(note.as_bytes())) {
                    Ok(()) => answer(&[note.to_owned()]),
                    Err(_) => Rejection::new("there is no room for another note; begin a new session").into(),
                }
            }
            ("find", part) => {
                let rows: Vec<String> = notes().iter().map(|n| format!("({})", literal(n))).collect();
                if rows.is_empty() {
                    return answer(&[]);
                }
                Verdict::sql(format!(
                    "SELECT note FROM (VALUES {}) AS t(note) WHERE contains(note, {})",
                    rows.join(", "),
                    literal(part)
                ))
            }
            (other, _) => {
                let wrong = Rejection::at(1, 1, format!("there is no command `{other}`"));
                ["add TEXT", "find TEXT", "list"].into_iter().fold(wrong, Rejection::expecting).into()
            }
        }
    }
}

/// A text as SQL: never put one between quotes as it is.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn notes() -> Vec<String> {
    host::session::keys("note-").iter().filter_map(|key| String::from_utf8(host::session::get(key)?).ok()).collect()
}

fn answer(notes: &[String]) -> Verdict {
    let notes = Column::of(notes.iter().map(String::as_str));
    match Table::new([(Field::new("note", schema::UTF8), notes)]) {
        Ok(table) => Verdict::Answer(table),
        Err(error) => Rejection::new(error.message).into(),
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn what_was_added_is_listed_and_found() {
        let host = Host::new();
        let say = |text: &str| host.handle(&plugin(), "notes", text);
        assert_eq!(say("list"), answer(&[]));
        say("add it's a note");
        say("add another");
        assert_eq!(say("list"), answer(&["it's a note".into(), "another".into()]));
        assert_eq!(
            say("find a'b"),
            Verdict::sql(
                r"SELECT note FROM (VALUES ('it\'s a note'), ('another')) AS t(note) WHERE contains(note, 'a\'b')"
            )
        );
        let Verdict::Reject(wrong) = say("remove all") else { panic!("it is not rejected") };
        assert_eq!((wrong.message.as_str(), wrong.expected.len()), ("there is no command `remove`", 3));
    }
}
