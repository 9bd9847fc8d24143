//! The SQL, on the thread that owns the connection.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use firesteel_model::{Pattern, Version};
use firesteel_session::ports::StoreError;
use rusqlite::types::Value as Sql;
use rusqlite::{ErrorCode, Statement, params_from_iter};
use serde_json::Value;

use super::{SqliteOptions, Synchronous};
use crate::documents::{Field, Found, Index, Key, Op, Order, Search};

/// Kept in the file's header; a file with a higher one is refused.
const SCHEMA_VERSION: i64 = 3;

/// "Fire" in the file's header: whose it is.
const APPLICATION: i64 = 0x4669_7265;

/// What makes of a file of version n one of version n + 1.
const SCHEMA: [&str; 3] = [
    "
    CREATE TABLE documents (
        collection INTEGER NOT NULL,
        id TEXT NOT NULL,
        seq_no INTEGER NOT NULL,
        type AS (json ->> '$.type') STORED,
        state AS (json ->> '$.state') STORED,
        session_id AS (json ->> '$.sessionId') STORED,
        query_id AS (json ->> '$.queryId') STORED,
        submit_time AS (json ->> '$.submitTime') STORED,
        last_update_time AS (json ->> '$.lastUpdateTime') STORED,
        update_time AS (json ->> '$.updateTime') STORED,
        json TEXT NOT NULL,
        PRIMARY KEY (collection, id)
    );
    CREATE INDEX by_session ON documents (collection, type, session_id, state, submit_time, id);
    CREATE INDEX by_query ON documents (collection, query_id, type) WHERE query_id IS NOT NULL;
    CREATE TABLE counter (seq_no INTEGER NOT NULL);
    INSERT INTO counter VALUES (0);
    PRAGMA application_id = 0x46697265;
    PRAGMA user_version = 1;",
    "
    ALTER TABLE documents ADD COLUMN kind AS (json ->> '$.kind') VIRTUAL;
    CREATE INDEX by_state ON documents (collection, type, state, submit_time, id) WHERE type IS NOT NULL;
    CREATE INDEX by_kind ON documents (collection, kind, state) WHERE kind IS NOT NULL;
    PRAGMA user_version = 2;",
    "
    ALTER TABLE documents ADD COLUMN status AS (json ->> '$.status') VIRTUAL;
    CREATE INDEX by_status ON documents (collection, status) WHERE status IS NOT NULL;
    PRAGMA user_version = 3;",
];

/// Why SQLite did not do as asked.
#[derive(Debug)]
pub struct Failed {
    error: rusqlite::Error,
    /// It may have been done nevertheless.
    unknown: bool,
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed { error, unknown: false }
    }
}

impl Failed {
    /// What the caller can do. SQLite's own messages may quote a value, so only its code is told.
    pub fn at(self, path: &Path) -> StoreError {
        let code = self.error.sqlite_error_code();
        let told =
            format!("SQLite file `{}`: {}", path.display(), code.map_or("failed".to_owned(), |c| format!("{c:?}")));
        if self.unknown && code != Some(ErrorCode::DatabaseBusy) {
            return StoreError::Unknown(told);
        }
        match code {
            Some(ErrorCode::NotADatabase) => StoreError::Refused(format!(
                "`{}` is not a Firesteel store (SQLite) file; name another or remove it",
                path.display()
            )),
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(told),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::Refused(format!("{told}; make the file and its folder writable or name another"))
            }
            Some(ErrorCode::TooBig) => StoreError::Refused(format!("{told}; a document must be smaller")),
            Some(ErrorCode::DiskFull) => StoreError::Unavailable(format!("{told}; make room on the disk")),
            _ => StoreError::Unavailable(told),
        }
    }
}

/// Opens the file and brings it to today's schema.
pub fn open(path: &Path, options: &SqliteOptions) -> Result<rusqlite::Connection, StoreError> {
    let refused = |what: &str, e: std::io::Error| {
        StoreError::Refused(format!(
            "SQLite file `{}` cannot be {what}: {e}; name another with --store",
            path.display()
        ))
    };
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| refused("made", e))?;
    }
    let mut file = OpenOptions::new();
    file.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file.open(path).map_err(|e| refused("opened", e))?;
    let at = |failed: Failed| failed.at(path);
    let connection = rusqlite::Connection::open(path).map_err(Failed::from).map_err(at)?;
    connection.busy_timeout(options.busy_timeout).map_err(Failed::from).map_err(at)?;
    // Before anything of it is changed.
    if is_anothers(&connection).map_err(at)? {
        return Err(StoreError::Refused(format!(
            "SQLite file `{}` belongs to another program; name another with --store",
            path.display()
        )));
    }
    let version = set_up(&connection, options).map_err(at)?;
    if version != SCHEMA_VERSION {
        return Err(StoreError::Refused(format!(
            "SQLite file `{}` has format {version}, this firesteel knows {SCHEMA_VERSION}; use the firesteel that made it",
            path.display()
        )));
    }
    Ok(connection)
}

