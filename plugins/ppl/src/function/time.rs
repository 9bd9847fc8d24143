//! Dates and times. What has no zone is on the session's clock.

use super::{Call, Function, of};
use crate::ast::{Kind, Target, Unit};
use crate::catalog::Type;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::time::point;
use crate::value::{Value, interval_of};

pub const FUNCTIONS: &[Function] = &[
    of("now", 0, 0, now),
    of("sysdate", 0, 1, now),
    of("current_timestamp", 0, 0, now),
    of("localtimestamp", 0, 0, now),
    of("localtime", 0, 0, now),
    of("curdate", 0, 0, |c| Ok(c.rows.cast(now(c)?, Target::Date))),
    of("current_date", 0, 0, |c| Ok(c.rows.cast(now(c)?, Target::Date))),
    of("curtime", 0, 0, |c| Ok(c.rows.cast(now(c)?, Target::Time))),
    of("current_time", 0, 0, |c| Ok(c.rows.cast(now(c)?, Target::Time))),
    of("utc_timestamp", 0, 0, |_| Ok(utc())),
    of("utc_date", 0, 0, |c| Ok(c.rows.cast(utc(), Target::Date))),
    of("utc_time", 0, 0, |c| Ok(c.rows.cast(utc(), Target::Time))),
    of("date", 1, 1, |c| Ok(c.rows.cast(c.args[0].clone(), Target::Date))),
    of("time", 1, 1, |c| Ok(c.rows.cast(c.args[0].clone(), Target::Time))),
    of("timestamp", 1, 1, |c| Ok(c.rows.cast(c.args[0].clone(), Target::Timestamp))),
    of("datetime", 1, 1, |c| Ok(c.rows.cast(c.args[0].clone(), Target::Timestamp))),
    of("year", 1, 1, |c| part(c, "year")),
    of("quarter", 1, 1, |c| part(c, "quarter")),
    of("month", 1, 1, |c| part(c, "month")),
    of("month_of_year", 1, 1, |c| part(c, "month")),
    of("day", 1, 1, |c| part(c, "day")),
    of("dayofmonth", 1, 1, |c| part(c, "day")),
    of("day_of_month", 1, 1, |c| part(c, "day")),
    of("dayofweek", 1, 1, |c| part(c, "dayofweek")),
    of("day_of_week", 1, 1, |c| part(c, "dayofweek")),
    of("dayofyear", 1, 1, |c| part(c, "dayofyear")),
    of("day_of_year", 1, 1, |c| part(c, "dayofyear")),
    of("weekday", 1, 1, |c| Ok(integer(sql!("((dayofweek({}) + 5) % 7)", time(c, 0))))),
    of("week", 1, 2, week),
    of("week_of_year", 1, 2, week),
    of("weekofyear", 1, 2, week),
    of("hour", 1, 1, |c| part(c, "hour")),
    of("hour_of_day", 1, 1, |c| part(c, "hour")),
    of("minute", 1, 1, |c| part(c, "minute")),
    of("minute_of_hour", 1, 1, |c| part(c, "minute")),
    of("minute_of_day", 1, 1, |c| Ok(integer(sql!("(hour({}) * 60 + minute({}))", time(c, 0), time(c, 0))))),
    of("second", 1, 1, |c| part(c, "second")),
    of("second_of_minute", 1, 1, |c| part(c, "second")),
    of("microsecond", 1, 1, |c| part(c, "microsecond")),
    of("extract", 2, 2, |c| {
        let part = c.literal(0, "a part")?;
        Ok(integer(
            part_of(&time(c, 1), part).ok_or_else(|| {
                Problem::no_such(c.exprs[0].at, "part of a date or time", part, PARTS.iter().copied())
            })?,
        ))
    }),
    of("dayname", 1, 1, |c| Ok(text(sql!("to_char({}, '%A')", time(c, 0))))),
    of("monthname", 1, 1, |c| Ok(text(sql!("to_char({}, '%B')", time(c, 0))))),
    of("date_format", 2, 2, |c| {
        let format = format(c, 1)?;
        Ok(text(sql!("to_char({}, {})", time(c, 0), Sql::text(&format))))
    }),
    of("strftime", 2, 2, |c| {
        let format = c.literal(1, "a format")?;
        let time = if c.args[0].data_type.is_number() { from_seconds(c, 0) } else { time(c, 0) };
        Ok(text(sql!("to_char({}, {})", time, Sql::text(&strftime(format).map_err(|m| c.wrong(1, &m))?))))
    }),
    of("str_to_date", 2, 2, |c| {
        let format = format(c, 1)?;
        Ok(Value::new(sql!("to_timestamp_micros({}, {})", c.text(0), Sql::text(&format)), Type::Timestamp))
    }),
    of("from_unixtime", 1, 2, |c| {
        let time = from_seconds(c, 0);
        if c.args.len() == 1 {
            return Ok(Value::new(time, Type::Timestamp));
        }
        let format = format(c, 1)?;
        Ok(text(sql!("to_char({}, {})", time, Sql::text(&format))))
    }),
    of("unix_timestamp", 0, 1, |c| {
        let time = match c.args.first() {
            None => sql!("now()"),
            Some(value) if value.data_type == Type::Instant => value.sql.clone(),
            Some(_) => sql!("({} AT TIME ZONE {})", time(c, 0), Sql::text(&c.rows.world.session.time_zone)),
        };
        Ok(Value::new(sql!("CAST({} AS DOUBLE)", time), Type::Number))
    }),
    of("date_add", 2, 2, |c| moved(c, 1)),
    of("adddate", 2, 2, |c| moved(c, 1)),
    of("date_sub", 2, 2, |c| moved(c, -1)),
    of("subdate", 2, 2, |c| moved(c, -1)),
    of("timestampadd", 3, 3, |c| {
        let unit = unit(c, 0)?;
        let step = match &c.exprs[1].kind {
            Kind::Integer(digits) => step(digits, unit, 1),
            Kind::Negative(inner) => match &inner.kind {
                Kind::Integer(digits) => step(digits, unit, -1),
                _ => None,
            },
            _ => None,
        };
        let Some(step) = step else { return Err(c.wrong(1, "expected a whole number")) };
        Ok(Value::new(sql!("({} + {})", time(c, 2), step), Type::Timestamp))
    }),
    of("timestampdiff", 3, 3, between),
    of("datediff", 2, 2, |c| Ok(integer(sql!("datediff({}, {})", date(c, 0), date(c, 1))))),
    of("last_day", 1, 1, |c| Ok(Value::new(sql!("last_day({})", date(c, 0)), Type::Date))),
    of("makedate", 2, 2, |c| {
        let first = sql!("make_date(CAST({} AS INT), CAST(1 AS INT), CAST(1 AS INT))", c.sql(0));
        Ok(Value::new(sql!("date_add({}, CAST(({} - 1) AS INT))", first, c.sql(1)), Type::Date))
    }),
    // Days since the year 0, of which there are 719,528 before 1970.
    of("to_days", 1, 1, |c| Ok(integer(sql!("(datediff({}, CAST('1970-01-01' AS DATE)) + 719528)", date(c, 0))))),
    of("from_days", 1, 1, |c| {
        Ok(Value::new(sql!("date_add(CAST('1970-01-01' AS DATE), CAST(({} - 719528) AS INT))", c.sql(0)), Type::Date))
    }),
    of("convert_tz", 3, 3, |c| {
        let (from, to) = (c.literal(1, "a time zone")?, c.literal(2, "a time zone")?);
        let sql =
            sql!("to_local_time((({} AT TIME ZONE {}) AT TIME ZONE {}))", time(c, 0), Sql::text(from), Sql::text(to));
        Ok(Value::new(sql, Type::Timestamp))
    }),
];

