//! The answers to SHOW, DESCRIBE and SET, in Spark's columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::arrow::compute::cast;
use datafusion::catalog::{CatalogProviderList, SchemaProvider};
use datafusion::logical_expr::TableType;
use firesteel_model::{Code, Failure, Stage};
use futures::StreamExt;

use crate::catalog::SCHEMA;
use crate::command::{Command, matches};
use crate::define::Define;
use crate::dialect::Text;
use crate::failures;
use crate::knobs;
use crate::names;
use crate::query::Running;
use crate::session::{Planned, Session};
use crate::spark_types;

/// Plans a command.
///
/// # Errors
/// What it names does not exist or may not be set.
pub async fn plan(session: &Session, command: Command, raw: &str) -> Result<Planned, Failure> {
    let tables = &session.catalog.tables;
    let fits = |like: &Option<String>, name: &str| like.as_ref().is_none_or(|p| matches(p, name));
    match command {
        Command::Set(key, value) => Ok(session.define(Define::set(session, &key, &value)?, raw)),
        Command::Reset(key) => Ok(session.define(Define::reset(session, key.as_deref())?, raw)),
        Command::Use(name) => {
            within(session, &name)?;
            Ok(session.define(Define::Use, raw))
        }
        Command::Settings => {
            let rows = knobs::keys().map(|key| (key.to_owned(), value_of(session, key))).collect::<Vec<_>>();
            session.rows(text_batch(&["key", "value"], rows.into_iter().map(|(k, v)| vec![k, v])))
        }
        Command::Setting(key) => {
            session.lost.has_setting(knobs::key(&key).unwrap_or(&key))?;
            let value = value_of(session, knobs::key(&key)?);
            session.rows(text_batch(&["key", "value"], [vec![key, value]]))
        }
        Command::Catalogs => session.rows(text_batch(&["catalog"], [vec![session.catalog.name.clone()]])),
        Command::Databases(catalog, like) => {
            if let Some(catalog) = catalog {
                within(session, &[catalog, SCHEMA.to_owned()])?;
            }
            let rows = [SCHEMA].into_iter().filter(|s| fits(&like, s)).map(|s| vec![s.to_owned()]);
            session.rows(text_batch(&["namespace"], rows))
        }
        Command::Tables { within: place, like, views } => {
            within(session, &place)?;
            let mut rows = Vec::new();
            for name in tables.table_names().into_iter().filter(|n| fits(&like, n)) {
                let defined = tables.defined(&name);
                let view = match &defined {
                    Some(crate::tables::Defined::Table(t)) => t.table_type() == TableType::View,
                    _ => false,
                };
                if !views || view {
                    rows.push((name, view));
                }
            }
            let namespace = StringArray::from(vec![SCHEMA; rows.len()]);
            let names: StringArray = rows.iter().map(|(n, _)| Some(n.as_str())).collect();
            let temporary: BooleanArray = rows.iter().map(|(_, view)| Some(*view)).collect();
            let column = if views { "viewName" } else { "tableName" };
            session.rows(batch(vec![
                ("namespace", Arc::new(namespace)),
                (column, Arc::new(names)),
                ("isTemporary", Arc::new(temporary)),
            ]))
        }
        Command::Columns(name) => {
            let schema = schema_of(session, &name).await?;
            session.rows(text_batch(&["col_name"], schema.fields().iter().map(|f| vec![f.name().clone()])))
        }
        Command::Functions(like) => {
            let state = session.ctx.state();
            let mut all: Vec<String> = state
                .scalar_functions()
                .keys()
                .chain(state.aggregate_functions().keys())
                .chain(state.window_functions().keys())
                .chain(state.table_functions().keys())
                .filter(|n| fits(&like, n))
                .cloned()
                .collect();
            all.sort();
            all.dedup();
            session.rows(text_batch(&["function"], all.into_iter().map(|n| vec![n])))
        }
        Command::Describe { table, extended } => {
            let schema = schema_of(session, &table).await?;
            let mut rows = describe(&schema);
            if extended {
                rows.extend(details(session, table.last().map_or("", String::as_str)));
            }
            session.rows(described(rows))
        }
        Command::DescribeQuery(words) => {
            let text = Text::read(Text::read(raw, session.limits)?.behind(raw, words - 1), session.limits)?;
            let typed = text.parse(session.limits)?;
            crate::allow::statement(&typed)?;
            let plan = session.query(&text).await?;
            session.rows(described(describe(plan.schema().as_arrow())))
        }
    }
}

