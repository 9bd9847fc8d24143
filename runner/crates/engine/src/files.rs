//! Which files of the data folders are tables, and by which names.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How a table's files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated, the first line names the columns.
    Csv,
    /// Tab-separated, the first line names the columns.
    Tsv,
    /// One JSON object a line, or one array of objects.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC.
    Arrow,
}

impl Format {
    /// By the file's extension, in any case.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "parquet" => Some(Format::Parquet),
            "arrow" => Some(Format::Arrow),
            _ => None,
        }
    }

    /// The name that `DESCRIBE EXTENDED` shows.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv | Format::Tsv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }
}

/// A file, or a folder of Parquet files, that is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Unique without case.
    pub name: String,
    /// Without symbolic links.
    pub path: PathBuf,
    /// How it is written.
    pub format: Format,
    /// It is a folder.
    pub folder: bool,
}

/// The tables of the folders, in the order of the folders and of the file names. A table has the name of its file
/// without the extension; if an earlier one has it, the whole file name; if that is taken too, folder and file name.
pub fn scan(roots: &[PathBuf]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut taken = HashSet::new();
    for root in roots {
        let Ok(entries) = fs::read_dir(root) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            let Some(file) = path.file_name().and_then(|n| n.to_str()) else { continue };
            if file.starts_with(['.', '_']) {
                continue;
            }
            // A link that leads out of the folders is no table.
            let Some(real) = path.canonicalize().ok().filter(|real| roots.iter().any(|root| real.starts_with(root)))
            else {
                continue;
            };
            let (format, stem, folder) = if real.is_dir() {
                if !holds_parquet(&real) {
                    continue;
                }
                (Format::Parquet, file, true)
            } else if !real.is_file() {
                // A pipe, a socket or a device: to open it may wait for ever.
                continue;
            } else {
                let (Some(format), Some(stem)) = (Format::of(&path), path.file_stem().and_then(|s| s.to_str())) else {
                    continue;
                };
                (format, stem, false)
            };
            let parent = root.file_name().and_then(|n| n.to_str()).unwrap_or("data");
            let names = [stem.to_owned(), file.to_owned(), format!("{parent}.{file}")];
            let numbered = (2..).map(|n| format!("{parent}.{file}.{n}"));
            let name = names.into_iter().chain(numbered).find(|name| taken.insert(name.to_lowercase()));
            if let Some(name) = name {
                found.push(Found { name, path: real, format, folder });
            }
        }
    }
    found
}

fn holds_parquet(folder: &Path) -> bool {
    fs::read_dir(folder)
        .is_ok_and(|entries| entries.flatten().take(1000).any(|e| Format::of(&e.path()) == Some(Format::Parquet)))
}

/// The most entries of a folder that are looked at.
const ENTRIES: usize = 100_000;

/// The most bytes of a CSV file's first line that are looked at.
const HEADER: u64 = 1 << 16;

/// A link or a special file below a folder that may not be read: it leads out of the roots, or is no file at all.
pub fn astray(folder: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut left = ENTRIES;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            left = left.checked_sub(1)?;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let inside = path.canonicalize().is_ok_and(|real| roots.iter().any(|root| real.starts_with(root)));
                if !inside {
                    return Some(path);
                }
            } else if !kind.is_file() {
                return Some(path);
            }
        }
    }
    None
}

/// The name that the first line of a CSV file has twice: its columns would be taken for one.
pub fn twice(found: &Found) -> Option<String> {
    let delimiter = match found.format {
        Format::Csv => ',',
        Format::Tsv => '\t',
        Format::Json | Format::Parquet | Format::Arrow => return None,
    };
    let mut start = Vec::new();
    File::open(&found.path).ok()?.take(HEADER).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    let mut taken = HashSet::new();
    let (mut name, mut quoted) = (String::new(), false);
    for c in start.chars() {
        match c {
            '"' => quoted = !quoted,
            c if quoted || (c != delimiter && c != '\n' && c != '\r') => name.push(c),
            c => {
                if !taken.insert(name.clone()) {
                    return Some(name);
                }
                if c != delimiter {
                    return None;
                }
                name.clear();
            }
        }
    }
    None
}

/// Whether a JSON file is one array, not an object a line.
pub fn is_array(path: &Path) -> bool {
    let mut start = [0; 256];
    let n = File::open(path).and_then(|mut f| f.read(&mut start)).unwrap_or(0);
    start[..n].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn names_are_unique_and_nothing_outside_is_a_table() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        for file in [
            "a/Sales.csv",
            "a/sales.parquet",
            "a/.hidden.csv",
            "a/notes.txt",
            "a/odd name'.json",
            "b/SALES.csv",
            "b/sales.csv",
            "a/parts/1.parquet",
            "a/empty/x.txt",
            "out.csv",
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("out.csv"), a.join("link.csv")).unwrap();
        let roots = [a.canonicalize().unwrap(), b.canonicalize().unwrap()];
        let names: Vec<String> = scan(&roots).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["Sales", "odd name'", "parts", "sales.parquet", "SALES.csv", "b.sales.csv"]);
    }
}
