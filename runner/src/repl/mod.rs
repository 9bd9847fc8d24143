//! `firesteel repl`: a runner inside, a prompt or a script in front. What is entered becomes a statement document in an embedded
//! store, and what is shown is the result document that the runner wrote.

mod command;
mod prompt;
mod split;

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use firesteel_engine::Workers;
use firesteel_model::runner::Identity;
use firesteel_model::{RunnerId, StatementState};
use firesteel_session::clock::SystemClock;
use firesteel_session::counters::Counters;
use firesteel_store::Scope;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::client::{self, Client, Submission};
use crate::conf::Configuration;
use crate::output::{self, Format, Look};
use crate::problem::{Problem, tell};
use crate::stores::{DATA_SOURCE, Place};
use crate::{ambient, engine, progress, serving};
use command::Command;
use prompt::{Entered, Prompt};
use split::Splitter;

/// How long leaving may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Settings that suit one person who waits: the runner looks often and does not leave by itself.
#[must_use]
pub fn base() -> Configuration {
    let mut base = Configuration::default();
    (base.policy.poll, base.policy.poll_idle) = (20, 50);
    base.policy.inactivity = 365 * 24 * 3_600_000;
    base
}

/// Asks until the user leaves or the script ends.
///
/// # Errors
/// The store or the engine can't be started, or the output is closed.
pub fn repl(matches: &ArgMatches, mut settings: Configuration, runtime: &Runtime) -> Result<ExitCode, Problem> {
    if settings.engine.data.is_empty() {
        settings.engine.data.push(default_data());
    }
    let folder = Folder::new()?;
    let place = Place::Sqlite(folder.0.join("repl.db"));
    settings.policy.poll_busy = place.poll_busy(&settings);
    let data_source = settings.data_source.clone().unwrap_or_else(|| DATA_SOURCE.to_owned());
    settings.engine.catalog.clone_from(&data_source);
    let session = client::session_id(&ambient::unique())?;
    let me = Identity {
        runner: RunnerId::new(ambient::unique()).map_err(|bad| Problem::Other(bad.to_string()))?,
        job: None,
        application: None,
        session: session.clone(),
        data_source: data_source.clone(),
        excluded: Vec::new(),
        batch: None,
    };
    let store = place.open(&settings, Scope::Requests, false)?;
    let heart = place.open(&settings, Scope::Requests, false)?;
    let (stop, stopped) = mpsc::unbounded_channel();
    let (mut serving, mut warming) = (JoinSet::new(), JoinSet::new());
    {
        let _inside = runtime.enter();
        let engine = Arc::new(Workers::alone(engine::start(&settings, &mut warming)?));
        warming.spawn(remove_when_killed(folder.0.clone()));
        let store = Arc::clone(&store);
        serving.spawn(async move {
            serving::serve(me, &settings, store, heart, engine, Counters::default(), stopped).await
        });
    }
    runtime.block_on(store.prepare(true))?;
    let format = matches.get_one::<String>("format").and_then(|name| Format::parse(name)).unwrap_or(Format::Table);
    let stop_on_error = matches.get_one::<String>("on-error").is_none_or(|what| what == "stop");
    let client = Client { store, session, data_source, clock: Arc::new(SystemClock) };
    let lang = matches.get_one::<String>("lang").map_or("sql", String::as_str).to_owned();
    let mut front = Front { client, runtime, lang, format, timing: true, look: Look::of_stdout() };
    let outcome = if io::stdin().is_terminal() { front.converse() } else { front.script(stop_on_error) };
    let _ = stop.send(());
    runtime.block_on(async {
        // Once more: at once.
        if tokio::time::timeout(GOODBYE, serving.join_next()).await.is_err() {
            let _ = stop.send(());
        }
    });
    outcome
}

/// The repository's sample data, if this was built in a repository that is still there; else the folder one is in.
fn default_data() -> PathBuf {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-data"));
    samples.canonicalize().unwrap_or_else(|_| {
        tracing::warn!(
            "the sample data is no longer where this program was built: the tables are the files of this folder; --data DIR names another"
        );
        PathBuf::from(".")
    })
}

/// A folder of this process's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Problem> {
        let path = std::env::temp_dir().join(format!("firesteel-repl-{}", ambient::unique()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Problem::Other(format!("the folder {} can't be made: {e}", path.display())))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A terminal that is closed ends this process before anything else is done.
async fn remove_when_killed(folder: PathBuf) {
    let (Ok(mut hangup), Ok(mut terminate)) = (signal(SignalKind::hangup()), signal(SignalKind::terminate())) else {
        return;
    };
    let code = tokio::select! {
        _ = hangup.recv() => 129,
        _ = terminate.recv() => 143,
    };
    drop(Folder(folder));
    std::process::exit(code);
}

struct Front<'a> {
    client: Client,
    runtime: &'a Runtime,
    lang: String,
    format: Format,
    timing: bool,
    look: Look,
}

