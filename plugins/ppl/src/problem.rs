//! What is wrong with a text, and where: an offset while parsing, a line and a column for the user.

use std::fmt;

/// A message about a place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset of the place.
    pub at: usize,
    /// What is wrong and what to do; lower case, no full stop.
    pub message: String,
    /// What could have stood there.
    pub expected: Vec<String>,
    /// The valid word that is nearest to the wrong one.
    pub nearest: Option<String>,
}

impl Problem {
    /// A problem at a byte offset.
    pub fn new(at: usize, message: impl Into<String>) -> Problem {
        Problem { at, message: message.into(), expected: Vec::new(), nearest: None }
    }

    /// A name that is none; the nearest of those that are there is proposed, else some of them are listed.
    pub fn no_such<'a>(at: usize, what: &str, wanted: &str, there: impl IntoIterator<Item = &'a str>) -> Problem {
        let there: Vec<&str> = there.into_iter().collect();
        let nearest = nearest(wanted, &there).map(str::to_owned);
        let mut message = format!("there is no {what} `{}`", shortened(wanted));
        if nearest.is_none() && !there.is_empty() {
            let some: Vec<String> = there.iter().take(10).map(|n| format!("`{}`", shortened(n))).collect();
            let more = if there.len() > 10 { ", …" } else { "" };
            message.push_str(&format!("; there is {}{more}", some.join(", ")));
        }
        Problem { nearest, ..Problem::new(at, message) }
    }

    /// The same with the place as people count it.
    #[must_use]
    pub fn place(self, text: &str) -> Error {
        let (line, column) = place(text, self.at);
        Error { line, column, problem: self }
    }
}

/// Line and column of a byte offset, both from 1, the column in characters.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let begins = before.rfind('\n').map_or(0, |n| n + 1);
    (before.bytes().filter(|b| *b == b'\n').count() + 1, before[begins..].chars().count() + 1)
}

/// Why a text has no translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { message, expected, nearest, .. } = &self.problem;
        write!(f, "line {}, column {}: {message}", self.line, self.column)?;
        if !expected.is_empty() {
            write!(f, "; expected {}", expected.join(" or "))?;
        }
        match nearest {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The candidate that a typing mistake may have missed.
pub fn nearest<'a>(wanted: &str, there: &[&'a str]) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    // Distance is quadratic in the length, and names come from outside.
    if wanted.len() > 100 {
        return None;
    }
    let reach = ((wanted.chars().count() + 1) / 3).max(1);
    there
        .iter()
        .filter(|name| name.len() <= 100)
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), *name))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A part of the text, short enough for a message.
pub fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        for (text, at, found) in
            [("", 0, (1, 1)), ("ab", 1, (1, 2)), ("é|x", 3, (1, 3)), ("a\nbc", 3, (2, 2)), ("a", 9, (1, 2))]
        {
            assert_eq!(place(text, at), found, "{text:?} {at}");
        }
    }

    #[test]
    fn the_nearest_name_is_proposed_and_no_far_one() {
        for (wanted, there, message) in [
            ("agee", &["age", "name"][..], "line 1, column 1: there is no field `agee`; did you mean `age`?"),
            ("zzz", &["age", "name"], "line 1, column 1: there is no field `zzz`; there is `age`, `name`"),
            ("t", &[], "line 1, column 1: there is no field `t`"),
        ] {
            let problem = Problem::no_such(0, "field", wanted, there.iter().copied());
            assert_eq!(problem.place("").to_string(), message);
        }
    }
}
