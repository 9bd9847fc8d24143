//! Reads fields of other programs' documents. Says which field is wrong, never what it holds: that may be a user's.

use std::fmt;

use serde_json::{Map, Value};

/// What a document lacks or has in the wrong form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField(String);

impl BadField {
    /// `field` should be `expected`.
    #[must_use]
    pub fn new(field: &str, expected: &str) -> BadField {
        BadField(format!("field `{field}` should be {expected}"))
    }
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A document's fields. A null is the same as no field.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// The fields of an object.
    ///
    /// # Errors
    /// It is none.
    pub fn of(source: &'a Value) -> Result<Fields<'a>, BadField> {
        source.as_object().map(Fields).ok_or_else(|| BadField("the document should be an object".to_owned()))
    }

    fn get(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|v| !v.is_null())
    }

    /// A text, empty if it is missing.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(self, field: &str) -> Result<&'a str, BadField> {
        match self.get(field) {
            None => Ok(""),
            Some(Value::String(s)) => Ok(s),
            Some(_) => Err(BadField::new(field, "text")),
        }
    }

    /// A text with something in it, or None.
    ///
    /// # Errors
    /// It is something else.
    pub fn some_text(self, field: &str) -> Result<Option<&'a str>, BadField> {
        self.text(field).map(|s| Some(s).filter(|s| !s.is_empty()))
    }

    /// A number that is not negative. None if it is missing; a negative one counts as missing.
    ///
    /// # Errors
    /// It is something else.
    pub fn number(self, field: &str) -> Result<Option<u64>, BadField> {
        match self.get(field) {
            None => Ok(None),
            Some(v) if v.as_i64().is_some_and(|n| n < 0) => Ok(None),
            Some(v) => v.as_u64().map(Some).ok_or_else(|| BadField::new(field, "a whole number")),
        }
    }

    /// False if it is missing.
    ///
    /// # Errors
    /// It is something else.
    pub fn flag(self, field: &str) -> Result<bool, BadField> {
        match self.get(field) {
            None => Ok(false),
            Some(Value::Bool(b)) => Ok(*b),
            Some(_) => Err(BadField::new(field, "true or false")),
        }
    }

    /// A time in epoch milliseconds, 0 if it is missing: a number, the same as text, or `strict_date_time`.
    ///
    /// # Errors
    /// It is something else.
    pub fn time(self, field: &str) -> Result<u64, BadField> {
        let millis = match self.get(field) {
            None => return Ok(0),
            Some(Value::Number(n)) => n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)),
            Some(Value::String(s)) => match s.parse::<i64>() {
                Ok(n) => Some(n),
                Err(_) => chrono::DateTime::parse_from_rfc3339(s).ok().map(|t| t.timestamp_millis()),
            },
            Some(_) => None,
        };
        // Times before 1970 order as 1970: nothing else is done with them.
        millis.map(|n| u64::try_from(n).unwrap_or(0)).ok_or_else(|| BadField::new(field, "a time"))
    }

    /// Texts of an array, empty if it is missing.
    ///
    /// # Errors
    /// It is something else.
    pub fn texts(self, field: &str) -> Result<Vec<&'a str>, BadField> {
        let bad = || BadField::new(field, "an array of texts");
        match self.get(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(|v| v.as_str().ok_or_else(bad)).collect(),
            Some(_) => Err(bad()),
        }
    }

    /// Names written as `"a,b"` or as an array.
    ///
    /// # Errors
    /// It is neither.
    pub fn names(self, field: &str) -> Result<Vec<&'a str>, BadField> {
        let all = match self.get(field) {
            Some(Value::String(s)) => s.split(',').collect(),
            _ => self.texts(field)?,
        };
        Ok(all.into_iter().map(str::trim).filter(|s| !s.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_time_is_a_number_or_text_and_anything_else_is_named_without_its_value() {
        for (written, read) in [
            (json!(1_796_032_083_491_u64), Ok(1_796_032_083_491)),
            (json!("1796032083491"), Ok(1_796_032_083_491)),
            (json!("2026-11-30T13:48:03.491Z"), Ok(1_796_046_483_491)),
            (json!("2026-11-30T14:48:03.491+01:00"), Ok(1_796_046_483_491)),
            (json!(-5), Ok(0)),
            (json!(null), Ok(0)),
            (json!("secret"), Err(BadField("field `t` should be a time".to_owned()))),
            (json!([1]), Err(BadField("field `t` should be a time".to_owned()))),
        ] {
            let document = json!({ "t": written });
            assert_eq!(Fields::of(&document).expect("object").time("t"), read, "{written}");
        }
    }

    #[test]
    fn excluded_jobs_are_text_or_an_array() {
        for written in [json!("a, b,"), json!(["a", "b"])] {
            let document = json!({ "x": written });
            assert_eq!(Fields::of(&document).expect("object").names("x"), Ok(vec!["a", "b"]));
        }
    }
}