/// What EXPLAIN says, and a row for each plugin that touched the statement.
pub fn with_plugins(running: Running, touches: Vec<String>) -> Running {
    if touches.is_empty() || running.schema.fields().len() != 2 {
        return running;
    }
    let schema = Arc::clone(&running.schema);
    let columns: [StringArray; 2] = [vec!["plugin"; touches.len()].into(), touches.into()];
    let columns = columns.iter().zip(schema.fields()).map(|(column, field)| cast(column, field.data_type()));
    let Ok(columns) = columns.collect::<Result<Vec<_>, _>>() else { return running };
    let last = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|e| Failure::new(Code::Internal, Stage::Execute, e.to_string()));
    let batches = running.batches.chain(futures::stream::iter([last])).boxed();
    Running { batches, ..running }
}

/// Checks that a place of tables exists: nothing, a schema, a catalog, or both.
pub fn within(session: &Session, place: &[String]) -> Result<(), Failure> {
    let no = |what: &str, name: &str, there: Vec<String>| {
        Err(Failure::new(Code::Analysis, Stage::Plan, failures::no_such(what, name, &there)))
    };
    match place {
        [] => Ok(()),
        [one] if one.eq_ignore_ascii_case(SCHEMA) || session.catalog.catalog(one).is_some() => Ok(()),
        [one] => no("database", one, vec![SCHEMA.to_owned(), session.catalog.name.clone()]),
        [catalog, _] if session.catalog.catalog(catalog).is_none() => {
            no("catalog", catalog, session.catalog.catalog_names())
        }
        [_, schema] if schema.eq_ignore_ascii_case(SCHEMA) => Ok(()),
        [_, schema] => no("database", schema, vec![SCHEMA.to_owned()]),
        more => no("database", &more.join("."), vec![SCHEMA.to_owned()]),
    }
}

async fn schema_of(session: &Session, name: &[String]) -> Result<Arc<Schema>, Failure> {
    let (table, place) = name.split_last().expect("a name has a part");
    within(session, place)?;
    if table.contains(['/', '\\']) {
        return Err(session.reach.refusal(table));
    }
    let tables = &session.catalog.tables;
    match tables.needed(table).await.map_err(|e| session.failed(&e))? {
        Some(found) => Ok(found.schema()),
        None => {
            Err(Failure::new(Code::Analysis, Stage::Plan, failures::no_such("table", table, &tables.table_names())))
        }
    }
}

fn describe(schema: &Schema) -> Vec<[String; 2]> {
    schema.fields().iter().map(|f| [names::shown(f.name()).to_owned(), spark_types::name(f.data_type())]).collect()
}

fn details(session: &Session, table: &str) -> Vec<[String; 2]> {
    let tables = &session.catalog.tables;
    let file = if tables.defined(table).is_some() { None } else { tables.file(table) };
    let row = |a: &str, b: String| [a.to_owned(), b];
    let mut rows = vec![
        row("", String::new()),
        row("# Detailed Table Information", String::new()),
        row("Catalog", session.catalog.name.clone()),
        row("Database", SCHEMA.to_owned()),
        row("Table", file.as_ref().map_or_else(|| table.to_owned(), |f| f.name.clone())),
    ];
    match file {
        Some(file) => {
            rows.push(row("Type", "EXTERNAL".into()));
            rows.push(row("Provider", file.format.name().into()));
            rows.push(row("Location", format!("file:{}", file.path.display())));
        }
        None => {
            let view = matches!(tables.defined(table), Some(crate::tables::Defined::Table(t)) if t.table_type() == TableType::View);
            rows.push(row("Type", if view { "VIEW" } else { "EXTERNAL" }.into()));
        }
    }
    rows
}

fn described(rows: Vec<[String; 2]>) -> RecordBatch {
    let name: StringArray = rows.iter().map(|r| Some(r[0].as_str())).collect();
    let data_type: StringArray = rows.iter().map(|r| Some(r[1].as_str())).collect();
    let comment = StringArray::new_null(rows.len());
    batch(vec![("col_name", Arc::new(name)), ("data_type", Arc::new(data_type)), ("comment", Arc::new(comment))])
}

fn value_of(session: &Session, key: &str) -> String {
    let config = session.ctx.copied_config();
    config.options().entries().into_iter().find(|e| e.key == key).and_then(|e| e.value).unwrap_or_default()
}

/// Columns of text.
pub fn text_batch(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> RecordBatch {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let column =
        |n: usize| Arc::new(rows.iter().map(|r| r.get(n).map(String::as_str)).collect::<StringArray>()) as ArrayRef;
    batch(columns.iter().enumerate().map(|(n, name)| (*name, column(n))).collect())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, c)| Field::new(*name, DataType::clone(c.data_type()), true)).collect();
    let columns = columns.into_iter().map(|(_, c)| c).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of the same length, made here")
}
