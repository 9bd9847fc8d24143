//! Which statements may run: an allow-list, first of what the text says, then of every node of the plan.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;
use firesteel_model::{Code, Failure, Stage};

use crate::dialect::Text;
use crate::failures::{self, Limits};

fn refused(what: &str) -> Failure {
    Failure::new(
        Code::Refused,
        Stage::Plan,
        format!(
            "{what} is not allowed here; allowed are queries, EXPLAIN, SHOW, DESCRIBE, SET, USE, views, external tables, functions and prepared statements"
        ),
    )
}

/// Refuses a statement that is not allowed, by its name.
///
/// # Errors
/// `Refused`.
pub fn statement(statement: &Statement) -> Result<(), Failure> {
    match statement {
        Statement::Statement(inner) => sql(inner),
        Statement::CreateExternalTable(_) => Ok(()),
        Statement::Explain(explain) => read_only(&explain.statement, "EXPLAIN of anything but a query"),
        Statement::CopyTo(_) => Err(refused("COPY TO")),
        Statement::Reset(_) => Err(refused("this form of RESET")),
    }
}

fn read_only(inner: &Statement, otherwise: &str) -> Result<(), Failure> {
    match inner {
        Statement::Statement(inner) if matches!(**inner, ast::Statement::Query(_) | ast::Statement::Execute { .. }) => {
            sql(inner)
        }
        Statement::Explain(_)
        | Statement::Statement(_)
        | Statement::CreateExternalTable(_)
        | Statement::CopyTo(_)
        | Statement::Reset(_) => Err(refused(otherwise)),
    }
}

fn sql(statement: &ast::Statement) -> Result<(), Failure> {
    match statement {
        ast::Statement::Query(query) => body(&query.body),
        ast::Statement::CreateView(view) => {
            if view.materialized {
                return Err(refused("CREATE MATERIALIZED VIEW"));
            }
            body(&view.query.body)
        }
        ast::Statement::Drop { object_type: ast::ObjectType::View | ast::ObjectType::Table, .. }
        | ast::Statement::Execute { .. }
        | ast::Statement::Deallocate { .. } => Ok(()),
        ast::Statement::Prepare { statement, .. } => match statement.as_ref() {
            query @ ast::Statement::Query(_) => sql(query),
            _ => Err(refused("PREPARE of anything but a query")),
        },
        other => Err(refused(&named(other))),
    }
}

/// `WITH … INSERT` and its like hide in a query's body.
fn body(body: &ast::SetExpr) -> Result<(), Failure> {
    match body {
        ast::SetExpr::Insert(s) | ast::SetExpr::Update(s) | ast::SetExpr::Delete(s) | ast::SetExpr::Merge(s) => {
            Err(refused(&named(s)))
        }
        _ => Ok(()),
    }
}

/// What a statement is called: its first words, of which the second is a kind of thing and no name.
fn named(statement: &ast::Statement) -> String {
    match statement {
        ast::Statement::CreateTable(table) if table.query.is_some() => "CREATE TABLE AS".into(),
        ast::Statement::Insert(_) => "INSERT".into(),
        ast::Statement::Update { .. } => "UPDATE".into(),
        ast::Statement::Delete(_) => "DELETE".into(),
        ast::Statement::Merge { .. } => "MERGE".into(),
        other => first_words(other.to_string().split(|c: char| !c.is_ascii_alphabetic())),
    }
}

/// Kinds of things that a statement's second word may name.
const THINGS: &[&str] = &[
    "TABLE",
    "FUNCTION",
    "DATABASE",
    "SCHEMA",
    "CATALOG",
    "INDEX",
    "ROLE",
    "USER",
    "TRIGGER",
    "PROCEDURE",
    "SEQUENCE",
    "TYPE",
    "SECRET",
    "VIEW",
    "TRANSACTION",
    "MACRO",
    "JAR",
    "FILE",
    "DATA",
];

fn first_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words = words
        .map(str::to_uppercase)
        .filter(|w| !matches!(w.as_str(), "" | "OR" | "REPLACE" | "TEMPORARY" | "TEMP" | "EXTERNAL"));
    let first = words.next().unwrap_or_else(|| "this statement".into());
    match words.next() {
        Some(second) if THINGS.contains(&second.as_str()) => format!("{first} {second}"),
        _ => first,
    }
}

/// Statements that change something, by their first word: refused by name even where they cannot be parsed.
const CHANGING: &[&str] = &[
    "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "LOAD", "ALTER", "TRUNCATE", "CREATE", "DROP", "GRANT", "REVOKE",
    "CALL", "ADD", "CACHE", "UNCACHE", "REFRESH", "ANALYZE", "MSCK", "OPTIMIZE", "VACUUM", "ATTACH", "DETACH",
    "INSTALL", "UNLOAD", "EXPORT", "IMPORT", "KILL", "LOCK",
];

/// For a text that is no statement: the refusal, if what it would be is not allowed anyway.
pub fn instead(failure: Failure, text: &Text) -> Failure {
    let words: Vec<&str> = text
        .significant()
        .take(6)
        .filter_map(|t| match t {
            Token::Word(w) if w.quote_style.is_none() => Some(w.value.as_str()),
            _ => None,
        })
        .collect();
    let name = first_words(words.into_iter());
    let first = name.split(' ').next().unwrap_or_default();
    let ours = ["CREATE VIEW", "CREATE TABLE", "DROP VIEW", "DROP TABLE", "CREATE", "DROP"].contains(&name.as_str());
    if failure.code == Code::Syntax && CHANGING.contains(&first) && !ours { refused(&name) } else { failure }
}

/// Refuses a plan any node of which does not only read.
///
/// # Errors
/// `Refused`, or DataFusion's own error.
pub fn plan(plan: &LogicalPlan, limits: Limits) -> Result<(), Failure> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        let name = match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::DescribeTable(_) => return Ok(TreeNodeRecursion::Continue),
            LogicalPlan::Ddl(ddl) => ddl.name().to_owned(),
            LogicalPlan::Dml(dml) => dml.op.name().to_owned(),
            LogicalPlan::Copy(_) => "COPY TO".to_owned(),
            LogicalPlan::Statement(s) => s.name().to_owned(),
            LogicalPlan::Extension(e) => e.node.name().to_owned(),
            #[allow(
                unreachable_patterns,
                reason = "a node that a later DataFusion adds is refused until it is looked at"
            )]
            _ => "this plan".to_owned(),
        };
        found = Some(name);
        Ok(TreeNodeRecursion::Stop)
    })
    .map_err(|e| failures::failure(&e, Stage::Plan, limits))?;
    found.map_or(Ok(()), |name| Err(refused(&name)))
}
