//! What the light tests share: where the repository is, and what is in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's folder.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The text of a file of the repository, named from its folder.
///
/// # Panics
/// If it cannot be read: the test that asks for it has failed.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files that are, or are about to be, in the repository, named from its folder.
///
/// # Panics
/// If git does not answer: the test that asks has failed.
#[must_use]
pub fn files() -> Vec<PathBuf> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(git.status.success(), "git ls-files: {}", String::from_utf8_lossy(&git.stderr));
    let mut names: Vec<PathBuf> =
        git.stdout.split(|b| *b == 0).filter_map(|n| std::str::from_utf8(n).ok()).map(PathBuf::from).collect();
    names.retain(|n| root().join(n).is_file());
    names
}
