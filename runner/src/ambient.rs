//! What this program takes from its surroundings: randomness, names of folders and of the user.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use directories::ProjectDirs;

/// Thirty-two hexadecimal digits that nobody else has.
///
/// # Panics
/// The operating system has no randomness, without which no id is safe.
#[must_use]
pub fn unique() -> String {
    let number = getrandom::u64().and_then(|a| getrandom::u64().map(|b| (u128::from(a) << 64) | u128::from(b)));
    format!("{:032x}", number.expect("the operating system must have randomness"))
}

/// The user's folder for Firesteel's data.
#[must_use]
pub fn data_folder() -> PathBuf {
    ProjectDirs::from("", "", "firesteel")
        .map_or_else(|| std::env::temp_dir().join("firesteel"), |dirs| dirs.data_dir().to_owned())
}

/// Epoch milliseconds by this machine's clock, for what is signed.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one file of this crate that may")]
pub fn wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Where compiled code may be kept: the user's folder for what can be made anew, else one of this user's in the temporary folder.
#[must_use]
pub fn cache_folders() -> Vec<PathBuf> {
    let of_user = ProjectDirs::from("", "", "firesteel").map(|dirs| dirs.cache_dir().join("plugins"));
    let number = std::fs::metadata("/proc/self").map_or(0, |found| found.uid());
    of_user.into_iter().chain([std::env::temp_dir().join(format!("firesteel-plugins-{number}"))]).collect()
}

/// Who runs the program, for the record of who submitted a statement.
#[must_use]
pub fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|user| !user.is_empty() && user.len() <= 256)
}

/// What this machine is called.
#[must_use]
pub fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// A variable of the environment that a launcher sets.
#[must_use]
pub fn launcher(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
