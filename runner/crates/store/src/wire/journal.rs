//! The records of a session's journal, in the state index.

use firesteel_model::{RunnerId, SessionId, StatementId};
use firesteel_session::journal::{Entry, Record, What};
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;
use super::state::{FORMAT_VERSION, of_kind};

/// The whole document of a record.
#[must_use]
pub fn record(session: &SessionId, record: &Record) -> Map<String, Value> {
    let (what, about, entries) = match &record.what {
        What::Epoch => ("epoch", None, &[][..]),
        What::Define { statement, attempt, entry } => {
            ("define", Some((statement, attempt)), std::slice::from_ref(entry))
        }
        What::Void { statement, attempt } => ("void", Some((statement, attempt)), &[][..]),
        What::Snapshot { entries } => ("snapshot", None, &entries[..]),
    };
    let mut document = object(json!({
        "kind": "journal",
        "formatVersion": FORMAT_VERSION,
        "sessionId": session.as_str(),
        "runnerId": record.runner.as_str(),
        "record": what,
        "entries": entries.iter().map(written).collect::<Vec<_>>(),
    }));
    if let Some((statement, attempt)) = about {
        document.insert("statementId".to_owned(), json!(statement.as_str()));
        document.insert("attempt".to_owned(), json!(attempt.to_string()));
    }
    document
}

/// An entry; one without a key has none.
fn written(entry: &Entry) -> Value {
    match &entry.key {
        Some(key) => json!({ "text": entry.text, "key": key }),
        None => json!({ "text": entry.text }),
    }
}

/// Reads a record.
///
/// # Errors
/// Names the field that is wrong.
pub fn read(source: &Value) -> Result<Record, BadField> {
    let fields = of_kind(source, "journal")?;
    let statement = || StatementId::new(fields.text("statementId")?).map_err(|_| BadField::new("statementId", "an id"));
    let attempt = || fields.text("attempt")?.parse().map_err(|_| BadField::new("attempt", "TERM.SEQ_NO.N"));
    let mut entries = entries(source)?;
    Ok(Record {
        runner: RunnerId::new(fields.text("runnerId")?).map_err(|_| BadField::new("runnerId", "an id"))?,
        what: match fields.text("record")? {
            "epoch" => What::Epoch,
            "define" => What::Define {
                statement: statement()?,
                attempt: attempt()?,
                entry: entries.pop().ok_or_else(|| BadField::new("entries", "one entry"))?,
            },
            "void" => What::Void { statement: statement()?, attempt: attempt()? },
            "snapshot" => What::Snapshot { entries },
            _ => return Err(BadField::new("record", "one of epoch, define, void, snapshot")),
        },
    })
}

fn entries(source: &Value) -> Result<Vec<Entry>, BadField> {
    let bad = || BadField::new("entries", "an array of objects with a text");
    let read = |value: &Value| {
        let fields = Fields::of(value).map_err(|_| bad())?;
        let key = fields.some_text("key").map_err(|_| bad())?.map(str::to_owned);
        Ok(Entry { text: fields.text("text").map_err(|_| bad())?.to_owned(), key })
    };
    source["entries"].as_array().ok_or_else(bad)?.iter().map(read).collect()
}

/// The whole document that names the newest snapshot.
#[must_use]
pub fn head(session: &SessionId, snapshot: u64) -> Map<String, Value> {
    object(json!({
        "kind": "journal-head",
        "formatVersion": FORMAT_VERSION,
        "sessionId": session.as_str(),
        "snapshot": snapshot,
    }))
}

/// Reads which record is the newest snapshot.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_head(source: &Value) -> Result<u64, BadField> {
    of_kind(source, "journal-head")?.number("snapshot")?.ok_or_else(|| BadField::new("snapshot", "a number"))
}
