//! `dedup`: of rows with the same values, the first ones.

use super::{Command, Read};
use crate::ast::Name;
use crate::cursor::Cursor;
use crate::expression::field;
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};

#[derive(Debug)]
struct Dedup {
    count: u64,
    fields: Vec<Name>,
    /// Rows in which one of the fields is null are all kept.
    keep_empty: bool,
    /// Only rows that follow each other are the same.
    consecutive: bool,
}

/// `dedup [<count>] <field> [,] … [keepempty=<bool>] [consecutive=<bool>]`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let at = c.start();
    let count = if matches!(c.peek().kind, Kind::Integer(_)) { c.integer("a number of rows")? } else { 1 };
    if count == 0 {
        return Err(Problem::new(at, "the number of rows to keep has to be more than 0"));
    }
    let mut dedup = Dedup { count, fields: Vec::new(), keep_empty: false, consecutive: false };
    loop {
        if c.option("keepempty") {
            dedup.keep_empty = c.boolean("keepempty")?;
        } else if c.option("consecutive") {
            dedup.consecutive = c.boolean("consecutive")?;
        } else if let Kind::Word(word) = c.peek().kind.clone()
            && c.symbol_ahead(1, "=")
        {
            return Err(Problem::no_such(c.start(), "option of `dedup`", &word, ["keepempty", "consecutive"]));
        } else {
            dedup.fields.push(field(c)?);
        }
        if !c.eat(",") && c.ends() {
            break;
        }
    }
    if dedup.fields.is_empty() { Err(c.wrong("a field")) } else { Ok(Box::new(dedup)) }
}

impl Command for Dedup {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_groups();
        let fields = |rows: &Pipeline<'_>| {
            self.fields.iter().map(|f| rows.field(f).map(|v| v.sql)).collect::<Result<Vec<Sql>, _>>()
        };
        let keys = fields(rows)?;
        let empty = sql!("({})", Sql::join(&keys.iter().map(|k| sql!("{} IS NULL", k)).collect::<Vec<_>>(), " OR "));
        if !self.keep_empty {
            keys.iter().for_each(|k| rows.filter(sql!("({} IS NOT NULL)", k)));
        }
        let order =
            |rows: &Pipeline<'_>| rows.order_by().map_or_else(Sql::default, |order| sql!(" ORDER BY {}", order));
        let partition = |keys: &[Sql]| sql!("PARTITION BY {}", Sql::join(keys, ", "));
        let place = if self.consecutive {
            // Rows with an empty field stand in no run, and end none.
            let among = if self.keep_empty { partition(&[empty]) } else { Sql::default() };
            let before: Vec<Sql> = keys
                .iter()
                .map(|k| sql!("{} IS DISTINCT FROM lag({}) OVER ({}{})", k, k, among, order(rows)))
                .collect();
            let begins = rows.window(sql!("CASE WHEN {} THEN 1 ELSE 0 END", Sql::join(&before, " OR ")));
            let keys = fields(rows)?;
            let empty =
                sql!("({})", Sql::join(&keys.iter().map(|k| sql!("{} IS NULL", k)).collect::<Vec<_>>(), " OR "));
            let among = if self.keep_empty { partition(&[empty]) } else { Sql::default() };
            let order_of_runs = rows.order_by().map_or_else(Sql::default, |order| sql!(" ORDER BY {}", order));
            let run = rows.window(sql!(
                "sum({}) OVER ({}{} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
                begins,
                among,
                order_of_runs
            ));
            let mut keys = fields(rows)?;
            keys.push(run);
            rows.window(sql!("row_number() OVER ({}{})", partition(&keys), order(rows)))
        } else {
            rows.window(sql!("row_number() OVER ({}{})", partition(&keys), order(rows)))
        };
        let mut condition = sql!("({} <= {})", place, Sql::integer(self.count));
        if self.keep_empty {
            let empty: Vec<Sql> = fields(rows)?.iter().map(|k| sql!("{} IS NULL", k)).collect();
            condition = sql!("({} OR {})", condition, Sql::join(&empty, " OR "));
        }
        rows.filter(condition);
        Ok(())
    }
}
