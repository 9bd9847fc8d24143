//! The handler that takes statements in PPL.

use firesteel_plugin::{Handler, Plugin, Position, Rejection, Rewritten, Statement, Verdict, host};

use crate::{Catalog, Error, Field, Session, Translated, Type, translate};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("ppl", env!("CARGO_PKG_VERSION"), "PPL, OpenSearch's piped language, as SQL").handler(Ppl)
}

struct Ppl;

impl Handler for Ppl {
    fn languages(&self) -> Vec<String> {
        vec!["ppl".to_owned()]
    }

    fn handle(&self, statement: &Statement) -> Verdict {
        let session = Session { time_zone: host::statement::time_zone() };
        match translate(&statement.text, &Tables, &session) {
            Ok(translated) => Verdict::Rewrite(rewritten(translated)),
            Err(error) => Verdict::Reject(rejection(error)),
        }
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn rewritten(translated: Translated) -> Rewritten {
    let origin = |o: crate::Origin| firesteel_plugin::Origin {
        at: small(o.at),
        position: Position { line: small(o.line), column: small(o.column) },
    };
    let mut origins: Vec<firesteel_plugin::Origin> = translated.origins.into_iter().map(origin).collect();
    origins.dedup_by_key(|o| o.at);
    Rewritten { text: translated.sql, language: "sql".to_owned(), origins }
}

fn rejection(error: Error) -> Rejection {
    Rejection {
        message: error.problem.message,
        position: Some(Position { line: small(error.line), column: small(error.column) }),
        expected: error.problem.expected,
        nearest: error.problem.nearest,
    }
}

/// The runner's tables.
struct Tables;

impl Catalog for Tables {
    fn columns(&self, table: &[&str]) -> Option<Vec<Field>> {
        let fields = host::catalog::columns(table)?;
        Some(fields.into_iter().map(|f| Field::new(f.name, data_type(&f.data_type))).collect())
    }

    fn tables(&self) -> Vec<Vec<String>> {
        host::catalog::tables()
    }
}

/// A type by the name that Arrow's library gives it.
fn data_type(name: &str) -> Type {
    Reader { rest: name }.data_type(0)
}

/// Reads the names of types.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// What stands before a bracket or a comma; the rest begins with it.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(['(', ')', ',']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.trim()
    }

    /// Goes behind the bracket that closes the one that is open; what stood between.
    fn brackets(&mut self) -> &'a str {
        let inner = self.rest.strip_prefix('(').unwrap_or_default();
        let (mut depth, mut quoted, mut escaped) = (1, false, false);
        for (n, c) in inner.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &inner[n + 1..];
                return &inner[..n];
            }
        }
        self.rest = "";
        inner
    }

    fn data_type(&mut self, depth: usize) -> Type {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix("non-null ").unwrap_or(self.rest);
        let word = self.word();
        let inside = if self.rest.starts_with('(') { self.brackets() } else { "" };
        match word {
            "Boolean" => Type::Boolean,
            "Utf8" => Type::Text,
            "Date32" | "Date64" => Type::Date,
            "Timestamp" if inside.contains('"') => Type::Instant,
            "Timestamp" => Type::Timestamp,
            "Null" => Type::Null,
            "Interval" | "Duration" => Type::Interval,
            "List" | "LargeList" if depth < 8 => Type::List(Box::new(Reader { rest: inside }.data_type(depth + 1))),
            "Struct" if depth < 8 => Type::Struct(Reader { rest: inside }.fields(depth + 1)),
            _ if word.starts_with("Int") || word.starts_with("UInt") => Type::Integer,
            _ if word.starts_with("Float") || word.starts_with("Decimal") => Type::Number,
            _ if word.starts_with("Time") => Type::Time,
            _ => Type::Unknown,
        }
    }

    /// `"a": Int64, "b": non-null Utf8`
    fn fields(&mut self, depth: usize) -> Vec<Field> {
        let mut fields = Vec::new();
        while let Some(quoted) = self.rest.trim_start().strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices();
            let mut end = quoted.len();
            while let Some((n, c)) = chars.next() {
                match c {
                    '"' => {
                        end = n + 1;
                        break;
                    }
                    '\\' => name.extend(chars.next().map(|(_, c)| c)),
                    c => name.push(c),
                }
            }
            self.rest = quoted[end..].trim_start().strip_prefix(':').unwrap_or_default();
            let data_type = self.data_type(depth);
            fields.push(Field::new(name, data_type));
            // What the type has behind it, such as metadata, is left out.
            self.rest = self.rest.find(',').map_or("", |n| &self.rest[n + 1..]);
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn types_are_read_from_their_names() {
        let integer = |name: &str| Field::new(name, Type::Integer);
        for (name, found) in [
            ("Int64", Type::Integer),
            ("Decimal128(10, 2)", Type::Number),
            ("Timestamp(µs)", Type::Timestamp),
            ("Timestamp(ns, \"Europe/Berlin\")", Type::Instant),
            ("Time64(µs)", Type::Time),
            ("List(non-null Utf8)", Type::List(Box::new(Type::Text))),
            (
                "Struct(\"a\": Int64, \"b, \\\"c\": non-null Struct(\"d\": Int32, \"e\": List(Utf8)), \"f\": Timestamp(s, \"UTC\"))",
                Type::Struct(vec![
                    integer("a"),
                    Field::new(
                        "b, \"c",
                        Type::Struct(vec![integer("d"), Field::new("e", Type::List(Box::new(Type::Text)))]),
                    ),
                    Field::new("f", Type::Instant),
                ]),
            ),
            ("Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": Int64), unsorted)", Type::Unknown),
            ("Struct(", Type::Struct(vec![])),
        ] {
            assert_eq!(data_type(name), found, "{name}");
        }
    }

    #[test]
    fn a_statement_is_rewritten_with_its_places_or_rejected_with_one() {
        let host = Host::new().table(&["logs"], [firesteel_plugin::Field::new("status", "Int64")]);
        let Verdict::Rewrite(new) = host.handle(&plugin(), "ppl", "source=logs | where status > 400") else {
            panic!("it is not rewritten")
        };
        assert_eq!((new.language.as_str(), new.text.as_str()), ("sql", "SELECT * FROM `logs` WHERE (`status` > 400)"));
        let place = |at| new.origins.iter().rev().find(|o| o.at <= at).map(|o| o.position);
        assert_eq!(place(30), Some(Position { line: 1, column: 21 }));
        let wrong = host.handle(&plugin(), "ppl", "source=logs |\n wher status > 400");
        let rejected = Rejection { nearest: Some("where".into()), ..Rejection::at(2, 2, "there is no command `wher`") };
        assert_eq!(wrong, Verdict::Reject(rejected));
        assert_eq!(host.handle(&plugin(), "sql", "SELECT 1"), Verdict::Pass);
    }
}