fn integer(sql: Sql) -> Value {
    Value::new(sql, Type::Integer)
}

fn text(sql: Sql) -> Value {
    Value::new(sql, Type::Text)
}

fn now(_: &Call<'_>) -> Result<Value, Problem> {
    Ok(Value::new(sql!("now()"), Type::Instant))
}

fn utc() -> Value {
    Value::new(sql!("to_local_time((now() AT TIME ZONE 'UTC'))"), Type::Timestamp)
}

/// An argument as a date and time.
fn time(c: &Call<'_>, n: usize) -> Sql {
    c.rows.timestamp(c.args[n].clone()).sql
}

fn date(c: &Call<'_>, n: usize) -> Sql {
    match c.args[n].data_type {
        Type::Date => c.sql(n).clone(),
        _ => sql!("CAST({} AS DATE)", time(c, n)),
    }
}

/// Seconds since 1970 as the session's clock shows them.
fn from_seconds(c: &Call<'_>, n: usize) -> Sql {
    let micros = sql!("({} * 1000000)", c.sql(n));
    c.rows.local(Value::new(point(&micros), Type::Instant)).sql
}

/// Parts that `extract` knows.
const PARTS: &[&str] = &[
    "microsecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "minute_second",
    "hour_minute",
    "hour_second",
    "day_hour",
    "day_minute",
    "day_second",
    "year_month",
];

