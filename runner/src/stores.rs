//! Which store the settings mean, and opening it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use firesteel_session::ports::control::ControlStore;
use firesteel_session::ports::{Store, StoreError};
use firesteel_store::{OpenSearchOptions, Scope, Settings, SqliteOptions, Synchronous, open_opensearch, open_sqlite};

use crate::ambient;
use crate::conf::{Auth, Configuration};
use crate::problem::Problem;

/// The data source of a session that names none.
pub const DATA_SOURCE: &str = "local";

/// Where sessions, statements and results are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An OpenSearch at this URL.
    OpenSearch(String),
    /// A file.
    Sqlite(PathBuf),
}

impl Place {
    /// What the settings mean. A job that was `launched` as the contract has it looks for OpenSearch at the contract's address,
    /// anybody else in a file of the user's.
    #[must_use]
    pub fn of(settings: &Configuration, launched: bool) -> Place {
        match &settings.store {
            Some(url) if url.starts_with("http://") || url.starts_with("https://") => Place::OpenSearch(url.clone()),
            Some(file) => Place::Sqlite(file.strip_prefix("sqlite:").unwrap_or(file).into()),
            None if launched || settings.names_opensearch => {
                let scheme = settings.scheme.as_deref().unwrap_or("http");
                let host = settings.host.as_deref().unwrap_or("localhost");
                Place::OpenSearch(format!("{scheme}://{host}:{}", settings.port.unwrap_or(9200)))
            }
            None => Place::Sqlite(ambient::data_folder().join("firesteel.db")),
        }
    }

    /// Opens it. An OpenSearch is only reached at the first request.
    ///
    /// # Errors
    /// A setting is missing or contradicts another; the file can't be opened.
    pub fn open(&self, settings: &Configuration, scope: Scope, durable: bool) -> Result<Arc<dyn Store>, Problem> {
        Ok(self.open_control(settings, scope, durable)?)
    }

    /// The same, with what the control plane needs of it.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn open_control(
        &self,
        settings: &Configuration,
        scope: Scope,
        durable: bool,
    ) -> Result<Arc<dyn ControlStore>, Problem> {
        match self {
            Place::OpenSearch(url) => {
                let mut options = OpenSearchOptions::new(url).map_err(setting)?;
                match settings.auth {
                    Auth::None => {}
                    Auth::Basic => options.auth = basic(settings)?,
                    Auth::SigV4 => {
                        let region = settings.region.as_deref().unwrap_or_default();
                        options.auth =
                            firesteel_store::Auth::sigv4(region, |name| std::env::var(name).ok()).map_err(setting)?;
                    }
                }
                options.ca_file.clone_from(&settings.ca_file);
                Ok(Arc::new(open_opensearch(options, indices(settings, scope)).map_err(setting)?))
            }
            Place::Sqlite(file) => {
                if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    std::fs::create_dir_all(folder)
                        .map_err(|e| Problem::Other(format!("the folder {} can't be made: {e}", folder.display())))?;
                }
                let synchronous =
                    if settings.durable.unwrap_or(durable) { Synchronous::Full } else { Synchronous::Normal };
                let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
                Ok(Arc::new(open_sqlite(file, &options, indices(settings, scope))?))
            }
        }
    }

    /// The place for a process that runs in another folder.
    ///
    /// # Errors
    /// The operating system's.
    pub fn whole(&self) -> Result<String, Problem> {
        match self {
            Place::OpenSearch(url) => Ok(url.clone()),
            Place::Sqlite(file) => Ok(format!("sqlite:{}", std::path::absolute(file)?.display())),
        }
    }

    /// What the launch contract says of this place, for a job that is started elsewhere.
    ///
    /// # Errors
    /// A password would have to stand among the job's parameters.
    pub fn contract(&self, settings: &Configuration) -> Result<Vec<(String, String)>, Problem> {
        let Place::OpenSearch(url) = self else { return Ok(Vec::new()) };
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let authority = rest.split('/').next().unwrap_or_default();
        if settings.auth == Auth::Basic || authority.contains('@') {
            return Err(Problem::usage_with(
                "a password would stand among the parameters of the jobs that are started elsewhere",
                "use --auth sigv4, or let the network decide who may reach OpenSearch",
            ));
        }
        let default = if scheme == "https" { "443" } else { "80" };
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, default));
        let mut said = vec![("host", host), ("port", port), ("scheme", scheme)];
        if settings.auth == Auth::SigV4 {
            said.push(("auth", "sigv4"));
            said.extend(settings.region.as_deref().map(|region| ("region", region)));
        }
        let mut pairs: Vec<(String, String)> =
            said.into_iter().map(|(key, value)| (format!("spark.datasource.flint.{key}"), value.to_owned())).collect();
        pairs.extend(
            settings.request_index.iter().map(|index| ("spark.flint.job.requestIndex".to_owned(), index.clone())),
        );
        pairs.extend(settings.state_index.iter().map(|index| ("firesteel.state-index".to_owned(), index.clone())));
        Ok(pairs)
    }

    /// Between looks for a while after work, in milliseconds, unless somebody set it: a look at a file costs next to nothing.
    #[must_use]
    pub fn poll_busy(&self, settings: &Configuration) -> u64 {
        settings.poll_busy.unwrap_or(match self {
            Place::OpenSearch(_) => settings.policy.poll_busy,
            Place::Sqlite(_) => 3,
        })
    }

    /// The option that names this place, for a command line that is shown; nothing if it is the default.
    #[must_use]
    pub fn option(&self) -> String {
        match self {
            Place::Sqlite(file) if *file == ambient::data_folder().join("firesteel.db") => String::new(),
            place => format!(" --store {place}"),
        }
    }
}

