//! The plugins that this program has inside, as `scripts/plugins bundle` built them, so that nobody needs a file or a toolchain for them.
//!
//! They have no private door: a folder's plugin of the same name takes the place of one. Those that only handle a language are there by
//! themselves; they are compiled once a machine, and loaded by a worker, when the first statement needs them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cache::{Cache, Code};
use crate::shelf::{Ready, Section, Spec};
use crate::{compile, component};

/// A plugin of this program's own.
#[derive(Debug)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// The languages that it handles, if that is all it does: then it is there without being added.
    pub languages: &'static [&'static str],
    /// Its component.
    pub component: &'static [u8],
}

/// All of them.
pub const BUNDLED: &[Bundled] = &[
    Bundled { name: "masking", languages: &[], component: include_bytes!("../../../../plugins/bundled/masking.wasm") },
    Bundled { name: "ppl", languages: &["ppl"], component: include_bytes!("../../../../plugins/bundled/ppl.wasm") },
];

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Bundled> {
    BUNDLED.iter().find(|bundled| bundled.name == name)
}

/// Those that are there without being added, and where their compiled code is kept.
#[derive(Debug)]
pub struct OnDemand {
    plugins: Vec<&'static Bundled>,
    folders: Vec<PathBuf>,
    compiled: Mutex<Vec<(&'static str, Code)>>,
}

impl OnDemand {
    /// Those of these names that only handle a language. `folders`: where compiled code is kept, the first that can be used; they are not
    /// opened before there is code to keep.
    #[must_use]
    pub fn new(names: &[String], folders: Vec<PathBuf>) -> OnDemand {
        let plugins = BUNDLED.iter().filter(|b| !b.languages.is_empty() && names.iter().any(|name| name == b.name));
        OnDemand { plugins: plugins.collect(), folders, compiled: Mutex::default() }
    }

    /// The languages of those in whose place there is none on the shelf.
    #[must_use]
    pub fn languages(&self, shelf: &Ready) -> Vec<String> {
        let there = self.plugins.iter().filter(|bundled| !shelf.names.iter().any(|name| name == bundled.name));
        there.flat_map(|bundled| bundled.languages).map(|language| (*language).to_owned()).collect()
    }

    /// The plugin of a language, ready for a worker as [`load`](crate::shelf::load) reads it. It is compiled by `program` if it is not yet,
    /// which takes a second or two.
    ///
    /// # Errors
    /// It cannot be compiled or kept.
    pub fn plugin(&self, language: &str, program: &Path) -> Result<serde_json::Value, String> {
        let found = self.plugins.iter().find(|bundled| bundled.languages.contains(&language));
        let bundled = found.ok_or_else(|| format!("no plugin of this program handles `{language}`"))?;
        // Held meanwhile: one that comes second finds it compiled.
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.retain(|(_, code)| code.check().is_ok());
        let code = match compiled.iter().find(|(name, _)| *name == bundled.name) {
            Some((_, code)) => code.clone(),
            None => {
                let code = compile::code(&self.cache()?, bundled.component, program, compile::TIME)
                    .map_err(|why| format!("plugin {}: {why}", bundled.name))?;
                compiled.push((bundled.name, code.clone()));
                code
            }
        };
        let spec = Spec { name: bundled.name.to_owned(), code, section: Section::default() };
        serde_json::to_value(spec).map_err(|e| e.to_string())
    }

    /// The folder below which compiled code is or will be kept, made if it is missing.
    ///
    /// # Errors
    /// None of those that were given can be used; the message has the last one's reason.
    pub fn folder(&self) -> Result<PathBuf, String> {
        let mut why = "there is no folder for compiled code".to_owned();
        for folder in &self.folders {
            match Cache::open(folder, String::new()) {
                Ok(_) => return Ok(folder.clone()),
                Err(e) => why = e,
            }
        }
        Err(why)
    }

    /// The cache of this version of what compiles: programs of several versions share the folder.
    ///
    /// # Errors
    /// As [`OnDemand::folder`].
    pub fn cache(&self) -> Result<Cache, String> {
        let compatibility = component::compatibility()?;
        Cache::open(&self.folder()?.join(&compatibility), compatibility)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::sync::Arc;

    use super::*;
    use crate::alone::Log;
    use crate::cache::hash;
    use crate::shelf;

    #[test]
    fn they_are_what_was_checked_in_and_do_what_is_said_of_them() {
        let hashes = include_str!("../../../../plugins/bundled/hashes");
        for bundled in BUNDLED {
            let line = format!("{}  bundled/{}.wasm", hash(bundled.component), bundled.name);
            assert!(hashes.lines().any(|l| l == line), "plugins/bundled/hashes has no line {line}");
            let log: Log = Arc::new(|_, _, _| {});
            let section = Section::read("[[config.rules]]\ntable = 't'\nrows = 'a > 1'\n").unwrap();
            let about = shelf::describe(bundled.component, bundled.name, &section, &log).unwrap().about;
            assert_eq!(about.name, bundled.name);
            let only_handles = about.functions.is_empty() && !about.policy && !about.results && !about.events;
            assert_eq!(bundled.languages, if only_handles { about.languages } else { Vec::new() });
        }
    }

    #[test]
    fn one_on_the_shelf_takes_the_place_of_one_of_its_name_and_one_that_is_not_named_is_not_there() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            OnDemand::new(&names, Vec::new())
        };
        assert_eq!(named(&["ppl", "masking"]).languages(&Ready::default()), ["ppl"]);
        let shelf = Ready { names: vec!["ppl".to_owned()], ..Ready::default() };
        assert_eq!(named(&["ppl"]).languages(&shelf), Vec::<String>::new());
        assert_eq!(named(&[]).languages(&Ready::default()), Vec::<String>::new());
    }
}
