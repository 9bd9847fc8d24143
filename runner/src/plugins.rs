//! `firesteel plugin`: what a runner loads, and the shelf as the runner watches it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use firesteel_engine::plugins::Log;
use firesteel_engine::{PluginSet, Pool};
use firesteel_plugin_host::load::Description;
use firesteel_plugin_host::shelf::{Ready, Shelf};
use firesteel_plugin_host::{compile, component, encode, shelf};
use firesteel_session::ports::plugins::{FunctionKind, Level, Plugin};
use tokio::task::JoinSet;

use crate::problem::Problem;

/// How often the shelf is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Loads plugins in a worker.
///
/// # Errors
/// One cannot be loaded.
pub fn load(specs: &[serde_json::Value], log: &Log) -> Result<Vec<Arc<dyn Plugin>>, String> {
    shelf::load(specs, log)
}

/// This very program, even if its file was replaced since.
fn program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

fn set(ready: Ready) -> PluginSet {
    PluginSet { plugins: ready.specs, reads: ready.reads, writes: ready.writes, network: ready.network }
}

/// What is on the shelf, ready for workers.
///
/// # Errors
/// A plugin cannot be used.
pub fn ready(folder: &Path) -> Result<PluginSet, Problem> {
    let ready = Shelf::new(folder).ready(&program(), compile::TIME);
    ready
        .map(set)
        .map_err(|why| Problem::usage_with(format!("--plugins: {why}"), "look at it with firesteel plugin check"))
}

/// Watches the shelf, and gives workers what is new on it between statements. What cannot be used is told in the log, and the old stays.
pub fn watch(folder: PathBuf, pool: &Arc<Pool>, tasks: &mut JoinSet<()>) {
    let (shelf, pool) = (Shelf::new(&folder), Arc::clone(pool));
    let mut seen = shelf.stamp();
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = shelf.stamp();
            if now == seen {
                continue;
            }
            seen = now;
            let looked = shelf.clone();
            let ready = tokio::task::spawn_blocking(move || looked.ready(&program(), compile::TIME)).await;
            match ready {
                Ok(Ok(ready)) => {
                    tracing::info!(plugins = ready.specs.len(), "the plugins have changed");
                    pool.replace_plugins(set(ready));
                }
                Ok(Err(why)) => tracing::error!(why, "the plugins have changed and cannot be used; the old ones stay"),
                Err(_) => tracing::error!("the plugins have changed and looking at them failed; the old ones stay"),
            }
        }
    });
}

/// `firesteel plugin …`.
///
/// # Errors
/// What was asked for cannot be done.
pub fn plugin(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    match matches.subcommand() {
        Some(("build", matches)) => build(path(matches, "module"), matches.get_one::<PathBuf>("out")),
        Some(("check", matches)) => check(path(matches, "file")),
        Some(("add", matches)) => add(path(matches, "file"), matches.get_one("settings"), path(matches, "plugins")),
        Some(("list", matches)) => list(path(matches, "plugins")),
        Some(("remove", matches)) => {
            let name = matches.get_one::<String>("name").map_or("", String::as_str);
            Shelf::new(path(matches, "plugins")).remove(name).map_err(Problem::usage)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Ok(ExitCode::from(2)),
    }
}

fn path<'a>(matches: &'a ArgMatches, name: &str) -> &'a Path {
    matches.get_one::<PathBuf>(name).map_or(Path::new(""), PathBuf::as_path)
}

fn build(module: &Path, out: Option<&PathBuf>) -> Result<ExitCode, Problem> {
    let at = |e: &dyn std::fmt::Display| Problem::usage(format!("{}: {e}", module.display()));
    let bytes = std::fs::read(module).map_err(|e| at(&e))?;
    let component = encode::component(&bytes).map_err(|e| at(&e))?;
    let out = out.cloned().unwrap_or_else(|| module.with_extension("component.wasm"));
    std::fs::write(&out, &component).map_err(|e| Problem::usage(format!("{}: {e}", out.display())))?;
    writeln!(io::stdout(), "{}: a component of {} bytes", out.display(), component.len())?;
    Ok(ExitCode::SUCCESS)
}