/// What is refused before a request was sent is a setting.
fn setting(error: StoreError) -> Problem {
    match error {
        StoreError::Refused(why) => Problem::usage(why),
        other => Problem::Store(other),
    }
}

/// Without a password, if its URL holds one.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::OpenSearch(url) => f.write_str(&without_password(url)),
            Place::Sqlite(file) => write!(f, "{}", file.display()),
        }
    }
}

fn basic(settings: &Configuration) -> Result<firesteel_store::Auth, Problem> {
    let username = settings.username.clone().ok_or_else(|| Problem::usage("--auth basic needs --username"))?;
    let password = settings.password.clone().ok_or_else(|| Problem::usage("--auth basic needs --password-file"))?;
    Ok(firesteel_store::Auth::Basic { username, password: password.0 })
}

fn indices(settings: &Configuration, scope: Scope) -> Settings {
    let defaults = Settings::default();
    let data_source = settings.data_source.as_deref().unwrap_or(DATA_SOURCE);
    Settings {
        request_index: settings.request_index.clone().unwrap_or(defaults.request_index),
        result_index: settings.result_index.clone().unwrap_or_else(|| format!("query_execution_result_{data_source}")),
        state_index: settings.state_index.clone().unwrap_or(defaults.state_index),
        scope,
    }
}

fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://…@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(conf: &[&str], launched: bool) -> Place {
        let mut settings = Configuration::default();
        conf.iter().for_each(|pair| settings.conf(pair).expect("known"));
        Place::of(&settings, launched)
    }

    #[test]
    fn the_store_is_what_was_said_or_what_the_launch_implies() {
        assert_eq!(
            place(&["firesteel.store=https://u:p@h:1/x"], false),
            Place::OpenSearch("https://u:p@h:1/x".to_owned())
        );
        assert_eq!(place(&["firesteel.store=a/b.db"], true), Place::Sqlite("a/b.db".into()));
        assert_eq!(place(&[], true), Place::OpenSearch("http://localhost:9200".to_owned()));
        let theirs =
            ["spark.datasource.flint.host=h", "spark.datasource.flint.port=443", "spark.datasource.flint.scheme=https"];
        assert_eq!(place(&theirs, false), Place::OpenSearch("https://h:443".to_owned()));
        assert!(matches!(place(&[], false), Place::Sqlite(file) if file.ends_with("firesteel.db")));
    }

    #[test]
    fn a_job_elsewhere_is_told_the_place_and_no_password() {
        let mut settings = Configuration::default();
        settings.conf("firesteel.request-index=r").expect("known");
        let said = Place::OpenSearch("https://h/x".to_owned()).contract(&settings).expect("no password");
        let said: Vec<String> = said.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            said,
            [
                "spark.datasource.flint.host=h",
                "spark.datasource.flint.port=443",
                "spark.datasource.flint.scheme=https",
                "spark.flint.job.requestIndex=r"
            ]
        );
        assert!(Place::OpenSearch("http://u:p@h:1".to_owned()).contract(&settings).is_err());
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        assert_eq!(place(&["firesteel.store=https://u:p@h:1"], false).option(), " --store https://…@h:1");
    }
}
