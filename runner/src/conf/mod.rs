//! Everything that can be set, from wherever it is set: options, `--conf`, the control plane's string.

pub mod keys;
pub mod launch;
pub mod values;

use std::path::PathBuf;

use firesteel_engine::settings::{Settings as EngineSettings, StoreAccess};
use firesteel_model::Pattern;
use firesteel_model::policy::Policy;
use firesteel_session::result::Limits;

use crate::problem::Problem;
use keys::{KEYS, Key};

/// What the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobType {
    /// A session's statements, as they come.
    Interactive,
    /// One statement.
    Batch,
}

/// How requests to OpenSearch are authorised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// By name and password.
    Basic,
    /// By AWS's signature.
    SigV4,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The settings of one run of the program.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// A URL or a file; None: decided by the launch.
    pub store: Option<String>,
    /// OpenSearch as the launch contract names it, if it does.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u64>,
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// How requests are authorised.
    pub auth: Auth,
    /// For [`Auth::Basic`].
    pub username: Option<String>,
    /// For [`Auth::Basic`]. Never shown.
    pub password: Option<Hidden>,
    /// For [`Auth::SigV4`].
    pub region: Option<String>,
    /// Certificates to trust.
    pub ca_file: Option<PathBuf>,
    /// SQLite's `synchronous=FULL`; None: as the command has it.
    pub durable: Option<bool>,
    /// Between looks for a while after work, in milliseconds; None: what suits the store.
    pub poll_busy: Option<u64>,
    /// The request index.
    pub request_index: Option<String>,
    /// The result index.
    pub result_index: Option<String>,
    /// The state index.
    pub state_index: Option<String>,
    /// The session's data source and default catalog.
    pub data_source: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// Which sessions one process serves, if it is to serve many.
    pub sessions: Vec<Pattern>,
    /// A process that serves many sessions ends when it has served none for so many milliseconds.
    pub exit_idle: Option<u64>,
    /// What the job runs, if it was said.
    pub job_type: Option<JobType>,
    /// A batch job's statement.
    pub query: Option<String>,
    /// A batch job's query id.
    pub query_id: Option<String>,
    /// Jobs that must leave.
    pub exclude_jobs: Vec<String>,
    /// Where metrics are served.
    pub metrics_addr: Option<String>,
    /// When the runner does what. `lease` is derived unless it was set.
    pub policy: Policy,
    /// The lease, if it was set.
    pub lease: Option<u64>,
    /// How large results may be.
    pub limits: Limits,
    /// What the engine may read and use.
    pub engine: EngineSettings,
    /// The folder of query plugins.
    pub plugins: Option<PathBuf>,
    /// The plugins of this program that statements may use without a folder.
    pub bundled: Vec<String>,
    /// How logs are written.
    pub log_format: LogFormat,
    /// Which logs are written; None: as the command has it.
    pub log: Option<String>,
    /// Keys of Spark's that mean nothing here.
    pub ignored: Vec<String>,
    /// A key of `spark.datasource.flint.*` was given: the store is OpenSearch.
    pub names_opensearch: bool,
}

/// Text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<hidden>")
    }
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            store: None,
            host: None,
            port: None,
            scheme: None,
            auth: Auth::None,
            username: None,
            password: None,
            region: None,
            ca_file: None,
            durable: None,
            poll_busy: None,
            request_index: None,
            result_index: None,
            state_index: None,
            data_source: None,
            session: None,
            sessions: Vec::new(),
            exit_idle: None,
            job_type: None,
            query: None,
            query_id: None,
            exclude_jobs: Vec::new(),
            metrics_addr: None,
            policy: Policy::default(),
            lease: None,
            limits: Limits::default(),
            engine: EngineSettings::default(),
            plugins: None,
            bundled: vec!["ppl".to_owned()],
            log_format: LogFormat::Text,
            log: None,
            ignored: Vec::new(),
            names_opensearch: false,
        }
    }
}

impl Configuration {
    /// Sets a key by its option's name.
    ///
    /// # Errors
    /// The value is none of the key's.
    pub fn option(&mut self, key: &Key, value: &str) -> Result<(), Problem> {
        self.put(key, &format!("--{}", key.option.unwrap_or_default()), value)
    }

    /// Sets a key by a `--conf`.
    ///
    /// # Errors
    /// There is no such key of ours, or the value is none of the key's. Unknown keys of Spark's are collected.
    pub fn conf(&mut self, argument: &str) -> Result<(), Problem> {
        let (name, value) = launch::pair(argument)?;
        if let Some(key) = KEYS.iter().find(|key| key.conf().as_deref() == Some(name)) {
            let items = if key.list { value.split(',').collect() } else { vec![value.as_str()] };
            return items.into_iter().try_for_each(|item| self.put(key, name, item));
        }
        if let Some((key, spark)) = KEYS.iter().find_map(|key| Some((key, key.spark.filter(|s| s.name == name)?))) {
            self.names_opensearch |= name.starts_with("spark.datasource.flint.");
            let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            let value = match spark.unit {
                Some(unit) if plain => format!("{value}{unit}"),
                _ if spark.escaped && !launch::is_quoted(argument) => launch::unescaped(&value),
                _ => value,
            };
            // A control plane writes out what is not set.
            if value.is_empty() {
                return Ok(());
            }
            let items = if key.list { value.split(',').collect() } else { vec![value.as_str()] };
            return items.into_iter().try_for_each(|item| self.put(key, name, item));
        }
        if name.starts_with("spark.") {
            self.ignored.push(name.to_owned());
            return Ok(());
        }
        let nearest = KEYS
            .iter()
            .filter_map(Key::conf)
            .map(|known| (strsim::jaro_winkler(&known, name), known))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| format!("did you mean `{known}`? docs/configuration.md lists all"));
        let name: String = name.chars().take(80).collect();
        Err(Problem::Usage { message: format!("unknown setting `{name}`"), hint: nearest })
    }

    fn put(&mut self, key: &Key, called: &str, value: &str) -> Result<(), Problem> {
        (key.set)(self, value).map_err(|expected| {
            if value.is_empty() {
                return Problem::usage(format!("{called} is empty; it takes {expected}"));
            }
            // A URL may hold a password.
            let shown: String = if key.secret || value.contains('@') {
                "what is given".to_owned()
            } else {
                format!("`{}`", value.chars().take(60).collect::<String>())
            };
            Problem::usage(format!("{called}: {shown} is not {expected}"))
        })
    }

    /// What depends on several settings.
    pub fn settle(&mut self) {
        self.policy.lease = self.lease.unwrap_or(3 * self.policy.heartbeat);
    }
}

/// A bucket or host without more to say of it.
fn plain_access(url: &str) -> StoreAccess {
    StoreAccess {
        url: url.to_owned(),
        endpoint: None,
        region: None,
        access_key_id: None,
        secret_access_key: None,
        session_token: None,
    }
}

#[cfg(test)]
mod tests;
