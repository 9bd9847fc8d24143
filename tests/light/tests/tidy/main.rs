//! The rules of this repository that a machine can check. CONTRIBUTING.md says why they are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crates;
mod docs;
mod documents;
mod sources;

/// The cells of the Markdown table whose first header is `first`, row by row, without backticks.
fn table(text: &str, first: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect()
    };
    let mut lines = text.lines().skip_while(|l| !(l.starts_with('|') && cells(l)[0] == first));
    assert!(lines.next().is_some(), "there is no table that begins with '{first}'");
    lines.skip(1).take_while(|l| l.starts_with('|')).map(cells).collect()
}
