//! Functions of one row: PPL's names, and SQL for each.

mod math;
mod other;
mod text;
pub mod time;

use crate::ast::{Expr, Kind};
use crate::catalog::Type;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::Sql;
use crate::value::Value;

/// A function.
pub struct Function {
    name: &'static str,
    /// How many arguments it takes.
    takes: std::ops::RangeInclusive<usize>,
    make: Make,
}

enum Make {
    /// SQL has it, by this name.
    Same(&'static str, Returns),
    /// It is made of others.
    Of(fn(&Call<'_>) -> Result<Value, Problem>),
}

#[derive(Clone, Copy)]
enum Returns {
    Text,
    Integer,
    Number,
    /// What its first argument is.
    First,
    /// What its arguments have in common.
    Common,
}

const fn same(name: &'static str, least: usize, most: usize, sql: &'static str, returns: Returns) -> Function {
    Function { name, takes: least..=most, make: Make::Same(sql, returns) }
}

const fn of(name: &'static str, least: usize, most: usize, make: fn(&Call<'_>) -> Result<Value, Problem>) -> Function {
    Function { name, takes: least..=most, make: Make::Of(make) }
}

/// As many arguments as one likes.
const ANY: usize = 1000;

/// A call of a function.
pub struct Call<'a> {
    /// The rows that it is a part of.
    pub rows: &'a Pipeline<'a>,
    /// Its name, in lower case.
    pub name: &'a str,
    /// What it is given, as it is written.
    pub exprs: &'a [Expr],
    /// The same in SQL.
    pub args: Vec<Value>,
}

impl Call<'_> {
    /// The SQL of an argument.
    pub fn sql(&self, n: usize) -> &Sql {
        &self.args[n].sql
    }

    /// An argument as text.
    pub fn text(&self, n: usize) -> Sql {
        crate::value::as_text(&self.args[n])
    }

    /// An argument that has to be a text in quotes.
    pub fn literal(&self, n: usize, what: &str) -> Result<&str, Problem> {
        match &self.exprs[n].kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong(n, &format!("expected {what} in quotes"))),
        }
    }

    /// A problem with an argument.
    pub fn wrong(&self, n: usize, message: &str) -> Problem {
        Problem::new(self.exprs[n].at, format!("{message} in `{}`", self.name))
    }
}

fn all() -> impl Iterator<Item = &'static Function> {
    [math::FUNCTIONS, text::FUNCTIONS, time::FUNCTIONS, other::FUNCTIONS].into_iter().flatten()
}

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|f| f.name)
}

/// Functions of PPL that SQL has nothing for.
const MISSING: &[&str] = &[
    "addtime",
    "conv",
    "filter",
    "forall",
    "geoip",
    "get_format",
    "json",
    "json_append",
    "json_array",
    "json_array_length",
    "json_delete",
    "json_extend",
    "json_extract",
    "json_keys",
    "json_object",
    "json_set",
    "json_valid",
    "maketime",
    "map_concat",
    "match",
    "match_bool_prefix",
    "match_phrase",
    "match_phrase_prefix",
    "multi_match",
    "mvappend",
    "mvfind",
    "mvmap",
    "mvzip",
    "period_add",
    "period_diff",
    "query_string",
    "reduce",
    "sec_to_time",
    "simple_query_string",
    "subtime",
    "time_format",
    "time_to_sec",
    "timediff",
    "to_seconds",
    "transform",
    "wildcard_query",
    "yearweek",
];

/// The SQL of a call.
///
/// # Errors
/// There is no such function, or its arguments do not fit.
pub fn call(rows: &Pipeline<'_>, expr: &Expr, name: &str, exprs: &[Expr]) -> Result<Value, Problem> {
    let Some(function) = all().find(|f| f.name == name) else {
        if crate::command::is_aggregate(name) {
            return Err(Problem::new(expr.at, format!("`{name}` makes one value of many rows; use it in `stats`")));
        }
        if MISSING.contains(&name) {
            return Err(Problem::new(expr.at, format!("the function `{name}` is not supported yet")));
        }
        return Err(Problem::no_such(expr.at, "function", name, all().map(|f| f.name)));
    };
    if !function.takes.contains(&exprs.len()) {
        let (least, most) = function.takes.clone().into_inner();
        let many = match (least, most) {
            (a, b) if a == b => a.to_string(),
            (a, ANY) => format!("at least {a}"),
            (a, b) => format!("{a} to {b}"),
        };
        let s = if many == "1" { "" } else { "s" };
        return Err(Problem::new(expr.at, format!("`{name}` takes {many} argument{s}, here it has {}", exprs.len())));
    }
    let args = exprs.iter().map(|e| rows.value(e)).collect::<Result<Vec<_>, _>>()?;
    match function.make {
        Make::Of(make) => make(&Call { rows, name, exprs, args }),
        Make::Same(sql, returns) => {
            let data_type = match returns {
                Returns::Text => Type::Text,
                Returns::Integer => Type::Integer,
                Returns::Number => Type::Number,
                Returns::First => args[0].data_type.clone(),
                Returns::Common => args.iter().fold(Type::Null, |t, a| t.or(&a.data_type)),
            };
            let args: Vec<Sql> = args
                .into_iter()
                .map(|a| {
                    if matches!(returns, Returns::Text) && a.data_type == Type::Unknown {
                        crate::value::as_text(&a)
                    } else {
                        a.sql
                    }
                })
                .collect();
            Ok(Value::new(Sql::call(sql, &args), data_type))
        }
    }
}
