//! The files of cases: what a text of PPL becomes. Here the SQL is compared; the engine's tests run the same files and compare the rows.
//!
//! `UPDATE_EXPECT=1` writes the SQL anew.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod catalog;

use std::fmt::Write;
use std::path::Path;

use firesteel_ppl::{Session, translate};

/// A case begins with `== title`, and has the parts `-- sql`, which is written by this test, and `-- rows`, by the engine's.
struct Case {
    title: String,
    text: String,
    sql: String,
    rows: String,
}

fn read(file: &str) -> (String, Vec<Case>) {
    let mut parts = file.split("\n== ");
    let head = parts.next().unwrap_or_default().to_owned();
    let cases = parts.map(|part| {
        let (title, body) = part.split_once('\n').unwrap_or((part, ""));
        let (body, rows) = body.split_once("\n-- rows\n").unwrap_or((body, ""));
        let (text, sql) = body.split_once("\n-- sql\n").unwrap_or((body, ""));
        let trimmed = |s: &str| s.trim().to_owned();
        Case { title: trimmed(title), text: trimmed(text), sql: trimmed(sql), rows: rows.trim_end().to_owned() }
    });
    (head, cases.collect())
}

fn written(head: &str, cases: &[Case]) -> String {
    let mut out = head.trim_end().to_owned() + "\n";
    for Case { title, text, sql, rows } in cases {
        write!(out, "\n== {title}\n{text}\n-- sql\n{sql}\n").unwrap();
        if !rows.is_empty() {
            write!(out, "-- rows\n{rows}\n").unwrap();
        }
    }
    out.trim_end().to_owned() + "\n"
}

fn session(text: &str) -> (Session, &str) {
    // `zone: Europe/Berlin` in the first line sets the session's time zone.
    match text.strip_prefix("zone: ").and_then(|rest| rest.split_once('\n')) {
        Some((zone, rest)) => (Session { time_zone: zone.trim().to_owned() }, rest),
        None => (Session::default(), text),
    }
}

#[test]
fn texts_become_the_sql_that_stands_in_the_files_of_cases() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let before = std::fs::read_to_string(&path).unwrap();
        let (head, mut cases) = read(&before);
        for case in &mut cases {
            let (session, text) = session(&case.text);
            case.sql = match translate(text, &catalog::Tables, &session) {
                Ok(translated) => translated.sql,
                Err(error) => format!("error: {error}"),
            };
            count += 1;
        }
        let after = written(&head, &cases);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, after).unwrap();
        } else {
            assert!(after == before, "{} is not as it is made now; see what UPDATE_EXPECT=1 changes", path.display());
        }
    }
    assert!(count > 100, "only {count} cases were found");
}
