//! `firesteel admin`: drains all sessions, or moves them to another application. Broken off, it is run again and goes on.

use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use firesteel_control::access::Caller;
use firesteel_control::plane::Plane;
use firesteel_control::refusal::Refusal;
use firesteel_model::SessionId;
use tokio::task::{JoinError, JoinSet};

use crate::arguments;
use crate::conf::Configuration;
use crate::problem::Problem;
use crate::serve;

/// Sessions that are seen to at once.
const AT_ONCE: usize = 32;

/// A session, and what became of it.
type Seen = (SessionId, Result<String, Refusal>);

fn failed(refusal: &Refusal) -> Problem {
    Problem::Other(refusal.to_string())
}

/// Sees to every session that the command is about, and says what became of each.
///
/// # Errors
/// All of [`Problem`]'s but a statement's; a session could not be seen to.
pub async fn admin(command: &str, matches: &ArgMatches, settings: &Configuration) -> Result<ExitCode, Problem> {
    let (plane, _) = serve::plane(matches, settings, "admin".to_owned()).await?;
    let wait = arguments::time(matches, "wait")?.unwrap_or(0);
    let application = (command == "migrate").then(|| matches.get_one::<String>("application").cloned()).flatten();
    let sessions = match &application {
        Some(application) => plane.to_migrate(application).await,
        None => plane.to_drain().await,
    };
    let sessions = sessions.map_err(|e| failed(&e))?;
    let (all, mut done, mut at_work) = (sessions.len(), 0, JoinSet::new());
    let mut told = |joined: Option<Result<Seen, JoinError>>| match joined {
        Some(Ok((session, Ok(became)))) => {
            done += 1;
            println!("{}: {became}", session.as_str().escape_debug());
        }
        Some(Ok((session, Err(refusal)))) => eprintln!("firesteel: {}: {refusal}", session.as_str().escape_debug()),
        Some(Err(error)) => eprintln!("firesteel: {error}"),
        None => {}
    };
    for session in sessions {
        if at_work.len() >= AT_ONCE {
            told(at_work.join_next().await);
        }
        at_work.spawn(see_to(Arc::clone(&plane), session, application.clone(), wait));
    }
    while !at_work.is_empty() {
        told(at_work.join_next().await);
    }
    if done < all {
        return Err(Problem::Other(format!("{} of {all} sessions are not done; run the same again", all - done)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn see_to(plane: Arc<Plane>, session: SessionId, application: Option<String>, wait: u64) -> Seen {
    let became = match application {
        None => {
            plane.close(&Caller::anybody(), &session, wait).await.map(|view| view.session.value.state.name().to_owned())
        }
        Some(application) => plane
            .recover(&Caller::anybody(), &session, Some(application), wait)
            .await
            .map(|view| format!("goes on as {}", view.session.value.id.as_str().escape_debug())),
    };
    (session, became)
}
