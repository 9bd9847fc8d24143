//! Aggregates: PPL's names, and SQL for each.

use crate::ast::{Expr, Kind as Ast};
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::expression;
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::Value;

/// An aggregate as it is written.
#[derive(Debug)]
pub struct Aggregate {
    at: usize,
    what: What,
    args: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Count,
    Sum,
    Average,
    Max,
    Min,
    VarSample,
    VarPopulation,
    DevSample,
    DevPopulation,
    Distinct,
    DistinctNearly,
    Take,
    Percentile,
    Median,
    Earliest,
    Latest,
    First,
    Last,
    List,
    Values,
}

/// Names, and how many arguments each takes.
const NAMES: &[(&str, What, usize, usize)] = &[
    ("count", What::Count, 0, 1),
    ("c", What::Count, 0, 1),
    ("sum", What::Sum, 1, 1),
    ("avg", What::Average, 1, 1),
    ("max", What::Max, 1, 1),
    ("min", What::Min, 1, 1),
    ("var_samp", What::VarSample, 1, 1),
    ("var_pop", What::VarPopulation, 1, 1),
    ("stddev_samp", What::DevSample, 1, 1),
    ("stddev_pop", What::DevPopulation, 1, 1),
    ("distinct_count", What::Distinct, 1, 1),
    ("dc", What::Distinct, 1, 1),
    ("distinct_count_approx", What::DistinctNearly, 1, 1),
    ("take", What::Take, 1, 2),
    ("percentile", What::Percentile, 2, 3),
    ("percentile_approx", What::Percentile, 2, 3),
    ("median", What::Median, 1, 1),
    ("earliest", What::Earliest, 1, 2),
    ("latest", What::Latest, 1, 2),
    ("first", What::First, 1, 1),
    ("last", What::Last, 1, 1),
    ("list", What::List, 1, 1),
    ("values", What::Values, 1, 1),
];

/// Whether there is an aggregate of this name, in lower case.
pub fn is_one(name: &str) -> bool {
    NAMES.iter().any(|(known, ..)| *known == name)
}

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, ..)| *name)
}

