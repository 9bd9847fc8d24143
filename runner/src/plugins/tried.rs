//! A plugin that is tried without a store: its statements are run in this process, which is its author's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use firesteel_engine::plugins::{Log, Routed};
use firesteel_engine::{InProcess, Settings};
use firesteel_model::{Failure, Kind, QueryText, StatementId};
use firesteel_plugin_host::bundled::{self, OnDemand};
use firesteel_plugin_host::shelf::{self, Section};
use firesteel_plugin_host::{compile, component};
use firesteel_session::journal::Journal;
use firesteel_session::ports::plugins::Plugin;
use firesteel_session::ports::{Column, Engine, EngineError, Request};
use firesteel_session::result::Encoder;
use futures::StreamExt;

use super::program;
use crate::ambient;
use crate::problem::Problem;

/// A loaded plugin, and behind it this program's own PPL.
pub struct Tried {
    plugins: Vec<Arc<dyn Plugin>>,
    data: Vec<PathBuf>,
    log: Log,
}

/// What a statement gave.
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, as in a result document.
    pub rows: Vec<String>,
}

/// What handlers made of a statement.
pub enum Made {
    /// This SQL.
    Sql(String),
    /// The result, so many rows.
    Answer(usize),
}

impl Tried {
    /// Loads a component, a file or one of this program's own, with what was written about it; the files of these folders are tables.
    ///
    /// # Errors
    /// It cannot be loaded, or a folder is none.
    pub fn load(file: &Path, section: Section, data: &[PathBuf], log: &Log) -> Result<Tried, Problem> {
        let data: Result<Vec<PathBuf>, Problem> = data
            .iter()
            .map(|folder| {
                let none = || Problem::usage(format!("--data: {} is no folder", folder.display()));
                folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(none)
            })
            .collect();
        let own = OnDemand::new(&["ppl".to_owned()], ambient::cache_folders());
        let bytes = match file.to_str().filter(|_| !file.exists()).and_then(bundled::find) {
            Some(bundled) => bundled.component.to_vec(),
            None => component::read(file).map_err(Problem::usage)?,
        };
        let name = file.display().to_string();
        let loaded = || {
            let code =
                compile::code(&own.cache()?, &bytes, &program(), compile::TIME).map_err(|e| format!("{name}: {e}"))?;
            let mut plugins = shelf::load(&[shelf::spec(&name, code, section)?], log)?;
            // It may rewrite to PPL.
            if plugins.iter().all(|plugin| plugin.about().name != "ppl") {
                plugins.extend(shelf::load(&[own.plugin("ppl", &program())?], log)?);
            }
            Ok(plugins)
        };
        Ok(Tried { plugins: loaded().map_err(|why: String| Problem::usage(why))?, data: data?, log: Arc::clone(log) })
    }

    /// The language of statements that name none: the plugin's first.
    pub fn language(&self) -> &str {
        self.plugins.first().and_then(|plugin| plugin.about().languages.first()).map_or("sql", String::as_str)
    }

    /// A session of its own, in which these settings are set.
    ///
    /// # Errors
    /// It cannot be opened, or a setting not be set.
    pub async fn session(&self, settings: &[String]) -> Result<Session, Failure> {
        let engine = Settings { data: self.data.clone(), ..Settings::default() };
        let engine = InProcess::with_plugins(engine, self.plugins.clone(), Arc::clone(&self.log)).map_err(failure)?;
        let mut session = Session { engine, journal: Journal::default() };
        for setting in settings {
            session.run("sql", &format!("SET {setting}")).await?;
        }
        Ok(session)
    }
}

/// A session in which statements are tried.
pub struct Session {
    engine: InProcess,
    journal: Journal,
}

fn failure(error: EngineError) -> Failure {
    match error {
        EngineError::Failed(failure) => failure,
        EngineError::Died(why) => Failure::new(firesteel_model::Code::Internal, firesteel_model::Stage::Execute, why),
    }
}

fn request(lang: &str, text: &str) -> Result<Request, Failure> {
    let wrong = |e: &dyn std::fmt::Display| {
        Failure::new(firesteel_model::Code::Internal, firesteel_model::Stage::Accept, e.to_string())
    };
    Ok(Request {
        statement: StatementId::new("tried").map_err(|e| wrong(&e))?,
        session: "tried".to_owned(),
        lang: lang.to_owned(),
        text: QueryText(text.to_owned()),
    })
}

impl Session {
    /// What handlers make of a statement.
    ///
    /// # Errors
    /// Why they make nothing of it.
    pub async fn route(&self, lang: &str, text: &str) -> Result<Made, Failure> {
        Ok(match self.engine.route(&request(lang, text)?).await.map_err(failure)? {
            Routed::Sql(text) => Made::Sql(text.0),
            Routed::Rows(batch) => Made::Answer(batch.num_rows()),
        })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// Why it fails.
    pub async fn run(&mut self, lang: &str, text: &str) -> Result<Rows, Failure> {
        let plan = self.engine.plan(&self.journal, &request(lang, text)?).await.map_err(failure)?;
        let entry = plan.entry().filter(|_| plan.kind() == Kind::Define);
        let mut output = plan.run().await.map_err(failure)?;
        let mut encoder = Encoder::new(&output.schema)?;
        let mut rows = Vec::new();
        while let Some(batch) = output.batches.next().await {
            encoder.encode(&batch.map_err(failure)?, &mut |row| rows.push(row))?;
        }
        if let Some(entry) = entry {
            self.journal.append(entry);
        }
        Ok(Rows { columns: encoder.columns().to_vec(), rows })
    }
}
