//! ISO-8601 texts of dates, instants, times and durations. Total: every value has one, however far out.

use std::io::Write;

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// A date, `days` after 1970-01-01: `2024-02-29`; a year outside 0..=9999 carries its sign, `+10000-01-01`.
pub(super) fn date(days: i64, out: &mut Vec<u8>) {
    // The proleptic Gregorian calendar in eras of 400 years that begin on 1 March, so that the leap day comes last.
    let day = days + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..=9999 => put(out, format_args!("{year:04}-{month:02}-{of_month:02}")),
        _ => put(out, format_args!("{year:+05}-{month:02}-{of_month:02}")),
    }
}

/// An instant, `value` units of `1/per_second` after the epoch, in UTC: `2024-02-29T12:00:00.000Z`, with three digits of
/// fraction as the peer writes them, or six or nine where three would lose something.
pub(super) fn timestamp(value: i64, per_second: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    date(seconds.div_euclid(DAY), out);
    out.push(b'T');
    clock(seconds.rem_euclid(DAY), fraction * (NANOS / per_second), 3, out);
    out.push(b'Z');
}

/// A time of day, `value` units of `1/per_second` after midnight: `12:00:00`, `12:00:00.250`.
pub(super) fn time(value: i64, per_second: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let (seconds, fraction) = (value / per_second, value % per_second);
    clock(seconds.abs(), fraction.abs() * (NANOS / per_second), 0, out);
}

/// A length of time, `value` units of `1/per_second`: `PT1.5S`.
pub(super) fn duration(value: i64, per_second: i64, out: &mut Vec<u8>) {
    interval(0, 0, i128::from(value) * i128::from(NANOS / per_second), out);
}

/// A calendar interval: `P14M3DT0.5S`. Months, days and time are kept apart, for none is a number of the others.
pub(super) fn interval(months: i32, days: i32, nanos: i128, out: &mut Vec<u8>) {
    out.push(b'P');
    if months != 0 {
        put(out, format_args!("{months}M"));
    }
    if days != 0 {
        put(out, format_args!("{days}D"));
    }
    if nanos != 0 || (months == 0 && days == 0) {
        let sign = if nanos < 0 { "-" } else { "" };
        let (seconds, fraction) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
        put(out, format_args!("T{sign}{seconds}"));
        if fraction != 0 {
            let digits = format!(".{fraction:09}");
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
        out.push(b'S');
    }
}

fn clock(seconds: i64, nanos: i64, least_digits: usize, out: &mut Vec<u8>) {
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    match (nanos, least_digits) {
        (0, 0) => {}
        (n, _) if n % 1_000_000 == 0 => put(out, format_args!(".{:03}", n / 1_000_000)),
        (n, _) if n % 1_000 == 0 => put(out, format_args!(".{:06}", n / 1_000)),
        (n, _) => put(out, format_args!(".{n:09}")),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing into memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ISO texts are ASCII")
    }

    #[test]
    fn dates_follow_the_calendar_to_its_ends() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
            (-719_529, "-0001-12-31"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(text(|out| date(days, out)), expected, "{days}");
        }
    }

    #[test]
    fn instants_keep_every_digit_that_counts() {
        for (value, per_second, expected) in [
            (0, 1, "1970-01-01T00:00:00.000Z"),
            (-1, 1_000, "1969-12-31T23:59:59.999Z"),
            (1_709_208_000_250_000, 1_000_000, "2024-02-29T12:00:00.250Z"),
            (1_709_208_000_250_001, 1_000_000, "2024-02-29T12:00:00.250001Z"),
            (i64::MAX, 1_000_000_000, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, 1_000_000_000, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, 1, "+292277026596-12-04T15:30:07.000Z"),
        ] {
            assert_eq!(text(|out| timestamp(value, per_second, out)), expected, "{value}");
        }
    }

    #[test]
    fn times_durations_and_intervals() {
        assert_eq!(text(|out| time(45_296, 1, out)), "12:34:56");
        assert_eq!(text(|out| time(45_296_007, 1_000, out)), "12:34:56.007");
        assert_eq!(text(|out| time(-1_500, 1_000, out)), "-00:00:01.500");
        assert_eq!(text(|out| duration(1_500, 1_000, out)), "PT1.5S");
        assert_eq!(text(|out| duration(0, 1, out)), "PT0S");
        assert_eq!(text(|out| duration(i64::MIN, 1, out)), "PT-9223372036854775808S");
        assert_eq!(text(|out| interval(14, -3, 500_000_000, out)), "P14M-3DT0.5S");
        assert_eq!(text(|out| interval(1, 0, 0, out)), "P1M");
    }
}