/// Lines that a plugin logs while it is looked at.
fn log() -> Log {
    Arc::new(|plugin, level, line| {
        if matches!(level, Level::Error | Level::Warn) {
            eprintln!("{plugin}: {line}");
        }
    })
}

fn described(file: &Path) -> Result<(Vec<u8>, Description), Problem> {
    let bytes = component::read(file).map_err(Problem::usage)?;
    let description = shelf::describe(&bytes, &file.display().to_string(), &log()).map_err(Problem::usage)?;
    Ok((bytes, description))
}

fn check(file: &Path) -> Result<ExitCode, Problem> {
    let (bytes, Description { about, asks }) = described(file)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{} {}: {}", about.name, about.version, about.about)?;
    writeln!(out, "  size      {} bytes", bytes.len())?;
    if !about.languages.is_empty() {
        writeln!(out, "  handles   {}", about.languages.join(", "))?;
    }
    for function in &about.functions {
        let kind = match function.kind {
            FunctionKind::Scalar => "scalar",
            FunctionKind::Aggregate => "aggregate",
            FunctionKind::Table => "table",
        };
        let parameters: Vec<String> = function.parameters.iter().map(|(n, t)| format!("{n} {t}")).collect();
        let more = if function.variadic { "…" } else { "" };
        let returns =
            if function.kind == FunctionKind::Table { String::new() } else { format!(" -> {}", function.returns) };
        writeln!(out, "  function  {}({}{more}){returns} ({kind})", function.name, parameters.join(", "))?;
    }
    for (has, what) in [(about.policy, "table policy"), (about.results, "result hook"), (about.events, "events")] {
        if has {
            writeln!(out, "  has       {what}")?;
        }
    }
    for host in &asks.http {
        writeln!(out, "  asks for  http {host}")?;
    }
    for (name, mode) in &asks.directories {
        writeln!(out, "  asks for  the folder {name}, to {}", mode.as_str())?;
    }
    if asks.writes {
        writeln!(out, "  asks for  effects outside")?;
    }
    writeln!(out, "this runner can load it")?;
    Ok(ExitCode::SUCCESS)
}

fn add(file: &Path, settings: Option<&PathBuf>, folder: &Path) -> Result<ExitCode, Problem> {
    let (bytes, Description { about, asks }) = described(file)?;
    let text = settings
        .map(|path| std::fs::read_to_string(path).map_err(|e| Problem::usage(format!("{}: {e}", path.display()))))
        .transpose()?;
    let section: shelf::Section = match &text {
        None => shelf::Section::default(),
        Some(text) => toml_of(text)?,
    };
    let missing = section.grants.missing(&asks);
    if !missing.is_empty() {
        return Err(Problem::usage_with(
            format!("{} asks for what is not granted: {}", about.label(), missing.join(", ")),
            "if you trust it, write that below [grants] in a file and add it with --settings FILE",
        ));
    }
    let shelf = Shelf::new(folder);
    shelf.put(&about.name, &bytes, text.as_deref()).map_err(Problem::usage)?;
    // Compiled now, so that no statement waits for it.
    if let Err(why) = shelf.ready(&program(), compile::TIME) {
        shelf.remove(&about.name).map_err(Problem::usage)?;
        return Err(Problem::usage(why));
    }
    writeln!(io::stdout(), "{} is in {}", about.label(), folder.display())?;
    Ok(ExitCode::SUCCESS)
}

fn toml_of(text: &str) -> Result<shelf::Section, Problem> {
    shelf::Section::read(text).map_err(|why| Problem::usage(format!("--settings: {why}")))
}

fn list(folder: &Path) -> Result<ExitCode, Problem> {
    for entry in Shelf::new(folder).entries().map_err(Problem::usage)? {
        let (_, Description { about, .. }) = described(&entry.file)?;
        writeln!(io::stdout(), "{:5}  {:20} {:10} {}", entry.section.order, about.name, about.version, about.about)?;
    }
    Ok(ExitCode::SUCCESS)
}
