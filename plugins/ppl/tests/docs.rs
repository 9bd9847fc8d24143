//! `docs/ppl.md` says what there is, and its examples are cases.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_example_of_the_page_is_a_case() {
    let page = read("../../docs/ppl.md");
    let cases: String =
        ["commands", "stats", "join", "search", "functions"].map(|f| read(&format!("tests/cases/{f}.txt"))).concat();
    let examples: Vec<&str> =
        page.split("```ppl\n").skip(1).map(|rest| rest.split("```").next().unwrap().trim()).collect();
    assert!(examples.len() > 5);
    for example in examples {
        assert!(cases.contains(&format!("\n{example}\n-- sql\n")), "no case has the example\n{example}");
    }
}

#[test]
fn every_command_and_function_is_on_the_page() {
    let page = read("../../docs/ppl.md");
    let names = firesteel_ppl::names();
    assert!(names.len() > 150);
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/ppl.md does not name `{name}`");
    }
}
