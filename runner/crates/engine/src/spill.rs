//! The folder where statements spill: one for each worker, ours alone, emptied when its worker is gone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::settings::Settings;

const PREFIX: &str = "worker-of-";

fn base(settings: &Settings) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    settings.spill_dir.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("firesteel-spill-{user}")))
}

/// Makes a new folder for a worker and returns its path.
///
/// # Errors
/// The base folder is not a folder of this user's, or nothing can be made in it.
pub fn create(settings: &Settings) -> io::Result<PathBuf> {
    let base = base(settings);
    if let Err(e) = DirBuilder::new().mode(0o700).recursive(settings.spill_dir.is_some()).create(&base)
        && e.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(said(&base, &e.to_string()));
    }
    let found = fs::symlink_metadata(&base).map_err(|e| said(&base, &e.to_string()))?;
    if settings.spill_dir.is_none() && (!found.is_dir() || found.uid() != rustix::process::geteuid().as_raw()) {
        return Err(said(&base, "it is not a folder of this user's"));
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
    let folder = base.join(format!("{PREFIX}{}-{:016x}", std::process::id(), u64::from_le_bytes(random)));
    DirBuilder::new().mode(0o700).create(&folder).map_err(|e| said(&base, &e.to_string()))?;
    folder.canonicalize()
}

fn said(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("the spill folder {} cannot be used: {what}; name another", path.display()))
}

/// Removes a worker's folder and what is in it.
pub fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// Removes the folders of workers whose runner is gone.
pub fn sweep(settings: &Settings) {
    let Ok(entries) = fs::read_dir(base(settings)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX))
            .and_then(|n| n.split('-').next())
            .and_then(|n| n.parse::<u32>().ok());
        if let Some(owner) = owner
            && !Path::new(&format!("/proc/{owner}")).exists()
        {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn what_a_dead_runner_left_is_removed_and_what_a_living_one_uses_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { spill_dir: Some(dir.path().join("spill")), ..Settings::default() };
        let ours = create(&settings).unwrap();
        fs::write(ours.join("run"), "1").unwrap();
        let theirs = base(&settings).join(format!("{PREFIX}4294967-00"));
        let unrelated = base(&settings).join("keep");
        fs::create_dir(&theirs).unwrap();
        fs::create_dir(&unrelated).unwrap();
        sweep(&settings);
        assert!(ours.exists() && unrelated.exists() && !theirs.exists());
        remove(&ours);
        assert!(!ours.exists());
    }
}
