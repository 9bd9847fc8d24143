//! What the control plane decides of a session: what it may write, who may submit, and what becomes of one that has fallen silent.

use crate::ids::{JobId, SessionId};
use crate::session::{Session, SessionState};

/// What the control plane may write to a session, always at a version. None of it touches the time of the last heartbeat, which is
/// the runner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steer {
    /// A job was started for it.
    Launched {
        /// The job, as the launcher names it.
        job: JobId,
        /// The application it was started in.
        application: String,
    },
    /// It takes no more statements.
    Drain,
    /// Its waiting statements are moved to this session, and nobody else ends them. It takes no more.
    RecoverTo(SessionId),
    /// `dead`: it was closed.
    End,
    /// `fail`.
    Fail {
        /// Why, for the operator.
        error: String,
    },
}

/// Why a session takes no statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shut {
    /// It has ended.
    Ended(SessionState),
    /// It is being closed.
    Draining,
    /// It is of another data source.
    DataSource(String),
}

/// Whether the session takes a statement for this data source.
///
/// # Errors
/// Why not.
pub fn takes(session: &Session, data_source: &str) -> Result<(), Shut> {
    if session.data_source != data_source {
        Err(Shut::DataSource(session.data_source.clone()))
    } else if session.state.is_ended() {
        Err(Shut::Ended(session.state))
    } else if session.draining || session.recovering {
        Err(Shut::Draining)
    } else {
        Ok(())
    }
}

/// A job, by its launcher's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It was accepted and does not run yet.
    Pending,
    /// It runs.
    Running,
    /// It has ended as it should.
    Succeeded,
    /// It has ended otherwise.
    Failed {
        /// Why, and its last words.
        why: String,
    },
    /// It was cancelled.
    Cancelled,
    /// The launcher knows of no such job.
    Gone,
}

impl JobState {
    /// It will do nothing more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self, JobState::Pending | JobState::Running)
    }
}

/// How long a session has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// By the store's clock and the session's own time.
    pub told: u64,
    /// As whoever asks has watched it by its own clock.
    pub watched: u64,
}

/// By when what is to be done about silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A session that was silent for so many milliseconds is stale.
    pub stale: u64,
    /// And must have been watched unchanged for so many.
    pub watched: u64,
}

/// What is done about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing.
    Leave,
    /// It ends as `fail`, for this reason; its job is cancelled first if it still runs.
    Fail {
        /// The job runs, and is of no use.
        cancel: bool,
        /// Why.
        error: String,
    },
}

/// Whether it is worth asking the launcher about a session that is so silent. One that never began may be asked about at once.
#[must_use]
pub fn is_suspect(session: &Session, silence: Silence, patience: Patience) -> bool {
    match session.state {
        SessionState::Dead | SessionState::Fail => false,
        SessionState::NotStarted => session.job.is_some(),
        SessionState::Running => silence.told >= patience.stale && silence.watched >= patience.watched,
    }
}

/// What is done about a suspect session, by what the launcher says of its job.
#[must_use]
pub fn care(session: &Session, silence: Silence, patience: Patience, job: &JobState) -> Care {
    if !is_suspect(session, silence, patience) {
        return Care::Leave;
    }
    let stale = silence.told >= patience.stale && silence.watched >= patience.watched;
    let no_longer = |what: &str| Care::Fail { cancel: false, error: format!("no heartbeat, and {what}") };
    match job {
        // Its first heartbeat makes it running, so this one has never come.
        JobState::Pending | JobState::Running if !stale => Care::Leave,
        JobState::Pending | JobState::Running => Care::Fail {
            cancel: true,
            error: format!("no heartbeat for {} s, though its job runs: the job is cancelled", silence.told / 1_000),
        },
        JobState::Succeeded => no_longer("its job has ended"),
        JobState::Cancelled => no_longer("its job was cancelled"),
        JobState::Gone => no_longer("its launcher knows nothing of its job"),
        JobState::Failed { why } => Care::Fail { cancel: false, error: format!("its job failed: {why}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { stale: 900_000, watched: 60_000 };

    fn session(state: SessionState) -> Session {
        let job = JobId::new("j").ok();
        Session { state, job, ..Session::new(SessionId::new("s").expect("an id"), "d") }
    }

    fn failed(why: &str) -> JobState {
        JobState::Failed { why: why.to_owned() }
    }

    #[test]
    fn a_session_takes_statements_of_its_data_source_until_it_ends_or_is_drained() {
        let open = session(SessionState::Running);
        assert_eq!(takes(&open, "d"), Ok(()));
        assert_eq!(takes(&open, "e"), Err(Shut::DataSource("d".to_owned())));
        assert_eq!(takes(&session(SessionState::Dead), "d"), Err(Shut::Ended(SessionState::Dead)));
        assert_eq!(takes(&Session { draining: true, ..open.clone() }, "d"), Err(Shut::Draining));
        assert_eq!(takes(&Session { recovering: true, ..open }, "d"), Err(Shut::Draining));
    }

    #[test]
    fn only_a_stale_session_is_suspect_and_one_that_never_began_at_once() {
        let silent = |told, watched| Silence { told, watched };
        for (state, silence, suspect) in [
            (SessionState::Running, silent(900_000, 60_000), true),
            (SessionState::Running, silent(899_999, 60_000), false),
            (SessionState::Running, silent(900_000, 59_999), false),
            (SessionState::NotStarted, silent(0, 0), true),
            (SessionState::Dead, silent(900_000, 60_000), false),
        ] {
            assert_eq!(is_suspect(&session(state), silence, PATIENCE), suspect, "{state:?} {silence:?}");
        }
    }

    #[test]
    fn the_launcher_decides_what_becomes_of_a_silent_session() {
        let (fresh, stale) = (Silence { told: 5, watched: 5 }, Silence { told: 900_000, watched: 60_000 });
        let told = |state, silence, job| match care(&session(state), silence, PATIENCE, &job) {
            Care::Leave => None,
            Care::Fail { cancel, error } => Some((cancel, error)),
        };
        assert_eq!(told(SessionState::NotStarted, fresh, JobState::Running), None);
        assert_eq!(
            told(SessionState::NotStarted, fresh, failed("exit code 2")),
            Some((false, "its job failed: exit code 2".to_owned()))
        );
        assert_eq!(
            told(SessionState::Running, fresh, JobState::Gone),
            None,
            "a heartbeat is worth more than a launcher"
        );
        assert_eq!(
            told(SessionState::Running, stale, JobState::Running),
            Some((true, "no heartbeat for 900 s, though its job runs: the job is cancelled".to_owned()))
        );
        assert_eq!(
            told(SessionState::Running, stale, JobState::Gone),
            Some((false, "no heartbeat, and its launcher knows nothing of its job".to_owned()))
        );
    }
}
