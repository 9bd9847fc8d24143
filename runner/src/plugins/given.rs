//! The plugins that a runner's statements are given: those of the operator's folder, as they are now, and this program's own.

use std::sync::Arc;
use std::time::Duration;

use firesteel_engine::{Bring, PluginSet, Pool};
use firesteel_plugin_host::bundled::OnDemand;
use firesteel_plugin_host::compile;
use firesteel_plugin_host::shelf::{Ready, Shelf};
use tokio::task::JoinSet;

use super::program;
use crate::ambient;
use crate::conf::Configuration;
use crate::problem::Problem;

/// How often the shelf is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Where plugins come from.
#[derive(Clone)]
pub struct Given {
    shelf: Option<Shelf>,
    own: Arc<OnDemand>,
}

impl Given {
    /// What an operator configured.
    ///
    /// # Errors
    /// There is no current folder to begin with.
    pub fn new(configuration: &Configuration) -> Result<Given, Problem> {
        let folder = configuration.plugins.as_deref().map(std::path::absolute).transpose()?;
        let own = OnDemand::new(&configuration.bundled, ambient::cache_folders());
        Ok(Given { shelf: folder.as_deref().map(Shelf::new), own: Arc::new(own) })
    }

    /// All of them, ready for workers.
    ///
    /// # Errors
    /// A plugin of the folder cannot be used.
    pub fn set(&self) -> Result<PluginSet, Problem> {
        self.look()
            .map_err(|why| Problem::usage_with(format!("--plugins: {why}"), "look at it with firesteel plugin check"))
    }

    fn look(&self) -> Result<PluginSet, String> {
        let ready = match &self.shelf {
            Some(shelf) => shelf.ready(&program(), compile::TIME)?,
            None => Ready::default(),
        };
        let on_demand = self.own.languages(&ready);
        let Ready { specs, mut reads, writes, network, .. } = ready;
        if !on_demand.is_empty() {
            // A worker may read there what is compiled later; if there is none, the first statement that needs it says why.
            reads.extend(self.own.folder().ok());
        }
        Ok(PluginSet { plugins: specs, reads, writes, network, on_demand })
    }

    /// What brings workers this program's own, compiled when they are first needed.
    #[must_use]
    pub fn bring(&self) -> Bring {
        let own = Arc::clone(&self.own);
        Arc::new(move |language| own.plugin(language, &program()))
    }

    /// Watches the shelf, and gives workers what is new on it between statements. What cannot be used is told in the log, and the old stays.
    pub fn watch(&self, pool: &Arc<Pool>, tasks: &mut JoinSet<()>) {
        let (given, pool) = (self.clone(), Arc::clone(pool));
        let Some(shelf) = given.shelf.clone() else { return };
        let mut seen = shelf.stamp();
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let now = shelf.stamp();
                if now == seen {
                    continue;
                }
                seen = now;
                let looked = given.clone();
                match tokio::task::spawn_blocking(move || looked.look()).await {
                    Ok(Ok(set)) => {
                        tracing::info!(plugins = set.plugins.len(), "the plugins have changed");
                        pool.replace_plugins(set);
                    }
                    Ok(Err(why)) => {
                        tracing::error!(why, "the plugins have changed and cannot be used; the old ones stay");
                    }
                    Err(_) => tracing::error!("the plugins have changed and looking at them failed; the old ones stay"),
                }
            }
        });
    }
}
