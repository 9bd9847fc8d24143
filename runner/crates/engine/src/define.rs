//! Statements that define: what they change.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::ToDFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableType};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ObjectType};
use firesteel_model::{Code, Failure, Stage};

use crate::allow;
use crate::dialect::Text;
use crate::entry::Then;
use crate::knobs;
use crate::names;
use crate::query::Running;
use crate::session::{Session, parts};
use crate::show;
use crate::tables::Defined;

/// A define that was planned.
pub enum Define {
    /// Settings.
    Settings {
        /// By DataFusion's keys; None: as at the start.
        values: Vec<(&'static str, Option<String>)>,
        /// Keys that the journal lost and that are given up.
        given_up: Vec<String>,
        /// The row that is returned.
        shown: Option<[String; 2]>,
    },
    /// There is one schema, so its only effect is that it exists.
    Use,
    /// A view or an external table.
    Table { name: String, table: Arc<dyn TableProvider> },
    /// It is there already, or is not there, and that is fine.
    Nothing,
    /// Takes definitions back.
    Drop(Vec<String>),
    /// A prepared statement, or the end of one.
    Prepared(Box<LogicalPlan>),
    /// A function of the session's own.
    Function(Arc<ScalarUDF>),
    /// The end of one.
    DropFunction(String),
}

fn failed(code: Code, text: String) -> Failure {
    Failure::new(code, Stage::Plan, text)
}

impl Define {
    /// The table that it makes.
    pub fn table(&self) -> Option<&dyn TableProvider> {
        match self {
            Define::Table { table, .. } => Some(table.as_ref()),
            _ => None,
        }
    }

    /// What it sets, if it undoes all that an earlier define with the same key did, and nothing else.
    pub fn key(&self) -> Option<String> {
        match self {
            Define::Settings { values, given_up, .. } => match (values.as_slice(), given_up.as_slice()) {
                ([(key, _)], []) => Some(format!("set {key}")),
                ([], [key]) => Some(format!("set {key}")),
                _ => None,
            },
            Define::Use => Some("use".to_owned()),
            _ => None,
        }
    }

    /// `SET`.
    pub fn set(session: &Session, written: &str, value: &str) -> Result<Define, Failure> {
        let key = knobs::key(written)?;
        let set = knobs::value(written, key, value)?;
        // Tried on a copy, so that a bad value fails the plan.
        let tried = session.ctx.copied_config().options_mut().set(key, &set);
        tried.map_err(|e| {
            failed(Code::Analysis, format!("`{key}` cannot be `{value}`: {}", session.failed(&e).message))
        })?;
        let shown = Some([written.to_owned(), value.to_owned()]);
        Ok(Define::Settings { values: vec![(key, Some(set))], given_up: Vec::new(), shown })
    }

    /// `RESET`.
    pub fn reset(session: &Session, written: Option<&str>) -> Result<Define, Failure> {
        let lost = session.lost.settings();
        let (keys, given_up) = match written {
            // It may be a key of another version.
            Some(written) if knobs::key(written).is_err() && lost.iter().any(|key| key == written) => {
                (Vec::new(), vec![written.to_owned()])
            }
            Some(written) => (vec![knobs::key(written)?], Vec::new()),
            None => (knobs::keys().collect(), lost),
        };
        let values = keys.into_iter().map(|key| (key, None)).collect();
        Ok(Define::Settings { values, given_up, shown: None })
    }