/// Whether the file holds something that is not ours. One of before the header said whose it is has our tables.
fn is_anothers(connection: &rusqlite::Connection) -> Result<bool, Failed> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    // In one transaction: another process may be making the file.
    connection.execute_batch("BEGIN")?;
    let is_anothers = match number("PRAGMA application_id")? {
        APPLICATION => false,
        0 => {
            let ours = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('documents', 'counter')";
            let is_empty = number("PRAGMA user_version")? == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
            !is_empty && number(ours)? != 2
        }
        _ => true,
    };
    connection.execute_batch("COMMIT")?;
    Ok(is_anothers)
}

fn set_up(connection: &rusqlite::Connection, options: &SqliteOptions) -> Result<i64, Failed> {
    to_write_ahead(connection, options.busy_timeout)?;
    connection.pragma_update(
        None,
        "synchronous",
        match options.synchronous {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        },
    )?;
    let version = || connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    if version()? < SCHEMA_VERSION {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have been first.
        let there = usize::try_from(version()?).unwrap_or(usize::MAX);
        for step in SCHEMA.iter().skip(there) {
            connection.execute_batch(step)?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(version()?)
}

/// The change to a write-ahead log does not wait as other writes do when two processes make it at once.
fn to_write_ahead(connection: &rusqlite::Connection, patience: Duration) -> Result<(), Failed> {
    let step = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < patience => {
                std::thread::sleep(step);
                waited += step;
            }
            other => return other.map(|_| ()).map_err(Failed::from),
        }
    }
}

/// A connection with the statements that it has prepared.
pub struct Connection<'c> {
    sqlite: &'c rusqlite::Connection,
    prepared: HashMap<String, Statement<'c>>,
}

impl<'c> Connection<'c> {
    pub fn over(sqlite: &'c rusqlite::Connection) -> Connection<'c> {
        Connection { sqlite, prepared: HashMap::new() }
    }

    fn statement(&mut self, sql: &str) -> Result<&mut Statement<'c>, Failed> {
        // The texts differ only in the number of values, of which there are a handful.
        if !self.prepared.contains_key(sql) {
            self.prepared.insert(sql.to_owned(), self.sqlite.prepare(sql)?);
        }
        self.prepared.get_mut(sql).ok_or_else(|| rusqlite::Error::InvalidQuery.into())
    }

    fn execute(&mut self, sql: &str, values: impl IntoIterator<Item = Sql>) -> Result<usize, Failed> {
        Ok(self.statement(sql)?.execute(params_from_iter(values))?)
    }

