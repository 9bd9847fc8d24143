//! Texts that nobody would write: no panic, no long time, nothing outside of quotes.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod catalog;

use std::fmt::Write;

use firesteel_ppl::{Catalog, Field, Session, Type, translate};

fn sql(text: &str) -> Result<String, String> {
    translate(text, &catalog::Tables, &Session::default()).map(|t| t.sql).map_err(|e| e.to_string())
}

#[test]
fn the_sql_is_as_long_as_the_text() {
    let texts: [fn(usize) -> String; 4] = [
        |n| format!("source=numbers{}", " | where n > 1".repeat(n)),
        |n| (0..n).fold("source=numbers".to_owned(), |t, i| format!("{t} | eval n = n + {i}")),
        |n| format!("source=numbers | where {}n = 1", "n = 0 or ".repeat(n)),
        |n| format!("source=numbers | eval a = n{}", " + n".repeat(n)),
    ];
    for text in texts {
        let length = |n: usize| sql(&text(n)).unwrap().len();
        let (few, many) = (length(20) - length(10), length(200) - length(100));
        assert!(many < few * 14, "ten more stages are {few} bytes, a hundred more {many}: {}", text(3));
    }
}

#[test]
fn nesting_has_a_limit_that_is_told() {
    for (open, close) in [
        ("(", ")"),
        ("abs(", ")"),
        ("not ", ""),
        ("- ", ""),
        ("[ source=numbers | where n > ", "]"),
        ("case(true, ", ")"),
    ] {
        let text = format!("source=numbers | where n > {}1{}", open.repeat(5000), close.repeat(5000));
        let error = sql(&text).unwrap_err();
        assert!(error.contains("deeper than 40 levels") || error.contains("unexpected"), "{open}: {error}");
    }
}

#[test]
fn texts_that_lost_a_piece_are_told_of_or_translated() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut tried = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let file = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in file.split("\n== ").skip(1) {
            let text = case.split("\n-- sql").next().unwrap().split_once('\n').unwrap().1;
            let words: Vec<&str> = text.split(' ').collect();
            for n in 0..words.len() {
                let mut without = words.clone();
                without.remove(n);
                let mut twice = words.clone();
                twice.insert(n, words[n]);
                let end: String = text.chars().take(text.chars().count() * n / words.len()).collect();
                for text in [without.join(" "), twice.join(" "), end] {
                    tried += 1;
                    if let Err(error) = translate(&text, &catalog::Tables, &Session::default()) {
                        assert!(error.line >= 1 && error.line <= text.lines().count().max(1), "{text}: {error}");
                        let message = error.problem.message;
                        assert!(!message.starts_with(char::is_uppercase), "{message}");
                    }
                }
            }
        }
    }
    assert!(tried > 5000, "only {tried}");
}

/// A table whose names are as bad as names can be.
struct Bad;

const NAMES: [&str; 6] = ["a`b", "a'b", "a.b", "", "select", "ünï \u{1F600} \\"];

impl Catalog for Bad {
    fn columns(&self, _: &[&str]) -> Option<Vec<Field>> {
        Some(NAMES.iter().map(|n| Field::new(*n, Type::Struct(vec![Field::new("x'`", Type::Text)]))).collect())
    }
    fn tables(&self) -> Vec<Vec<String>> {
        vec![vec!["t`; DROP TABLE x".to_owned()]]
    }
}

/// What is left when names and texts are taken out.
fn skeleton(sql: &str) -> String {
    let mut out = String::new();
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        if !matches!(c, '`' | '\'') {
            out.push(c);
            continue;
        }
        while let Some(inside) = chars.next() {
            if inside == '\\' && c == '\'' {
                chars.next();
            } else if inside == c {
                if chars.peek() != Some(&c) || c == '\'' {
                    break;
                }
                chars.next();
            }
        }
        out.push('_');
    }
    out
}

#[test]
fn nothing_that_a_user_wrote_stands_outside_of_quotes() {
    let mut text = "source=`t``; DROP TABLE x` 'it''s \\\\' ".to_owned();
    for (n, name) in NAMES.iter().enumerate() {
        let quoted = name.replace('`', "``");
        write!(text, " | eval `new {n}` = concat(\"'\\\\\", '\\'', \"`\") | where `{quoted}` is not null | sort - `{quoted}.x'```").unwrap();
    }
    text.push_str(" | head 3 | dedup `a``b` | rename `a'b` as `') OR 1=1 --` | parse `new 0` '(?<g>\\'.*)' | stats count() as `');--`, take(`new 1`) by `') OR 1=1 --`");
    let sql = translate(&text, &Bad, &Session { time_zone: "UTC' OR '".to_owned() }).unwrap().sql;
    let skeleton = skeleton(&sql);
    assert!(skeleton.chars().all(|c| c.is_ascii_alphanumeric() || " (),=<>_*|.{}".contains(c)), "{skeleton}");
    assert!(!skeleton.contains("DROP") && !skeleton.contains("OR 1=1"), "{skeleton}");
}

#[test]
fn parts_of_the_sql_know_their_places() {
    let text = "source=accounts\n| where age >\n  agee2 | eval agee2 = 1".replace("agee2 |", "balance |");
    let translated = translate(&text, &catalog::Tables, &Session::default()).unwrap();
    let place = |part: &str| {
        let at = translated.sql.find(part).unwrap();
        let origin = translated.origins.iter().rev().find(|o| o.at <= at).unwrap();
        (origin.line, origin.column)
    };
    assert_eq!(place("`accounts`"), (1, 8));
    assert_eq!(place("`age` >"), (2, 9));
    assert_eq!(place("`balance`)"), (3, 3));
    assert!(translated.origins.is_sorted_by_key(|o| o.at));
}
