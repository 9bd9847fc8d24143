//! Firesteel: takes SQL statements from an OpenSearch index, or from a SQLite file, runs them on DataFusion in worker processes,
//! and writes results that another program can read.
//!
//! The program's outline; ARCHITECTURE.md has the map.

mod admin;
mod ambient;
mod arguments;
mod client;
mod conf;
mod engine;
mod logging;
mod output;
mod plugins;
mod problem;
mod progress;
mod repl;
mod run;
mod serve;
mod serving;
mod status;
mod stores;
mod submit;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ArgMatches;
use clap_complete::Shell;
use tokio::runtime::{Builder, Runtime};

use problem::{Problem, tell};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    // Before anything else: a worker is to be there in milliseconds.
    if arguments.get(1).is_some_and(|command| command == "worker") {
        return firesteel_engine::worker::main(plugins::load);
    }
    if arguments.get(1).is_some_and(|command| command == firesteel_plugin_host::compile::COMMAND) {
        return firesteel_plugin_host::compile::main();
    }
    let arguments = match arguments::from_file(arguments) {
        Ok(arguments) => arguments,
        Err(problem) => {
            tell(&problem);
            return problem.exit();
        }
    };
    let launched = ambient::launcher("SERVERLESS_EMR_JOB_ID").is_some();
    let matches = match arguments::parse(arguments, launched) {
        Ok(matches) => matches,
        Err(said) => return usage(&said),
    };
    let Some((command, matches)) = matches.subcommand() else { return ExitCode::from(2) };
    let done = match command {
        "serve" => serve(matches),
        "admin" => admin(matches),
        "run" => run(matches),
        "repl" => repl(matches),
        "submit" => submit(matches),
        "status" => status(matches),
        "plugin" => plugins::plugin(matches),
        "completions" => completions(matches),
        _ => manual(),
    };
    done.unwrap_or_else(|problem| {
        tell(&problem);
        problem.exit()
    })
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let mut settings = arguments::of_job(matches)?;
    let by_class = run::launch(matches, &mut settings)?;
    logging::start(&settings, "info")?;
    let done = threads()?.block_on(run::run(&mut settings, by_class));
    // Whoever supervises the job tells by the code whether to start it again: a store out of reach is a failed job.
    if let Err(problem @ Problem::Store(_)) = &done {
        tell(problem);
        return Ok(ExitCode::FAILURE);
    }
    done
}

fn serve(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let settings = arguments::of_server(matches)?;
    logging::start(&settings, "info")?;
    threads()?.block_on(serve::serve(matches, &settings))
}

fn admin(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let Some((command, matches)) = matches.subcommand() else { return Ok(ExitCode::from(2)) };
    let settings = arguments::of_server(matches)?;
    logging::start(&settings, "warn")?;
    threads()?.block_on(admin::admin(command, matches, &settings))
}

fn repl(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let settings = arguments::of_prompt(matches, repl::base())?;
    logging::start(&settings, "warn")?;
    repl::repl(matches, settings, &threads()?)
}

fn submit(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let settings = arguments::of_client(matches)?;
    logging::start(&settings, "warn")?;
    alone()?.block_on(submit::submit(matches, &settings))?;
    Ok(ExitCode::SUCCESS)
}

fn status(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    let settings = arguments::of_client(matches)?;
    logging::start(&settings, "warn")?;
    alone()?.block_on(status::status(matches, &settings))?;
    Ok(ExitCode::SUCCESS)
}

fn completions(matches: &ArgMatches) -> Result<ExitCode, Problem> {
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut arguments::grammar(), "firesteel", &mut script);
        io::stdout().write_all(&script)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn manual() -> Result<ExitCode, Problem> {
    let mut grammar = arguments::grammar();
    grammar.build();
    let commands = grammar.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut pages = Vec::new();
    for command in std::iter::once(grammar.clone()).chain(commands) {
        clap_mangen::Man::new(command).render(&mut pages)?;
    }
    io::stdout().write_all(&pages)?;
    Ok(ExitCode::SUCCESS)
}

/// Help and versions are no errors.
fn usage(said: &clap::Error) -> ExitCode {
    if said.use_stderr() {
        eprintln!("{}", arguments::said(said));
        return ExitCode::from(2);
    }
    let _ = said.print();
    ExitCode::SUCCESS
}

/// The loop and the store's traffic; queries run in other processes.
fn threads() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// For commands that do one thing after another.
fn alone() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