    /// What a parsed statement defines; None if it does not. One that is done again found other things `then`.
    ///
    /// # Errors
    /// It cannot be done.
    pub async fn of(
        session: &Session,
        text: &Text,
        typed: &Statement,
        then: Option<&Then>,
    ) -> Result<Option<Define>, Failure> {
        match typed {
            Statement::CreateExternalTable(table) => external(session, table, then).await.map(Some),
            Statement::Statement(inner) => match inner.as_ref() {
                ast::Statement::CreateView(view) => create_view(session, text, view, then).await.map(Some),
                ast::Statement::Drop { object_type, if_exists, names, .. } => {
                    drop(session, *object_type, *if_exists, names).map(Some)
                }
                ast::Statement::Prepare { .. } => {
                    let mut statement = session.spelled(text).await?;
                    names::name(&mut statement);
                    let plan = session.to_plan(statement).await?;
                    if let LogicalPlan::Statement(datafusion::logical_expr::Statement::Prepare(prepare)) = &plan {
                        allow::plan(&prepare.input, session.limits)?;
                    }
                    Ok(Some(Define::Prepared(Box::new(plan))))
                }
                ast::Statement::Deallocate { .. } => {
                    let plan = session.to_plan(text.spelled(&Default::default()).parse(session.limits)?).await?;
                    Ok(Some(Define::Prepared(Box::new(plan))))
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub async fn apply(self, session: &Session) -> Result<Running, Failure> {
        match self {
            Define::Settings { values, given_up, shown } => {
                let start = session.defaults();
                for (key, value) in values {
                    let value = value.or_else(|| start.iter().find(|(k, _)| *k == key).and_then(|(_, v)| v.clone()));
                    session.set(key, value.as_deref()).await.map_err(|e| session.failed(&e))?;
                    session.lost.settled(key);
                }
                for key in given_up {
                    session.lost.settled(&key);
                }
                if let Some([key, value]) = shown {
                    let rows = show::text_batch(&["key", "value"], [vec![key, value]]);
                    return Ok(Running::one(rows));
                }
            }
            Define::Use | Define::Nothing => {}
            Define::Function(function) => session.ctx.register_udf(Arc::unwrap_or_clone(function)),
            Define::DropFunction(name) => session.ctx.deregister_udf(&name),
            Define::Table { name, table } => session.catalog.tables.define(&name, Defined::Table(table)),
            Define::Drop(names) => names.iter().for_each(|name| {
                session.catalog.tables.undefine(name);
            }),
            Define::Prepared(plan) => {
                use datafusion::logical_expr::Statement::{Deallocate, Prepare};
                let (name, ends) = match plan.as_ref() {
                    LogicalPlan::Statement(Prepare(made)) => (made.name.clone(), false),
                    LogicalPlan::Statement(Deallocate(ended)) => (ended.name.clone(), true),
                    _ => Default::default(),
                };
                // What was lost is given up: DataFusion does not know it.
                if session.lost.forgotten(&name) && ends {
                    return Ok(Running::nothing());
                }
                session.ctx.execute_logical_plan(*plan).await.map_err(|e| session.failed(&e))?;
            }
        }
        Ok(Running::nothing())
    }
}

/// The last part of a name whose place exists.
fn placed(session: &Session, name: &ast::ObjectName) -> Result<String, Failure> {
    let mut parts = parts(name);
    let last = parts.pop().unwrap_or_default();
    show::within(session, &parts)?;
    if last.is_empty() || last.contains(['/', '\\', '\u{1}']) {
        return Err(failed(Code::Refused, format!("`{last}` cannot be a name; names hold no slashes")));
    }
    Ok(last)
}

/// What could not be made again from the journal may be made anew. A statement that is done again made its name, whatever
/// has that name today.
fn exists(session: &Session, name: &str) -> bool {
    matches!(session.catalog.tables.defined(name), Some(Defined::Table(_)))
        || session.catalog.tables.file(name).is_some()
}

async fn create_view(
    session: &Session,
    text: &Text,
    view: &ast::CreateView,
    then: Option<&Then>,
) -> Result<Define, Failure> {
    let name = placed(session, &view.name)?;
    if view.or_replace && view.if_not_exists {
        return Err(failed(Code::Syntax, "OR REPLACE and IF NOT EXISTS exclude each other".into()));
    }
    if exists(session, &name) && !view.or_replace && then.is_none() {
        if view.if_not_exists {
            return Ok(Define::Nothing);
        }
        return Err(failed(
            Code::Analysis,
            format!("`{name}` exists; write CREATE OR REPLACE VIEW, or use another name"),
        ));
    }
    let mut statement = session.spelled(text).await?;
    names::name(&mut statement);
    if let Statement::Statement(inner) = &mut statement
        && let ast::Statement::CreateView(view) = inner.as_mut()
    {
        // All views are the session's own, so the word adds nothing.
        view.temporary = false;
        view.if_not_exists = false;
    }
    let LogicalPlan::Ddl(DdlStatement::CreateView(create)) = session.to_plan(statement).await? else {
        return Err(failed(Code::Internal, "the view's plan is none".into()));
    };
    allow::plan(&create.input, session.limits)?;
    if mentions(&create.input, &name) && session.catalog.tables.defined(&name).is_some() {
        return Err(failed(Code::Analysis, format!("the view `{name}` cannot be made of itself")));
    }
    let plan = Arc::unwrap_or_clone(create.input);
    let columns = plan.schema().columns();
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = columns.iter().map(|c| names::shown(&c.name)).find(|n| !seen.insert(n.to_lowercase())) {
        return Err(failed(
            Code::Analysis,
            format!("the view `{name}` would have the column `{twice}` twice; give one of them another name"),
        ));
    }
    let shown = columns.into_iter().map(|c| {
        let name = names::shown(&c.name).to_owned();
        Expr::Column(c).alias(name)
    });
    let plan = LogicalPlanBuilder::from(plan).project(shown).and_then(|b| b.build()).map_err(|e| session.failed(&e))?;
    Ok(Define::Table { name, table: Arc::new(ViewTable::new(plan, create.definition)) })
}

fn mentions(plan: &LogicalPlan, name: &str) -> bool {
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::TableScan(scan) if scan.table_name.table().eq_ignore_ascii_case(name));
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn drop(session: &Session, kind: ObjectType, if_exists: bool, names: &[ast::ObjectName]) -> Result<Define, Failure> {
    let tables = &session.catalog.tables;
    let mut found = Vec::new();
    for name in names {
        let name = placed(session, name)?;
        let view = match tables.defined(&name) {
            Some(Defined::Table(table)) => Some(table.table_type() == TableType::View),
            Some(Defined::Broken(_)) => Some(kind == ObjectType::View),
            None => None,
        };
        match view {
            Some(view) if view == (kind == ObjectType::View) => found.push(name),
            Some(true) => return Err(failed(Code::Analysis, format!("`{name}` is a view; write DROP VIEW"))),
            Some(false) => return Err(failed(Code::Analysis, format!("`{name}` is a table; write DROP TABLE"))),
            None if tables.file(&name).is_some() => {
                return Err(failed(
                    Code::Refused,
                    format!("`{name}` is a file of the data folder, which statements do not remove"),
                ));
            }
            None if if_exists => {}
            None => {
                let what = if kind == ObjectType::View { "view" } else { "table" };
                return Err(failed(Code::Analysis, crate::failures::no_such(what, &name, &tables.defined_names())));
            }
        }
    }
    Ok(if found.is_empty() { Define::Nothing } else { Define::Drop(found) })
}

async fn external(
    session: &Session,
    table: &datafusion::sql::parser::CreateExternalTable,
    then: Option<&Then>,
) -> Result<Define, Failure> {
    let name = placed(session, &table.name)?;
    if exists(session, &name) && !table.or_replace && then.is_none() {
        if table.if_not_exists {
            return Ok(Define::Nothing);
        }
        return Err(failed(
            Code::Analysis,
            format!("`{name}` exists; write CREATE OR REPLACE EXTERNAL TABLE, or use another name"),
        ));
    }
    if table.unbounded {
        return Err(failed(Code::Refused, "an UNBOUNDED table is not allowed here; leave the word out".into()));
    }
    if let Some((key, _)) = table.options.iter().find(|(key, _)| !key.to_lowercase().starts_with("format.")) {
        return Err(failed(
            Code::Refused,
            format!("the option `{key}` is not allowed here; allowed are those that begin with `format.`"),
        ));
    }
    let mut table = table.clone();
    table.temporary = false;
    table.locations = table
        .locations
        .iter()
        .map(|l| session.reach.location(l).map(|url| url.to_string()))
        .collect::<Result<_, _>>()?;
    let plan = session.to_plan(Statement::CreateExternalTable(table)).await?;
    let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut create)) = plan else {
        return Err(failed(Code::Internal, "the table's plan is none".into()));
    };
    if create.schema.fields().is_empty()
        && let Some((schema, partitions)) = then.and_then(Then::columns)
    {
        create.schema = schema.to_dfschema_ref().map_err(|e| session.failed(&e))?;
        create.table_partition_cols = partitions;
    }
    let state = session.ctx.state();
    let file_type = create.file_type.to_uppercase();
    let factory = state.table_factories().get(&file_type).ok_or_else(|| {
        failed(Code::Analysis, format!("there is no format `{}`; there is CSV, JSON, PARQUET, ARROW", create.file_type))
    })?;
    let table = factory.create(&state, &create).await.map_err(|e| session.failed(&e))?;
    Ok(Define::Table { name, table })
}
