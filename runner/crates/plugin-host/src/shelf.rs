//! The folder of plugins that a runner loads: of each a folder with its component, `plugin.wasm`, and what the operator wrote about it,
//! `plugin.toml`. A change there is picked up by whoever compares [`Shelf::stamp`].

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firesteel_session::ports::plugins::{Plugin, Surroundings};
use serde::{Deserialize, Serialize};

use crate::alone::{Alone, Log};
use crate::cache::{Cache, Code, hash};
use crate::compile;
use crate::component;
use crate::grants::{Grants, Mode};
use crate::limits::Limits;
use crate::load::{Description, Given};
use crate::machine::Machine;
use crate::plugin::Loaded;

/// What the operator wrote about a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// Its place in the chain: smaller comes first, then by name.
    pub order: i64,
    /// Its own settings.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What it may do.
    pub grants: Grants,
    /// What limits it.
    pub limits: Limits,
}

impl Default for Section {
    fn default() -> Self {
        Section { order: 100, config: serde_json::Map::new(), grants: Grants::default(), limits: Limits::default() }
    }
}

impl Section {
    /// What an operator wrote.
    ///
    /// # Errors
    /// It is no TOML, or says something unknown.
    pub fn read(text: &str) -> Result<Section, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }
}

/// What is written beside a plugin that is added without settings.
const EMPTY: &str = "\
# Its place in the chain of plugins: smaller comes first.
order = 100

# Its own settings.
[config]

# What it may do: http = [\"HOST\"], directories.NAME = { path = \"…\", mode = \"read\" }, writes = true
[grants]

# What limits it: memory = 67108864 (bytes), time = 1000 (milliseconds), result = 16777216 (bytes), columns, nesting, name, log
[limits]
";

/// A plugin, ready for a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub(crate) name: String,
    pub(crate) code: Code,
    pub(crate) section: Section,
}

/// All plugins of a shelf, ready for workers.
#[derive(Debug, Default)]
pub struct Ready {
    /// Their names.
    pub names: Vec<String>,
    /// In the order of the chain, as [`load`] reads them.
    pub specs: Vec<serde_json::Value>,
    /// What is read for them.
    pub reads: Vec<PathBuf>,
    /// What they write.
    pub writes: Vec<PathBuf>,
    /// They talk to hosts.
    pub network: bool,
}

/// A plugin on the shelf.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What was written about it.
    pub section: Section,
    /// Its component.
    pub file: PathBuf,
}