/// `perc95`, `p99`: the digits behind the letters.
fn shortcut(word: &str) -> Option<&str> {
    let digits = word.strip_prefix("perc").or_else(|| word.strip_prefix('p'))?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

/// Reads an aggregate.
///
/// # Errors
/// It is none.
pub fn read(c: &mut Cursor<'_>) -> Result<Aggregate, Problem> {
    let at = c.start();
    let Kind::Word(word) = c.peek().kind.clone() else { return Err(c.wrong("an aggregate, such as count()")) };
    let word = word.to_ascii_lowercase();
    if let Some(digits) = shortcut(&word) {
        c.next();
        let mut percent = digits.to_owned();
        if c.is(".") && c.adjoins() {
            c.next();
            percent = format!("{percent}.{}", c.integer("the percent's fraction")?);
        }
        c.expect("(", "and a field")?;
        let value = argument(c)?;
        c.expect(")", "behind the field")?;
        let percent = Expr { kind: Ast::Decimal(percent.clone()), at, written: percent };
        return Ok(Aggregate { at, what: What::Percentile, args: vec![value, percent] });
    }
    let Some((name, what, least, most)) = NAMES.iter().find(|(name, ..)| *name == word) else {
        return Err(Problem::no_such(at, "aggregate", &word, NAMES.iter().map(|(name, ..)| *name)));
    };
    c.next();
    let mut args = Vec::new();
    if c.is("(") || *what != What::Count {
        c.expect("(", "and what to aggregate")?;
        let all = c.is("*") && *what == What::Count;
        if all {
            c.next();
        } else if !c.is(")") {
            args.push(argument(c)?);
            while c.eat(",") {
                args.push(expression(c)?);
            }
        }
        c.expect(")", "or `,`")?;
    }
    if args.len() < *least || args.len() > *most {
        let many = if least == most { least.to_string() } else { format!("{least} to {most}") };
        return Err(Problem::new(
            at,
            format!("`{name}` takes {many} argument{}, here it has {}", if many == "1" { "" } else { "s" }, args.len()),
        ));
    }
    Ok(Aggregate { at, what: *what, args })
}

/// An expression, perhaps in `eval( )`.
fn argument(c: &mut Cursor<'_>) -> Result<Expr, Problem> {
    if c.is_word("eval") && c.symbol_ahead(1, "(") {
        c.next();
        c.next();
        let inner = expression(c)?;
        c.expect(")", "behind the expression")?;
        return Ok(inner);
    }
    expression(c)
}

impl Aggregate {
    /// Its SQL over rows in this order.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn value(&self, rows: &Pipeline<'_>, order: Option<&Sql>) -> Result<Value, Problem> {
        let Some(first) = self.args.first() else {
            return Ok(Value::new(sql!("count(*)").from(self.at), Type::Integer));
        };
        let of = rows.value(first)?;
        let x = &of.sql;
        let numeric = || match of.data_type {
            Type::Integer | Type::Number | Type::Unknown | Type::Null => Ok(x.clone()),
            Type::Text => Ok(sql!("CAST({} AS DOUBLE)", x)),
            _ => Err(Problem::new(
                first.at,
                format!("expected a number, `{}` is {}", first.written, of.data_type.called()),
            )),
        };
        let (sql, data_type) = match self.what {
            // What is true counts, not what is known.
            What::Count if of.data_type == Type::Boolean => (sql!("count(CASE WHEN {} THEN 1 END)", x), Type::Integer),
            What::Count => (sql!("count({})", x), Type::Integer),
            What::Sum => (sql!("sum({})", numeric()?), of.data_type.clone()),
            What::Average => (sql!("avg({})", numeric()?), Type::Number),
            What::Max => (sql!("max({})", x), of.data_type.clone()),
            What::Min => (sql!("min({})", x), of.data_type.clone()),
            What::VarSample => (sql!("var_samp({})", numeric()?), Type::Number),
            What::VarPopulation => (sql!("var_pop({})", numeric()?), Type::Number),
            What::DevSample => (sql!("stddev_samp({})", numeric()?), Type::Number),
            What::DevPopulation => (sql!("stddev_pop({})", numeric()?), Type::Number),
            What::Distinct => (sql!("count(DISTINCT {})", x), Type::Integer),
            What::DistinctNearly => (sql!("approx_distinct({})", x), Type::Integer),
            What::Take => {
                let count = match self.args.get(1).map(|e| &e.kind) {
                    None => "10",
                    Some(Ast::Integer(digits)) => digits.as_str(),
                    Some(_) => return Err(Problem::new(self.args[1].at, "expected a whole number of values")),
                };
                let some = sql!("array_slice({}, 1, {})", collected(x, order, false), Sql::number(count));
                (sql!("coalesce({}, make_array())", some), Type::List(Box::new(of.data_type.clone())))
            }
            What::Percentile | What::Median => {
                let percent = match self.args.get(1) {
                    None => 50.0,
                    Some(Expr { kind: Ast::Integer(digits) | Ast::Decimal(digits), .. }) => {
                        digits.parse::<f64>().unwrap_or(-1.0)
                    }
                    Some(_) => -1.0,
                };
                if !(0.0..=100.0).contains(&percent) {
                    return Err(Problem::new(
                        self.args.get(1).map_or(self.at, |e| e.at),
                        "expected a percent, a number from 0 to 100",
                    ));
                }
                let share = Sql::number(&format!("{}", percent / 100.0));
                (sql!("approx_percentile_cont({}, {})", numeric()?, share), of.data_type.clone())
            }
            What::Earliest | What::Latest => {
                let by = match self.args.get(1) {
                    Some(by) => rows.value(by)?.sql,
                    None => rows.field(&crate::ast::Name { parts: vec!["@timestamp".to_owned()], at: self.at })?.sql,
                };
                let filter = sql!("FILTER (WHERE {} IS NOT NULL)", by);
                let sql = if self.what == What::Earliest {
                    sql!("first_value({} ORDER BY {} ASC) {}", x, by, filter)
                } else {
                    sql!("last_value({} ORDER BY {} ASC) {}", x, by, filter)
                };
                (sql, of.data_type.clone())
            }
            What::First | What::Last => {
                let filter = sql!("FILTER (WHERE {} IS NOT NULL)", x);
                let inside = order.map_or_else(|| x.clone(), |order| sql!("{} ORDER BY {}", x, order));
                let sql = if self.what == What::First {
                    sql!("first_value({}) {}", inside, filter)
                } else {
                    sql!("last_value({}) {}", inside, filter)
                };
                (sql, of.data_type.clone())
            }
            What::List => {
                let all = collected(&crate::value::as_text(&of), order, false);
                (sql!("coalesce(array_slice({}, 1, 100), make_array())", all), Type::List(Box::new(Type::Text)))
            }
            What::Values => {
                let all = collected(&crate::value::as_text(&of), None, true);
                (sql!("coalesce(array_sort({}), make_array())", all), Type::List(Box::new(Type::Text)))
            }
        };
        Ok(Value::new(sql.from(self.at), data_type))
    }
}

/// All values that are not null.
fn collected(x: &Sql, order: Option<&Sql>, distinct: bool) -> Sql {
    let inside = match (order, distinct) {
        (_, true) => sql!("DISTINCT {}", x),
        (Some(order), _) => sql!("{} ORDER BY {}", x, order),
        _ => x.clone(),
    };
    sql!("array_agg({}) FILTER (WHERE {} IS NOT NULL)", inside, x)
}
