//! Conditions, conversions and arrays.

use super::Returns::{Common, First, Integer, Text};
use super::{ANY, Call, Function, of, same};
use crate::ast::{Kind, Target};
use crate::catalog::Type;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::time::Relative;
use crate::value::Value;

pub const FUNCTIONS: &[Function] = &[
    of("isnull", 1, 1, |c| Ok(boolean(sql!("({} IS NULL)", c.sql(0))))),
    of("isnotnull", 1, 1, |c| Ok(boolean(sql!("({} IS NOT NULL)", c.sql(0))))),
    of("ispresent", 1, 1, |c| Ok(boolean(sql!("({} IS NOT NULL)", c.sql(0))))),
    of("isempty", 1, 1, |c| Ok(boolean(sql!("({} IS NULL OR {} = '')", c.sql(0), c.text(0))))),
    of("isblank", 1, 1, |c| Ok(boolean(sql!("({} IS NULL OR btrim({}) = '')", c.sql(0), c.text(0))))),
    same("ifnull", 2, 2, "coalesce", Common),
    same("coalesce", 1, ANY, "coalesce", Common),
    same("nullif", 2, 2, "nullif", First),
    of("if", 3, 3, |c| {
        let condition = c.rows.condition(&c.exprs[0])?;
        let sql = sql!("CASE WHEN {} THEN {} ELSE {} END", condition, c.sql(1), c.sql(2));
        Ok(Value::new(sql, c.args[1].data_type.or(&c.args[2].data_type)))
    }),
    of("earliest", 2, 2, |c| since(c, true)),
    of("latest", 2, 2, |c| since(c, false)),
    of("cidrmatch", 2, 2, cidr),
    of("typeof", 1, 1, |c| {
        let name = match &c.args[0].data_type {
            Type::Text => sql!("'STRING'"),
            Type::Boolean => sql!("'BOOLEAN'"),
            Type::Date => sql!("'DATE'"),
            Type::Time => sql!("'TIME'"),
            Type::Timestamp | Type::Instant => sql!("'TIMESTAMP'"),
            Type::Interval => sql!("'INTERVAL'"),
            Type::Struct(_) => sql!("'STRUCT'"),
            Type::List(_) => sql!("'ARRAY'"),
            Type::Null => sql!("'UNDEFINED'"),
            Type::Integer | Type::Number | Type::Unknown => sql!("upper(arrow_typeof({}))", c.sql(0)),
        };
        Ok(Value::new(name, Type::Text))
    }),
    of("tostring", 1, 2, to_string),
    of("tonumber", 1, 2, |c| match c.exprs.get(1).map(|e| &e.kind) {
        Some(Kind::Integer(base)) if base != "10" => Err(c.wrong(1, "only the base 10 is supported")),
        _ => Ok(Value::new(sql!("TRY_CAST({} AS DOUBLE)", c.text(0)), Type::Number)),
    }),
    of("array", 0, ANY, |c| {
        let inner = c.args.iter().fold(Type::Null, |t, a| t.or(&a.data_type));
        let args: Vec<Sql> = c.args.iter().map(|a| a.sql.clone()).collect();
        Ok(Value::new(Sql::call("make_array", &args), Type::List(Box::new(inner))))
    }),
    same("array_length", 1, 1, "array_length", Integer),
    same("mvjoin", 2, 2, "array_to_string", Text),
    same("mvdedup", 1, 1, "array_distinct", First),
    of("mvindex", 2, 3, |c| {
        let inner = match &c.args[0].data_type {
            Type::List(inner) => inner.as_ref().clone(),
            _ => Type::Unknown,
        };
        // From 0, and from -1 at the end; SQL counts from 1.
        let place = |n: usize| sql!("CASE WHEN {} >= 0 THEN {} + 1 ELSE {} END", c.sql(n), c.sql(n), c.sql(n));
        Ok(if c.args.len() == 3 {
            Value::new(sql!("array_slice({}, {}, {})", c.sql(0), place(1), place(2)), c.args[0].data_type.clone())
        } else {
            Value::new(sql!("array_element({}, {})", c.sql(0), place(1)), inner)
        })
    }),
    of("split", 2, 2, |c| {
        Ok(Value::new(sql!("string_to_array({}, {})", c.text(0), c.text(1)), Type::List(Box::new(Type::Text))))
    }),
];

fn boolean(sql: Sql) -> Value {
    Value::new(sql, Type::Boolean)
}

/// `earliest('-7d@d', time)`: not before that time.
fn since(c: &Call<'_>, earliest: bool) -> Result<Value, Problem> {
    let written = c.literal(0, "a time, such as '-7d@d',")?;
    let bound = Relative::read(written, c.exprs[0].at)?.value(c.rows);
    let (time, bound) = c.rows.aligned(c.args[1].clone(), bound);
    Ok(boolean(if earliest {
        sql!("({} >= {})", time.sql, bound.sql)
    } else {
        sql!("({} <= {})", time.sql, bound.sql)
    }))
}

fn to_string(c: &Call<'_>) -> Result<Value, Problem> {
    if c.args.len() == 1 || c.args[0].data_type == Type::Boolean {
        return Ok(c.rows.cast(c.args[0].clone(), Target::Text));
    }
    let x = c.sql(0);
    let two = |n: Sql| sql!("lpad(CAST({} AS STRING), 2, '0')", n);
    let clock = |seconds: Sql| {
        let parts = [
            two(sql!("({} DIV 3600)", seconds)),
            two(sql!("(({} DIV 60) % 60)", seconds)),
            two(sql!("({} % 60)", seconds)),
        ];
        sql!("concat({}, ':', {}, ':', {})", parts[0], parts[1], parts[2])
    };
    let formats = ["binary", "hex", "duration", "duration_millis"];
    let format = c.literal(1, "a format")?;
    let sql = match format {
        "binary" => sql!("bin(CAST({} AS BIGINT))", x),
        "hex" => sql!("lower(hex(CAST({} AS BIGINT)))", x),
        "duration" => clock(sql!("CAST({} AS BIGINT)", x)),
        "duration_millis" => clock(sql!("(CAST({} AS BIGINT) DIV 1000)", x)),
        _ => return Err(Problem::no_such(c.exprs[1].at, "format", format, formats)),
    };
    Ok(Value::new(sql, Type::Text))
}

/// Whether an IPv4 address is in a range that is written as `10.0.0.0/8`.
fn cidr(c: &Call<'_>) -> Result<Value, Problem> {
    let written = c.literal(1, "a range, such as '10.0.0.0/8',")?;
    let range = written.split_once('/').and_then(|(address, bits)| {
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|b| *b <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some((u32::from(address) & mask, u32::from(address) | !mask))
    });
    let Some((low, high)) = range else {
        return Err(c.wrong(1, "expected a range of IPv4 addresses, such as '10.0.0.0/8',"));
    };
    let text = c.text(0);
    let byte = |n: i64| sql!("TRY_CAST(split_part({}, '.', {}) AS BIGINT)", text, Sql::integer(n));
    let number = sql!("({} * 16777216 + {} * 65536 + {} * 256 + {})", byte(1), byte(2), byte(3), byte(4));
    Ok(boolean(sql!(
        "CASE WHEN regexp_like({}, '^[0-9]{1,3}([.][0-9]{1,3}){3}$') THEN ({} BETWEEN {} AND {}) WHEN {} IS NOT NULL THEN false END",
        text,
        number,
        Sql::integer(low),
        Sql::integer(high),
        text
    )))
}
