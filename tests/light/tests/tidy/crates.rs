//! Who may use what: the table in ARCHITECTURE.md against the manifests and the lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use firesteel_tests_light::{files, read, root};
use serde_json::Value;

use crate::table;

type Names = BTreeSet<String>;

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let out = Command::new(cargo).args(arguments).args(["--offline", "--locked"]).current_dir(root()).output().unwrap();
    assert!(out.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Each crate of the workspace, without the prefix that all share, with what it names: ours and others'.
fn crates() -> BTreeMap<String, (Names, Names)> {
    let short = |name: &Value| name.as_str().unwrap().trim_start_matches("firesteel-").to_owned();
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let named = |package: &Value| {
        let (ours, others): (Vec<_>, Vec<_>) =
            package["dependencies"].as_array().unwrap().iter().partition(|d| d["path"].is_string());
        (ours.iter().map(|d| short(&d["name"])).collect(), others.iter().map(|d| short(&d["name"])).collect())
    };
    packages.map(|p| (short(&p["name"]), named(p))).collect()
}

/// The same from ARCHITECTURE.md: what a crate may use of ours, and which restricted ones of others'.
fn allowed() -> BTreeMap<String, (Names, Names)> {
    let names = |cell: &str| cell.split(',').map(|n| n.trim().to_owned()).filter(|n| n != "–").collect();
    let rows = table(&read("ARCHITECTURE.md"), "crate");
    rows.into_iter().map(|r| (r[0].clone(), (names(&r[1]), names(&r[2])))).collect()
}

#[test]
fn every_crate_uses_only_what_the_architecture_allows() {
    let allowed = allowed();
    let restricted: Names = allowed.values().flat_map(|(_, others)| others.clone()).collect();
    for (name, (ours, others)) in crates() {
        let Some((may, only)) = allowed.get(&name) else {
            panic!("ARCHITECTURE.md's table has no row for the crate '{name}'")
        };
        let wrong: Vec<_> = ours.difference(may).collect();
        assert!(wrong.is_empty(), "{name} may not use {wrong:?}");
        let wrong: Vec<_> = others.intersection(&restricted).filter(|o| !only.contains(*o)).collect();
        assert!(wrong.is_empty(), "{name} may not name {wrong:?}: another crate fences it");
        let unused: Vec<_> = only.difference(&others).collect();
        assert!(unused.is_empty(), "{name} no longer names {unused:?}: take it out of ARCHITECTURE.md's table");
    }
}

#[test]
fn the_model_uses_the_standard_library_only() {
    assert_eq!(crates()["model"], (Names::new(), Names::new()));
}

#[test]
fn what_is_large_or_meets_at_a_seam_is_there_once() {
    let lock = read("Cargo.lock");
    for name in ["arrow-array", "arrow-schema", "datafusion", "object_store", "parquet", "rustls", "tokio"] {
        assert_eq!(lock.matches(&format!("name = \"{name}\"\n")).count(), 1, "versions of {name} in Cargo.lock");
    }
}

/// Else `cargo run` and `cargo test` would each build that crate, and all that use it, for themselves. The light tests are left out here as
/// they are in `scripts/test`: they build what they use for themselves, which is not much.
#[test]
fn the_tests_add_no_feature_to_what_the_program_uses() {
    // A package that macros use, too, is there with their features and with the program's.
    let tree = |edges: &str| -> BTreeMap<String, Names> {
        let lines = cargo(&[
            "tree",
            "--workspace",
            "--exclude",
            "firesteel-tests-light",
            "-e",
            edges,
            "-f",
            "{p}|{f}",
            "--prefix",
            "none",
        ]);
        let mut packages = BTreeMap::<String, Names>::new();
        for (package, features) in lines.lines().filter_map(|l| l.trim_end_matches(" (*)").split_once('|')) {
            packages.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
        packages
    };
    let tested = tree("normal,build,dev");
    for (package, features) in tree("normal,build") {
        assert_eq!(tested[&package], features, "features of {package} with the tests, and without them");
    }
}

/// Plugins that were built for a released interface go on working: a change is a new folder. A line of a new folder is what the failure shows.
#[test]
fn released_interfaces_of_plugins_are_unchanged() {
    let released = [("0.1.0", "17f60cd15b1c9df1")];
    let mut folders = BTreeSet::new();
    for (version, expected) in released {
        let folder = format!("plugins/wit/{version}/");
        let mut files: Vec<_> = files().into_iter().filter(|f| f.starts_with(&folder)).collect();
        files.sort();
        // FNV-1a of all their bytes, in the order of their names.
        let hash = files
            .iter()
            .flat_map(|f| read(f).into_bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        assert_eq!(format!("{hash:016x}"), expected, "the files of {folder}");
        folders.insert(folder);
    }
    let all = files().into_iter().filter(|f| f.starts_with("plugins/wit/"));
    let left: Vec<_> = all.filter(|f| !folders.iter().any(|folder| f.starts_with(folder))).collect();
    assert!(left.is_empty(), "{left:?} belong to no version that is listed here");
}

#[test]
fn every_test_belongs_to_a_tier() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let script = read("scripts/test");
    for target in metadata["packages"].as_array().unwrap().iter().flat_map(|p| p["targets"].as_array().unwrap()) {
        let name = target["name"].as_str().unwrap();
        let run = target["kind"][0] != "test" || script.contains(&format!("--test {name}"));
        assert!(run, "scripts/test runs no test named {name}: give it a tier there");
    }
}
