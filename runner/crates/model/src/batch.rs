//! A batch of the control plane: one job, launched by one replica, known to all.
//!
//! Its id is the launch's token, so that a launch whose answer was lost is made again and starts nothing twice. It belongs to an instance; what
//! others may do to it while that one is away is to ask the launcher, and to flag it: `closed_by_peer` is only ever set, and only by others.

use crate::ids::JobId;
use crate::steer::JobState;

/// Where a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchState {
    /// Its job is to be launched.
    Pending,
    /// Its job is being launched, or was: the launcher knows.
    Submitting,
    /// Its job was launched.
    Running,
    /// Its job ended as it should.
    Finished,
    /// Its job ended otherwise, or could not be launched.
    Error,
    /// It was cancelled.
    Killed,
}

impl BatchState {
    /// All, in the order in which they are reached.
    pub const ALL: [BatchState; 6] = [
        BatchState::Pending,
        BatchState::Submitting,
        BatchState::Running,
        BatchState::Finished,
        BatchState::Error,
        BatchState::Killed,
    ];

    /// The document's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BatchState::Pending => "pending",
            BatchState::Submitting => "submitting",
            BatchState::Running => "running",
            BatchState::Finished => "finished",
            BatchState::Error => "error",
            BatchState::Killed => "killed",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<BatchState> {
        BatchState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// It never changes again.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, BatchState::Finished | BatchState::Error | BatchState::Killed)
    }
}

/// What a batch's document says that decisions are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands.
    pub state: BatchState,
    /// Its job, once it was launched.
    pub job: Option<JobId>,
    /// Another replica closed it while its own was away.
    pub closed_by_peer: bool,
}

/// What whoever has the batch does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is over, or goes its way.
    Leave,
    /// Write `submitting`, launch its job, write `running`, and look at the flag again.
    Launch,
    /// Cancel its job, and write `killed`.
    Cancel,
    /// Write this state, and why.
    Settle(BatchState, String),
}

/// What whoever has the batch does next, by the launcher's word of its job.
#[must_use]
pub fn next(standing: &Standing, job: Option<&JobState>) -> Step {
    if standing.state.is_over() {
        return Step::Leave;
    }
    if standing.closed_by_peer {
        return Step::Cancel;
    }
    match (&standing.job, job) {
        // The token makes a launch that was made before the same one.
        (None, _) => Step::Launch,
        (Some(_), None | Some(JobState::Pending | JobState::Running)) => Step::Leave,
        (Some(_), Some(JobState::Succeeded)) => Step::Settle(BatchState::Finished, String::new()),
        (Some(_), Some(JobState::Failed { why })) => Step::Settle(BatchState::Error, why.clone()),
        (Some(_), Some(JobState::Cancelled)) => Step::Settle(BatchState::Killed, "its job was cancelled".to_owned()),
        (Some(_), Some(JobState::Gone)) => {
            Step::Settle(BatchState::Error, "its launcher knows nothing of its job".to_owned())
        }
    }
}

/// How a batch is, for somebody who does not have it, while its owner cannot be asked.
#[must_use]
pub fn told(standing: &Standing, job: Option<&JobState>) -> BatchState {
    match job {
        _ if standing.state.is_over() => standing.state,
        Some(JobState::Failed { .. } | JobState::Cancelled) => BatchState::Error,
        Some(JobState::Succeeded) => BatchState::Finished,
        Some(JobState::Running | JobState::Pending) => BatchState::Running,
        Some(JobState::Gone) | None => standing.state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(state: BatchState, job: bool, closed_by_peer: bool) -> Standing {
        Standing { state, job: job.then(|| JobId::new("j").expect("an id")), closed_by_peer }
    }

    #[test]
    fn what_is_flagged_is_cancelled_and_never_launched_again() {
        for state in [BatchState::Pending, BatchState::Submitting, BatchState::Running] {
            assert_eq!(next(&standing(state, false, true), None), Step::Cancel, "{state:?}");
        }
        assert_eq!(next(&standing(BatchState::Killed, true, true), None), Step::Leave);
    }

    #[test]
    fn a_batch_without_a_job_is_launched_and_one_with_a_job_is_watched() {
        let failed = JobState::Failed { why: "exit code 1".to_owned() };
        assert_eq!(next(&standing(BatchState::Pending, false, false), None), Step::Launch);
        assert_eq!(
            next(&standing(BatchState::Submitting, false, false), None),
            Step::Launch,
            "its owner died just then"
        );
        assert_eq!(next(&standing(BatchState::Running, true, false), Some(&JobState::Running)), Step::Leave);
        assert_eq!(
            next(&standing(BatchState::Running, true, false), Some(&failed)),
            Step::Settle(BatchState::Error, "exit code 1".to_owned())
        );
        assert_eq!(
            next(&standing(BatchState::Running, true, false), Some(&JobState::Succeeded)),
            Step::Settle(BatchState::Finished, String::new())
        );
    }

    #[test]
    fn who_does_not_have_it_tells_the_launcher_s_word() {
        let pending = standing(BatchState::Pending, false, false);
        for (job, state) in [
            (Some(JobState::Failed { why: String::new() }), BatchState::Error),
            (Some(JobState::Cancelled), BatchState::Error),
            (Some(JobState::Succeeded), BatchState::Finished),
            (Some(JobState::Running), BatchState::Running),
            (Some(JobState::Gone), BatchState::Pending),
            (None, BatchState::Pending),
        ] {
            assert_eq!(told(&pending, job.as_ref()), state, "{job:?}");
        }
        let over = standing(BatchState::Finished, true, false);
        assert_eq!(told(&over, Some(&JobState::Running)), BatchState::Finished);
    }

    #[test]
    fn every_state_reads_back() {
        for state in BatchState::ALL {
            assert_eq!(BatchState::parse(state.name()), Some(state));
        }
    }
}
