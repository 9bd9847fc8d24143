//! Spark's patterns of dates and times, which are Java's, as those of chrono that DataFusion's functions take.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringArray};
use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use firesteel_model::{Code, Failure, Stage};

use crate::failures;

/// The function's name, which no statement writes.
pub const NAME: &str = "java_pattern";

/// Translates a pattern; a statement's own is a literal, so once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Signature);

impl Default for Pattern {
    fn default() -> Pattern {
        Pattern(Signature::string(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        NAME
    }
    fn signature(&self) -> &Signature {
        &self.0
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::functions::utils::make_scalar_function(
            |args| {
                let text = datafusion::arrow::compute::cast(&args[0], &DataType::Utf8)?;
                let all: Result<StringArray> =
                    text.as_string::<i32>().iter().map(|p| p.map(translate).transpose()).collect();
                Ok(Arc::new(all?) as ArrayRef)
            },
            vec![],
        )(&args.args)
    }
}

fn translate(pattern: &str) -> Result<String> {
    let wrong = |what: &str| {
        failures::carry(Failure::new(
            Code::Analysis,
            Stage::Plan,
            format!(
                "the pattern `{pattern}` holds {what}, which is not supported; there are the letters y M d D E H h m s S a, and text in '…'"
            ),
        ))
    };
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let mut count = 1;
        if c.is_ascii_alphabetic() {
            while chars.next_if_eq(&c).is_some() {
                count += 1;
            }
        }
        out.push_str(match (c, count) {
            ('y' | 'u', 2) => "%y",
            ('y' | 'u', 1 | 3 | 4) => "%Y",
            ('M' | 'L', 1) => "%-m",
            ('M' | 'L', 2) => "%m",
            ('M' | 'L', 3) => "%b",
            ('M' | 'L', 4) => "%B",
            ('d', 1) => "%-d",
            ('d', 2) => "%d",
            ('D', 1) => "%-j",
            ('D', 3) => "%j",
            ('E', 1..=3) => "%a",
            ('E', 4) => "%A",
            ('H', 1) => "%-H",
            ('H', 2) => "%H",
            ('h', 1) => "%-I",
            ('h', 2) => "%I",
            ('m', 1) => "%-M",
            ('m', 2) => "%M",
            ('s', 1) => "%-S",
            ('s', 2) => "%S",
            ('S', 3) => "%3f",
            ('S', 6) => "%6f",
            ('S', 9) => "%9f",
            ('a', 1) => "%p",
            ('\'', _) => {
                let mut text = String::new();
                loop {
                    match chars.next() {
                        Some('\'') if chars.next_if_eq(&'\'').is_some() => text.push('\''),
                        Some('\'') => break,
                        Some(c) => text.push(c),
                        None => return Err(wrong("a ' without its end")),
                    }
                }
                // Two of them are one, outside of text too.
                out.push_str(&if text.is_empty() { "'".to_owned() } else { text.replace('%', "%%") });
                continue;
            }
            ('%', _) => "%%",
            (c, n) if c.is_ascii_alphabetic() || matches!(c, '[' | ']' | '{' | '}' | '#') => {
                return Err(wrong(&format!("`{}`", c.to_string().repeat(n.min(20)))));
            }
            (c, _) => {
                let _ = out.write_char(c);
                continue;
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn patterns_are_translated_and_what_cannot_be_is_named() {
        for (java, chrono) in [
            ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
            ("d.M.yy, h:mm a", "%-d.%-m.%y, %-I:%M %p"),
            ("EEE EEEE D DDD MMM MMMM", "%a %A %-j %j %b %B"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSS", "%Y-%m-%dT%H:%M:%S.%3f"),
            ("hh 'o''clock' '' 100%", "%I o'clock ' 100%%"),
        ] {
            assert_eq!(translate(java).unwrap(), chrono, "{java}");
        }
        for (java, named) in [("yyyy ww", "`ww`"), ("S", "`S`"), ("HH:mm'x", "a ' without its end"), ("[yyyy]", "`[`")]
        {
            let text = translate(java).unwrap_err().to_string();
            assert!(text.contains(&format!("holds {named}, which")), "{text}");
        }
    }
}
