//! `firesteel serve`: the control plane, with jobs as processes of this machine unless told otherwise.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use firesteel_control::admission::{Admission, Limits};
use firesteel_control::http::{self, Guard, Shared, User};
use firesteel_control::launch::{EmrOptions, EmrServerless, Process, ProcessOptions};
use firesteel_control::plane::{Plane, Settings};
use firesteel_control::sigv4::Key;
use firesteel_control::watch::{Recovery, Rounds, Seen, Watch};
use firesteel_model::steer::Patience;
use firesteel_session::clock::SystemClock;
use firesteel_session::ports::control::Launcher;
use firesteel_store::Scope;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::ambient;
use crate::arguments;
use crate::conf::Configuration;
use crate::conf::keys::{Group, KEYS};
use crate::problem::Problem;
use crate::serving;
use crate::stores::{DATA_SOURCE, Place};

/// What of the settings is the jobs', too.
const OF_JOBS: &[Group] = &[Group::Store, Group::Engine, Group::Results, Group::Times, Group::Logs];

/// Serves the APIs until it is told to stop. Jobs go on.
///
/// # Errors
/// All of [`Problem`]'s but a statement's.
pub async fn serve(matches: &ArgMatches, settings: &Configuration) -> Result<ExitCode, Problem> {
    let address: SocketAddr = text(matches, "listen")
        .parse()
        .map_err(|_| Problem::usage(format!("--listen: `{}` is not HOST:PORT", text(matches, "listen"))))?;
    let guard = guard(matches, address)?;
    let refused = |e| Problem::usage(format!("--listen: {address} cannot be listened on: {e}"));
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let tls = match (matches.get_one::<String>("tls-cert"), matches.get_one::<String>("tls-key")) {
        (Some(certificates), Some(key)) => Some(
            http::acceptor(certificates.as_ref(), key.as_ref())
                .map_err(|bad| Problem::usage(format!("--tls-cert, --tls-key: {bad}")))?,
        ),
        _ => None,
    };
    let instance = match matches.get_one::<String>("instance") {
        Some(name) => name.clone(),
        None => format!("{}:{}", ambient::machine(), listener.local_addr()?.port()),
    };
    let (plane, place) = plane(matches, settings, instance).await?;
    let (mut registry, seen) = (Registry::default(), Seen::default());
    seen.register(&mut registry);
    let rounds = Rounds {
        every: arguments::time(matches, "watch-every")?.unwrap_or(Rounds::default().every),
        patience: Patience {
            stale: arguments::time(matches, "stale-after")?.unwrap_or(Rounds::default().patience.stale),
            watched: settings.policy.lease,
        },
        sweep: settings.policy.sweep,
        recovery: matches
            .get_one::<u32>("recover")
            .copied()
            .filter(|most| *most > 0)
            .map(|most| Recovery { most, a_minute: matches.get_one::<u32>("recover-rate").copied().unwrap_or(1) }),
    };
    let mut tasks = JoinSet::new();
    let mut stop = serving::on_signals(&mut tasks)?;
    let watch = Watch::new(Arc::clone(&plane), rounds, seen);
    tasks.spawn(watch.forever());
    let shared = Shared { plane, guard: Arc::new(guard), registry: Arc::new(registry) };
    tracing::info!(address = %listener.local_addr()?, store = %place, "serving the APIs");
    let stopped = async move {
        stop.recv().await;
    };
    http::serve(listener, tls, shared, stopped).await?;
    tracing::info!("leaving; jobs go on until their sessions end");
    Ok(ExitCode::SUCCESS)
}

/// The control plane under these options, and where its documents are.
///
/// # Errors
/// All of [`Problem`]'s but a statement's.
pub async fn plane(
    matches: &ArgMatches,
    settings: &Configuration,
    instance: String,
) -> Result<(Arc<Plane>, Place), Problem> {
    let place = Place::of(settings, false);
    let store = place.open_control(settings, Scope::Requests, true)?;
    store.prepare(true).await?;
    let clock = Arc::new(SystemClock);
    let launcher = launcher(matches, settings, &place)?;
    let plane = Plane {
        admission: Admission::new(Arc::clone(&store), clock.clone(), limits(matches)),
        store,
        launcher,
        clock,
        unique: ambient::unique,
        settings: Settings {
            data_source: settings.data_source.clone().unwrap_or_else(|| DATA_SOURCE.to_owned()),
            application: text(matches, "emr-application").to_owned(),
            execution_timeout: settings.policy.execution_timeout,
            instance,
        },
    };
    Ok((Arc::new(plane), place))
}

fn text<'a>(matches: &'a ArgMatches, option: &str) -> &'a str {
    matches.get_one::<String>(option).map_or("", String::as_str)
}

fn limits(matches: &ArgMatches) -> Limits {
    let defaults = Limits::default();
    let limit = |option, default| matches.get_one::<u32>(option).copied().unwrap_or(default);
    Limits {
        queue: limit("max-queue", defaults.queue),
        statements: limit("max-statements", defaults.statements),
        sessions: limit("max-sessions", defaults.sessions),
        user_sessions: limit("max-user-sessions", defaults.user_sessions),
        user_statements: limit("max-user-statements", defaults.user_statements),
    }
}