fn part(c: &Call<'_>, part: &str) -> Result<Value, Problem> {
    Ok(integer(part_of(&time(c, 0), part).unwrap_or_default()))
}

fn part_of(t: &Sql, part: &str) -> Option<Sql> {
    Some(match part {
        "year" => sql!("year({})", t),
        "quarter" => sql!("quarter({})", t),
        "month" => sql!("month({})", t),
        "day" => sql!("day({})", t),
        "dayofweek" => sql!("dayofweek({})", t),
        "dayofyear" => sql!("dayofyear({})", t),
        "week" => sql!("weekofyear({})", t),
        "hour" => sql!("hour({})", t),
        "minute" => sql!("minute({})", t),
        "second" => sql!("second({})", t),
        "microsecond" => sql!("(date_part('microsecond', {}) % 1000000)", t),
        "minute_second" => sql!("(minute({}) * 100 + second({}))", t, t),
        "hour_minute" => sql!("(hour({}) * 100 + minute({}))", t, t),
        "hour_second" => sql!("(hour({}) * 10000 + minute({}) * 100 + second({}))", t, t, t),
        "day_hour" => sql!("(day({}) * 100 + hour({}))", t, t),
        "day_minute" => sql!("(day({}) * 10000 + hour({}) * 100 + minute({}))", t, t, t),
        "day_second" => sql!("(day({}) * 1000000 + hour({}) * 10000 + minute({}) * 100 + second({}))", t, t, t, t),
        "year_month" => sql!("(year({}) * 100 + month({}))", t, t),
        _ => return None,
    })
}

/// MySQL's weeks: 0 from Sunday, the first has a Sunday; 3 from Monday, the first has four days.
fn week(c: &Call<'_>) -> Result<Value, Problem> {
    let t = time(c, 0);
    match c.exprs.get(1).map(|e| &e.kind) {
        None => {}
        Some(Kind::Integer(mode)) if mode == "0" => {}
        Some(Kind::Integer(mode)) if mode == "3" => return Ok(integer(sql!("weekofyear({})", t))),
        Some(_) => return Err(c.wrong(1, "expected the mode 0 or 3")),
    }
    Ok(integer(sql!("((dayofyear({}) + 7 - dayofweek({})) DIV 7)", t, t)))
}

