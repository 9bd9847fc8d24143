//! The journal's entries: what a define was, so that another worker can do it again.
//!
//! An entry holds the statement's text, and for an external table the columns that were found then: its files may look
//! different by the time of the replay, and a session's table does not change under it.

use std::sync::Arc;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::listing::ListingTable;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use firesteel_model::Failure;
use firesteel_session::journal::Entry;
use serde::{Deserialize, Serialize};

use crate::command::{self, Command};
use crate::define::Define;
use crate::dialect::Text;
use crate::functions::{self, SqlFunction};
use crate::knobs;
use crate::plugins::Kept;
use crate::session::{Session, parts};
use crate::tables::Defined;

/// The entries' format. One of another version is not replayed.
const VERSION: u32 = 2;
/// The format without what plugins keep, which earlier programs read, too.
const WITHOUT_KEPT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    v: u32,
    text: String,
    #[serde(default)]
    then: Then,
    /// What plugins keep from then on, all of it: plugin, key and value in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Vec<(String, String, String)>>,
}

/// What a define found when it was done.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Then {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Columns>,
    /// What it was to make was there: it changed nothing, and changes nothing when it is done again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    idle: bool,
}

impl Then {
    /// The columns of an external table, and the names of those in its files' paths. None: they are found anew.
    pub fn columns(&self) -> Option<(SchemaRef, Vec<String>)> {
        self.columns.as_ref()?.read()
    }
}

/// The columns of an external table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Columns {
    /// All of them, as an Arrow IPC stream without rows, in hexadecimal.
    schema: String,
    /// Those that are in the files' paths.
    partitions: Vec<String>,
}

impl Columns {
    fn of(table: &dyn TableProvider) -> Option<Columns> {
        let listing = table.downcast_ref::<ListingTable>()?;
        let mut writer = StreamWriter::try_new(Vec::new(), &table.schema()).ok()?;
        writer.finish().ok()?;
        let schema = hex(writer.get_ref());
        let partitions = listing.options().table_partition_cols.iter().map(|(name, _)| name.clone()).collect();
        Some(Columns { schema, partitions })
    }

    fn read(&self) -> Option<(SchemaRef, Vec<String>)> {
        let schema: Arc<Schema> = StreamReader::try_new(bytes(&self.schema)?.as_slice(), None).ok()?.schema();
        Some((schema, self.partitions.clone()))
    }
}

/// The entry of a statement that defines this.
pub fn write(text: &str, define: &Define) -> Entry {
    let then = Then { columns: define.table().and_then(Columns::of), idle: matches!(define, Define::Nothing) };
    let body = Body { v: WITHOUT_KEPT, text: text.to_owned(), then, kept: None };
    Entry { text: serde_json::json!(body).to_string(), key: define.key() }
}

/// The same entry, or one of its own, that also holds what plugins keep.
pub fn keeping(entry: Option<Entry>, kept: &Kept) -> Entry {
    let own = entry.as_ref().and_then(|entry| serde_json::from_str::<Body>(&entry.text).ok());
    let kept = kept.iter().map(|((plugin, key), value)| (plugin.clone(), key.clone(), hex(value))).collect();
    let (body, key) = match own {
        Some(body) => (Body { v: VERSION, kept: Some(kept), ..body }, None),
        // It replaces what an earlier statement kept, and nothing else.
        None => (
            Body { v: VERSION, text: String::new(), then: Then::default(), kept: Some(kept) },
            Some("kept by plugins".to_owned()),
        ),
    };
    Entry { text: serde_json::json!(body).to_string(), key }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

/// Does again what an entry says; what cannot be done leaves the reason under its name.
pub async fn replay(session: &Session, entry: &str) {
    let Body { text, then, kept, .. } = match read(entry) {
        Ok(read) => read,
        Err(why) => return session.lost.entry(why),
    };
    if let Some(kept) = kept {
        let kept = kept.into_iter().filter_map(|(plugin, key, value)| Some(((plugin, key), bytes(&value)?)));
        session.keep(kept.collect());
    }
    if then.idle || text.is_empty() {
        return;
    }
    let outcome = match session.plan_again(&text, Some(&then)).await {
        Ok(planned) => session.run(planned).await.map(|_| ()),
        Err(failure) => Err(failure),
    };
    let Err(Failure { message: why, .. }) = outcome else { return };
    match made(session, &text) {
        Some(Made::Table(name)) => session.catalog.tables.define(&name, Defined::Broken(why)),
        Some(Made::Setting(key)) => session.lost.setting(&key, why),
        Some(Made::Prepared(name)) => session.lost.prepared(&name, why),
        Some(Made::Function(name)) => session.ctx.register_udf(SqlFunction::broken(name, why)),
        // What takes something back that is not there has nothing left to do.
        None => {}
    }
}

fn read(entry: &str) -> Result<Body, String> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let v = match serde_json::from_str(entry) {
        Ok(Version { v: v @ (WITHOUT_KEPT | VERSION) }) => v,
        Ok(Version { v }) => return Err(format!("its format is {v}, this program knows {VERSION}")),
        Err(_) => return Err("it has no format".into()),
    };
    // Its text may be in serde's message.
    serde_json::from_str(entry).map_err(|_| format!("it is not of format {v}, as it says"))
}

enum Made {
    Table(String),
    Setting(String),
    Prepared(String),
    Function(String),
}

/// What a statement makes.
fn made(session: &Session, text: &str) -> Option<Made> {
    let read = Text::read(text, session.limits).ok()?;
    match command::read(&read, text).ok()? {
        Some(Command::Set(key, _)) => return Some(Made::Setting(knobs::key(&key).map_or(key, str::to_owned))),
        Some(_) => return None,
        None => {}
    }
    if let Some(name) = functions::made(&read, session) {
        return Some(Made::Function(name));
    }
    match read.parse(session.limits).ok()? {
        Statement::CreateExternalTable(table) => parts(&table.name).pop().map(Made::Table),
        Statement::Statement(s) => match *s {
            ast::Statement::CreateView(view) => parts(&view.name).pop().map(Made::Table),
            ast::Statement::Prepare { name, .. } => Some(Made::Prepared(name.value)),
            _ => None,
        },
        _ => None,
    }
}
