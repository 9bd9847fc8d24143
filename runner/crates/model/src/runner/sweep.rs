//! After this runner ended its session: what is left in it may be recovered for a while, then it is failed.
//!
//! A submitter that finds the session ended after it made its statement fails that statement itself; this is for those that
//! were waiting before.

use std::collections::VecDeque;

use super::{Action, Exit, Fault, Input, Note, Phase, Runner, Sight, Trouble, Verdict};
use crate::attempt::Attempt;
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
}

impl Sweep {
    pub(super) fn wake(&self) -> Option<Millis> {
        self.wake
    }

    pub(super) fn exit(&self) -> &Exit {
        &self.exit
    }
}

impl Runner {
    /// Looks once at what is left; with nothing left, the runner leaves at once.
    pub(super) fn begin_sweep(&mut self, exit: Exit, now: Millis, out: &mut Vec<Action>) {
        let due = now.plus(self.policy.sweep);
        self.phase = Phase::Sweeping(Sweep { exit, due, wake: None, left: VecDeque::new() });
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
            Some(hit) => {
                let (statement, version) = (Box::new(hit.value.clone()), hit.version);
                out.push(Action::Decide(statement, version, Verdict::Failed(Fault::SessionEnded)));
            }
            None => self.swept_clean(out),
        }
    }

    pub(super) fn sweep_input(&mut self, input: Input, out: &mut Vec<Action>) {
        let timeout_state = self.policy.timeout_state;
        let Some(sweep) = self.sweep() else { return };
        match input {
            Input::Written(Ok(_)) => {
                let Some(hit) = sweep.left.front() else { return };
                let attempt = Attempt { claim: hit.version, n: 0 };
                let state = Fault::SessionEnded.state(timeout_state);
                let statement = Statement { state, ..hit.value.clone() };
                out.push(Action::Note(Note::Ended(statement.id.clone(), statement.state.name(), 0)));
                out.push(Action::PublishFailure(Box::new(statement), attempt, Fault::SessionEnded));
            }
            Input::Written(Err(_)) | Input::Published(_) => {
                sweep.left.pop_front();
                self.sweep_next(out);
            }
            _ => {}
        }
    }
}
