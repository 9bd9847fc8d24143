//! The pages against what they tell of.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use firesteel_model::Code;
use firesteel_model::statement::{Event, StatementState, next};
use firesteel_tests_light::{files, read, root};

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<String> = Code::ALL.iter().map(|c| c.as_str().to_owned()).collect();
    let mut pages = BTreeSet::new();
    for file in files().into_iter().filter(|f| f.starts_with("docs/errors") && !f.ends_with("README.md")) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = read(&file);
        assert!(text.starts_with(&format!("# {name}\n")), "{}: begins with its code", file.display());
        for heading in ["## What happened", "## What to do", "## Example"] {
            assert!(text.contains(heading), "{}: has no '{heading}'", file.display());
        }
        pages.insert(name);
    }
    assert_eq!(pages, codes, "pages in docs/errors (left), codes of the model (right)");
    let index = read("docs/errors/README.md");
    let listed: BTreeSet<String> = crate::table(&index, "code").into_iter().map(|r| r[0].clone()).collect();
    let links: BTreeSet<String> = codes.iter().map(|c| format!("[{c}]({c}.md)")).collect();
    assert_eq!(listed, links, "the table of docs/errors/README.md (left), codes of the model (right)");
}

/// `UPDATE_EXPECT=1` writes the page anew.
#[test]
fn the_page_of_states_is_what_the_model_does() {
    let error = || "error".to_owned();
    let states = [
        StatementState::Waiting,
        StatementState::Running { job: None },
        StatementState::Success,
        StatementState::Failed { error: error() },
        StatementState::Timeout { error: error() },
        StatementState::Cancelled,
    ];
    let events = [
        ("claim", Event::Claim { job: None }),
        ("succeed", Event::Succeed),
        ("fail", Event::Fail { error: error() }),
        ("time out", Event::TimeOut { error: error() }),
        ("cancel", Event::Cancel),
        ("release", Event::Release),
    ];
    let mut page = String::from(
        "# States\n\nPrinted from the model by a test of `tests/light/tests/tidy`; `UPDATE_EXPECT=1 scripts/test tidy` writes it anew.\n\
         A dash is a step that does not exist: the model answers it with an error, and nothing is written.\n\n\
         ![A statement's life](statement.svg)\n\n## Statement\n\n| from \\ event |",
    );
    events.iter().for_each(|(name, _)| write!(page, " {name} |").unwrap());
    page.push_str("\n|---|---|---|---|---|---|---|\n");
    for from in &states {
        write!(page, "| **{}** |", from.name()).unwrap();
        for (_, event) in &events {
            write!(page, " {} |", next(from, event.clone()).map_or("–", |to| to.name())).unwrap();
        }
        page.push('\n');
    }
    page.push_str(include_str!("states-tail.md"));
    expect_file!["../../../../docs/states.md"].assert_eq(&page);
}

/// GitHub's name for a heading, as far as ours need it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
    kept.trim().replace(' ', "-")
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    for page in files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "md")) {
        for link in read(&page).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.parent().unwrap_or(Path::new("")).join(file),
            };
            assert!(root().join(&target).exists(), "{}: nothing at {link}", page.display());
            if !part.is_empty() {
                let headings: Vec<_> = read(&target).lines().filter(|l| l.starts_with('#')).map(anchor).collect();
                assert!(headings.iter().any(|h| h == part), "{}: no heading for {link}", page.display());
            }
        }
    }
}

#[test]
fn the_architecture_fits_on_a_few_screens() {
    assert!(read("ARCHITECTURE.md").lines().count() <= 200);
    assert!(read("CONTRIBUTING.md").lines().count() <= 100);
}
