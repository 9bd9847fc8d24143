//! What a new plugin gets is all that it needs.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../files.rs"]
mod files;

use std::path::Path;

fn here(folder: &str, prefix: &str) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .unwrap()
        .map(|f| format!("{prefix}/{}", f.unwrap().file_name().to_string_lossy()))
        .collect();
    all.sort();
    all
}

#[test]
fn the_list_holds_every_file_of_the_sdk_and_of_the_interface() {
    let listed: Vec<&str> = files::SDK.iter().map(|(path, _)| *path).collect();
    let mut there = vec!["firesteel/sdk/Cargo.toml".to_owned()];
    there.extend(here("src", "firesteel/sdk/src"));
    there.extend(here("../wit/0.1.0", "firesteel/wit/0.1.0"));
    assert_eq!(listed, there);
}

#[test]
fn a_new_plugin_passes_its_own_tests() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-plugin");
    let _ = std::fs::remove_dir_all(&folder);
    let filled = |text: &str| {
        text.replace("{{name}}", "shout").replace("{{crate}}", "shout").replace("{{sdk}}", "firesteel/sdk")
    };
    let files = files::TEMPLATE.iter().map(|(path, text)| (path, filled(text)));
    for (path, text) in files.chain(files::SDK.iter().map(|(path, text)| (path, (*text).to_owned()))) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // The same versions as here, so that nothing is looked up.
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let cargo = std::process::Command::new(env!("CARGO"))
        .arg("test")
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&cargo.stdout), String::from_utf8_lossy(&cargo.stderr));
    assert!(cargo.status.success() && out.contains("2 passed"), "{out}\n{err}");
}
