//! The rows between two commands: a SELECT under construction, and those before it.
//!
//! A command first asks for the SELECT to be ready for it (`before_…`); where the meaning would change if it were put into the same one,
//! the SELECT is closed, becomes a named query of the WITH clause, and a new one reads from it. So the SQL is as long as the text,
//! and its parts stand beside each other, not inside each other.
//!
//! Every column is known by its name here, whatever it was called when it was sorted by or renamed. What the order of the rows hangs on
//! is kept, hidden if need be, and the order is said again where it counts: before a limit and at the end.

mod columns;
mod scope;
mod select;

use std::cell::Cell;

pub use scope::fits;
use scope::same;
pub use select::{Column, Side};
use select::{Input, Select, key};

use crate::ast::{Expr, Name};
use crate::catalog::{Catalog, Field, Session};
use crate::problem::Problem;
use crate::query::Query;
use crate::sql::{Sql, sql};
use crate::value::{self, Value};

/// What all pipelines of a text share.
pub struct World<'a> {
    /// The tables.
    pub catalog: &'a dyn Catalog,
    /// What the meaning depends on besides.
    pub session: &'a Session,
    prefix: &'static str,
    named: Cell<usize>,
}

impl<'a> World<'a> {
    /// For a text.
    pub fn new(text: &str, catalog: &'a dyn Catalog, session: &'a Session) -> World<'a> {
        // The names of the queries in WITH must not hide a table.
        let text = text.to_lowercase();
        let taken = |prefix: &str| {
            text.contains('*')
                || text
                    .match_indices(prefix)
                    .any(|(n, _)| text[n + prefix.len()..].starts_with(|c: char| c.is_ascii_digit()))
        };
        let prefix = ["q", "step_"].into_iter().find(|p| !taken(p)).unwrap_or("ppl__step_");
        World { catalog, session, prefix, named: Cell::new(0) }
    }

    fn name(&self) -> String {
        self.named.set(self.named.get() + 1);
        format!("{}{}", self.prefix, self.named.get())
    }
}

/// The rows between two commands.
pub struct Pipeline<'a> {
    /// What all share.
    pub world: &'a World<'a>,
    outer: Option<&'a Pipeline<'a>>,
    done: Vec<(String, Sql)>,
    select: Select,
    /// Columns by which the rows are ordered, and whether descending.
    order: Vec<(String, bool)>,
}