fn unit(c: &Call<'_>, n: usize) -> Result<Unit, Problem> {
    let word = c.literal(n, "a unit")?;
    let units = ["microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    Unit::named(word).ok_or_else(|| Problem::no_such(c.exprs[n].at, "unit", word, units))
}

fn step(digits: &str, unit: Unit, sign: i64) -> Option<Sql> {
    let count: i64 = digits.parse().ok().filter(|n| *n < 1 << 40)?;
    let (name, times) = unit.in_sql();
    Some(interval_of(sign * count * i64::from(times), name))
}

/// A date plus or minus an interval, or days.
fn moved(c: &Call<'_>, sign: i64) -> Result<Value, Problem> {
    if c.args[1].data_type == Type::Interval {
        let sql =
            if sign > 0 { sql!("({} + {})", time(c, 0), c.sql(1)) } else { sql!("({} - {})", time(c, 0), c.sql(1)) };
        return Ok(Value::new(sql, Type::Timestamp));
    }
    if !matches!(c.args[1].data_type, Type::Integer | Type::Unknown) {
        return Err(c.wrong(1, "expected an interval or a number of days"));
    }
    if c.args[0].data_type == Type::Date {
        let days = if sign > 0 { c.sql(1).clone() } else { sql!("(- {})", c.sql(1)) };
        return Ok(Value::new(sql!("date_add({}, CAST({} AS INT))", c.sql(0), days), Type::Date));
    }
    let Kind::Integer(digits) = &c.exprs[1].kind else {
        return Err(c.wrong(1, "expected an interval or a number of days"));
    };
    let step = step(digits, Unit::Day, sign).ok_or_else(|| c.wrong(1, "expected fewer days"))?;
    Ok(Value::new(sql!("({} + {})", time(c, 0), step), Type::Timestamp))
}

/// Whole units from one time to another.
fn between(c: &Call<'_>) -> Result<Value, Problem> {
    let (a, b) = (time(c, 1), time(c, 2));
    let per = |seconds: &'static str| {
        integer(sql!("CAST(((CAST({} AS DOUBLE) - CAST({} AS DOUBLE)) / {}) AS BIGINT)", b, a, Sql::number(seconds)))
    };
    let months = |per: &'static str| {
        let all = sql!("((year({}) - year({})) * 12 + month({}) - month({}))", b, a, b, a);
        let (late, early) = (sql!("to_char({}, '%d%H%M%S%f')", b), sql!("to_char({}, '%d%H%M%S%f')", a));
        let begun = sql!(
            "CASE WHEN {} >= {} AND {} < {} THEN 1 WHEN {} < {} AND {} > {} THEN -1 ELSE 0 END",
            b,
            a,
            late,
            early,
            b,
            a,
            late,
            early
        );
        integer(sql!("(({} - {}) DIV {})", all, begun, Sql::number(per)))
    };
    Ok(match unit(c, 0)? {
        Unit::Microsecond => {
            integer(sql!("CAST(round((CAST({} AS DOUBLE) - CAST({} AS DOUBLE)) * 1000000) AS BIGINT)", b, a))
        }
        Unit::Millisecond => {
            integer(sql!("CAST(round((CAST({} AS DOUBLE) - CAST({} AS DOUBLE)) * 1000) AS BIGINT)", b, a))
        }
        Unit::Second => per("1"),
        Unit::Minute => per("60"),
        Unit::Hour => per("3600"),
        Unit::Day => per("86400"),
        Unit::Week => per("604800"),
        Unit::Month => months("1"),
        Unit::Quarter => months("3"),
        Unit::Year => months("12"),
    })
}

/// A format of MySQL's in quotes, as the engine has it.
fn format(c: &Call<'_>, n: usize) -> Result<String, Problem> {
    let written = c.literal(n, "a format")?;
    codes(written, |code| {
        Some(match code {
            'a' | 'b' | 'd' | 'H' | 'I' | 'j' | 'm' | 'p' | 'S' | 'T' | 'w' | 'Y' | 'y' | 'U' | '%' => return None,
            'c' => "%-m",
            'e' => "%-d",
            'f' => "%6f",
            'h' => "%I",
            'i' => "%M",
            'k' => "%-H",
            'l' => "%-I",
            'M' => "%B",
            'r' => "%I:%M:%S %p",
            's' => "%S",
            'u' => "%W",
            'v' => "%V",
            'W' => "%A",
            'x' => "%G",
            _ => "",
        })
    })
    .map_err(|message| c.wrong(n, &message))
}

/// A format of strftime's.
fn strftime(written: &str) -> Result<String, String> {
    codes(written, |code| {
        Some(match code {
            'a' | 'A' | 'b' | 'B' | 'C' | 'd' | 'e' | 'F' | 'H' | 'I' | 'j' | 'k' | 'm' | 'M' | 'p' | 'S' | 'T'
            | 'u' | 'U' | 'V' | 'w' | 'y' | 'Y' | 'G' | 'g' | '%' => return None,
            'c' => "%a %b %e %H:%M:%S %Y",
            'f' | 'N' => "%6f",
            'Q' | 'L' => "%3f",
            'x' => "%m/%d/%Y",
            'X' => "%H:%M:%S",
            _ => "",
        })
    })
}

/// Each code of a format by another; None: it stays, nothing: there is none such.
fn codes(written: &str, by: fn(char) -> Option<&'static str>) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(code) = chars.next() else {
            return Err("the format ends in `%`; write `%%` for the character".to_owned());
        };
        match by(code) {
            None => out.extend(['%', code]),
            Some("") => return Err(format!("there is no `%{code}` in a format")),
            Some(other) => out.push_str(other),
        }
    }
    Ok(out)
}
