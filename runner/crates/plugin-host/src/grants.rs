//! What the operator lets a plugin do, and whether that is what it asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a plugin may do beyond computing. Nothing, unless it is written here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grants {
    /// The hosts that it may talk HTTP with: `HOST` (ports 80 and 443) or `HOST:PORT`. An address of this machine or a private network must be
    /// written as it is, else a name that resolves to one is refused.
    pub http: Vec<String>,
    /// The folders that it sees, by the names under which it asks for them.
    pub directories: BTreeMap<String, Directory>,
    /// Its statements may have an effect outside, and so run once.
    pub writes: bool,
}

/// A folder that a plugin sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Directory {
    /// The folder.
    pub path: PathBuf,
    /// What may be done in it.
    #[serde(default)]
    pub mode: Mode,
}

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Files are read.
    #[default]
    Read,
    /// Files are read and written.
    Write,
}

impl Mode {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Read => "read",
            Mode::Write => "write",
        }
    }
}

/// What a plugin asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Hosts.
    pub http: Vec<String>,
    /// Folders, by name.
    pub directories: Vec<(String, Mode)>,
    /// Its statements have effects outside.
    pub writes: bool,
}

impl Grants {
    /// What is asked for and not granted, each as an operator would have to write it.
    #[must_use]
    pub fn missing(&self, asks: &Asks) -> Vec<String> {
        let mut missing = Vec::new();
        for host in &asks.http {
            if !self.http.iter().any(|granted| granted.eq_ignore_ascii_case(host)) {
                missing.push(format!("http = [{host:?}]"));
            }
        }
        for (name, mode) in &asks.directories {
            let granted = self.directories.get(name);
            if granted.is_none_or(|granted| granted.mode < *mode) {
                missing.push(format!("directories.{name} = {{ path = \"…\", mode = {:?} }}", mode.as_str()));
            }
        }
        if asks.writes && !self.writes {
            missing.push("writes = true".to_owned());
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_and_not_granted_is_named_as_it_would_be_written() {
        let asks = Asks {
            http: vec!["api.example.org".into(), "other.example.org".into()],
            directories: vec![("data".into(), Mode::Write), ("rules".into(), Mode::Read)],
            writes: true,
        };
        let folder = |mode| Directory { path: "/srv".into(), mode };
        let grants = Grants {
            http: vec!["API.example.org".into()],
            directories: [("data".into(), folder(Mode::Read)), ("rules".into(), folder(Mode::Write))].into(),
            writes: false,
        };
        assert_eq!(
            grants.missing(&asks),
            [
                "http = [\"other.example.org\"]",
                "directories.data = { path = \"…\", mode = \"write\" }",
                "writes = true"
            ]
        );
        assert_eq!(grants.missing(&Asks::default()), Vec::<String>::new());
    }
}