    pub fn get(&mut self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, Failed> {
        let sql = match sources {
            true => "SELECT id, seq_no, json FROM documents WHERE collection = ? AND id = ?",
            false => "SELECT id, seq_no, NULL FROM documents WHERE collection = ? AND id = ?",
        };
        keys.iter().map(|key| Ok(self.found(sql, vec![collection(key.index), key.id.clone().into()])?.pop())).collect()
    }

    fn found(&mut self, sql: &str, values: Vec<Sql>) -> Result<Vec<Found>, Failed> {
        let rows = self.statement(sql)?.query_map(params_from_iter(values), |row| {
            // What is not JSON reads as a text, which no reader of documents takes.
            let source = match row.get_ref(2)?.as_str_or_null()? {
                None => Value::Null,
                Some(json) => serde_json::from_str(json).unwrap_or_else(|_| Value::String(String::new())),
            };
            Ok(Found { id: row.get(0)?, version: version(row.get(1)?), source })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// All ops in one transaction, each with its own outcome.
    pub fn bulk(&mut self, ops: &[Op]) -> Result<Vec<Result<Version, StoreError>>, Failed> {
        self.execute("BEGIN IMMEDIATE", [])?;
        match self.apply(ops) {
            Err(failed) => {
                // Fails only if SQLite has already rolled back.
                let _ = self.execute("ROLLBACK", []);
                Err(failed)
            }
            Ok(outcomes) => match self.execute("COMMIT", []) {
                Ok(_) => Ok(outcomes),
                Err(failed) => {
                    let _ = self.execute("ROLLBACK", []);
                    Err(Failed { unknown: true, ..failed })
                }
            },
        }
    }

    fn apply(&mut self, ops: &[Op]) -> Result<Vec<Result<Version, StoreError>>, Failed> {
        let number = i64::try_from(ops.len()).unwrap_or(i64::MAX);
        let last: i64 = self
            .statement("UPDATE counter SET seq_no = seq_no + ? RETURNING seq_no")?
            .query_row([number], |row| row.get(0))?;
        let mut outcomes = Vec::with_capacity(ops.len());
        for (seq_no, op) in (last - number + 1..).zip(ops) {
            let changed = match op {
                Op::Create { key, body } => self.execute(
                    "INSERT INTO documents (collection, id, seq_no, json) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    [collection(key.index), key.id.clone().into(), seq_no.into(), body.clone().into()],
                )?,
                Op::Update { key, at, fields } => self.execute(
                    "UPDATE documents SET seq_no = ?, json = json_patch(json, ?)
                     WHERE collection = ? AND id = ? AND seq_no = ? AND ? = 1",
                    [
                        seq_no.into(),
                        fields.clone().into(),
                        collection(key.index),
                        key.id.clone().into(),
                        number_of(at.seq_no),
                        number_of(at.term),
                    ],
                )?,
                Op::Delete { key, at } => self.execute(
                    "DELETE FROM documents WHERE collection = ? AND id = ? AND seq_no = ? AND ? = 1",
                    [collection(key.index), key.id.clone().into(), number_of(at.seq_no), number_of(at.term)],
                )?,
            };
            outcomes.push(if changed == 1 { Ok(version(seq_no)) } else { Err(StoreError::Conflict) });
        }
        Ok(outcomes)
    }

    pub fn search(&mut self, search: &Search) -> Result<Vec<Found>, Failed> {
        let (sql, values) = query(search);
        self.found(&sql, values)
    }
}

/// A search as SQL. The inner query finds and orders the hits by an index; only their documents are read.
fn query(search: &Search) -> (String, Vec<Sql>) {
    let order = match search.order {
        Order::Oldest(field) | Order::OldestOfEachSession(field) => format!("ORDER BY {}, id", column(field)),
        Order::Newest(field) | Order::NewestUpTo(field, _) => format!("ORDER BY {} DESC", column(field)),
    };
    let mut values = Vec::new();
    let limit = number_of(u64::try_from(search.limit).unwrap_or(u64::MAX));
    let mut wanted = vec![(&search.terms, &[][..])];
    // A search each, since one with an OR would go by no index.
    wanted.extend(search.or.iter().map(|or| (&or.terms, &or.patterns[..])));
    let found = wanted.into_iter().map(|(terms, patterns)| {
        let mut found = "SELECT rowid FROM documents WHERE collection = ?".to_owned();
        values.push(collection(search.index));
        conditions(&mut found, &mut values, terms, patterns);
        if let Order::NewestUpTo(field, most) = search.order {
            // Writing to a String cannot fail.
            let _ = write!(found, " AND {} <= ?", column(field));
            values.push(number_of(most));
        }
        if let Order::OldestOfEachSession(_) = search.order {
            // The plus keeps SQLite from reading every session's documents only to have them in this order.
            let ranked = format!("SELECT rowid AS at, row_number() OVER (PARTITION BY +session_id {order}) AS n FROM");
            found = found.replacen("SELECT rowid FROM", &ranked, 1);
            found = format!("SELECT rowid FROM documents WHERE rowid IN (SELECT at FROM ({found}) WHERE n = 1)");
        }
        values.push(limit.clone());
        format!("SELECT rowid FROM ({found} {order} LIMIT ?)")
    });
    let found = found.collect::<Vec<_>>().join(" UNION ALL ");
    let sql = format!("SELECT id, seq_no, json FROM documents WHERE rowid IN ({found}) {order} LIMIT ?");
    values.push(limit);
    (sql, values)
}

/// More values of a field than this are handed over as one, so that the text of a search does not hang on their number.
const FEW: usize = 4;

fn conditions(sql: &mut String, values: &mut Vec<Sql>, terms: &[(Field, Vec<String>)], patterns: &[Pattern]) {
    // Writing to a String cannot fail.
    for (field, wanted) in terms {
        if wanted.len() > FEW {
            let _ = write!(sql, " AND {} IN (SELECT value FROM json_each(?))", column(*field));
            values.push(Value::from(wanted.clone()).to_string().into());
        } else {
            let marks = vec!["?"; wanted.len()].join(", ");
            let _ = write!(sql, " AND {} IN ({marks})", column(*field));
            values.extend(wanted.iter().map(|w| Sql::from(w.clone())));
        }
    }
    if !patterns.is_empty() {
        let globs = vec!["session_id GLOB ?"; patterns.len()].join(" OR ");
        let _ = write!(sql, " AND ({globs})");
        // Where more than the star is special, it stands in brackets.
        let plain = |p: &Pattern| p.as_str().replace('[', "[[]").replace('?', "[?]");
        values.extend(patterns.iter().map(|p| Sql::from(plain(p))));
    }
}

fn collection(index: Index) -> Sql {
    Sql::Integer(match index {
        Index::Requests => 0,
        Index::Results => 1,
        Index::State => 2,
    })
}

fn column(field: Field) -> &'static str {
    match field {
        Field::Type => "type",
        Field::State => "state",
        Field::Session => "session_id",
        Field::Kind => "kind",
        Field::Query => "query_id",
        Field::Status => "status",
        Field::Submitted => "submit_time",
        Field::Renewed => "last_update_time",
        Field::Updated => "update_time",
        // Among documents of one kind, which an index finds.
        Field::User => "json ->> '$.user'",
    }
}

fn number_of(n: u64) -> Sql {
    Sql::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

fn version(seq_no: i64) -> Version {
    Version { term: 1, seq_no: u64::try_from(seq_no).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::Or;

    /// Else each poll would read every statement that there ever was.
    #[test]
    fn searches_go_by_the_index_that_was_made_for_them() {
        let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
        sqlite.execute_batch(&SCHEMA.concat()).expect("the schema");
        let (kind, session, state, id) = (Field::Type, Field::Session, Field::State, Field::Query);
        for (index, fields, order, by) in [
            (
                Index::Requests,
                vec![kind, session, state],
                Order::Oldest(Field::Submitted),
                "by_session (collection=? AND type=? AND session_id=? AND state=?)",
            ),
            (
                Index::Requests,
                vec![kind, id],
                Order::Newest(Field::Submitted),
                "by_query (collection=? AND query_id=? AND type=?)",
            ),
            (Index::Results, vec![id], Order::Newest(Field::Updated), "by_query (collection=? AND query_id=?)"),
            (
                Index::Requests,
                vec![kind, state],
                Order::Oldest(Field::Submitted),
                "by_state (collection=? AND type=? AND state=?)",
            ),
            (
                Index::State,
                vec![Field::Kind, state],
                Order::Oldest(Field::Submitted),
                "by_kind (collection=? AND kind=? AND state=?)",
            ),
            (
                Index::Results,
                vec![Field::Status],
                Order::Newest(Field::Updated),
                "by_status (collection=? AND status=?)",
            ),
        ] {
            let terms = fields.into_iter().map(|field| (field, vec![String::new(), String::new()])).collect();
            let (sql, values) = query(&Search { index, terms, or: Vec::new(), order, limit: 1 });
            let mut plan = sqlite.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a query");
            let steps = plan.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).expect("a plan");
            let steps: Vec<String> = steps.map(|step| step.expect("text")).collect();
            assert!(steps.iter().any(|step| step.contains(by)), "{by}: {steps:?}");
        }
    }

    /// Else each poll of a process that serves a thousand sessions would read every statement that there ever was.
    #[test]
    fn a_search_over_many_sessions_goes_by_the_index_and_its_text_does_not_hang_on_their_number() {
        let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
        sqlite.execute_batch(&SCHEMA.concat()).expect("the schema");
        let search = |sessions: usize, order| {
            let values = |field, number| (field, vec![String::new(); number]);
            let patterns = vec![Pattern::new("*").expect("a pattern")];
            query(&Search {
                index: Index::Requests,
                terms: vec![values(Field::Type, 2), values(Field::Session, sessions), values(Field::State, 4)],
                or: vec![Or { terms: vec![values(Field::Type, 1), values(Field::State, 1)], patterns }],
                order,
                limit: 1,
            })
        };
        for order in [Order::Oldest(Field::Submitted), Order::OldestOfEachSession(Field::Submitted)] {
            let (sql, values) = search(1_000, order);
            assert_eq!(sql, search(50, order).0);
            let mut plan = sqlite.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a query");
            let steps = plan.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).expect("a plan");
            let steps: Vec<String> = steps.map(|step| step.expect("text")).collect();
            for by in [
                "(collection=? AND type=? AND session_id=? AND state=?)",
                "by_state (collection=? AND type=? AND state=?)",
            ] {
                assert!(steps.iter().any(|step| step.contains(by)), "{by}: {steps:?}");
            }
        }
    }
}