/// The folder.
#[derive(Clone, Debug)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// This folder, which need not be there yet.
    #[must_use]
    pub fn new(folder: &Path) -> Shelf {
        Shelf(folder.to_path_buf())
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Changes whenever something on the shelf does.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for name in self.names() {
            name.hash(&mut hasher);
            for file in ["plugin.wasm", "plugin.toml"] {
                let found = fs::metadata(self.0.join(&name).join(file));
                found.map(|m| (m.ino(), m.len(), m.mtime(), m.mtime_nsec())).ok().hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn names(&self) -> Vec<String> {
        let folders = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<String> = folders
            .filter(|entry| entry.path().join("plugin.wasm").is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What is on it, in the order of the chain.
    ///
    /// # Errors
    /// What was written about a plugin cannot be read; the message names the file and what is wrong.
    pub fn entries(&self) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        for name in self.names() {
            let folder = self.0.join(&name);
            let path = folder.join("plugin.toml");
            let section = match fs::read_to_string(&path) {
                Ok(text) => Section::read(&text).map_err(|why| format!("{}: {why}", path.display()))?,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Section::default(),
                Err(e) => return Err(format!("{}: {e}", path.display())),
            };
            entries.push(Entry { name, section, file: folder.join("plugin.wasm") });
        }
        entries.sort_by(|a: &Entry, b| (a.section.order, &a.name).cmp(&(b.section.order, &b.name)));
        Ok(entries)
    }

    /// Puts a plugin on the shelf, in place of one with its name. `settings`: what is written about it; None: what was, or nothing.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, name: &str, component: &[u8], settings: Option<&str>) -> Result<(), String> {
        let folder = self.0.join(name);
        let at = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(at)?;
        let path = folder.join("plugin.toml");
        match settings {
            Some(text) => fs::write(&path, text).map_err(at)?,
            None if path.exists() => {}
            None => fs::write(&path, EMPTY).map_err(at)?,
        }
        // Whoever looks meanwhile finds the old one or the new one.
        let unfinished = folder.join("plugin.wasm.new");
        fs::write(&unfinished, component).map_err(at)?;
        fs::rename(&unfinished, folder.join("plugin.wasm")).map_err(at)
    }

    /// Takes a plugin off the shelf, with what was written about it.
    ///
    /// # Errors
    /// It is not there.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        let names = self.names();
        if !names.iter().any(|n| n == name) {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("there is no plugin `{name}` in {}; there are: {there}", self.0.display()));
        }
        fs::remove_dir_all(self.0.join(name)).map_err(|e| format!("{}: {e}", self.0.join(name).display()))
    }

    /// Compiles what is not compiled yet, by `program`, and tells workers how to load all of it.
    ///
    /// # Errors
    /// A plugin cannot be used; the message names it.
    pub fn ready(&self, program: &Path, time: Duration) -> Result<Ready, String> {
        let entries = self.entries()?;
        if entries.is_empty() {
            return Ok(Ready::default());
        }
        let cache = Cache::open(&self.0.join(".compiled"), component::compatibility()?)?;
        let mut ready = Ready::default();
        let mut sources = Vec::new();
        for Entry { name, section, file } in entries {
            let source = component::read(&file)?;
            let code =
                compile::code(&cache, &source, program, time).map_err(|why| format!("{}: {why}", file.display()))?;
            sources.push(hash(&source));
            ready.reads.push(code.path.clone());
            for directory in section.grants.directories.values() {
                let path = directory
                    .path
                    .canonicalize()
                    .map_err(|e| format!("plugin {name}: the granted folder {}: {e}", directory.path.display()))?;
                if directory.mode == Mode::Write { &mut ready.writes } else { &mut ready.reads }.push(path);
            }
            ready.network |= !section.grants.http.is_empty();
            ready.names.push(name.clone());
            let spec = Spec { name, code, section };
            ready.specs.push(serde_json::to_value(spec).map_err(|e| e.to_string())?);
        }
        cache.keep(&sources);
        Ok(ready)
    }
}

/// A plugin for [`load`].
///
/// # Errors
/// What was written about it cannot be written as JSON.
pub fn spec(name: &str, code: Code, section: Section) -> Result<serde_json::Value, String> {
    serde_json::to_value(Spec { name: name.to_owned(), code, section }).map_err(|e| e.to_string())
}

/// Loads plugins as [`Shelf::ready`] told them.
///
/// # Errors
/// One cannot be loaded; the message names it.
pub fn load(specs: &[serde_json::Value], log: &Log) -> Result<Vec<Arc<dyn Plugin>>, String> {
    let machine = Machine::shared()?;
    let around: Arc<dyn Surroundings> = Arc::new(Alone(Arc::clone(log)));
    let mut loaded: Vec<Arc<dyn Plugin>> = Vec::new();
    for spec in specs {
        let Spec { name, code, section } = serde_json::from_value(spec.clone()).map_err(|e| e.to_string())?;
        let component = machine.revive(&code).map_err(|why| format!("plugin {name}: {why}"))?;
        let given = Given { config: section.config, grants: section.grants, limits: section.limits };
        let plugin = Loaded::load(&machine, &component, &name, given, &around).map_err(|e| e.to_string())?;
        loaded.push(Arc::new(plugin));
    }
    Ok(loaded)
}

/// Compiles a component here and asks it what it is, with what was written about it.
///
/// # Errors
/// It is no plugin, or not with this configuration.
pub fn describe(component: &[u8], name: &str, section: &Section, log: &Log) -> Result<Description, String> {
    let machine = Machine::new()?;
    let around: Arc<dyn Surroundings> = Arc::new(Alone(Arc::clone(log)));
    let component = machine.compile(component).map_err(|why| format!("{name}: {why}"))?;
    let given = Given { config: section.config.clone(), limits: section.limits.clone(), ..Given::default() };
    Loaded::describe(&machine, &component, name, given, &around).map_err(|e| e.to_string())
}
