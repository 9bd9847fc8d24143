//! `search` and `source=`: where the rows come from, and a first choice among them.

use std::rc::Rc;

use crate::catalog::Field;
use crate::cursor::Cursor;
use crate::expression::name;
use crate::filter::{self, Filter};
use crate::lexer::Kind;
use crate::pipeline::{Pipeline, World, fits};
use crate::problem::Problem;
use crate::query::{self, Query};
use crate::sql::Sql;

/// Where rows come from.
#[derive(Debug)]
pub struct Search {
    from: From,
    alias: Option<String>,
    filter: Option<Filter>,
}

#[derive(Debug)]
enum From {
    Tables(Vec<TableName>),
    Query(Rc<Query>),
}

/// The name of a table, perhaps with `*`.
#[derive(Clone, Debug)]
pub struct TableName {
    /// Its parts.
    pub parts: Vec<String>,
    at: usize,
    wild: bool,
}

/// The other side of a join.
#[derive(Debug)]
pub struct Right(Search);

fn at_source(c: &Cursor<'_>, n: usize) -> bool {
    (c.word_ahead(n, "source") || c.word_ahead(n, "index")) && c.symbol_ahead(n + 1, "=")
}

/// `[search] [<filter>] source=<table>[, …] [as name] [<filter>]`
///
/// # Errors
/// It is none.
pub fn read(c: &mut Cursor<'_>) -> Result<Search, Problem> {
    let named = c.is_word("search") && !c.symbol_ahead(1, "=");
    if named {
        c.next();
    }
    let there =
        (0..).take_while(|n| !matches!(c.ahead(*n).kind, Kind::End | Kind::Symbol("|"))).any(|n| at_source(c, n));
    if !there {
        let what = if named { "`source=` and a table" } else { "`source=` and a table, or `search`" };
        return Err(c.wrong(what));
    }
    let mut filters = Vec::new();
    if !at_source(c, 0) {
        filters.push(filter::read(c, at_source)?);
    }
    if !at_source(c, 0) {
        return Err(c.wrong("`source=` and a table"));
    }
    c.next();
    c.next();
    let (from, alias) = source(c)?;
    if !c.ends() {
        filters.push(filter::read(c, at_source)?);
    }
    if at_source(c, 0) {
        return Err(Problem::new(c.start(), "the source is there already; put a comma between tables"));
    }
    let filter = match filters.len() {
        0 | 1 => filters.pop(),
        _ => Some(Filter::All(filters)),
    };
    Ok(Search { from, alias, filter })
}

fn source(c: &mut Cursor<'_>) -> Result<(From, Option<String>), Problem> {
    let from = if c.is("[") {
        From::Query(Rc::new(query::subquery(c)?))
    } else {
        let mut tables = vec![table(c)?];
        while c.eat(",") {
            tables.push(table(c)?);
        }
        From::Tables(tables)
    };
    let alias = if c.eat_word("as") { Some(name(c, "a name for the source")?.text()) } else { None };
    Ok((from, alias))
}

/// Reads a source without `source=`.
///
/// # Errors
/// There is none.
pub fn right(c: &mut Cursor<'_>) -> Result<Right, Problem> {
    if !matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_) | Kind::Symbol("[" | "." | "*")) {
        return Err(c.wrong("a table or a subquery in `[ ]`"));
    }
    let (from, alias) = source(c)?;
    Ok(Right(Search { from, alias, filter: None }))
}

/// Reads a table.
///
/// # Errors
/// There is none.
pub fn named(c: &mut Cursor<'_>) -> Result<Right, Problem> {
    Ok(Right(Search { from: From::Tables(vec![table(c)?]), alias: None, filter: None }))
}

/// Reads a table's name, in which dots, stars and hyphens need no back-ticks.
///
/// # Errors
/// There is none.
pub fn table(c: &mut Cursor<'_>) -> Result<TableName, Problem> {
    let at = c.start();
    let mut parts = vec![String::new()];
    let mut wild = false;
    loop {
        let last = parts.len() - 1;
        match &c.peek().kind {
            Kind::Quoted(part) => parts[last].push_str(part),
            Kind::Symbol("*") => {
                wild = true;
                parts[last].push('*');
            }
            Kind::Symbol("-") if c.start() > at => parts[last].push('-'),
            Kind::Symbol(".") => parts.push(String::new()),
            Kind::Symbol(":") if c.start() > at => {
                return Err(Problem::new(c.start(), "there are no other clusters to search; name a table of this one"));
            }
            Kind::Word(part) | Kind::Integer(part) | Kind::Decimal(part) => {
                let mut pieces = part.split('.');
                parts[last].push_str(pieces.next().unwrap_or_default());
                parts.extend(pieces.map(str::to_owned));
            }
            _ => return Err(c.wrong("a table")),
        }
        c.next();
        let more = matches!(
            c.peek().kind,
            Kind::Word(_) | Kind::Quoted(_) | Kind::Integer(_) | Kind::Decimal(_) | Kind::Symbol("*" | "-" | "." | ":")
        );
        if !(more && c.adjoins()) {
            // A name that begins with a dot has it in its first part.
            if parts.len() > 1 && parts[0].is_empty() {
                parts.remove(0);
                parts[0].insert(0, '.');
            }
            return Ok(TableName { parts, at, wild });
        }
    }
}

