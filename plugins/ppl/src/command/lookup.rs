//! `lookup`: fields from the rows of another table that belong to these.

use super::search::{self, Right};
use super::{Command, Read};
use crate::ast::Name;
use crate::cursor::Cursor;
use crate::expression::field;
use crate::pipeline::{Column, Pipeline};
use crate::problem::Problem;
use crate::sql::{Sql, sql};

#[derive(Debug)]
struct Lookup {
    table: Right,
    /// Of the other table, and of this one.
    keys: Vec<(Name, Name)>,
    /// Only where there is nothing yet.
    append: bool,
    /// Of the other table, and what becomes of it; none: all but the keys.
    fields: Vec<(Name, Name)>,
}

/// `lookup <table> <key> [as <field>] [, …] [replace|append <field> [as <field>] [, …]]`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let table = search::named(c)?;
    let keys = pairs(c)?;
    let append = c.is_word("append");
    let fields = if c.eat_word("replace") || c.eat_word("append") { pairs(c)? } else { Vec::new() };
    Ok(Box::new(Lookup { table, keys, append, fields }))
}

fn pairs(c: &mut Cursor<'_>) -> Result<Vec<(Name, Name)>, Problem> {
    let mut all = Vec::new();
    loop {
        let of = field(c)?;
        let to = if c.eat_word("as") { field(c)? } else { of.clone() };
        all.push((of, to));
        if !c.eat(",") {
            return Ok(all);
        }
    }
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

impl Command for Lookup {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        let (other, _) = self.table.open(rows)?;
        rows.before_compute_of(&self.keys.iter().map(|(_, own)| own).collect::<Vec<_>>());
        let whole = |rows: &Pipeline<'_>, name: &Name| {
            rows.column_of(name)?.ok_or_else(|| {
                Problem::new(
                    name.at,
                    format!("`{}` is inside a field; make a field of it with `eval` first", name.text()),
                )
            })
        };
        let mut keys = Vec::new();
        for (of, own) in &self.keys {
            keys.push((whole(&other, of)?, whole(rows, own)?));
        }
        let mut fields = Vec::new();
        for (of, to) in &self.fields {
            let there = rows.visible().find(|c| same(&c.name, &to.text())).map(|c| c.name.clone());
            if self.append && there.is_none() {
                let names = rows.visible().map(|c| c.name.as_str());
                let problem = Problem::no_such(to.at, "field", &to.text(), names);
                return Err(Problem {
                    message: format!(
                        "{}; `append` fills fields that are there, `replace` makes new ones",
                        problem.message
                    ),
                    ..problem
                });
            }
            fields.push((whole(&other, of)?, there.unwrap_or_else(|| to.text())));
        }
        if self.fields.is_empty() {
            let rest = other.visible().filter(|c| !keys.iter().any(|(of, _)| *of == c.name));
            fields.extend(rest.map(|c| {
                let there = rows.visible().find(|own| same(&own.name, &c.name));
                (c.name.clone(), there.map_or_else(|| c.name.clone(), |own| own.name.clone()))
            }));
        }
        let (left, right) = rows.sides(other);
        let find = |columns: &[Column], name: &str| columns.iter().find(|c| c.name == name).cloned();
        let equal: Vec<Sql> = keys
            .iter()
            .filter_map(|(of, own)| {
                Some(sql!("{} = {}", find(&left.columns, own)?.sql(), find(&right.columns, of)?.sql()))
            })
            .collect();
        let from = sql!("{} LEFT JOIN {} ON {}", left.from, right.from, Sql::join(&equal, " AND "));
        rows.joined(from, left.columns.clone());
        for (of, to) in fields {
            let Some(new) = find(&right.columns, &of) else { continue };
            let old = find(&left.columns, &to).filter(|_| self.append);
            rows.put(match old {
                Some(old) => {
                    let sql = sql!("coalesce({}, {})", old.sql(), new.sql());
                    Column::made(to, sql, old.data_type.or(&new.data_type))
                }
                None => new.named(to),
            });
        }
        Ok(())
    }
}
