//! `firesteel plugin`: what a runner loads, looked at, put where it loads it, and taken away.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use firesteel_engine::plugins::Log;
use firesteel_model::Failure;
use firesteel_plugin_host::load::Description;
use firesteel_plugin_host::shelf::{Section, Shelf};
use firesteel_plugin_host::{bundled, compile, component, encode, shelf};
use firesteel_session::ports::plugins::{FunctionKind, Level};

use super::tried::{Made, Rows, Tried};
use super::{cases, new, program};
use crate::output::{self, Format, Look, Summary};
use crate::problem::Problem;

/// `firesteel plugin …`.
///
/// # Errors
/// What was asked for cannot be done.
pub fn plugin(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    match matches.subcommand() {
        Some(("new", matches)) => new::new(path(matches, "name")),
        Some(("run", matches)) => run(matches),
        Some(("test", matches)) => test(matches),
        Some(("build", matches)) => build(path(matches, "module"), matches.get_one::<PathBuf>("out")),
        Some(("check", matches)) => check(path(matches, "file"), matches.get_one("settings")),
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

/// Lines that a plugin logs while it is tried: its author wants all of them.
fn whole_log() -> Log {
    Arc::new(|plugin, level, line| eprintln!("{plugin}: {}: {line}", format!("{level:?}").to_lowercase()))
}

fn tried(matches: &ArgMatches, data: &[PathBuf]) -> Result<Tried, Problem> {
    let (_, section) = written(matches.get_one("settings"))?;
    Tried::load(path(matches, "file"), section, data, &whole_log())
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let data: Vec<PathBuf> = matches.get_many("data").into_iter().flatten().cloned().collect();
    let tried = tried(matches, &data)?;
    let lang = matches.get_one::<String>("lang").map_or(tried.language(), String::as_str);
    let text = matches.get_one::<String>("statement").map_or("", String::as_str);
    let told = |failure: Failure| {
        let code = failure.code.as_str();
        Problem::Statement { message: failure.message, hint: Some(format!("{code}: see docs/errors/{code}.md")) }
    };
    crate::alone()?.block_on(async {
        let mut session = tried.session(&[]).await.map_err(told)?;
        let mut out = io::stdout();
        match session.route(lang, text).await.map_err(told)? {
            Made::Sql(sql) if lang.eq_ignore_ascii_case("sql") && sql == text => {
                writeln!(out, "the statement is run as it is")?;
            }
            Made::Sql(sql) => writeln!(out, "{lang} becomes sql:\n{sql}")?,
            Made::Answer(rows) => writeln!(out, "the plugin answers it, with {rows} rows")?,
        }
        let Rows { columns, rows } = session.run(lang, text).await.map_err(told)?;
        let mut printer = output::printer(Format::Table, Look::of_stdout(), &mut out);
        printer.begin(&columns)?;
        printer.rows(&rows)?;
        printer.end(&Summary { rows: rows.len() as u64, ..Summary::default() })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn test(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let data: Vec<PathBuf> = match matches.get_many("data") {
        Some(data) => data.cloned().collect(),
        None => Some(PathBuf::from("tests/tables")).filter(|folder| folder.is_dir()).into_iter().collect(),
    };
    let tried = tried(matches, &data)?;
    crate::alone()?.block_on(cases::test(&tried, path(matches, "cases")))
}

/// Lines that a plugin logs while it is looked at.
fn log() -> Log {
    Arc::new(|plugin, level, line| {
        if matches!(level, Level::Error | Level::Warn) {
            eprintln!("{plugin}: {line}");
        }
    })
}

fn described(file: &Path, section: &Section) -> Result<(Vec<u8>, Description), Problem> {
    // This program's own have no file, but a name.
    let own = file.to_str().filter(|_| !file.exists()).and_then(bundled::find);
    let bytes = match own {
        Some(bundled) => bundled.component.to_vec(),
        None => component::read(file).map_err(Problem::usage)?,
    };
    let description = shelf::describe(&bytes, &file.display().to_string(), section, &log()).map_err(Problem::usage)?;
    Ok((bytes, description))
}

fn check(file: &Path, settings: Option<&PathBuf>) -> Result<ExitCode, Problem> {
    let (_, section) = written(settings)?;
    let (bytes, Description { about, asks }) = described(file, &section)?;
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
    let (text, section) = written(settings)?;
    let (bytes, Description { about, asks }) = described(file, &section)?;
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

/// What an operator wrote about a plugin, and the same as it is understood.
fn written(settings: Option<&PathBuf>) -> Result<(Option<String>, Section), Problem> {
    let Some(path) = settings else { return Ok((None, Section::default())) };
    let text = std::fs::read_to_string(path).map_err(|e| Problem::usage(format!("{}: {e}", path.display())))?;
    let section = Section::read(&text).map_err(|why| Problem::usage(format!("{}: {why}", path.display())))?;
    Ok((Some(text), section))
}

fn list(folder: &Path) -> Result<ExitCode, Problem> {
    for entry in Shelf::new(folder).entries().map_err(Problem::usage)? {
        let (_, Description { about, .. }) = described(&entry.file, &entry.section)?;
        writeln!(io::stdout(), "{:5}  {:20} {:10} {}", entry.section.order, about.name, about.version, about.about)?;
    }
    Ok(ExitCode::SUCCESS)
}
