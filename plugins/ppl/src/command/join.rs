//! `join`: rows of two sources that belong together.

use super::search::{self, Right};
use super::{Command, Read};
use crate::ast::{Expr, Kind as Ast, Name};
use crate::cursor::Cursor;
use crate::expression::{expression, field, name};
use crate::lexer::Kind;
use crate::pipeline::{Column, Pipeline};
use crate::problem::Problem;
use crate::sql::{Sql, sql};

#[derive(Debug)]
struct Join {
    at: usize,
    how: How,
    overwrite: bool,
    /// At most so many rows of the other side for each; 0: all.
    most: u64,
    left: Option<String>,
    right: Option<String>,
    on: On,
    with: Right,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    Semi,
    Anti,
}

#[derive(Debug)]
enum On {
    Condition(Expr),
    /// Fields that have the same name on both sides; none: all that do.
    Fields(Vec<Name>),
    Nothing,
}

const HOWS: &[(&str, How)] = &[
    ("inner", How::Inner),
    ("left", How::Left),
    ("outer", How::Left),
    ("right", How::Right),
    ("full", How::Full),
    ("cross", How::Cross),
    ("semi", How::Semi),
    ("anti", How::Anti),
];

/// `[inner|left|right|full|cross|left semi|left anti] join [left = name] [right = name] [on|where <condition>] <source>`, or
/// `join [type=…] [overwrite=<bool>] [max=<count>] [<field>, …] <source>`
pub fn read(c: &mut Cursor<'_>, word: &str) -> Read {
    let at = c.start();
    let mut how = HOWS.iter().find(|(name, _)| *name == word).map(|(_, how)| *how);
    if how.is_some() {
        if matches!(how, Some(How::Left | How::Right | How::Full)) && word != "outer" {
            c.eat_word("outer");
        }
        if how == Some(How::Left) {
            for (word, other) in [("semi", How::Semi), ("anti", How::Anti)] {
                if c.eat_word(word) {
                    how = Some(other);
                }
            }
        }
        c.expect_word("join")?;
    }
    let (mut overwrite, mut most, mut left, mut right) = (true, 0, None, None);
    loop {
        if c.option("type") {
            let Kind::Word(word) = c.peek().kind.clone() else { return Err(c.wrong("a type of join")) };
            let found = HOWS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
            let Some((_, found)) = found else {
                return Err(Problem::no_such(c.start(), "type of join", &word, HOWS.iter().map(|(name, _)| *name)));
            };
            c.next();
            how = Some(*found);
        } else if c.option("overwrite") {
            overwrite = c.boolean("overwrite")?;
        } else if c.option("max") {
            most = c.integer("a number of rows")?;
        } else if c.option("left") {
            left = Some(name(c, "a name for the left side")?.text());
        } else if c.option("right") {
            right = Some(name(c, "a name for the right side")?.text());
        } else {
            break;
        }
        c.eat(",");
    }
    let how = how.unwrap_or(How::Inner);
    let on = if c.eat_word("on") || c.eat_word("where") {
        On::Condition(expression(c)?)
    } else if how == How::Cross {
        On::Nothing
    } else {
        On::Fields(keys(c)?)
    };
    let with = search::right(c)?;
    Ok(Box::new(Join { at, how, overwrite, most, left, right, on, with }))
}

