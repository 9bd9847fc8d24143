//! Texts.

use super::Returns::{Integer, Text};
use super::{ANY, Call, Function, of, same};
use crate::ast::Kind;
use crate::catalog::Type;
use crate::pattern;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::Value;

pub const FUNCTIONS: &[Function] = &[
    same("ascii", 1, 1, "ascii", Integer),
    of("concat", 1, ANY, |c| Ok(text(Sql::call("concat", &texts(c))))),
    of("concat_ws", 2, ANY, |c| Ok(text(Sql::call("concat_ws", &texts(c))))),
    of("length", 1, 1, |c| Ok(Value::new(Sql::call("character_length", &[c.text(0)]), Type::Integer))),
    of("like", 2, 3, |c| {
        let cased = match c.exprs.get(2).map(|e| &e.kind) {
            None => true,
            Some(Kind::Boolean(cased)) => *cased,
            Some(_) => return Err(c.wrong(2, "expected true or false")),
        };
        let (a, b) = (c.text(0), c.text(1));
        Ok(boolean(if cased { sql!("({} LIKE {})", a, b) } else { sql!("({} ILIKE {})", a, b) }))
    }),
    of("ilike", 2, 2, |c| Ok(boolean(sql!("({} ILIKE {})", c.text(0), c.text(1))))),
    of("locate", 2, 3, locate),
    same("lower", 1, 1, "lower", Text),
    same("upper", 1, 1, "upper", Text),
    same("ltrim", 1, 1, "ltrim", Text),
    same("rtrim", 1, 1, "rtrim", Text),
    same("trim", 1, 1, "btrim", Text),
    of("replace", 3, 3, replaced),
    of("regexp_replace", 3, 3, replaced),
    of("regexp_match", 2, 2, |c| Ok(boolean(sql!("regexp_like({}, {})", c.text(0), expression(c, 1)?)))),
    same("reverse", 1, 1, "reverse", Text),
    of("left", 2, 2, |c| Ok(text(sql!("left({}, {})", c.text(0), c.sql(1))))),
    of("right", 2, 2, |c| Ok(text(sql!("right({}, {})", c.text(0), c.sql(1))))),
    of("substring", 2, 3, substring),
    of("substr", 2, 3, substring),
    of("strcmp", 2, 2, |c| {
        let (a, b) = (c.text(0), c.text(1));
        Ok(Value::new(
            sql!("CASE WHEN {} < {} THEN -1 WHEN {} = {} THEN 0 WHEN {} > {} THEN 1 END", a, b, a, b, a, b),
            Type::Integer,
        ))
    }),
    of("md5", 1, 1, |c| Ok(text(Sql::call("md5", &[c.text(0)])))),
    of("sha1", 1, 1, |c| Ok(text(Sql::call("sha1", &[c.text(0)])))),
    of("sha2", 2, 2, |c| Ok(text(sql!("sha2({}, CAST({} AS INT))", c.text(0), c.sql(1))))),
];

fn text(sql: Sql) -> Value {
    Value::new(sql, Type::Text)
}

fn boolean(sql: Sql) -> Value {
    Value::new(sql, Type::Boolean)
}

fn texts(c: &Call<'_>) -> Vec<Sql> {
    (0..c.args.len()).map(|n| c.text(n)).collect()
}

/// Places count from 1; 0 is none.
fn locate(c: &Call<'_>) -> Result<Value, Problem> {
    let (part, all) = (c.text(0), c.text(1));
    let sql = match c.args.get(2) {
        None => sql!("strpos({}, {})", all, part),
        Some(from) => {
            let place = sql!("strpos(substr({}, {}), {})", all, from.sql, part);
            sql!("CASE WHEN {} = 0 THEN 0 ELSE ({} + {} - 1) END", place, place, from.sql)
        }
    };
    Ok(Value::new(sql, Type::Integer))
}

fn substring(c: &Call<'_>) -> Result<Value, Problem> {
    let start = c.sql(1);
    let all = c.text(0);
    // Below zero it counts from the end.
    let start = match &c.exprs[1].kind {
        Kind::Negative(_) => sql!("(character_length({}) + {} + 1)", all, start),
        _ => start.clone(),
    };
    Ok(text(match c.args.get(2) {
        None => sql!("substr({}, {})", all, start),
        Some(length) => sql!("substr({}, {}, {})", all, start, length.sql),
    }))
}

/// A regular expression; a literal is looked at first.
fn expression(c: &Call<'_>, n: usize) -> Result<Sql, Problem> {
    match &c.exprs[n].kind {
        Kind::Text(written) => Ok(Sql::text(&pattern::Regex::read(written, c.exprs[n].at)?.text)),
        _ => Ok(c.text(n)),
    }
}

fn replaced(c: &Call<'_>) -> Result<Value, Problem> {
    let by = match &c.exprs[2].kind {
        Kind::Text(written) => Sql::text(&pattern::replacement(written)),
        _ => c.text(2),
    };
    Ok(text(sql!("regexp_replace({}, {}, {}, 'g')", c.text(0), expression(c, 1)?, by)))
}
