//! Numbers.

use super::Returns::{Common, First, Integer, Number};
use super::{ANY, Call, Function, of, same};
use crate::catalog::Type;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::Value;

pub const FUNCTIONS: &[Function] = &[
    same("abs", 1, 1, "abs", First),
    same("acos", 1, 1, "acos", Number),
    same("asin", 1, 1, "asin", Number),
    of("atan", 1, 2, |c| {
        let args: Vec<Sql> = c.args.iter().map(|a| a.sql.clone()).collect();
        Ok(Value::new(Sql::call(if args.len() == 2 { "atan2" } else { "atan" }, &args), Type::Number))
    }),
    same("atan2", 2, 2, "atan2", Number),
    same("cbrt", 1, 1, "cbrt", Number),
    same("ceil", 1, 1, "ceil", Integer),
    same("ceiling", 1, 1, "ceil", Integer),
    same("cos", 1, 1, "cos", Number),
    same("cosh", 1, 1, "cosh", Number),
    same("cot", 1, 1, "cot", Number),
    of("crc32", 1, 1, |c| Ok(Value::new(Sql::call("crc32", &[c.text(0)]), Type::Integer))),
    same("degrees", 1, 1, "degrees", Number),
    of("e", 0, 0, |_| Ok(Value::new(sql!("exp(1)"), Type::Number))),
    same("exp", 1, 1, "exp", Number),
    same("expm1", 1, 1, "expm1", Number),
    same("floor", 1, 1, "floor", Integer),
    same("ln", 1, 1, "ln", Number),
    of("log", 1, 2, |c| {
        // With two arguments the first is the base.
        let sql =
            if c.args.len() == 2 { sql!("(ln({}) / ln({}))", c.sql(1), c.sql(0)) } else { sql!("ln({})", c.sql(0)) };
        Ok(Value::new(sql, Type::Number))
    }),
    same("log2", 1, 1, "log2", Number),
    same("log10", 1, 1, "log10", Number),
    same("max", 1, ANY, "greatest", Common),
    same("min", 1, ANY, "least", Common),
    of("mod", 2, 2, |c| operator(c, |a, b| sql!("({} % {})", a, b))),
    of("modulus", 2, 2, |c| operator(c, |a, b| sql!("({} % {})", a, b))),
    of("add", 2, 2, |c| operator(c, |a, b| sql!("({} + {})", a, b))),
    of("subtract", 2, 2, |c| operator(c, |a, b| sql!("({} - {})", a, b))),
    of("multiply", 2, 2, |c| operator(c, |a, b| sql!("({} * {})", a, b))),
    of("divide", 2, 2, |c| Ok(Value::new(sql!("({} / {})", c.sql(0), c.sql(1)), Type::Number))),
    same("pi", 0, 0, "pi", Number),
    same("pow", 2, 2, "power", Number),
    same("power", 2, 2, "power", Number),
    same("radians", 1, 1, "radians", Number),
    of("rand", 0, 1, |c| {
        let sql = if c.args.is_empty() { sql!("random()") } else { sql!("random({})", c.sql(0)) };
        Ok(Value::new(sql, Type::Number))
    }),
    of("rint", 1, 1, |c| Ok(Value::new(sql!("rint(CAST({} AS DOUBLE))", c.sql(0)), Type::Number))),
    of("round", 1, 2, |c| {
        let sql = if c.args.len() == 2 {
            sql!("round({}, CAST({} AS INT))", c.sql(0), c.sql(1))
        } else {
            sql!("round({})", c.sql(0))
        };
        Ok(Value::new(sql, c.args[0].data_type.clone()))
    }),
    same("sign", 1, 1, "signum", Number),
    same("signum", 1, 1, "signum", Number),
    same("sin", 1, 1, "sin", Number),
    same("sinh", 1, 1, "sinh", Number),
    same("sqrt", 1, 1, "sqrt", Number),
    same("tan", 1, 1, "tan", Number),
    of("truncate", 2, 2, |c| {
        let power = sql!("power(CAST(10 AS DOUBLE), {})", c.sql(1));
        let x = c.sql(0);
        Ok(Value::new(sql!("(signum({}) * floor(abs({}) * {}) / {})", x, x, power, power), Type::Number))
    }),
];

fn operator(c: &Call<'_>, make: fn(&Sql, &Sql) -> Sql) -> Result<Value, Problem> {
    let whole = c.args.iter().all(|a| a.data_type == Type::Integer);
    Ok(Value::new(make(c.sql(0), c.sql(1)), if whole { Type::Integer } else { Type::Number }))
}