/// Whether to go on.
enum Next {
    Go,
    Leave,
}

impl Front<'_> {
    fn converse(&mut self) -> Result<ExitCode, Problem> {
        let mut prompt = Prompt::new()?;
        println!("Firesteel {}. A statement ends with ; and \\? helps.", env!("CARGO_PKG_VERSION"));
        loop {
            let text = match prompt.next()? {
                Entered::End => return Ok(ExitCode::SUCCESS),
                Entered::Cleared => continue,
                Entered::Text(text) => text,
            };
            if prompt::is_goodbye(&text) {
                return Ok(ExitCode::SUCCESS);
            }
            if text.trim_start().starts_with('\\') {
                match self.command(&text) {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => return Ok(ExitCode::SUCCESS),
                    Err(problem) => tell(&problem),
                }
                continue;
            }
            let mut splitter = Splitter::default();
            for statement in splitter.push(&text) {
                if let Err(problem) = self.execute(statement) {
                    tell(&problem);
                    break;
                }
            }
        }
    }

    /// Runs what comes from standard input. Exit code 1 if a statement failed.
    fn script(&mut self, stop_on_error: bool) -> Result<ExitCode, Problem> {
        let mut splitter = Splitter::default();
        let mut failed = false;
        let mut line = String::new();
        let mut input = io::stdin().lock();
        loop {
            line.clear();
            let read = input.read_line(&mut line).map_err(|e| Problem::Other(format!("standard input: {e}")))?;
            let outcomes = if read == 0 {
                splitter.rest().into_iter().map(|rest| self.execute(rest).map(|()| Next::Go)).collect()
            } else if splitter.is_empty() && line.trim_start().starts_with('\\') {
                vec![self.command(&line)]
            } else {
                let mut outcomes = Vec::new();
                for statement in splitter.push(&line) {
                    outcomes.push(self.execute(statement).map(|()| Next::Go));
                    if stop_on_error && outcomes.last().is_some_and(Result::is_err) {
                        break;
                    }
                }
                outcomes
            };
            for outcome in outcomes {
                match outcome {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => return Ok(ExitCode::from(u8::from(failed))),
                    // Who reads the output has gone.
                    Err(Problem::Closed) => return Err(Problem::Closed),
                    Err(problem) => {
                        tell(&problem);
                        failed = true;
                        if stop_on_error {
                            return Ok(ExitCode::FAILURE);
                        }
                    }
                }
            }
            if read == 0 {
                return Ok(ExitCode::from(u8::from(failed)));
            }
        }
    }

    fn command(&mut self, line: &str) -> Result<Next, Problem> {
        match command::parse(line).map_err(Problem::usage)? {
            Command::Quit => return Ok(Next::Leave),
            Command::Help => writeln!(io::stdout(), "{}", command::HELP)?,
            Command::Timing => {
                self.timing = !self.timing;
                writeln!(io::stdout(), "timing is {}", if self.timing { "on" } else { "off" })?;
            }
            Command::Format(format) => self.format = format,
            Command::Lang(name) => self.lang = name,
            Command::Statement(text) => self.execute_in("sql", text)?,
        }
        Ok(Next::Go)
    }

    /// One statement, all the way. Ctrl-C cancels it, as a control plane does.
    fn execute(&mut self, text: String) -> Result<(), Problem> {
        let lang = self.lang.clone();
        self.execute_in(&lang, text)
    }

    fn execute_in(&mut self, lang: &str, text: String) -> Result<(), Problem> {
        let client = &self.client;
        let began = client.clock.now();
        let submission = Submission { text, lang: lang.to_owned(), timeout: None };
        let (format, look, timing) = (self.format, self.look, self.timing);
        self.runtime.block_on(async {
            let ids = client.submit(submission).await?;
            let state = {
                let mut line = progress::Line::new();
                let ended = client.ended(&ids.statement, |watched, took| line.show(watched, took));
                tokio::pin!(ended);
                loop {
                    tokio::select! {
                        state = &mut ended => break state?,
                        _ = tokio::signal::ctrl_c() => {
                            client.cancel(&ids.statement).await?;
                        }
                    }
                }
            };
            if state != StatementState::Success {
                return Err(client::told(&state));
            }
            let mut out = io::stdout().lock();
            let mut printer = output::printer(format, look, &mut out);
            client.print(&ids, timing.then_some(began), printer.as_mut()).await
        })
    }
}
