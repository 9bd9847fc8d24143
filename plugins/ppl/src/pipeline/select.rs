//! A SELECT under construction, and its columns.

use std::cell::Cell;

use crate::catalog::Type;
use crate::sql::{Sql, sql};

/// A column of the rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, which no other has, in any case.
    pub name: String,
    /// Its type.
    pub data_type: Type,
    /// What it is made of.
    pub(super) sql: Sql,
    /// Where it is from, if it is no more than a column of what the SELECT reads.
    pub(super) input: Option<Input>,
    /// Its name behind a qualifier, and the qualifiers it may have.
    pub(super) base: String,
    pub(super) qualifiers: Vec<String>,
    /// Only there because rows are ordered by it.
    pub(super) hidden: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) relation: String,
    pub(super) column: String,
}

/// A SELECT under construction.
pub(super) struct Select {
    pub(super) from: Sql,
    /// What its columns are qualified with from inside a subquery.
    pub(super) relation: String,
    /// `from` has another name.
    pub(super) table: bool,
    /// A subquery has used `relation`.
    pub(super) used: Cell<bool>,
    /// The columns of `from`, as long as it is no join.
    pub(super) inputs: Option<Vec<String>>,
    pub(super) filters: Vec<Sql>,
    pub(super) groups: Option<Vec<Sql>>,
    pub(super) windows: bool,
    pub(super) columns: Vec<Column>,
    pub(super) limit: Option<(u64, u64)>,
}

/// A side of a join: what to read, and its columns.
pub struct Side {
    /// Behind FROM or JOIN.
    pub from: Sql,
    /// Its columns.
    pub columns: Vec<Column>,
}

impl Select {
    /// One that reads from this.
    pub(super) fn of(from: Sql, relation: String, inputs: Option<Vec<String>>, columns: Vec<Column>) -> Select {
        Select {
            from,
            relation,
            table: false,
            used: Cell::new(false),
            inputs,
            filters: Vec::new(),
            groups: None,
            windows: false,
            columns,
            limit: None,
        }
    }

    /// Its SQL, with the rows in an order; `all` with the hidden columns.
    pub(super) fn render(&self, order: &[(String, bool)], all: bool) -> Sql {
        let columns: Vec<&Column> = self.columns.iter().filter(|c| all || !c.hidden).collect();
        let whole = self.inputs.as_ref().is_some_and(|inputs| {
            inputs.len() == columns.len()
                && columns
                    .iter()
                    .zip(inputs)
                    .all(|(c, i)| c.name == *i && c.input.as_ref().is_some_and(|input| input.column == *i))
        });
        let list = if whole {
            sql!("*")
        } else {
            let items: Vec<Sql> = columns
                .iter()
                .map(|c| match &c.input {
                    Some(input) if input.column == c.name && self.inputs.is_some() => c.sql.clone(),
                    _ => sql!("{} AS {}", c.sql, Sql::name(&c.name)),
                })
                .collect();
            Sql::join(&items, ", ")
        };
        let mut out = sql!("SELECT {} FROM {}", list, self.from);
        if self.table && self.used.get() {
            out = sql!("{} AS {}", out, Sql::name(&self.relation));
        }
        if !self.filters.is_empty() {
            out = sql!("{} WHERE {}", out, Sql::join(&self.filters, " AND "));
        }
        if let Some(groups) = self.groups.as_ref().filter(|g| !g.is_empty()) {
            out = sql!("{} GROUP BY {}", out, Sql::join(groups, ", "));
        }
        if !order.is_empty() {
            let keys: Vec<Sql> = order
                .iter()
                .map(|(name, descending)| {
                    let shown = columns.iter().any(|c| c.name == *name);
                    let column = self.columns.iter().find(|c| c.name == *name);
                    key(&column.filter(|_| !shown).map_or_else(|| Sql::name(name), |c| c.sql.clone()), *descending)
                })
                .collect();
            out = sql!("{} ORDER BY {}", out, Sql::join(&keys, ", "));
        }
        if let Some((count, from)) = self.limit {
            out = sql!("{} LIMIT {}", out, Sql::integer(count));
            if from > 0 {
                out = sql!("{} OFFSET {}", out, Sql::integer(from));
            }
        }
        out
    }
}

pub(super) fn key(sql: &Sql, descending: bool) -> Sql {
    if descending { sql!("{} DESC NULLS LAST", sql) } else { sql!("{} ASC NULLS FIRST", sql) }
}

impl Column {
    /// What it is in SQL, as long as its SELECT is not closed.
    pub fn sql(&self) -> &Sql {
        &self.sql
    }

    /// The same column with another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Column {
        self.name = name.into();
        self
    }

    /// The same column, which may be qualified by this as well.
    #[must_use]
    pub fn qualified(mut self, qualifiers: &[String]) -> Column {
        self.qualifiers.extend_from_slice(qualifiers);
        self
    }

    /// A column of an expression.
    pub fn made(name: impl Into<String>, sql: Sql, data_type: Type) -> Column {
        let name = name.into();
        Column { base: name.clone(), name, data_type, sql, input: None, qualifiers: Vec::new(), hidden: false }
    }

    /// Whether it is only there for the order of the rows.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }
}
