//! Spans of time, and times said from now: `-7d@d`.

use crate::ast::Unit;
use crate::catalog::Type;
use crate::pipeline::Pipeline;
use crate::problem::{Problem, shortened};
use crate::sql::{Sql, sql};
use crate::value::{Value, interval_of};

/// The beginning of the span of `count` units that a time is in, on the session's clock.
pub fn floor(rows: &Pipeline<'_>, value: Value, count: u64, unit: Unit) -> Value {
    let whole_days = unit.is_days() && value.data_type == Type::Date;
    let time = rows.timestamp(value).sql;
    let sql = match (count, unit) {
        (1, Unit::Week) => sql!("date_trunc('week', {})", time),
        (1, Unit::Quarter) => sql!("date_trunc('quarter', {})", time),
        (1, Unit::Year) => sql!("date_trunc('year', {})", time),
        (1, Unit::Month) => sql!("date_trunc('month', {})", time),
        (1, Unit::Day) => sql!("date_trunc('day', {})", time),
        _ => {
            let (name, times) = unit.in_sql();
            let step = interval_of(i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(i64::from(times)), name);
            // Weeks begin on Monday, as the 5th of January 1970 was.
            let origin = if unit == Unit::Week { "1970-01-05 00:00:00" } else { "1970-01-01 00:00:00" };
            sql!("date_bin({}, {}, CAST({} AS TIMESTAMP))", step, time, Sql::text(origin))
        }
    };
    if whole_days { Value::new(sql!("CAST({} AS DATE)", sql), Type::Date) } else { Value::new(sql, Type::Timestamp) }
}

/// A time as it is said: now, a date, seconds since 1970, or an offset from now.
#[derive(Debug, PartialEq)]
pub enum Relative {
    /// Steps from now.
    Steps(Vec<Step>),
    /// A date and time on the session's clock.
    At(String),
    /// Microseconds since 1970.
    Since1970(i64),
}

/// A step.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// So many units away.
    By(i64, Unit),
    /// Back to the beginning of a unit.
    Floor(Unit),
}

impl Relative {
    /// Reads one that is written at `at`.
    ///
    /// # Errors
    /// It is none.
    pub fn read(written: &str, at: usize) -> Result<Relative, Problem> {
        let text = written.trim();
        let wrong = || {
            Problem::new(
                at,
                format!(
                    "`{}` is no time; expected `now`, an offset such as `-7d@d`, or `yyyy-MM-dd HH:mm:ss`",
                    shortened(written)
                ),
            )
        };
        if text.eq_ignore_ascii_case("now") || text.eq_ignore_ascii_case("now()") {
            return Ok(Relative::Steps(Vec::new()));
        }
        if let Some(date) = date(text) {
            return Ok(Relative::At(date));
        }
        if let Ok(seconds) = text.parse::<f64>()
            && text.starts_with(|c: char| c.is_ascii_digit())
            && seconds < 9.0e12
        {
            return Ok(Relative::Since1970((seconds * 1e6).round() as i64));
        }
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix("now").unwrap_or(text);
        while let Some(sign) = rest.chars().next() {
            rest = &rest[sign.len_utf8()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |n| digits + n);
            let (count, word) = (&rest[..digits], &rest[digits..letters]);
            // `@w0` is the week from Sunday; weeks here begin on Monday.
            let unit = Unit::short(word).ok_or_else(wrong)?;
            steps.push(match sign {
                '@' if count.is_empty() => Step::Floor(unit),
                '+' | '-' => {
                    let count: i64 = if count.is_empty() {
                        1
                    } else {
                        count.parse().ok().filter(|n| *n < 1 << 32).ok_or_else(wrong)?
                    };
                    Step::By(if sign == '-' { -count } else { count }, unit)
                }
                _ => return Err(wrong()),
            });
            rest = &rest[letters..];
        }
        if steps.is_empty() { Err(wrong()) } else { Ok(Relative::Steps(steps)) }
    }

    /// Its SQL.
    pub fn value(&self, rows: &Pipeline<'_>) -> Value {
        match self {
            Relative::At(text) => Value::new(sql!("CAST({} AS TIMESTAMP)", Sql::text(text)), Type::Timestamp),
            Relative::Since1970(micros) => Value::new(point(&sql!("{}", Sql::integer(*micros))), Type::Instant),
            Relative::Steps(steps) => {
                let now = Value::new(sql!("now()"), Type::Instant);
                if steps.is_empty() {
                    return now;
                }
                steps.iter().fold(rows.local(now), |time, step| match step {
                    Step::Floor(unit) => floor(rows, time, 1, *unit),
                    Step::By(count, unit) => {
                        let (name, times) = unit.in_sql();
                        Value::new(
                            sql!("({} + {})", time.sql, interval_of(count * i64::from(times), name)),
                            Type::Timestamp,
                        )
                    }
                })
            }
        }
    }
}

/// A point in time by its microseconds since 1970.
pub fn point(micros: &Sql) -> Sql {
    sql!("arrow_cast(CAST({} AS BIGINT), 'Timestamp(Microsecond, Some(\"UTC\"))')", micros)
}

/// `2024-12-31 23:59:59`, without its time too, or `12/31/2024:23:59:59`.
fn date(text: &str) -> Option<String> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    match shape.as_str() {
        "0000-00-00" | "0000-00-00 00:00:00" | "0000-00-00T00:00:00" => Some(text.replace('T', " ")),
        "00/00/0000:00:00:00" => Some(format!("{}-{}-{} {}", &text[6..10], &text[..2], &text[3..5], &text[11..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        for (written, time) in [
            ("now", Relative::Steps(vec![])),
            ("-7d@d", Relative::Steps(vec![Step::By(-7, Unit::Day), Step::Floor(Unit::Day)])),
            (
                "+1d@month-10h",
                Relative::Steps(vec![Step::By(1, Unit::Day), Step::Floor(Unit::Month), Step::By(-10, Unit::Hour)]),
            ),
            ("-h", Relative::Steps(vec![Step::By(-1, Unit::Hour)])),
            ("-1mon", Relative::Steps(vec![Step::By(-1, Unit::Month)])),
            ("12/31/2024:23:59:59", Relative::At("2024-12-31 23:59:59".into())),
            ("2024-12-31", Relative::At("2024-12-31".into())),
            ("1754020060.123", Relative::Since1970(1_754_020_060_123_000)),
        ] {
            assert_eq!(Relative::read(written, 0).unwrap(), time, "{written}");
        }
        for written in ["", "yesterday", "-7x", "@", "7d", "--1d"] {
            assert!(Relative::read(written, 0).is_err(), "{written}");
        }
    }
}
