//! After this runner ended its session: what is left in it may be recovered for a while, then it is failed.
//!
//! A submitter that finds the session ended after it made its statement fails that statement itself; this is for those that
//! were waiting before.

use std::collections::VecDeque;

use super::verdict::interrupted;
use super::{Action, Beside, Exit, Fault, Input, Note, Phase, Runner, Sight, Trouble, Verdict};
use crate::attempt::Attempt;
use crate::ids::{RunnerId, StatementId};
use crate::policy::Policy;
use crate::session::Session;
use crate::statement::Statement;
use crate::version::{Millis, Stored};

/// Where the sweep of an ended session stands.
#[derive(Debug)]
pub(super) struct Sweep {
    exit: Exit,
    /// When what is left is failed.
    due: Millis,
    wake: Option<Millis>,
    left: VecDeque<Stored<Statement>>,
    /// What the first of them is failed with.
    fault: Fault,
}

/// What a running statement of a session that is over fails with.
#[must_use]
pub fn left(beside: &Beside) -> Fault {
    if beside.marker.is_some() { interrupted() } else { Fault::SessionEnded }
}

impl Sweep {
    pub(super) fn wake(&self) -> Option<Millis> {
        self.wake
    }

    pub(super) fn is_at(&self, id: &StatementId) -> bool {
        self.left.front().is_some_and(|hit| hit.value.id == *id)
    }

    pub(super) fn exit(&self) -> &Exit {
        &self.exit
    }
}

/// What a sweep over all sessions found of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It waits or runs, and its session has ended or is gone.
    Open,
    /// It has ended, and something is left to be published or removed.
    Unpublished,
}

/// Whether it is time to settle it, which a sweeper has seen like this for `age` milliseconds by its own clock.
#[must_use]
pub fn due(found: Found, session: Option<&Session>, me: &RunnerId, age: u64, policy: &Policy) -> bool {
    let Some(session) = session else { return age >= policy.launch_grace.max(policy.sweep) };
    match found {
        Found::Open => session.state.is_ended() && !session.recovering && age >= policy.sweep,
        Found::Unpublished if session.state.is_ended() => true,
        // A live owner does it itself in a moment. That nothing belongs to the statement's end but its result makes it harmless to do it twice.
        Found::Unpublished => match &session.owner {
            Some(owner) if owner.runner == *me => true,
            Some(owner) => age >= owner.lease_millis.max(policy.sweep),
            None => age >= policy.peer_lease,
        },
    }
}

impl Runner {
    /// Looks once at what is left; with nothing left, the runner leaves at once.
    pub(super) fn begin_sweep(&mut self, exit: Exit, now: Millis, out: &mut Vec<Action>) {
        let due = now.plus(self.policy.sweep);
        self.phase =
            Phase::Sweeping(Sweep { exit, due, wake: None, left: VecDeque::new(), fault: Fault::SessionEnded });
        out.push(Action::PollEvery);
    }

    fn sweep(&mut self) -> Option<&mut Sweep> {
        match &mut self.phase {
            Phase::Sweeping(sweep) => Some(sweep),
            _ => None,
        }
    }

    pub(super) fn sweep_tick(&mut self, now: Millis, out: &mut Vec<Action>) {
        if let Some(sweep) = self.sweep()
            && sweep.wake.is_some_and(|at| at <= now)
        {
            sweep.wake = None;
            out.push(Action::PollEvery);
        }
    }

    pub(super) fn swept(&mut self, answer: Result<Sight, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let watch = self.policy.watch;
        let Some(sweep) = self.sweep() else { return };
        match answer {
            Ok(sight) if sight.statements.is_empty() => self.swept_clean(out),
            Ok(sight) if sight.session.as_ref().is_some_and(|session| session.value.recovering) => {
                self.swept_clean(out)
            }
            Ok(sight) if now >= sweep.due => {
                sweep.left = sight.statements.into();
                self.sweep_next(out);
            }
            Ok(sight) => {
                sweep.wake = Some(sweep.due);
                out.push(Action::Note(Note::LeftBehind(sight.statements.len(), sweep.due.since(now))));
            }
            Err(_) if now >= sweep.due => self.swept_clean(out),
            Err(_) => sweep.wake = Some(now.plus(watch)),
        }
    }

    fn swept_clean(&mut self, out: &mut Vec<Action>) {
        if let Some(exit) = self.sweep().map(|sweep| sweep.exit.clone()) {
            self.exit(exit, out);
        }
    }

    /// Fails the next one. One that somebody else moved meanwhile is theirs.
    fn sweep_next(&mut self, out: &mut Vec<Action>) {
        let Some(sweep) = self.sweep() else { return };
        match sweep.left.front() {
            Some(hit) if hit.value.state.is_running() => out.push(Action::Examine(hit.value.id.clone())),
            Some(_) => self.sweep_decide(Fault::SessionEnded, out),
            None => self.swept_clean(out),
        }
    }

    fn sweep_decide(&mut self, fault: Fault, out: &mut Vec<Action>) {
        let Some(sweep) = self.sweep() else { return };
        let Some(hit) = sweep.left.front() else { return };
        let attempt = Attempt { claim: hit.version, n: 0 };
        out.push(Action::Decide(Box::new(hit.value.clone()), hit.version, attempt, Verdict::Failed(fault.clone())));
        sweep.fault = fault;
    }

    pub(super) fn sweep_input(&mut self, input: Input, out: &mut Vec<Action>) {
        let timeout_state = self.policy.timeout_state;
        let Some(sweep) = self.sweep() else { return };
        match input {
            Input::Examined(Ok(beside)) => self.sweep_decide(left(&beside), out),
            Input::Written(Ok(_)) => {
                let Some(hit) = sweep.left.front() else { return };
                let attempt = Attempt { claim: hit.version, n: 0 };
                let statement = Statement { state: sweep.fault.state(timeout_state), ..hit.value.clone() };
                out.push(Action::Note(Note::Ended(statement.id.clone(), statement.state.name(), 0)));
                out.push(Action::Settle(Box::new(statement), attempt));
            }
            Input::Examined(Err(_)) | Input::Written(Err(_)) | Input::Published(_) => {
                sweep.left.pop_front();
                self.sweep_next(out);
            }
            _ => {}
        }
    }
}
