//! Expressions as SQL.

use crate::ast::{Expr, Kind, Name, Target, Temporal, Unit};
use crate::catalog::Type;
use crate::function;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::query::Query;
use crate::sql::{Sql, sql};

/// SQL with its type.
#[derive(Clone, Debug)]
pub struct Value {
    /// Closed: it can stand beside any operator.
    pub sql: Sql,
    /// As far as it is known.
    pub data_type: Type,
    /// No more than a column of what is read.
    pub direct: bool,
}

impl Value {
    /// A value that is more than a column.
    pub fn new(sql: Sql, data_type: Type) -> Value {
        Value { sql, data_type, direct: false }
    }
}

/// The names in an expression outside of its subqueries, and whether it has subqueries.
pub fn names<'e>(expr: &'e Expr, found: &mut Vec<&'e Name>, queries: &mut bool) {
    match &expr.kind {
        Kind::Name(name) => found.push(name),
        Kind::Exists(_) | Kind::Scalar(_) => *queries = true,
        Kind::InQuery(..) => {
            *queries = true;
            children(expr, &mut |e| names(e, found, queries));
        }
        _ => children(expr, &mut |e| names(e, found, queries)),
    }
}

/// The expressions inside one.
fn children<'e>(expr: &'e Expr, each: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        Kind::Name(_)
        | Kind::Text(_)
        | Kind::Integer(_)
        | Kind::Decimal(_)
        | Kind::Double(_)
        | Kind::Boolean(_)
        | Kind::Null
        | Kind::Temporal(..)
        | Kind::Exists(_)
        | Kind::Scalar(_) => {}
        Kind::Interval(e, _) | Kind::Not(e) | Kind::Negative(e) | Kind::IsNull(e) | Kind::Cast(e, _) => each(e),
        Kind::All(all) | Kind::Any(all) | Kind::InQuery(all, _) | Kind::Call(_, all) => all.iter().for_each(each),
        Kind::Xor(a, b) | Kind::Compare(a, _, b) | Kind::Like { text: a, pattern: b, .. } | Kind::Regexp(a, b) => {
            each(a);
            each(b);
        }
        Kind::Chain(first, rest) => {
            each(first);
            rest.iter().for_each(|(_, e)| each(e));
        }
        Kind::Between(a, b, c) => [a, b, c].into_iter().for_each(|e| each(e)),
        Kind::Among(e, all) => {
            each(e);
            all.iter().for_each(each);
        }
        Kind::Case(arms, otherwise) => {
            for (condition, value) in arms {
                each(condition);
                each(value);
            }
            if let Some(e) = otherwise {
                each(e);
            }
        }
    }
}

