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
use serde::{Deserialize, Serialize};

use crate::dialect::Text;
use crate::session::{Session, parts};
use crate::tables::Defined;

/// The entries' format. One of another version is not replayed.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    v: u32,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Columns>,
}

/// The columns of an external table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
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
        let schema = writer.get_ref().iter().map(|b| format!("{b:02x}")).collect();
        let partitions = listing.options().table_partition_cols.iter().map(|(name, _)| name.clone()).collect();
        Some(Columns { schema, partitions })
    }

    /// The columns, and the names of those in the paths. None: they cannot be read, and are found anew.
    pub fn read(&self) -> Option<(SchemaRef, Vec<String>)> {
        let bytes: Option<Vec<u8>> = (0..self.schema.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(self.schema.get(at..at + 2)?, 16).ok())
            .collect();
        let schema: Arc<Schema> = StreamReader::try_new(bytes?.as_slice(), None).ok()?.schema();
        Some((schema, self.partitions.clone()))
    }
}

/// The entry of a statement that makes `table`, if it makes one.
pub fn write(text: &str, table: Option<&dyn TableProvider>) -> String {
    let entry = Entry { v: VERSION, text: text.to_owned(), columns: table.and_then(Columns::of) };
    serde_json::json!(entry).to_string()
}

/// Does again what an entry says; what cannot be made leaves the reason under its name.
pub async fn replay(session: &Session, entry: &str) {
    let Ok(Entry { v: VERSION, text, columns }) = serde_json::from_str::<Entry>(entry) else { return };
    let outcome = match session.plan_again(&text, columns.as_ref()).await {
        Ok(planned) => session.run(planned).await.map(|_| ()),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome
        && let Some(name) = made(session, &text)
    {
        session.catalog.tables.define(&name, Defined::Broken(failure.message));
    }
}

/// The name of what a statement makes.
fn made(session: &Session, text: &str) -> Option<String> {
    match Text::read(text, session.limits).ok()?.parse(session.limits).ok()? {
        Statement::CreateExternalTable(table) => parts(&table.name).pop(),
        Statement::Statement(s) => match *s {
            ast::Statement::CreateView(view) => parts(&view.name).pop(),
            _ => None,
        },
        _ => None,
    }
}