/// Who may ask. Where others than this machine can reach the APIs, they must say who they are.
fn guard(matches: &ArgMatches, address: SocketAddr) -> Result<Guard, Problem> {
    let users: Vec<User> = match matches.get_one::<String>("users") {
        None => Vec::new(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Problem::usage(format!("--users: `{file}` cannot be read: {e}")))?;
            serde_json::from_str(&text).map_err(|e| {
                // The parser's message may quote a secret.
                let place = format!("line {}, column {}", e.line(), e.column());
                Problem::usage_with(
                    format!("--users: `{file}` is no list of users ({place})"),
                    r#"[{"user": "ann", "role": "owner", "token": "…"}], roles are owner, viewer, admin"#,
                )
            })?
        }
    };
    if users.is_empty() && !address.ip().is_loopback() {
        return Err(Problem::usage_with(
            format!("--listen: {address} is reached from elsewhere, and nobody would have to say who they are"),
            "name who may ask with --users FILE, or listen on 127.0.0.1",
        ));
    }
    let rate = matches.get_one::<u64>("rate").copied().unwrap_or(0);
    let guard = Guard::new(&users, rate).map_err(|bad| Problem::usage(format!("--users: {bad}")))?;
    Ok(guard.wanting_header(matches.get_flag("csrf-protection")))
}

fn launcher(matches: &ArgMatches, settings: &Configuration, place: &Place) -> Result<Arc<dyn Launcher>, Problem> {
    if text(matches, "launcher") == "emr-serverless" {
        return Ok(Arc::new(emr(matches, settings, place)?));
    }
    let program = std::env::current_exe()?;
    let folder = match matches.get_one::<String>("jobs-dir") {
        Some(folder) => PathBuf::from(folder),
        None => ambient::data_folder().join("jobs"),
    };
    let options = ProcessOptions {
        program,
        arguments: of_jobs(matches, place)?,
        folder: std::path::absolute(folder)?,
        shared: (text(matches, "launcher") == "shared-process").then_some(settings.policy.inactivity),
        unique: ambient::unique,
    };
    Ok(Arc::new(Process::new(options).map_err(|error| Problem::Other(error.to_string()))?))
}

/// Jobs by EMR Serverless' API, with the key of the environment.
fn emr(matches: &ArgMatches, settings: &Configuration, place: &Place) -> Result<EmrServerless, Problem> {
    let variable = |name: &str| {
        let message = format!("--launcher emr-serverless: {name} is not set");
        ambient::launcher(name).ok_or_else(|| Problem::usage_with(message, "requests are signed with that key"))
    };
    let needed = |option: &str| match text(matches, option) {
        "" => Err(Problem::usage(format!("--launcher emr-serverless needs --{option}"))),
        value => Ok(value.to_owned()),
    };
    let region = settings.region.clone().ok_or_else(|| Problem::usage("--launcher emr-serverless needs --region"))?;
    let endpoint = match text(matches, "emr-endpoint") {
        "" => format!("https://emr-serverless.{region}.amazonaws.com"),
        endpoint => endpoint.to_owned(),
    };
    let data_source = settings.data_source.as_deref().unwrap_or(DATA_SOURCE);
    let results = settings.result_index.clone();
    let options = EmrOptions {
        endpoint,
        region,
        key: Key {
            id: variable("AWS_ACCESS_KEY_ID")?,
            secret: variable("AWS_SECRET_ACCESS_KEY")?,
            token: ambient::launcher("AWS_SESSION_TOKEN"),
        },
        role: needed("emr-role")?,
        entry_point: needed("emr-entry-point")?,
        application: needed("emr-application")?,
        result_index: results.unwrap_or_else(|| format!("query_execution_result_{data_source}")),
        conf: place.contract(settings)?,
        now: ambient::wall_clock,
    };
    EmrServerless::new(options).map_err(|error| Problem::usage(format!("--emr-endpoint: {error}")))
}

/// The settings that this program was given, as its jobs are given them. Paths are made whole: a job may be started from elsewhere.
fn of_jobs(matches: &ArgMatches, place: &Place) -> Result<Vec<String>, Problem> {
    let mut arguments = Vec::new();
    for pair in matches.get_many::<String>("conf").into_iter().flatten() {
        arguments.extend(["--conf".to_owned(), pair.clone()]);
    }
    for key in KEYS.iter().filter(|key| OF_JOBS.contains(&key.group)) {
        let Some(option) = key.option.filter(|option| *option != "store") else { continue };
        if key.value.is_empty() {
            if matches.get_flag(option) {
                arguments.push(format!("--{option}"));
            }
            continue;
        }
        for value in matches.get_many::<String>(option).into_iter().flatten() {
            let value = match key.value {
                "DIR" | "FILE" => std::path::absolute(value)?.display().to_string(),
                _ => value.clone(),
            };
            arguments.push(format!("--{option}={value}"));
        }
    }
    arguments.push(format!("--store={}", place.whole()?));
    for often in ["--poll=20ms", "--poll-idle=50ms"] {
        let set = often.split_inclusive('=').next().unwrap_or_default();
        // A look at a file costs next to nothing.
        if matches!(place, Place::Sqlite(_)) && !arguments.iter().any(|argument| argument.starts_with(set)) {
            arguments.push(often.to_owned());
        }
    }
    Ok(arguments)
}
