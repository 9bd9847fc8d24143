//! Expressions as they are written.

use std::rc::Rc;

use crate::query::Query;

/// A name, in parts where it has dots outside of back-ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its parts.
    pub parts: Vec<String>,
    /// Where it begins.
    pub at: usize,
}

impl Name {
    /// The whole name.
    pub fn text(&self) -> String {
        self.parts.join(".")
    }
}

/// A name that may hold `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// As it is written, without back-ticks.
    pub text: String,
    /// Where it begins.
    pub at: usize,
}

impl Pattern {
    /// Whether it stands for more than itself.
    pub fn is_wild(&self) -> bool {
        self.text.contains('*')
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub at: usize,
    /// As it is written: the name of its column.
    pub written: String,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A field.
    Name(Name),
    /// `'text'`.
    Text(String),
    /// `1`.
    Integer(String),
    /// `1.5`.
    Decimal(String),
    /// `1.5d`, `2f`.
    Double(String),
    /// `true`, `false`.
    Boolean(bool),
    /// `null`.
    Null,
    /// `DATE '2020-01-01'`.
    Temporal(Temporal, String),
    /// `INTERVAL 3 DAY`.
    Interval(Box<Expr>, Unit),
    /// Terms of one level: `a AND b AND c`.
    All(Vec<Expr>),
    /// `a OR b OR c`.
    Any(Vec<Expr>),
    /// `a XOR b`.
    Xor(Box<Expr>, Box<Expr>),
    /// `NOT a`.
    Not(Box<Expr>),
    /// `-a`.
    Negative(Box<Expr>),
    /// `a + b - c`, `a * b / c`: the first, and operators with what follows them.
    Chain(Box<Expr>, Vec<(&'static str, Expr)>),
    /// `a < b`.
    Compare(Box<Expr>, &'static str, Box<Expr>),
    /// `a LIKE b`, or ILIKE.
    Like {
        /// What is looked at.
        text: Box<Expr>,
        /// With `%` and `_`.
        pattern: Box<Expr>,
        /// `LIKE`, not `ILIKE`.
        cased: bool,
    },
    /// `a REGEXP b`.
    Regexp(Box<Expr>, Box<Expr>),
    /// `a BETWEEN b AND c`.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a IN (b, c)`.
    Among(Box<Expr>, Vec<Expr>),
    /// `a IN [ … ]`, `(a, b) IN [ … ]`.
    InQuery(Vec<Expr>, Rc<Query>),
    /// `EXISTS [ … ]`.
    Exists(Rc<Query>),
    /// `[ … ]`: one value.
    Scalar(Rc<Query>),
    /// `a IS NULL`.
    IsNull(Box<Expr>),
    /// `CASE(a, b, c, d ELSE e)`.
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// `CAST(a AS type)`.
    Cast(Box<Expr>, Target),
    /// `f(a, b)`; the name in lower case.
    Call(String, Vec<Expr>),
}

/// Literals of dates and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporal {
    /// `DATE`.
    Date,
    /// `TIME`.
    Time,
    /// `TIMESTAMP`.
    Timestamp,
}

/// What CAST makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `INT`, `INTEGER`.
    Integer,
    /// `LONG`.
    Long,
    /// `FLOAT`.
    Float,
    /// `DOUBLE`.
    Double,
    /// `STRING`.
    Text,
    /// `BOOLEAN`.
    Boolean,
    /// `DATE`.
    Date,
    /// `TIME`.
    Time,
    /// `TIMESTAMP`.
    Timestamp,
}

/// Units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Millionth of a second.
    Microsecond,
    /// Thousandth of a second.
    Millisecond,
    /// Second.
    Second,
    /// Minute.
    Minute,
    /// Hour.
    Hour,
    /// Day.
    Day,
    /// Week, from Monday.
    Week,
    /// Month.
    Month,
    /// Three months.
    Quarter,
    /// Year.
    Year,
}

impl Unit {
    /// A unit by its name.
    pub fn named(name: &str) -> Option<Unit> {
        let lower = name.to_ascii_lowercase();
        Some(match lower.strip_suffix('s').filter(|s| s.len() > 2).unwrap_or(&lower) {
            "microsecond" => Unit::Microsecond,
            "millisecond" => Unit::Millisecond,
            "second" => Unit::Second,
            "minute" => Unit::Minute,
            "hour" => Unit::Hour,
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "quarter" => Unit::Quarter,
            "year" => Unit::Year,
            _ => return None,
        })
    }

    /// A unit by its name or by the letters of a span; `m` is a minute, `M` a month.
    pub fn short(name: &str) -> Option<Unit> {
        match name {
            "M" | "mon" => return Some(Unit::Month),
            "m" | "min" | "mins" => return Some(Unit::Minute),
            _ => {}
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "us" => Unit::Microsecond,
            "ms" => Unit::Millisecond,
            "s" | "sec" | "secs" => Unit::Second,
            "h" | "hr" | "hrs" => Unit::Hour,
            "d" => Unit::Day,
            "w" => Unit::Week,
            "q" | "qtr" | "qtrs" => Unit::Quarter,
            "y" | "yr" | "yrs" => Unit::Year,
            _ => return Unit::named(name),
        })
    }

    /// The unit that SQL has an interval of, and how many of them this is.
    pub fn in_sql(self) -> (&'static str, u32) {
        match self {
            Unit::Microsecond => ("MICROSECOND", 1),
            Unit::Millisecond => ("MILLISECOND", 1),
            Unit::Second => ("SECOND", 1),
            Unit::Minute => ("MINUTE", 1),
            Unit::Hour => ("HOUR", 1),
            Unit::Day => ("DAY", 1),
            Unit::Week => ("DAY", 7),
            Unit::Month => ("MONTH", 1),
            Unit::Quarter => ("MONTH", 3),
            Unit::Year => ("YEAR", 1),
        }
    }

    /// Whether a span of it begins at midnight.
    pub fn is_days(self) -> bool {
        matches!(self, Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year)
    }
}
