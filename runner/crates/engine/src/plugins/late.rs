//! Plugins that are loaded when the first statement needs them, which cost nobody else anything: handlers of a language.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use firesteel_model::{Code, Failure, Stage};
use firesteel_session::ports::plugins::Plugin;
use serde_json::Value;

use super::Log;

/// Loads plugins as their host wrote them, and tells the lines that they log meanwhile.
pub type Loader = fn(&[Value], &Log) -> Result<Vec<Arc<dyn Plugin>>, String>;

/// Those of some languages.
#[derive(Default)]
pub struct Late {
    /// The languages.
    pub languages: Vec<String>,
    load: Option<(Loader, Log)>,
    /// By language.
    loaded: Mutex<BTreeMap<String, Loaded>>,
}

struct Loaded {
    from: Value,
    plugin: Arc<dyn Plugin>,
}

impl Late {
    /// None is loaded yet.
    pub fn new(languages: Vec<String>, load: Loader, log: Log) -> Late {
        Late { languages, load: Some((load, log)), loaded: Mutex::default() }
    }

    /// The plugin of a language, loaded now if it was not. None: no plugin on demand handles it, or it was not brought.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub async fn plugin(
        self: &Arc<Self>,
        language: &str,
        brought: &[(String, Value)],
    ) -> Result<Option<Arc<dyn Plugin>>, Failure> {
        let Some((language, spec)) = brought.iter().find(|(of, _)| of == language).cloned() else { return Ok(None) };
        let own = Arc::clone(self);
        let loading = tokio::task::spawn_blocking(move || own.load(language, spec));
        let loaded = loading.await.unwrap_or_else(|_| Err("loading a plugin met a fault (a panic)".into()));
        loaded.map(Some).map_err(|why| Failure::new(Code::Plugin, Stage::Accept, why))
    }

    fn load(&self, language: String, spec: Value) -> Result<Arc<dyn Plugin>, String> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.get(&language).filter(|loaded| loaded.from == spec) {
            return Ok(Arc::clone(&loaded.plugin));
        }
        let (load, log) = self.load.as_ref().ok_or("plugins cannot be loaded here")?;
        let plugin = load(std::slice::from_ref(&spec), log)?.pop().ok_or("there is no plugin")?;
        loaded.insert(language, Loaded { from: spec, plugin: Arc::clone(&plugin) });
        Ok(plugin)
    }
}
