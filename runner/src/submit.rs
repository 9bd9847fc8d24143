//! `firesteel submit`: hands a statement in, waits, prints its result.

use std::io::{self, Read, Write};
use std::sync::Arc;

use clap::ArgMatches;
use firesteel_model::policy::Policy;
use firesteel_model::{Session, SessionState, StatementState};
use firesteel_session::clock::SystemClock;
use firesteel_session::ports::{Store, Watched};
use firesteel_store::Scope;

use crate::arguments;
use crate::client::{self, Client, Submission, Submitted};
use crate::conf::Configuration;
use crate::output::{self, Format, Look};
use crate::problem::Problem;
use crate::progress::Line;
use crate::stores::{DATA_SOURCE, Place};

/// How long nobody may serve the session before that is said, in milliseconds.
const UNSERVED: u64 = 2_000;
/// The largest statement that is read from standard input, in bytes.
const LONGEST: u64 = 16_000_000;

/// Does what the command line asks.
///
/// # Errors
/// All of [`Problem`]'s.
pub async fn submit(matches: &ArgMatches, settings: &Configuration) -> Result<(), Problem> {
    let place = Place::of(settings, false);
    let store = place.open(settings, Scope::Requests, true)?;
    store.prepare(true).await?;
    let client = client(settings, store).await?;
    if let Some(id) = matches.get_one::<String>("cancel") {
        return cancel(&client, id).await;
    }
    let text = text(matches.get_one::<String>("statement").map_or("", String::as_str))?;
    let timeout = arguments::time(matches, "timeout")?;
    let lang = matches.get_one::<String>("lang").map_or("sql", String::as_str).to_owned();
    let began = client.clock.now();
    let ids = client.submit(Submission { text, lang, timeout }).await?;
    if matches.get_flag("no-wait") {
        writeln!(io::stdout(), "{}", ids.query)?;
        return Ok(());
    }
    let format = matches.get_one::<String>("format").and_then(|name| Format::parse(name)).unwrap_or(Format::Table);
    let state = wait(&client, &ids, timeout, &place).await?;
    if state != StatementState::Success {
        return Err(client::told(&state));
    }
    let mut out = io::stdout().lock();
    let mut printer = output::printer(format, Look::of_stdout(), &mut out);
    client.print(&ids, Some(began), printer.as_mut()).await
}

/// A client of the session that the settings name.
///
/// # Errors
/// The session's name is no id; the store's errors.
pub async fn client(settings: &Configuration, store: Arc<dyn Store>) -> Result<Client, Problem> {
    let session = match &settings.session {
        Some(name) => client::session_id(name)?,
        None => client::default_session(&*store).await?,
    };
    let data_source = settings.data_source.clone().unwrap_or_else(|| DATA_SOURCE.to_owned());
    Ok(Client { store, session, data_source, clock: Arc::new(SystemClock) })
}

async fn cancel(client: &Client, id: &str) -> Result<(), Problem> {
    let statement = client.find(id).await?;
    match client.cancel(&statement).await? {
        StatementState::Cancelled => Ok(()),
        state => {
            Err(Problem::Statement { message: format!("the statement has ended before: {}", state.name()), hint: None })
        }
    }
}

fn text(argument: &str) -> Result<String, Problem> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    let read = io::stdin()
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(|e| Problem::Other(format!("standard input: {e}")))?;
    if read as u64 > LONGEST {
        return Err(Problem::usage(format!("a statement has at most {LONGEST} bytes")));
    }
    Ok(text)
}

/// Waits for the end; ctrl-c and the time limit cancel the statement.
async fn wait(
    client: &Client,
    ids: &Submitted,
    timeout: Option<u64>,
    place: &Place,
) -> Result<StatementState, Problem> {
    let mut hint = Unserved::new(client, place, client.store.time().await?);
    let mut line = Line::new();
    let ended = client.ended(&ids.statement, |watched, took| {
        line.show(watched, took);
        if let Some(hint) = hint.seen(watched, took) {
            line.say(&hint);
        }
    });
    let limit = async {
        match timeout {
            Some(timeout) => client.clock.sleep_until(client.clock.now().plus(timeout)).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        state = ended => return state,
        () = limit => "timed out",
        _ = tokio::signal::ctrl_c() => "was interrupted",
    };
    let state = client.cancel(&ids.statement).await?;
    if state == StatementState::Success {
        return Ok(state);
    }
    Err(Problem::Stopped(format!("the statement {why} and is {}", state.name())))
}

/// Says once that nobody seems to serve the session, and how to start somebody.
struct Unserved {
    command: String,
    /// When the statement was submitted, in the store's time.
    submitted: u64,
    said: bool,
}

impl Unserved {
    fn new(client: &Client, place: &Place, submitted: u64) -> Unserved {
        let session = quoted(client.session.as_str());
        Unserved { command: format!("firesteel run{} --session {session}", place.option()), submitted, said: false }
    }

    fn seen(&mut self, watched: &Watched, took: u64) -> Option<String> {
        let waiting = watched.statement.as_ref().is_some_and(|s| s.value.state == StatementState::Waiting);
        if self.said || !waiting || took < UNSERVED {
            return None;
        }
        let session = watched.session.as_ref().map(|session| &session.value);
        if session.is_some_and(|session| is_served(session, self.submitted + took)) {
            return None;
        }
        self.said = true;
        let ended = session.is_some_and(|session| session.state.is_ended());
        let why = if ended { "the session has ended" } else { "nobody serves the session" };
        Some(format!("firesteel: {why}; the statement waits\n  start a runner: {}", self.command))
    }
}

/// Whether the session's owner renewed it within its lease, as far as a look can tell.
fn is_served(session: &Session, now: u64) -> bool {
    let lease = session.owner.as_ref().map_or(Policy::default().peer_lease, |owner| owner.lease_millis);
    session.state == SessionState::Running && now.saturating_sub(session.last_update) < lease
}

/// The text as a word of a shell's line, without anything that moves a terminal's cursor.
fn quoted(word: &str) -> String {
    if word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':')) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''").replace(char::is_control, "?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firesteel_model::{Owner, RunnerId};

    fn session(state: SessionState, lease: Option<u64>) -> Session {
        let owner = |lease_millis| Owner { runner: RunnerId::new("r").expect("an id"), lease_millis };
        Session {
            state,
            excluded: vec![],
            owner: lease.map(owner),
            last_update: 1_000_000,
            ..Session::new(client::session_id("s").expect("an id"), "d")
        }
    }

    #[test]
    fn a_session_is_served_while_its_lease_lasts() {
        use SessionState::{Dead, NotStarted, Running};
        for (state, lease, age, served) in [
            (NotStarted, None, 0, false),
            (Running, Some(60_000), 59_999, true),
            (Running, Some(60_000), 60_000, false),
            (Running, Some(0), 0, false),
            (Running, None, 60_001, true),
            (Running, None, 180_000, false),
            (Dead, Some(60_000), 0, false),
        ] {
            assert_eq!(is_served(&session(state, lease), 1_000_000 + age), served, "{state:?} {lease:?} {age}");
        }
    }

    #[test]
    fn a_session_name_is_safe_in_the_command_that_is_shown() {
        assert_eq!(quoted("s-1/x:y"), "s-1/x:y");
        assert_eq!(quoted("a b'; rm\n\u{1b}"), r"'a b'\''; rm??'");
    }
}