impl Search {
    /// The rows.
    ///
    /// # Errors
    /// There is no such table, or the filter names what is none.
    pub fn open<'a>(&self, world: &'a World<'a>, outer: Option<&'a Pipeline<'a>>) -> Result<Pipeline<'a>, Problem> {
        let mut rows = match &self.from {
            From::Query(query) => {
                let mut rows = Pipeline::follow(world, outer, query)?;
                rows.qualify(self.alias.as_slice());
                rows
            }
            From::Tables(tables) => self.tables(world, outer, tables)?,
        };
        if let Some(filter) = &self.filter {
            rows.before_filter(&filter.expressions());
            let condition = filter.condition(&rows)?;
            rows.filter(condition);
        }
        Ok(rows)
    }

    fn tables<'a>(
        &self,
        world: &'a World<'a>,
        outer: Option<&'a Pipeline<'a>>,
        names: &[TableName],
    ) -> Result<Pipeline<'a>, Problem> {
        let mut tables: Vec<(Sql, Vec<Field>)> = Vec::new();
        for name in names {
            if name.wild {
                tables.extend(matching(world, name)?);
            } else {
                tables.push(found(world, name)?);
            }
        }
        let mut qualifiers: Vec<String> = self.alias.iter().cloned().collect();
        qualifiers.extend(self.names());
        if tables.len() > 1 {
            return Ok(Pipeline::union(world, outer, tables, qualifiers));
        }
        match tables.pop() {
            Some((from, fields)) => Ok(Pipeline::table(world, outer, from, fields, qualifiers)),
            None => Err(Problem::new(names.first().map_or(0, |n| n.at), "expected a table")),
        }
    }

    /// What qualifies its fields besides its alias.
    fn names(&self) -> Vec<String> {
        match &self.from {
            From::Tables(names) => match names.as_slice() {
                [name] if !name.wild => {
                    let mut all = vec![name.parts.last().cloned().unwrap_or_default()];
                    if name.parts.len() > 1 {
                        all.push(name.parts.join("."));
                    }
                    all
                }
                _ => Vec::new(),
            },
            From::Query(_) => Vec::new(),
        }
    }
}

impl Right {
    /// The rows, and what qualifies their fields.
    ///
    /// # Errors
    /// There is no such table, or something is wrong in the subquery.
    pub fn open<'a>(&self, rows: &Pipeline<'a>) -> Result<(Pipeline<'a>, Vec<String>), Problem> {
        let mut names: Vec<String> = self.0.alias.iter().cloned().collect();
        names.extend(self.0.names());
        let other = match &self.0.from {
            From::Query(query) => {
                names.extend(query.search.alias.iter().cloned());
                names.extend(query.search.names());
                rows.beside(query)?
            }
            From::Tables(tables) => self.0.tables(rows.world, rows.outer(), tables)?,
        };
        Ok((other, names))
    }
}

fn found(world: &World<'_>, name: &TableName) -> Result<(Sql, Vec<Field>), Problem> {
    let parts: Vec<&str> = name.parts.iter().map(String::as_str).collect();
    let whole = name.parts.join(".");
    for parts in [parts.as_slice(), &[whole.as_str()]] {
        if let Some(fields) = world.catalog.columns(parts) {
            return Ok((Sql::path(parts.iter().copied()).from(name.at), fields));
        }
    }
    let tables = world.catalog.tables();
    Err(Problem::no_such(name.at, "table", &whole, tables.iter().filter_map(|t| t.last()).map(String::as_str)))
}

fn matching(world: &World<'_>, name: &TableName) -> Result<Vec<(Sql, Vec<Field>)>, Problem> {
    let tables = world.catalog.tables();
    let (pattern, within) = match name.parts.split_last() {
        Some((last, within)) => (last.as_str(), within),
        None => ("", &[][..]),
    };
    let mut all = Vec::new();
    for table in &tables {
        let Some((last, before)) = table.split_last() else { continue };
        let begins = before.len() >= within.len()
            && before[before.len() - within.len()..].iter().zip(within).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if begins && fits(pattern, last).is_some() {
            let parts: Vec<&str> = table.iter().map(String::as_str).collect();
            if let Some(fields) = world.catalog.columns(&parts) {
                all.push((Sql::path(parts).from(name.at), fields));
            }
        }
    }
    if all.is_empty() {
        let names = tables.iter().filter_map(|t| t.last()).map(String::as_str);
        return Err(Problem::no_such(name.at, "table that fits", &name.parts.join("."), names));
    }
    Ok(all)
}
