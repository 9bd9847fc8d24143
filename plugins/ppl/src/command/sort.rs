//! `sort`: the order of the rows, null before everything else.

use super::{Command, Read};
use crate::ast::Name;
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::field;
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};

#[derive(Debug)]
struct Sort {
    count: u64,
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    field: Name,
    as_: As,
    descending: bool,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Itself,
    Text,
    Number,
    Address,
}

/// `sort [<count>] <[+|-] field | field [asc|a|desc|d]> [, …] [desc|d]`; a field may be in `auto( )`, `str( )`, `num( )` or `ip( )`.
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let mut count = 0;
    if c.option("count") || matches!(c.peek().kind, Kind::Integer(_)) {
        count = c.integer("a number of rows")?;
    } else if c.is("-") && matches!(c.ahead(1).kind, Kind::Integer(_)) {
        // Less than none is all.
        c.next();
        c.next();
    }
    let (mut signs, mut words) = (None, None);
    let mut keys = Vec::new();
    loop {
        let at = c.start();
        let minus = c.eat("-");
        let signed = minus || c.eat("+");
        let (as_, field) = key(c)?;
        let word = ["asc", "a", "desc", "d"].into_iter().find(|w| c.is_word(w));
        if word.is_some() {
            c.next();
        }
        signs = signs.or(signed.then_some(at));
        words = words.or(word.map(|_| at));
        if signs.is_some() && words.is_some() {
            return Err(Problem::new(
                at,
                "`+` and `-` cannot stand beside `asc` and `desc`; use one of the two ways for all fields",
            ));
        }
        keys.push(Key { field, as_, descending: minus || matches!(word, Some("desc" | "d")) });
        if !c.eat(",") && !matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_) | Kind::Symbol("+" | "-")) {
            return Ok(Box::new(Sort { count, keys }));
        }
    }
}

fn key(c: &mut Cursor<'_>) -> Result<(As, Name), Problem> {
    let as_ = match &c.peek().kind {
        Kind::Word(word) if c.symbol_ahead(1, "(") => match word.to_ascii_lowercase().as_str() {
            "auto" => As::Itself,
            "str" => As::Text,
            "num" => As::Number,
            "ip" => As::Address,
            _ => return Err(Problem::no_such(c.start(), "way to sort", word, ["auto", "str", "num", "ip"])),
        },
        _ => return Ok((As::Itself, field(c)?)),
    };
    c.next();
    c.next();
    let field = field(c)?;
    c.expect(")", "behind the field")?;
    Ok((as_, field))
}

impl Command for Sort {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_sort();
        let mut keys = Vec::new();
        for key in &self.keys {
            let direct = rows.column_of(&key.field)?;
            let column = match (key.as_, direct) {
                (As::Itself, Some(column)) => column,
                _ => {
                    rows.before_compute_of(&[&key.field]);
                    let value = rows.field(&key.field)?;
                    let sql = match key.as_ {
                        As::Itself => value.sql,
                        As::Text if value.data_type == Type::Text => value.sql,
                        As::Text => sql!("CAST({} AS STRING)", value.sql),
                        As::Number if value.data_type.is_number() => value.sql,
                        As::Number => sql!("TRY_CAST({} AS DOUBLE)", value.sql),
                        As::Address => address(&value.sql),
                    };
                    rows.hidden(sql)
                }
            };
            keys.push((column, key.descending));
        }
        rows.order(keys);
        if self.count > 0 {
            rows.limit(self.count, 0);
        }
        Ok(())
    }
}

/// Something that has the order of IPv4 addresses; what is none comes first.
fn address(text: &Sql) -> Sql {
    let text = sql!("CAST({} AS STRING)", text);
    let parts: Vec<Sql> =
        (1..=4).map(|n: i64| sql!("lpad(split_part({}, '.', {}), 3, '0')", text, Sql::integer(n))).collect();
    let all = Sql::call("concat", &parts);
    sql!("CASE WHEN regexp_like({}, '^[0-9]{1,3}([.][0-9]{1,3}){3}$') THEN {} ELSE {} END", text, all, text)
}
