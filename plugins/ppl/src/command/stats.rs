//! `stats`: one row for each group, with aggregates over its rows.

use super::{Command, Read};
use crate::aggregate::{self, Aggregate};
use crate::ast::{Expr, Name, Unit};
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::{field, name, sum};
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::time;
use crate::value::Value;

#[derive(Debug)]
struct Stats {
    nulls: bool,
    aggregates: Vec<(Aggregate, String)>,
    groups: Vec<(Group, String)>,
}

#[derive(Debug)]
enum Group {
    Field(Name),
    Span(Span),
}

/// `span(field, 10)`, `span(time, 1h)`, `span(1h)`.
#[derive(Debug)]
struct Span {
    of: Expr,
    count: Expr,
    unit: Option<Unit>,
}

/// `stats [bucket_nullable=<bool>] <aggregate> [as name] [, …] [by [span(…) [as name],] [field, …]]`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let mut nulls = true;
    while let Kind::Word(word) = c.peek().kind.clone()
        && c.symbol_ahead(1, "=")
    {
        if !c.option("bucket_nullable") {
            return Err(Problem::no_such(c.start(), "option of `stats`", &word, ["bucket_nullable"]));
        }
        nulls = c.boolean("bucket_nullable")?;
    }
    let mut aggregates = Vec::new();
    loop {
        let at = c.start();
        let aggregate = aggregate::read(c)?;
        let written = c.since(at).to_owned();
        aggregates.push((aggregate, alias(c)?.unwrap_or(written)));
        let more = c.eat(",") || matches!(c.peek().kind, Kind::Word(_)) && !c.is_word("by");
        if !more {
            break;
        }
    }
    let mut groups = Vec::new();
    if c.eat_word("by") {
        loop {
            let at = c.start();
            let group = if c.is_word("span") && c.symbol_ahead(1, "(") {
                Group::Span(span(c)?)
            } else {
                Group::Field(field(c)?)
            };
            let written = match &group {
                Group::Field(_) => None,
                Group::Span(_) => Some(c.since(at).to_owned()),
            };
            let alias = alias(c)?.or(written);
            let name = match &group {
                Group::Field(name) => alias.unwrap_or_else(|| name.text()),
                Group::Span(_) => alias.unwrap_or_default(),
            };
            if matches!(group, Group::Span(_)) && groups.iter().any(|(g, _)| matches!(g, Group::Span(_))) {
                return Err(Problem::new(at, "there can be one `span` only; make another field with `eval`"));
            }
            // The span comes first, wherever it is written.
            let place = if matches!(group, Group::Span(_)) { 0 } else { groups.len() };
            groups.insert(place, (group, name));
            if !c.eat(",") {
                break;
            }
        }
    }
    Ok(Box::new(Stats { nulls, aggregates, groups }))
}

fn alias(c: &mut Cursor<'_>) -> Result<Option<String>, Problem> {
    if !c.eat_word("as") {
        return Ok(None);
    }
    if let Kind::Text(text) = c.peek().kind.clone() {
        c.next();
        return Ok(Some(text));
    }
    Ok(Some(name(c, "a name")?.text()))
}

fn span(c: &mut Cursor<'_>) -> Result<Span, Problem> {
    c.next();
    c.next();
    let at = c.start();
    // Without a field it is of `@timestamp`.
    let of = if matches!(c.peek().kind, Kind::Integer(_)) {
        let name = Name { parts: vec!["@timestamp".to_owned()], at };
        Expr { kind: crate::ast::Kind::Name(name), at, written: "@timestamp".to_owned() }
    } else {
        let of = sum(c)?;
        c.expect(",", "and a width")?;
        of
    };
    let at = c.start();
    let digits = match c.peek().kind.clone() {
        Kind::Integer(digits) => crate::ast::Kind::Integer(digits),
        Kind::Decimal(digits) => crate::ast::Kind::Decimal(digits),
        _ => return Err(c.wrong("a width, such as 10 or 1h")),
    };
    c.next();
    let count = Expr { kind: digits, at, written: c.since(at).to_owned() };
    let mut unit = None;
    if let Kind::Word(word) = c.peek().kind.clone() {
        let units = [
            "us", "ms", "s", "m", "h", "d", "w", "M", "q", "y", "second", "minute", "hour", "day", "week", "month",
            "quarter", "year",
        ];
        unit = Some(Unit::short(&word).ok_or_else(|| Problem::no_such(c.start(), "unit of time", &word, units))?);
        c.next();
    }
    c.expect(")", "behind the width")?;
    Ok(Span { of, count, unit })
}

impl Span {
    fn value(&self, rows: &Pipeline<'_>) -> Result<Value, Problem> {
        let of = rows.value(&self.of)?;
        if let Some(unit) = self.unit {
            if !(of.data_type.is_dated() || matches!(of.data_type, Type::Text | Type::Unknown)) {
                return Err(Problem::new(
                    self.of.at,
                    format!(
                        "a span of time needs a date or timestamp, `{}` is {}",
                        self.of.written,
                        of.data_type.called()
                    ),
                ));
            }
            let count = self.count.written.parse::<u64>().ok().filter(|n| (1..=1_000_000).contains(n));
            let Some(count) = count else {
                return Err(Problem::new(self.count.at, "expected a whole number of units from 1 to 1,000,000"));
            };
            return Ok(time::floor(rows, of, count, unit));
        }
        if of.data_type.is_dated() {
            return Err(Problem::new(
                self.count.at,
                format!("a span of `{}` needs a unit, such as 1h", self.of.written),
            ));
        }
        if !matches!(of.data_type, Type::Integer | Type::Number | Type::Unknown) {
            return Err(Problem::new(
                self.of.at,
                format!("a span needs a number or a time, `{}` is {}", self.of.written, of.data_type.called()),
            ));
        }
        if self.count.written.trim_matches(['0', '.']).is_empty() {
            return Err(Problem::new(self.count.at, "the width of a span has to be more than 0"));
        }
        let width = rows.value(&self.count)?;
        // What is left of a division has the sign of the dividend; the span below zero begins lower.
        let (x, n) = (&of.sql, &width.sql);
        if of.data_type == Type::Integer && width.data_type == Type::Integer {
            return Ok(Value::new(sql!("({} - ((({} % {}) + {}) % {}))", x, x, n, n, n), Type::Integer));
        }
        let n = sql!("CAST({} AS DOUBLE)", n);
        Ok(Value::new(sql!("(floor({} / {}) * {})", x, n, n), Type::Number))
    }
}

impl Command for Stats {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_groups();
        let mut groups = Vec::new();
        for (group, name) in &self.groups {
            let (value, without_nulls) = match group {
                Group::Field(field) => (rows.field(field)?, !self.nulls),
                // Of times, no span is null.
                Group::Span(span) => (span.value(rows)?, !self.nulls || span.unit.is_some()),
            };
            if without_nulls {
                let of = match group {
                    Group::Span(span) => rows.value(&span.of)?.sql,
                    Group::Field(_) => value.sql.clone(),
                };
                rows.filter(sql!("({} IS NOT NULL)", of));
            }
            let name = match group {
                Group::Field(field) if field.text() == *name => rows.column_of(field)?.unwrap_or_else(|| name.clone()),
                _ => name.clone(),
            };
            groups.push((name, value));
        }
        let order: Option<Sql> = rows.order_by();
        let mut values = Vec::new();
        for (aggregate, name) in &self.aggregates {
            values.push((name.clone(), aggregate.value(rows, order.as_ref())?));
        }
        rows.aggregate(values, groups);
        Ok(())
    }
}
