//! Query plugins in a session: the chain of handlers, and where functions, table policies and result hooks are put into DataFusion.
//!
//! What a plugin is, the engine knows by the port [`Plugin`] only. Its calls block: those of planning are made on threads that may.

mod aggregate;
mod around;
mod function;
mod groups;
mod late;
mod overloads;
mod policy;
mod results;
mod rows;

use std::sync::{Arc, PoisonError, RwLock};

use arrow_array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use firesteel_model::{Code, Failure, QueryText, Stage};
use firesteel_session::ports::plugins::{
    Asked, Fault, FunctionKind, Level, Plugin, Rejection, Surroundings, Verdict, Wrong,
};

pub use around::{Around, Kept, Of};
pub use late::{Late, Loader};
pub use policy::Policies;
pub use results::hooked;

use crate::failures;

/// Where lines of plugins' logs go: the plugin's name, the level, the line.
pub type Log = Arc<dyn Fn(&str, Level, &str) + Send + Sync>;

/// The statement that the session is at.
#[derive(Clone)]
pub struct Current(Arc<RwLock<Arc<Around>>>);

impl Current {
    /// This one, to begin with.
    pub fn new(around: Arc<Around>) -> Current {
        Current(Arc::new(RwLock::new(around)))
    }

    /// It is at this one from here on.
    pub fn set(&self, around: &Arc<Around>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(around);
    }

    /// The one it is at.
    pub fn get(&self) -> Arc<Around> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<the statement>")
    }
}

/// What a chain made of a statement.
pub enum Routed {
    /// SQL.
    Sql(QueryText),
    /// The result, from a plugin.
    Rows(RecordBatch),
}

/// The plugins of a session, in the operator's order.
#[derive(Clone, Default)]
pub struct Plugins {
    loaded: Arc<[Arc<dyn Plugin>]>,
    late: Arc<Late>,
}

impl Plugins {
    /// These, and behind them those on demand.
    pub fn new(plugins: Vec<Arc<dyn Plugin>>, late: Late) -> Plugins {
        Plugins { loaded: plugins.into(), late: Arc::new(late) }
    }

