//! What every source file keeps to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use firesteel_tests_light::{files, read, root};

const LONGEST: usize = 500;

fn rust() -> impl Iterator<Item = PathBuf> {
    files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"))
}

fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests" || part == "tests.rs")
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = rust().filter(|f| !read(f).starts_with("//! ")).collect();
    assert!(silent.is_empty(), "these do not open with `//!`: {silent:?}");
}

/// `long-files.txt` has the few that are longer, with their length, which may only shrink.
#[test]
fn no_file_is_long() {
    let known = read("tests/light/tests/tidy/long-files.txt");
    let known: BTreeMap<&str, usize> = known
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split_once(' ').map(|(file, n)| (file, n.parse().unwrap())).expect("FILE LENGTH"))
        .collect();
    let mut lengths = BTreeMap::new();
    for file in rust().filter(|f| !is_test(f)) {
        let lines = read(&file).lines().take_while(|l| l.trim() != "#[cfg(test)]").count();
        lengths.insert(file.to_string_lossy().into_owned(), lines);
    }
    for (file, lines) in &lengths {
        match known.get(file.as_str()) {
            None => assert!(*lines <= LONGEST, "{file} has {lines} lines without its tests; split it by what it does"),
            Some(n) => assert_eq!(lines, n, "long-files.txt has another length for {file}; it may only go down"),
        }
    }
    for file in known.keys() {
        assert!(
            lengths.get(*file).is_some_and(|n| *n > LONGEST),
            "{file} is no longer long: take it out of long-files.txt"
        );
    }
}

#[test]
fn no_module_is_named_after_nothing() {
    for file in rust() {
        for part in file.with_extension("").iter().filter_map(|p| p.to_str()) {
            let empty = ["common", "types", "util", "utils", "helper", "helpers", "core", "misc", "xtask"];
            assert!(!empty.contains(&part), "{}: name the module after what it is about", file.display());
        }
    }
}

#[test]
fn no_type_is_named_after_a_role() {
    for file in rust() {
        for line in read(&file).lines() {
            let mut words = line.split_whitespace().skip_while(|w| !["struct", "enum", "trait"].contains(w)).skip(1);
            let Some(word) = words.next() else { continue };
            let name: String = word.chars().take_while(|c| c.is_alphanumeric()).collect();
            let role =
                ["Manager", "Service", "Helper", "Util", "Utils", "Impl"].into_iter().find(|r| name.ends_with(r));
            assert_eq!(role, None, "{}: {name}", file.display());
        }
    }
}

/// What holds on one machine only, or names a server that a mirror may stand for, does not belong here.
#[test]
fn no_file_names_a_machine() {
    let needles = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("crates.", "io-index"),
        concat!("repo.", "maven"),
        concat!("pypi.", "org"),
        concat!("registry.", "npmjs"),
        concat!("docker.", "io/"),
        concat!("deb.", "debian"),
    ];
    for file in files().into_iter().filter(|f| f.file_name() != Some("Cargo.lock".as_ref())) {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        let found = needles.iter().find(|n| text.contains(*n));
        assert_eq!(found, None, "{}", file.display());
    }
}

#[test]
fn no_test_is_switched_off() {
    for file in rust() {
        let text = read(&file);
        for switch in [concat!("#[ig", "nore"), concat!("todo", "!("), concat!("dbg", "!(")] {
            assert!(!text.contains(switch), "{}: {switch}", file.display());
        }
    }
}