impl Pipeline<'_> {
    /// An expression that is true or false.
    ///
    /// # Errors
    /// A name in it is none, its types do not fit, or it is something else.
    pub fn condition(&self, expr: &Expr) -> Result<Sql, Problem> {
        let value = self.value(expr)?;
        match value.data_type {
            Type::Boolean | Type::Unknown | Type::Null => Ok(value.sql),
            other => Err(Problem::new(
                expr.at,
                format!(
                    "expected a condition here, `{}` is {}",
                    crate::problem::shortened(&expr.written),
                    other.called()
                ),
            )),
        }
    }

    /// An expression.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn value(&self, expr: &Expr) -> Result<Value, Problem> {
        let boolean = |sql: Sql| Value::new(sql, Type::Boolean);
        let mut value = match &expr.kind {
            Kind::Name(name) => return self.field(name),
            Kind::Text(text) => Value::new(Sql::text(text), Type::Text),
            Kind::Integer(digits) => Value::new(Sql::number(digits), Type::Integer),
            Kind::Decimal(digits) => Value::new(Sql::number(digits), Type::Number),
            Kind::Double(digits) => Value::new(sql!("CAST({} AS DOUBLE)", Sql::number(digits)), Type::Number),
            Kind::Boolean(true) => boolean(sql!("true")),
            Kind::Boolean(false) => boolean(sql!("false")),
            Kind::Null => Value::new(sql!("NULL"), Type::Null),
            Kind::Temporal(what, text) => match what {
                Temporal::Date => Value::new(sql!("CAST({} AS DATE)", Sql::text(text)), Type::Date),
                Temporal::Time => Value::new(sql!("CAST({} AS TIME)", Sql::text(text)), Type::Time),
                Temporal::Timestamp => Value::new(sql!("CAST({} AS TIMESTAMP)", Sql::text(text)), Type::Timestamp),
            },
            Kind::Interval(value, unit) => self.interval(value, *unit)?,
            Kind::All(all) => boolean(self.terms(all, " AND ")?),
            Kind::Any(all) => boolean(self.terms(all, " OR ")?),
            Kind::Xor(a, b) => boolean(sql!("({} <> {})", self.condition(a)?, self.condition(b)?)),
            Kind::Not(inner) => boolean(sql!("(NOT {})", self.condition(inner)?)),
            Kind::Negative(inner) => {
                let inner = self.value(inner)?;
                Value::new(sql!("(- {})", inner.sql), inner.data_type)
            }
            Kind::Chain(first, rest) => self.chain(first, rest)?,
            Kind::Compare(a, op, b) => {
                let (a, b) = self.aligned(self.value(a)?, self.value(b)?);
                boolean(compare(&a, op, &b))
            }
            Kind::Like { text, pattern, cased } => {
                let (text, pattern) = (self.text(text)?, self.text(pattern)?);
                boolean(if *cased { sql!("({} LIKE {})", text, pattern) } else { sql!("({} ILIKE {})", text, pattern) })
            }
            Kind::Regexp(text, pattern) => boolean(Sql::call("regexp_like", &[self.text(text)?, self.text(pattern)?])),
            Kind::Between(value, low, high) => {
                let value = self.value(value)?;
                let (a, low) = self.aligned(value.clone(), self.value(low)?);
                let (b, high) = self.aligned(value, self.value(high)?);
                boolean(sql!("({} >= {} AND {} <= {})", a.sql, low.sql, b.sql, high.sql))
            }
            Kind::Among(value, all) => {
                let mut value = self.value(value)?;
                let mut items = Vec::new();
                for item in all {
                    let (same, item) = self.aligned(value, self.value(item)?);
                    value = same;
                    items.push(item.sql);
                }
                boolean(sql!("({} IN ({}))", value.sql, Sql::join(&items, ", ")))
            }
            Kind::InQuery(left, query) => {
                let values: Vec<Sql> = left.iter().map(|e| self.value(e).map(|v| v.sql)).collect::<Result<_, _>>()?;
                boolean(self.in_query(expr.at, &values, query)?)
            }
            Kind::Exists(query) => boolean(sql!("EXISTS ({})", self.inner(query)?.0)),
            Kind::Scalar(query) => {
                let (sql, columns) = self.inner(query)?;
                let [column] = columns.as_slice() else {
                    return Err(Problem::new(
                        expr.at,
                        format!("expected a subquery with one field, it has {}; end it with `| fields`", columns.len()),
                    ));
                };
                Value::new(sql!("({})", sql), column.data_type.clone())
            }
            Kind::IsNull(inner) => boolean(sql!("({} IS NULL)", self.value(inner)?.sql)),
            Kind::Case(arms, otherwise) => self.case(arms, otherwise.as_deref())?,
            Kind::Cast(inner, target) => {
                let inner = self.value(inner)?;
                self.cast(inner, *target)
            }
            Kind::Call(name, args) => function::call(self, expr, name, args)?,
        };
        value.sql = value.sql.from(expr.at);
        Ok(value)
    }

    fn terms(&self, all: &[Expr], between: &'static str) -> Result<Sql, Problem> {
        let terms: Vec<Sql> = all.iter().map(|e| self.condition(e)).collect::<Result<_, _>>()?;
        Ok(sql!("({})", Sql::join(&terms, between)))
    }

    /// `IN` of one value, or of several that have to be in one row together.
    pub fn in_query(&self, at: usize, values: &[Sql], query: &Query) -> Result<Sql, Problem> {
        let (inner, columns) = self.inner(query)?;
        if columns.len() != values.len() {
            let many = if values.len() == 1 { "one field".to_owned() } else { format!("{} fields", values.len()) };
            return Err(Problem::new(
                at,
                format!("expected a subquery with {many}, it has {}; end it with `| fields`", columns.len()),
            ));
        }
        if let [value] = values {
            return Ok(sql!("({} IN ({}))", value, inner));
        }
        let named: Vec<Sql> =
            values.iter().enumerate().map(|(n, v)| sql!("{}, {}", Sql::text(&format!("c{n}")), v)).collect();
        let fields: Vec<Sql> = columns
            .iter()
            .enumerate()
            .map(|(n, c)| sql!("{}, {}", Sql::text(&format!("c{n}")), Sql::name(&c.name)))
            .collect();
        Ok(sql!(
            "(named_struct({}) IN (SELECT named_struct({}) FROM ({})))",
            Sql::join(&named, ", "),
            Sql::join(&fields, ", "),
            inner
        ))
    }

    /// An expression as text.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn text(&self, expr: &Expr) -> Result<Sql, Problem> {
        Ok(as_text(&self.value(expr)?))
    }

    fn chain(&self, first: &Expr, rest: &[(&'static str, Expr)]) -> Result<Value, Problem> {
        let mut left = self.value(first)?;
        // Texts are put one behind the other, not added.
        let mut texts = vec![left.sql.clone()];
        for (op, right_expr) in rest {
            let right = self.value(right_expr)?;
            let (a, b) = (&left.data_type, &right.data_type);
            if *op == "+" && *a == Type::Text && *b == Type::Text {
                texts.push(right.sql);
                left = Value::new(Sql::call("concat", &texts), Type::Text);
                continue;
            }
            if let Some(bad) = [a, b].into_iter().find(|t| matches!(t, Type::Boolean | Type::Struct(_) | Type::List(_)))
            {
                return Err(Problem::new(
                    right_expr.at,
                    format!("`{op}` takes numbers, dates and intervals, not {}", bad.called()),
                ));
            }
            let data_type = match (a, *op, b) {
                (Type::Integer, "+" | "-" | "*" | "%", Type::Integer) => Type::Integer,
                (a, "+" | "-", Type::Interval) if a.is_dated() => a.clone(),
                (a, "-", b) if a.is_dated() && b.is_dated() => Type::Interval,
                (a, _, b) if a.is_number() && b.is_number() => Type::Number,
                _ => Type::Unknown,
            };
            let number = |v: &Value, other: &Type| match v.data_type {
                Type::Text if other.is_number() => sql!("CAST({} AS DOUBLE)", v.sql),
                _ => v.sql.clone(),
            };
            let (l, r) = (number(&left, b), number(&right, a));
            let sql = match *op {
                "+" => sql!("{} + {}", l, r),
                "-" => sql!("{} - {}", l, r),
                "*" => sql!("{} * {}", l, r),
                "/" => sql!("{} / {}", l, r),
                _ => sql!("{} % {}", l, r),
            };
            // Left open: the operators of a chain bind alike, and a long one must not nest.
            left = Value::new(sql, data_type);
        }
        Ok(Value { sql: sql!("({})", left.sql), ..left })
    }

    /// Both sides of a comparison, times on the same clock: what is written without a zone is in the session's.
    pub fn aligned(&self, a: Value, b: Value) -> (Value, Value) {
        let wall = |v: &Value| matches!(v.data_type, Type::Timestamp | Type::Date | Type::Text);
        if a.data_type == Type::Instant && wall(&b) {
            return if b.direct { (self.local(a), b) } else { (a, self.instant(b)) };
        }
        if b.data_type == Type::Instant && wall(&a) {
            return if a.direct { (a, self.local(b)) } else { (self.instant(a), b) };
        }
        (a, b)
    }

    /// A point in time as the clock of the session's zone shows it.
    #[must_use]
    pub fn local(&self, value: Value) -> Value {
        if value.data_type != Type::Instant {
            return value;
        }
        let zone = Sql::text(&self.world.session.time_zone);
        Value::new(sql!("to_local_time(({} AT TIME ZONE {}))", value.sql, zone), Type::Timestamp)
    }

    /// What the clock of the session's zone shows, as a point in time.
    fn instant(&self, value: Value) -> Value {
        let zone = Sql::text(&self.world.session.time_zone);
        Value::new(sql!("(CAST({} AS TIMESTAMP) AT TIME ZONE {})", value.sql, zone), Type::Instant)
    }

    /// A date and time on the session's clock.
    #[must_use]
    pub fn timestamp(&self, value: Value) -> Value {
        match value.data_type {
            Type::Instant => self.local(value),
            Type::Timestamp => value,
            _ => Value::new(sql!("CAST({} AS TIMESTAMP)", value.sql), Type::Timestamp),
        }
    }

    fn interval(&self, value: &Expr, unit: Unit) -> Result<Value, Problem> {
        let (name, times) = unit.in_sql();
        let negative = match &value.kind {
            Kind::Negative(inner) => matches!(inner.kind, Kind::Integer(_)),
            _ => false,
        };
        let literal = match &value.kind {
            Kind::Integer(digits) => Some(digits),
            Kind::Text(digits)
                if !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit()) =>
            {
                Some(digits)
            }
            Kind::Negative(inner) => match &inner.kind {
                Kind::Integer(digits) => Some(digits),
                _ => None,
            },
            _ => None,
        };
        if let Some(count) = literal.and_then(|d| d.parse::<i64>().ok()).filter(|n| *n < 1 << 40) {
            let count = count * i64::from(times) * if negative { -1 } else { 1 };
            return Ok(Value::new(interval_of(count, name), Type::Interval));
        }
        let given = self.value(value)?;
        if !matches!(given.data_type, Type::Integer | Type::Unknown) {
            return Err(Problem::new(
                value.at,
                format!("expected a whole number of units, this is {}", given.data_type.called()),
            ));
        }
        let count = sql!("CAST(({} * {}) AS INT)", given.sql, Sql::integer(times));
        let zero = || sql!("CAST(0 AS INT)");
        let fraction = |n: &'static str| sql!("({} / CAST({} AS DOUBLE))", given.sql, Sql::number(n));
        let mut parts = [zero(), zero(), zero(), zero(), zero(), zero(), sql!("0.0")];
        let place = match name {
            "YEAR" => 0,
            "MONTH" => 1,
            "DAY" => 3,
            "HOUR" => 4,
            "MINUTE" => 5,
            _ => 6,
        };
        parts[place] = match name {
            "SECOND" => sql!("CAST({} AS DOUBLE)", given.sql),
            "MILLISECOND" => fraction("1000"),
            "MICROSECOND" => fraction("1000000"),
            _ => count,
        };
        Ok(Value::new(Sql::call("make_interval", &parts), Type::Interval))
    }

    fn case(&self, arms: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Result<Value, Problem> {
        let mut data_type = Type::Null;
        let mut whens = Vec::new();
        for (condition, value) in arms {
            let condition = self.condition(condition)?;
            let value = self.value(value)?;
            data_type = data_type.or(&value.data_type);
            whens.push(sql!("WHEN {} THEN {}", condition, value.sql));
        }
        let mut sql = sql!("CASE {}", Sql::join(&whens, " "));
        if let Some(otherwise) = otherwise {
            let value = self.value(otherwise)?;
            data_type = data_type.or(&value.data_type);
            sql = sql!("{} ELSE {}", sql, value.sql);
        }
        Ok(Value::new(sql!("{} END", sql), data_type))
    }

    /// What cannot be cast is null.
    pub fn cast(&self, value: Value, target: Target) -> Value {
        let value = match target {
            Target::Date | Target::Time | Target::Timestamp => self.local(value),
            _ => value,
        };
        let v = &value.sql;
        let (sql, data_type) = match target {
            Target::Integer => (sql!("TRY_CAST({} AS INT)", v), Type::Integer),
            Target::Long => (sql!("TRY_CAST({} AS BIGINT)", v), Type::Integer),
            Target::Float => (sql!("TRY_CAST({} AS FLOAT)", v), Type::Number),
            Target::Double => (sql!("TRY_CAST({} AS DOUBLE)", v), Type::Number),
            Target::Text if value.data_type == Type::Boolean => (sql!("upper(CAST({} AS STRING))", v), Type::Text),
            Target::Text => (sql!("CAST({} AS STRING)", v), Type::Text),
            Target::Boolean => (sql!("TRY_CAST({} AS BOOLEAN)", v), Type::Boolean),
            Target::Date => (sql!("TRY_CAST({} AS DATE)", v), Type::Date),
            Target::Time => (sql!("TRY_CAST({} AS TIME)", v), Type::Time),
            Target::Timestamp => (sql!("TRY_CAST({} AS TIMESTAMP)", v), Type::Timestamp),
        };
        Value::new(sql, data_type)
    }
}

/// An interval of so many units.
pub fn interval_of(count: i64, unit: &'static str) -> Sql {
    let count = Sql::text(&count.to_string());
    match unit {
        "MICROSECOND" => sql!("INTERVAL {} MICROSECOND", count),
        "MILLISECOND" => sql!("INTERVAL {} MILLISECOND", count),
        "SECOND" => sql!("INTERVAL {} SECOND", count),
        "MINUTE" => sql!("INTERVAL {} MINUTE", count),
        "HOUR" => sql!("INTERVAL {} HOUR", count),
        "MONTH" => sql!("INTERVAL {} MONTH", count),
        "YEAR" => sql!("INTERVAL {} YEAR", count),
        _ => sql!("INTERVAL {} DAY", count),
    }
}

/// A value as text.
pub fn as_text(value: &Value) -> Sql {
    match value.data_type {
        Type::Text => value.sql.clone(),
        _ => sql!("CAST({} AS STRING)", value.sql),
    }
}

/// One value beside another.
pub fn compare(a: &Value, op: &str, b: &Value) -> Sql {
    let (a, b) = (&a.sql, &b.sql);
    match op {
        "=" => sql!("({} = {})", a, b),
        "<>" => sql!("({} <> {})", a, b),
        "<" => sql!("({} < {})", a, b),
        "<=" => sql!("({} <= {})", a, b),
        ">" => sql!("({} > {})", a, b),
        _ => sql!("({} >= {})", a, b),
    }
}