/// The fields before the source: all names but the last.
fn keys(c: &mut Cursor<'_>) -> Result<Vec<Name>, Problem> {
    let mut keys = Vec::new();
    loop {
        let mark = c.mark();
        if c.is("[") {
            return Ok(keys);
        }
        let key = field(c)?;
        if c.eat(",") {
            keys.push(key);
            continue;
        }
        if c.ends() || c.is_word("as") || !matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_) | Kind::Symbol("["))
        {
            c.back(mark);
            return Ok(keys);
        }
        keys.push(key);
    }
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// The other side's fields in a condition that is made of `left = right` only.
fn equal_fields<'e>(condition: &'e Expr, found: &mut Vec<&'e Name>) -> bool {
    match &condition.kind {
        Ast::All(all) => all.iter().all(|e| equal_fields(e, found)),
        Ast::Compare(a, "=", b) => match (&a.kind, &b.kind) {
            (Ast::Name(a), Ast::Name(b)) => {
                found.extend([a, b]);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

impl Join {
    /// Leaves at most so many rows of the other side for each value of its keys.
    fn at_most(&self, rows: &Pipeline<'_>, other: &mut Pipeline<'_>) -> Result<(), Problem> {
        if self.most == 0 {
            return Ok(());
        }
        other.before_groups();
        let keys: Vec<Sql> = match &self.on {
            On::Fields(names) => self
                .shared(rows, other, names)?
                .iter()
                .map(|(_, r)| other.field(r).map(|v| v.sql))
                .collect::<Result<_, _>>()?,
            On::Condition(condition) => {
                let mut names = Vec::new();
                if !equal_fields(condition, &mut names) {
                    return Err(Problem::new(
                        condition.at,
                        "`max` needs a condition of fields that are equal, such as l.a = r.a",
                    ));
                }
                let of_other = |n: &&&Name| {
                    let qualified = n.parts.len() > 1 && self.right.as_ref().is_some_and(|r| same(r, &n.parts[0]));
                    qualified
                        || rows.column_of(n).is_err()
                            && !(n.parts.len() > 1 && self.left.as_ref().is_some_and(|l| same(l, &n.parts[0])))
                };
                names
                    .iter()
                    .filter(of_other)
                    .map(|n| {
                        let own = if n.parts.len() > 1 && self.right.as_ref().is_some_and(|r| same(r, &n.parts[0])) {
                            Name { parts: n.parts[1..].to_vec(), at: n.at }
                        } else {
                            (*n).clone()
                        };
                        other.field(&own).map(|v| v.sql)
                    })
                    .collect::<Result<_, _>>()?
            }
            On::Nothing => Vec::new(),
        };
        let order = other.order_by().map_or_else(Sql::default, |order| sql!(" ORDER BY {}", order));
        let among = if keys.is_empty() { Sql::default() } else { sql!("PARTITION BY {}", Sql::join(&keys, ", ")) };
        let place = other.window(sql!("row_number() OVER ({}{})", among, order));
        other.filter(sql!("({} <= {})", place, Sql::integer(self.most)));
        Ok(())
    }

    /// The fields of both sides that have to be equal.
    fn shared(&self, rows: &Pipeline<'_>, other: &Pipeline<'_>, names: &[Name]) -> Result<Vec<(Name, Name)>, Problem> {
        if !names.is_empty() {
            for name in names {
                rows.field(name)?;
                other.field(name).map_err(|p| Problem { message: format!("{} on the right side", p.message), ..p })?;
            }
            return Ok(names.iter().map(|n| (n.clone(), n.clone())).collect());
        }
        let both: Vec<(Name, Name)> = rows
            .visible()
            .filter_map(|l| {
                let r = other.visible().find(|r| same(&r.name, &l.name))?;
                let name = |n: &str| Name { parts: vec![n.to_owned()], at: self.at };
                Some((name(&l.name), name(&r.name)))
            })
            .collect();
        if both.is_empty() {
            Err(Problem::new(self.at, "the two sides have no field in common; write `on` and a condition"))
        } else {
            Ok(both)
        }
    }
}

impl Command for Join {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        let (mut other, named) = self.with.open(rows)?;
        self.at_most(rows, &mut other)?;
        let shared = match &self.on {
            On::Fields(names) => {
                rows.before_compute_of(&names.iter().collect::<Vec<_>>());
                let shared = self.shared(rows, &other, names)?;
                let pairs = shared.iter().map(|(l, r)| Ok((column(rows, l)?, column(&other, r)?))).collect::<Result<
                    Vec<_>,
                    Problem,
                >>(
                )?;
                Some(pairs)
            }
            _ => None,
        };
        let (left, right) = rows.sides(other);
        let right_name = self.right.clone().or_else(|| named.first().cloned());
        let (left_from, right_from) = (left.from, right.from);
        let left_columns: Vec<Column> = left.columns.into_iter().map(|c| c.qualified(self.left.as_slice())).collect();
        let right_columns: Vec<Column> =
            right.columns.into_iter().map(|c| c.qualified(self.right.as_slice()).qualified(&named)).collect();
        let find =
            |columns: &[Column], name: &str| columns.iter().find(|c| same(&c.name, name)).map(|c| c.sql().clone());
        // Everything both sides have, for the condition.
        let mut columns = left_columns.clone();
        for column in &right_columns {
            let taken = columns.iter().any(|c| same(&c.name, &column.name));
            let mut name = column.name.clone();
            if taken {
                name = format!("{}.{}", right_name.as_deref().unwrap_or("right"), column.name);
                while columns.iter().any(|c| same(&c.name, &name)) {
                    name = format!("right.{name}");
                }
            }
            columns.push(column.clone().named(name));
        }
        let condition = match (&shared, &self.on) {
            (Some(pairs), _) => {
                let equal: Vec<Sql> = pairs
                    .iter()
                    .filter_map(|(l, r)| Some(sql!("{} = {}", find(&left_columns, l)?, find(&right_columns, r)?)))
                    .collect();
                Some(Sql::join(&equal, " AND "))
            }
            (None, On::Condition(condition)) => {
                rows.joined(Sql::default(), columns.clone());
                Some(rows.condition(condition)?)
            }
            _ => None,
        };
        let (l, r) = (&left_from, &right_from);
        let from = match (&condition, self.how) {
            (None, _) => sql!("{} CROSS JOIN {}", l, r),
            (Some(on), How::Inner | How::Cross) => sql!("{} INNER JOIN {} ON {}", l, r, on),
            (Some(on), How::Left) => sql!("{} LEFT JOIN {} ON {}", l, r, on),
            (Some(on), How::Right) => sql!("{} RIGHT JOIN {} ON {}", l, r, on),
            (Some(on), How::Full) => sql!("{} FULL JOIN {} ON {}", l, r, on),
            (Some(on), How::Semi) => sql!("{} LEFT SEMI JOIN {} ON {}", l, r, on),
            (Some(on), How::Anti) => sql!("{} LEFT ANTI JOIN {} ON {}", l, r, on),
        };
        if matches!(self.how, How::Semi | How::Anti) {
            rows.joined(from, left_columns);
        } else if let Some(pairs) = shared {
            let merged = merged(self, &left_columns, &right_columns, &pairs);
            rows.joined(from, left_columns);
            merged.into_iter().for_each(|c| rows.put(c));
        } else {
            rows.joined(from, columns);
        }
        Ok(())
    }
}

fn column(rows: &Pipeline<'_>, name: &Name) -> Result<String, Problem> {
    rows.column_of(name)?.ok_or_else(|| {
        Problem::new(name.at, format!("`{}` is inside a field; make a field of it with `eval` first", name.text()))
    })
}

/// What both sides have, once, and what only the right one has.
fn merged(join: &Join, left: &[Column], right: &[Column], keys: &[(String, String)]) -> Vec<Column> {
    let merge = |r: &Column| {
        let Some(l) = left.iter().find(|l| !l.is_hidden() && same(&r.name, &l.name)) else { return Some(r.clone()) };
        let key = keys.iter().any(|(name, _)| same(name, &l.name));
        match (key, join.how) {
            // Which side has the row decides.
            (true, How::Full) => Some(Column::made(
                l.name.clone(),
                sql!("coalesce({}, {})", l.sql(), r.sql()),
                l.data_type.or(&r.data_type),
            )),
            (true, How::Right) => Some(r.clone().named(l.name.clone())),
            (true, _) => None,
            (false, _) => join.overwrite.then(|| r.clone().named(l.name.clone())),
        }
    };
    right.iter().filter_map(merge).collect()
}
