//! Compiled code, kept in a folder that only this user may write to. What does not check out is removed and compiled anew.
//!
//! A file's name says what is in it: the hash of the source, what else the code depends on, and the hash of the file itself.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The ending of the files.
const ENDING: &str = "cwasm";

/// A hash as it is written, in hexadecimal.
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Code in the cache, as it was when it was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The file.
    pub path: PathBuf,
    /// Its length, in bytes.
    pub length: u64,
    /// Its inode, and when it was changed last, in nanoseconds.
    pub state: (u64, i128),
}

impl Code {
    fn of(path: PathBuf) -> Result<Code, String> {
        let found = fs::symlink_metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        owned(&path, &found)?;
        Ok(Code { length: found.len(), state: state(&found), path })
    }

    /// That it still is what was checked. Cheap: its content is not read.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> Result<(), String> {
        if Code::of(self.path.clone())? == *self {
            Ok(())
        } else {
            Err(format!("{}: it was changed since it was checked", self.path.display()))
        }
    }
}

fn state(found: &Metadata) -> (u64, i128) {
    (found.ino(), i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()))
}

/// A file that nobody else can have written.
fn owned(path: &Path, found: &Metadata) -> Result<(), String> {
    let at = |why: &str| format!("{}: {why}", path.display());
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(at("it belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(at("others may use it"));
    }
    if found.is_file() && found.nlink() != 1 {
        return Err(at("it has another name, too"));
    }
    if !found.is_file() && !found.is_dir() {
        return Err(at("it is no file"));
    }
    Ok(())
}

/// The folder.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// What code depends on beside its source.
    compatibility: String,
}

impl Cache {
    /// Opens the folder, which is made if it is missing.
    ///
    /// # Errors
    /// It cannot be made, or others may write to it.
    pub fn open(folder: &Path, compatibility: String) -> Result<Cache, String> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| format!("{}: {e}", folder.display()))?;
        let found = fs::symlink_metadata(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        if !found.is_dir() {
            return Err(format!("{}: it is no folder", folder.display()));
        }
        owned(folder, &found).map_err(|why| {
            format!("{why}: compiled code is kept only where nobody else can write; name another folder")
        })?;
        Ok(Cache { folder: folder.to_path_buf(), compatibility })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The code of a source of this hash, read and checked. What is not as it should be is removed.
    #[must_use]
    pub fn find(&self, source: &str) -> Option<Code> {
        let mut found = None;
        for entry in fs::read_dir(&self.folder).ok()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut parts = name.split('.');
            if parts.next() != Some(source) {
                continue;
            }
            let good = parts.next() == Some(self.compatibility.as_str())
                && parts.next().is_some_and(|sum| content(&entry.path()).is_ok_and(|is| is == sum))
                && parts.next() == Some(ENDING)
                && parts.next().is_none();
            match Code::of(entry.path()).ok().filter(|_| good) {
                Some(code) => found = Some(code),
                None => {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        found
    }

    /// Keeps code.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, source: &str, code: &[u8]) -> io::Result<Code> {
        let name = format!("{source}.{}.{}.{ENDING}", self.compatibility, hash(code));
        // Whoever looks for this source meanwhile does not take it for a bad one.
        let (path, unfinished) =
            (self.folder.join(&name), self.folder.join(format!("new.{}.{name}", std::process::id())));
        let _ = fs::remove_file(&unfinished);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(code)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        Code::of(path).map_err(io::Error::other)
    }

    /// Removes the code of all sources but these.
    pub fn keep(&self, sources: &[String]) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !sources.iter().any(|source| name.split('.').next() == Some(source)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The hash of a file's content, read in pieces.
fn content(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut sum, mut piece) = (Sha256::new(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&sum.finalize())),
            n => sum.update(&piece[..n]),
        }
    }
}