    /// Each of them, without those on demand, which only handle a language.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        self.loaded.iter()
    }

    /// The languages that statements may be in.
    pub fn languages(&self) -> Vec<String> {
        let mut known = vec!["sql".to_owned()];
        known.extend(self.iter().flat_map(|plugin| plugin.about().languages.clone()));
        known.extend(self.late.languages.iter().cloned());
        known.sort();
        known.dedup();
        known
    }

    /// Puts their functions into a session's state.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn register(&self, state: &mut SessionState, current: &Current) -> Result<(), Failure> {
        for plugin in self.iter() {
            let about = plugin.about();
            let mut names: Vec<&str> = about.functions.iter().map(|f| f.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let of: Vec<usize> = (0..about.functions.len()).filter(|n| about.functions[*n].name == name).collect();
                let kind = about.functions[of[0]].kind;
                let taken = state.scalar_functions().contains_key(name)
                    || state.aggregate_functions().contains_key(name)
                    || state.window_functions().contains_key(name)
                    || state.table_functions().contains_key(name);
                if taken || of.iter().any(|n| about.functions[*n].kind != kind) {
                    let text =
                        format!("plugin {}: there is a function `{name}` already; give it another name", about.label());
                    return Err(Failure::new(Code::Plugin, Stage::Accept, text));
                }
                let overloads = overloads::Overloads::new(Arc::clone(plugin), current.clone(), name, of);
                match kind {
                    FunctionKind::Scalar => {
                        let function = Arc::new(ScalarUDF::from(function::Scalar::new(overloads)));
                        let _ = state.register_udf(function);
                    }
                    FunctionKind::Aggregate => {
                        let function = Arc::new(AggregateUDF::from(aggregate::Aggregate::new(overloads)));
                        let _ = state.register_udaf(function);
                    }
                    FunctionKind::Table => {
                        state.register_udtf(name, Arc::new(rows::Rows::new(overloads)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives a statement to the handlers of its language, one after the other; `brought` are those on demand that it may need.
    ///
    /// # Errors
    /// One rejects it or fails, or nobody takes the language.
    pub async fn route(
        &self,
        around: &Arc<Around>,
        lang: &str,
        text: &str,
        brought: &[(String, serde_json::Value)],
    ) -> Result<Routed, Failure> {
        let mut asked =
            Asked { text: QueryText(text.to_owned()), language: lang.to_lowercase(), settings: around.set_values() };
        for plugin in self.iter() {
            if let Some(answer) = handle(around, plugin, &mut asked).await? {
                return Ok(Routed::Rows(answer));
            }
        }
        if let Some(plugin) = self.late.plugin(&asked.language, brought).await?
            && let Some(answer) = handle(around, &plugin, &mut asked).await?
        {
            return Ok(Routed::Rows(answer));
        }
        if asked.language == "sql" {
            return Ok(Routed::Sql(asked.text));
        }
        let known = self.languages();
        if known.contains(&asked.language) {
            let text = format!("no plugin made SQL of this statement, whose language is `{}`", asked.language);
            return Err(Failure::new(Code::Language, Stage::Accept, text));
        }
        Err(Failure::new(Code::Language, Stage::Accept, failures::no_such("language", &asked.language, &known)))
    }
}

/// Gives a statement to a plugin, if it takes the language. Returns the answer, if that is the result.
async fn handle(
    around: &Arc<Around>,
    plugin: &Arc<dyn Plugin>,
    asked: &mut Asked,
) -> Result<Option<RecordBatch>, Failure> {
    if !plugin.about().languages.contains(&asked.language) {
        return Ok(None);
    }
    let (called, given) = (Arc::clone(plugin), asked.clone());
    match call(around, plugin, move |around| called.handle(around, &given)).await? {
        Verdict::Pass => Ok(None),
        Verdict::Rewrite { text, language, .. } => {
            around.touched(plugin.about(), &format!("{} to {language}", asked.language));
            (asked.text, asked.language) = (text, language);
            Ok(None)
        }
        Verdict::Reject(rejection) => Err(Failure::new(Code::Syntax, Stage::Plan, rejected(&rejection))),
        Verdict::Answer(batch) => {
            around.touched(plugin.about(), "answered");
            Ok(Some(batch))
        }
    }
}

/// A rejection in words.
fn rejected(no: &Rejection) -> String {
    let mut text = no.message.clone();
    if let Some(at) = no.position {
        text = format!("{text} at line {}, column {}", at.line, at.column);
    }
    if !no.expected.is_empty() {
        text = format!("{text}; expected {}", no.expected.join(", "));
    }
    if let Some(nearest) = &no.nearest {
        text = format!("{text}; did you mean `{nearest}`?");
    }
    text
}

/// Makes a call of a plugin where it may block.
///
/// # Errors
/// The call's own.
pub async fn call<R: Send + 'static>(
    around: &Arc<Around>,
    plugin: &Arc<dyn Plugin>,
    work: impl FnOnce(&Arc<dyn Surroundings>) -> Result<R, Fault> + Send + 'static,
) -> Result<R, Failure> {
    let surroundings: Arc<dyn Surroundings> = Arc::<Around>::clone(around);
    let done = tokio::task::spawn_blocking(move || work(&surroundings)).await;
    let broke =
        || Fault { plugin: plugin.about().label(), what: Wrong::Broke("its host met a fault (a panic)".into()) };
    done.unwrap_or_else(|_| Err(broke())).map_err(|fault| failed(&fault, Stage::Plan))
}

/// Writes a plugin's line into this process's log.
pub fn write(plugin: &str, level: &str, line: &str) {
    match level {
        "error" => tracing::error!(target: "plugin", plugin, "{line}"),
        "warn" => tracing::warn!(target: "plugin", plugin, "{line}"),
        "info" => tracing::info!(target: "plugin", plugin, "{line}"),
        "debug" => tracing::debug!(target: "plugin", plugin, "{line}"),
        _ => tracing::trace!(target: "plugin", plugin, "{line}"),
    }
}

/// What a user is told of a fault.
pub fn failed(fault: &Fault, stage: Stage) -> Failure {
    let code = match &fault.what {
        Wrong::Limit(..) => Code::PluginLimit,
        Wrong::Broke(_) => Code::Plugin,
        Wrong::Told(..) | Wrong::Stopped => Code::Execution,
        Wrong::Memory(_) => Code::Memory,
    };
    Failure::new(code, stage, fault.to_string())
}

/// The same on its way through DataFusion.
fn carried(fault: &Fault) -> DataFusionError {
    failures::carry(failed(fault, Stage::Execute))
}
