//! PPL, OpenSearch's piped language, as Firesteel's SQL.
//!
//! A text is read into tokens ([`lexer`]), these into a source and commands ([`query`], [`command`]), and each command is applied to the
//! rows that the ones before it leave ([`pipeline`]), which in the end are one SQL statement. To add a command: a file in
//! `command/`, and a line in its table.

#![warn(missing_docs)]

mod aggregate;
mod ast;
mod catalog;
mod command;
mod cursor;
mod expression;
mod filter;
mod function;
mod lexer;
mod pattern;
mod pipeline;
mod plugin;
mod problem;
mod query;
mod sql;
mod time;
mod value;

pub use catalog::{Catalog, Field, Session, Type};
pub use plugin::plugin;
pub use problem::{Error, Problem};

use pipeline::{Pipeline, World};
use query::Text;
use sql::{Sql, sql};

/// SQL, and which part of it comes from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The SQL.
    pub sql: String,
    /// Ascending by `at`.
    pub origins: Vec<Origin>,
}

/// From a byte of the SQL on, it comes from this place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Byte offset in the SQL.
    pub at: usize,
    /// Line in the source, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Translates a text.
///
/// # Errors
/// It is no PPL, or names what is not there; with the place.
pub fn translate(text: &str, catalog: &dyn Catalog, session: &Session) -> Result<Translated, Error> {
    let sql = translated(text, catalog, session).map_err(|problem| problem.place(text))?;
    let origins = sql
        .marks()
        .iter()
        .map(|mark| {
            let (line, column) = problem::place(text, mark.source);
            Origin { at: mark.at, line, column }
        })
        .collect();
    Ok(Translated { sql: sql.to_string(), origins })
}

/// The names of all commands, functions and aggregates.
pub fn names() -> Vec<&'static str> {
    command::names().chain(function::names()).chain(aggregate::names()).collect()
}

fn translated(text: &str, catalog: &dyn Catalog, session: &Session) -> Result<Sql, Problem> {
    let read = query::text(&mut cursor::Cursor::new(text)?)?;
    let world = World::new(text, catalog, session);
    Ok(match read {
        Text::Query(query) => Pipeline::run(&world, None, &query)?.0,
        Text::Explain(query) => sql!("EXPLAIN {}", Pipeline::run(&world, None, &query)?.0),
        Text::Describe(table) => sql!("DESCRIBE {}", Sql::path(table.iter().map(String::as_str))),
    })
}

firesteel_plugin::export!(plugin);