impl<'a> Pipeline<'a> {
    /// Runs a query to its end: the SQL, and its columns.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn run(
        world: &'a World<'a>,
        outer: Option<&'a Pipeline<'a>>,
        query: &Query,
    ) -> Result<(Sql, Vec<Column>), Problem> {
        let mut rows = Pipeline::follow(world, outer, query)?;
        let columns = rows.visible().cloned().collect();
        Ok((rows.finish(), columns))
    }

    /// Runs a query up to where another command can follow.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn follow(
        world: &'a World<'a>,
        outer: Option<&'a Pipeline<'a>>,
        query: &Query,
    ) -> Result<Pipeline<'a>, Problem> {
        let mut rows = query.search.open(world, outer)?;
        for (_, stage) in &query.stages {
            stage.apply(&mut rows)?;
        }
        Ok(rows)
    }

    /// A pipeline inside this one's text.
    pub fn inner(&'a self, query: &Query) -> Result<(Sql, Vec<Column>), Problem> {
        Pipeline::run(self.world, Some(self), query)
    }

    /// The same for a side of a join, which sees what this one sees from outside.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn beside(&self, query: &Query) -> Result<Pipeline<'a>, Problem> {
        Pipeline::follow(self.world, self.outer, query)
    }

    /// Reads a table, of which `from` is the name.
    pub fn table(
        world: &'a World<'a>,
        outer: Option<&'a Pipeline<'a>>,
        from: Sql,
        fields: Vec<Field>,
        qualifiers: Vec<String>,
    ) -> Pipeline<'a> {
        let relation = world.name();
        let columns = fields
            .iter()
            .map(|f| Column {
                name: f.name.clone(),
                data_type: f.data_type.clone(),
                sql: Sql::name(&f.name),
                input: Some(Input { relation: relation.clone(), column: f.name.clone() }),
                base: f.name.clone(),
                qualifiers: qualifiers.clone(),
                hidden: false,
            })
            .collect();
        let inputs = Some(fields.into_iter().map(|f| f.name).collect());
        let select = Select { table: true, ..Select::of(from, relation, inputs, columns) };
        Pipeline { world, outer, done: Vec::new(), select, order: Vec::new() }
    }

    /// Rows of several tables, one below the other; a column that one lacks is null there.
    pub fn union(
        world: &'a World<'a>,
        outer: Option<&'a Pipeline<'a>>,
        tables: Vec<(Sql, Vec<Field>)>,
        qualifiers: Vec<String>,
    ) -> Pipeline<'a> {
        let mut all: Vec<Field> = Vec::new();
        for field in tables.iter().flat_map(|(_, fields)| fields) {
            match all.iter_mut().find(|f| same(&f.name, &field.name)) {
                Some(known) => known.data_type = known.data_type.or(&field.data_type),
                None => all.push(field.clone()),
            }
        }
        let selects: Vec<Sql> = tables
            .iter()
            .map(|(from, fields)| {
                let columns: Vec<Sql> = all
                    .iter()
                    .map(|f| match fields.iter().find(|own| same(&own.name, &f.name)) {
                        Some(own) => sql!("{} AS {}", Sql::name(&own.name), Sql::name(&f.name)),
                        None => sql!("NULL AS {}", Sql::name(&f.name)),
                    })
                    .collect();
                sql!("SELECT {} FROM {}", Sql::join(&columns, ", "), from)
            })
            .collect();
        let name = world.name();
        let mut rows = Pipeline::table(world, outer, Sql::name(&name), all, qualifiers);
        rows.done.push((name, Sql::join(&selects, " UNION ALL ")));
        rows
    }

    /// The query outside.
    pub fn outer(&self) -> Option<&'a Pipeline<'a>> {
        self.outer
    }

    /// Lets the columns be qualified by these too.
    pub fn qualify(&mut self, qualifiers: &[String]) {
        self.select.columns.iter_mut().for_each(|c| c.qualifiers.extend_from_slice(qualifiers));
    }

    /// The columns that a user sees.
    pub fn visible(&self) -> impl Iterator<Item = &Column> {
        self.select.columns.iter().filter(|c| !c.hidden)
    }

    /// Leaves the rows for which a condition is true.
    pub fn filter(&mut self, condition: Sql) {
        self.select.filters.push(condition);
    }

    /// Orders the rows by these columns, and whether descending.
    pub fn order(&mut self, keys: Vec<(String, bool)>) {
        self.order = keys;
    }

    /// By what the rows are ordered; each is a plain column after [`Pipeline::before_order_is_used`].
    pub fn order_by(&self) -> Option<Sql> {
        let keys: Vec<Sql> = self
            .order
            .iter()
            .filter_map(|(name, descending)| {
                let column = self.select.columns.iter().find(|c| c.name == *name)?;
                Some(key(&column.sql, *descending))
            })
            .collect();
        (!keys.is_empty()).then(|| Sql::join(&keys, ", "))
    }

    /// Leaves so many rows behind the first `from`.
    pub fn limit(&mut self, count: u64, from: u64) {
        if self.select.limit.is_some() {
            self.close();
        }
        self.select.limit = Some((count, from));
    }

    /// One row for each group.
    pub fn aggregate(&mut self, values: Vec<(String, Value)>, groups: Vec<(String, Value)>) {
        self.select.groups = Some(groups.iter().map(|(_, v)| v.sql.clone()).collect());
        let before = std::mem::take(&mut self.select.columns);
        self.order.clear();
        for (name, value) in values.into_iter().chain(groups) {
            self.set(&name, value);
        }
        // What a group could be qualified by, it still can.
        for column in &mut self.select.columns {
            if let Some(old) = before.iter().find(|c| c.sql == column.sql && same(&c.name, &column.name)) {
                column.qualifiers.clone_from(&old.qualifiers);
                column.base.clone_from(&old.base);
            }
        }
    }

    /// Adds a column of a window function, which no user sees; the SELECT is closed behind it.
    pub fn window(&mut self, sql: Sql) -> Sql {
        self.select.windows = true;
        let name = self.hidden(sql);
        // The order of the rows hangs on it, so that it survives.
        self.order.push((name.clone(), false));
        self.close();
        self.order.pop();
        Sql::name(&name)
    }

    fn computed(&self, names: &[&Name]) -> bool {
        names.iter().any(|n| self.resolve(n).is_some_and(|(at, _)| self.select.columns[at].input.is_none()))
    }

    fn any_computed(&self) -> bool {
        self.select.columns.iter().any(|c| c.input.is_none())
    }

    fn before(&mut self, exprs: &[&Expr], otherwise: bool) {
        let mut names = Vec::new();
        let mut queries = false;
        exprs.iter().for_each(|e| value::names(e, &mut names, &mut queries));
        if otherwise || self.select.groups.is_some() || self.computed(&names) || queries && self.any_computed() {
            self.close();
        }
    }

    /// Makes the SELECT ready for a condition on these.
    pub fn before_filter(&mut self, exprs: &[&Expr]) {
        let otherwise = self.select.limit.is_some() || self.select.windows;
        self.before(exprs, otherwise);
    }

    /// Makes the SELECT ready for new columns made of these.
    pub fn before_compute(&mut self, exprs: &[&Expr]) {
        self.before(exprs, false);
    }

    /// The same for fields.
    pub fn before_compute_of(&mut self, names: &[&Name]) {
        if self.select.groups.is_some() || self.computed(names) {
            self.close();
        }
    }

    /// Makes the SELECT ready for groups, aggregates or windows over any of its columns.
    pub fn before_groups(&mut self) {
        let select = &self.select;
        if select.groups.is_some() || select.limit.is_some() || select.windows || self.any_computed() {
            self.close();
        }
    }

    /// Makes the SELECT ready for another order.
    pub fn before_sort(&mut self) {
        if self.select.limit.is_some() {
            self.close();
        }
    }

    /// Closes the SELECT: the next one reads from it.
    pub fn close(&mut self) {
        let order = &self.order;
        self.select.columns.retain(|c| !c.hidden || order.iter().any(|(key, _)| *key == c.name));
        let body = self.select.render(if self.select.limit.is_some() { order } else { &[] }, true);
        let name = self.world.name();
        let mut columns = std::mem::take(&mut self.select.columns);
        for column in &mut columns {
            column.sql = Sql::name(&column.name);
            column.input = Some(Input { relation: name.clone(), column: column.name.clone() });
        }
        let inputs = Some(columns.iter().map(|c| c.name.clone()).collect());
        self.select = Select::of(Sql::name(&name), name.clone(), inputs, columns);
        self.done.push((name, body));
    }

    /// The rows as a side of a join; the queries that they are made of go to `done`.
    fn side(&mut self) -> Side {
        let select = &self.select;
        let simple = select.inputs.is_some()
            && select.filters.is_empty()
            && select.groups.is_none()
            && !select.windows
            && select.limit.is_none();
        if !simple || self.any_computed() {
            self.close();
        }
        let select = &mut self.select;
        let from =
            if select.table { sql!("{} AS {}", select.from, Sql::name(&select.relation)) } else { select.from.clone() };
        Side { from, columns: std::mem::take(&mut select.columns) }
    }

    /// Puts other rows beside these: both sides, of which the columns are qualified.
    pub fn sides(&mut self, mut other: Pipeline<'_>) -> (Side, Side) {
        let (mut left, mut right) = (self.side(), other.side());
        self.done.append(&mut other.done);
        for side in [&mut left, &mut right] {
            for column in &mut side.columns {
                if let Some(input) = &column.input {
                    column.sql = Sql::path([input.relation.as_str(), input.column.as_str()]);
                }
            }
        }
        right.columns.retain(|c| !c.hidden);
        (left, right)
    }

    /// Reads from a join from here on.
    pub fn joined(&mut self, from: Sql, columns: Vec<Column>) {
        self.select = Select::of(from, String::new(), None, columns);
    }

    /// The whole SQL.
    pub fn finish(&mut self) -> Sql {
        let hidden = self.select.columns.iter().any(|c| c.hidden && self.order.iter().any(|(key, _)| *key == c.name));
        if hidden {
            self.close();
        }
        let last = self.select.render(&self.order, false);
        if self.done.is_empty() {
            return last;
        }
        let queries: Vec<Sql> =
            self.done.iter().map(|(name, body)| sql!("{} AS ({})", Sql::name(name), body)).collect();
        sql!("WITH {} {}", Sql::join(&queries, ", "), last)
    }
}
