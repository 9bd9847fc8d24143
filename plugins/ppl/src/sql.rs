//! SQL under construction. A value of this type is made of fixed words, quoted names and escaped literals only: nothing of the
//! user's text gets into the result any other way. It remembers which part came from where.

use std::fmt;

/// A piece of SQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sql {
    text: String,
    marks: Vec<Mark>,
}

/// From a byte of the SQL on, it comes from this byte of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Byte offset in the SQL.
    pub at: usize,
    /// Byte offset in the source.
    pub source: usize,
}

impl fmt::Display for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// SQL with other pieces in the places of `{}`.
macro_rules! sql {
    ($template:literal $(, $piece:expr)* $(,)?) => { $crate::sql::Sql::of($template, &[$(&$piece),*]) };
}
pub(crate) use sql;

impl Sql {
    /// Fixed SQL with pieces in the places of `{}`.
    pub fn of(template: &'static str, pieces: &[&Sql]) -> Sql {
        let mut out = Sql::default();
        let mut pieces = pieces.iter();
        for (n, part) in template.split("{}").enumerate() {
            if n > 0
                && let Some(piece) = pieces.next()
            {
                out.push(piece);
            }
            out.text.push_str(part);
        }
        debug_assert_eq!(template.matches("{}").count() + pieces.len(), template.matches("{}").count(), "{template}");
        out
    }

    /// A quoted name.
    pub fn name(name: &str) -> Sql {
        Sql { text: format!("`{}`", name.replace('`', "``")), marks: Vec::new() }
    }

    /// A name in parts.
    pub fn path<'a>(parts: impl IntoIterator<Item = &'a str>) -> Sql {
        let parts: Vec<Sql> = parts.into_iter().map(Sql::name).collect();
        Sql::join(&parts, ".")
    }

    /// A literal text.
    pub fn text(text: &str) -> Sql {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('\'');
        for c in text.chars() {
            if matches!(c, '\'' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('\'');
        Sql { text: out, marks: Vec::new() }
    }

    /// A literal number, as the lexer has read it.
    pub fn number(digits: &str) -> Sql {
        debug_assert!(
            digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')),
            "{digits}"
        );
        Sql { text: digits.to_owned(), marks: Vec::new() }
    }

    /// A literal whole number.
    pub fn integer(number: impl Into<i128>) -> Sql {
        Sql { text: number.into().to_string(), marks: Vec::new() }
    }

    /// A call of a function.
    pub fn call(name: &'static str, args: &[Sql]) -> Sql {
        let mut out = Sql { text: format!("{name}("), marks: Vec::new() };
        out.push(&Sql::join(args, ", "));
        out.text.push(')');
        out
    }

    /// Pieces in a row.
    pub fn join(pieces: &[Sql], between: &'static str) -> Sql {
        let mut out = Sql::default();
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 {
                out.text.push_str(between);
            }
            out.push(piece);
        }
        out
    }

    /// Remembers that this comes from a place in the source.
    #[must_use]
    pub fn from(mut self, source: usize) -> Sql {
        if self.marks.first().is_none_or(|m| m.at > 0) {
            self.marks.insert(0, Mark { at: 0, source });
        }
        self
    }

    /// What comes from where, ascending.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    fn push(&mut self, piece: &Sql) {
        let begins = self.text.len();
        self.text.push_str(&piece.text);
        self.marks.extend(piece.marks.iter().map(|m| Mark { at: begins + m.at, source: m.source }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_leave_their_quotes() {
        assert_eq!(Sql::name("a`b").to_string(), "`a``b`");
        assert_eq!(Sql::text(r"it's \ '").to_string(), r"'it\'s \\ \''");
        assert_eq!(Sql::path(["a", "b.c"]).to_string(), "`a`.`b.c`");
    }

    #[test]
    fn parts_remember_where_they_come_from() {
        let call = Sql::call("f", &[Sql::name("a").from(7), Sql::name("b").from(9)]).from(5);
        let all = sql!("SELECT {} FROM t", call);
        assert_eq!(all.to_string(), "SELECT f(`a`, `b`) FROM t");
        let marks: Vec<(usize, usize)> = all.marks().iter().map(|m| (m.at, m.source)).collect();
        assert_eq!(marks, [(7, 5), (9, 7), (14, 9)]);
    }
}
