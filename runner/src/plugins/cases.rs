//! `firesteel plugin test`: files of cases, each a statement and what becomes of it.
//!
//! A case begins with `== title`; lines `lang: NAME` and `set: KEY = VALUE` may follow, then the statement, then at least one of the parts
//! `-- sql` (what handlers made of it), `-- rows` (its result) and `-- error` (its message). What stands before the first case is for people.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use firesteel_session::result::row;

use super::tried::{Made, Rows, Tried};
use crate::problem::Problem;

/// A case as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Case<'a> {
    title: &'a str,
    lang: Option<&'a str>,
    settings: Vec<String>,
    text: String,
    /// Each part's name and text.
    parts: Vec<(&'a str, String)>,
}

const PARTS: [&str; 3] = ["sql", "rows", "error"];

/// Reads a file's cases.
fn read(file: &str) -> Result<Vec<Case<'_>>, String> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut in_head = false;
    for (n, line) in file.lines().enumerate() {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case { title, ..Case::default() });
            in_head = true;
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(part) = line.strip_prefix("-- ").filter(|part| PARTS.contains(part) || !case.parts.is_empty()) {
            if !PARTS.contains(&part) {
                return Err(format!("line {}: there is no part `{part}`; there are: {}", n + 1, PARTS.join(", ")));
            }
            case.parts.push((part, String::new()));
        } else if let Some((_, text)) = case.parts.last_mut() {
            *text += line;
            text.push('\n');
        } else if let Some(lang) = line.strip_prefix("lang: ").filter(|_| in_head) {
            case.lang = Some(lang.trim());
        } else if let Some(setting) = line.strip_prefix("set: ").filter(|_| in_head) {
            case.settings.push(setting.trim().to_owned());
        } else {
            in_head = false;
            case.text += line;
            case.text.push('\n');
        }
    }
    match cases.iter().find(|case| case.parts.is_empty()) {
        Some(case) => {
            Err(format!("the case `{}` has no part to compare; there are: -- sql, -- rows, -- error", case.title))
        }
        None => Ok(cases),
    }
}

/// A result as a part `-- rows` has it.
fn shown(Rows { columns, rows }: &Rows) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut text = names.join(" | ");
    for line in rows {
        let members = row::members(line).unwrap_or_default();
        let cell = |name: &str| {
            members.iter().find(|(of, _)| of == name).map_or("NULL".to_owned(), |(_, json)| row::text(json))
        };
        let cells: Vec<String> = names.iter().map(|name| cell(name)).collect();
        let _ = write!(text, "\n{}", cells.join(" | "));
    }
    text
}

/// Runs the cases of a folder. Exit code 1 if one fails.
///
/// # Errors
/// There are none, or they cannot be read.
pub async fn test(tried: &Tried, folder: &Path) -> Result<ExitCode, Problem> {
    let wrong = |path: &Path, e: &dyn std::fmt::Display| Problem::usage(format!("{}: {e}", path.display()));
    let entries = std::fs::read_dir(folder).map_err(|e| wrong(folder, &e))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    let (mut passed, mut failed) = (0, 0);
    for path in &files {
        let text = std::fs::read_to_string(path).map_err(|e| wrong(path, &e))?;
        for case in read(&text).map_err(|why| wrong(path, &why))? {
            let differences = differences(tried, &case).await;
            let mut out = io::stdout().lock();
            if differences.is_empty() {
                passed += 1;
                continue;
            }
            failed += 1;
            writeln!(out, "FAILED {}: {}", path.display(), case.title)?;
            for (part, expected, got) in differences {
                writeln!(out, "-- {part}, expected:\n{expected}\n-- {part}, got:\n{got}")?;
            }
        }
    }
    if passed + failed == 0 {
        return Err(wrong(folder, &"there are no cases; write one into a file that ends in .txt"));
    }
    writeln!(io::stdout(), "{passed} passed, {failed} failed")?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The parts that came out otherwise: name, expected, got.
async fn differences(tried: &Tried, case: &Case<'_>) -> Vec<(String, String, String)> {
    let mut differences = Vec::new();
    let lang = case.lang.unwrap_or_else(|| tried.language());
    let text = case.text.trim();
    for (part, expected) in &case.parts {
        let got = match tried.session(&case.settings).await {
            Err(failure) => Err(failure),
            Ok(session) if *part == "sql" => session.route(lang, text).await.map(|made| match made {
                Made::Sql(sql) => sql,
                Made::Answer(rows) => format!("(answered with {rows} rows)"),
            }),
            Ok(mut session) => session.run(lang, text).await.map(|rows| shown(&rows)),
        };
        let (expected, fails) = (expected.trim(), *part == "error");
        match got {
            Ok(got) if !fails && got.trim() == expected => {}
            Err(failure) if fails && failure.message.trim() == expected => {}
            Ok(got) => differences.push(((*part).to_owned(), expected.to_owned(), got)),
            Err(failure) => {
                differences.push(((*part).to_owned(), expected.to_owned(), format!("error: {}", failure.message)))
            }
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_a_title_a_statement_and_parts() {
        let file = "For people.\n\n== one\nlang: hello\nset: a = b\nx\ny\n-- sql\nSELECT 1\n\n== two\n\n-- error\nno\n";
        let cases = read(file).expect("cases");
        assert_eq!(cases.len(), 2);
        assert_eq!((cases[0].title, cases[0].lang, cases[0].text.as_str()), ("one", Some("hello"), "x\ny\n"));
        assert_eq!((cases[0].settings.as_slice(), cases[0].parts[0].0), (&["a = b".to_owned()][..], "sql"));
        assert_eq!((cases[1].text.trim(), cases[1].parts[0].1.as_str()), ("", "no\n"));
        assert_eq!(
            read("== a\nx\n").expect_err("no part"),
            "the case `a` has no part to compare; there are: -- sql, -- rows, -- error"
        );
        assert_eq!(
            read("== a\nx\n-- sql\ny\n-- rwos\n").expect_err("a wrong part"),
            "line 5: there is no part `rwos`; there are: sql, rows, error"
        );
    }
}
