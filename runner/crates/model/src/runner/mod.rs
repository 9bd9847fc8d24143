//! What a runner does next: [`Runner::step`] takes the answer to an action and gives the next actions.
//!
//! Read [`own`] (whose session it is, and what it is made of), [`serve`] (which statement is next), then [`hand`] (one statement, from
//! its claim on), [`verdict`] (how it is decided) and [`sweep`] (what is left behind). Nothing here waits: what takes time is an [`Action`], and its answer, failures
//! included, is an [`Input`].

mod actions;
pub mod hand;
pub mod own;
pub mod serve;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use crate::attempt::Attempt;
use crate::ids::StatementId;
use crate::lease::{Lease, Lost};
use crate::policy::{OnStop, Policy};
use crate::session::SessionChange;
use crate::statement::Statement;
use crate::version::{Millis, Stored, Version};

pub use actions::{
    Action, Beside, Exit, Fault, Identity, Input, Note, RunTrouble, Sight, StageTrouble, Trouble, Verdict, Watched,
};
use hand::Hand;
use own::Watch;
use sweep::Sweep;

/// Where the runner stands with its session.
#[derive(Debug)]
enum Phase {
    /// Reading the session since then.
    Reading { since: Millis },
    /// Waiting until then to read it again.
    Pausing { since: Millis, until: Millis },
    /// A write that takes the session is on its way.
    Taking { since: Millis },
    /// The session is this runner's; its journal is being read.
    Replaying { retry: Retry },
    /// Serving it.
    Serving(Serving),
    /// The write that ends the session is on its way, or waits until then to be sent again.
    Ending { change: SessionChange, retry: Retry, exit: Exit },
    /// The session is ended; what is left in it is swept.
    Sweeping(Sweep),
    /// Over.
    Ended,
}

/// The runner serves its session.
#[derive(Debug)]
struct Serving {
    since: Millis,
    last_work: Millis,
    next_poll: Millis,
    polling: bool,
    closing: bool,
    retry: Retry,
    /// When the queue was found; None: it was not, or is too old.
    found_at: Option<Millis>,
    /// What a predecessor left running is settled before anything else.
    settling: bool,
    /// A define that a predecessor put into the journal and did not decide.
    pending: Option<(StatementId, Attempt)>,
    queue: VecDeque<Stored<Statement>>,
    sighted: BTreeMap<StatementId, Millis>,
    /// Statements that this runner is done with, each with the last version at which it had them.
    settled: BTreeMap<StatementId, Version>,
    hand: Option<Box<Hand>>,
}

/// Back-off between tries of one action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(super) tries: u32,
    since: Option<Millis>,
    at: Option<Millis>,
}

impl Retry {
    /// Another try failed: the next one not before the time this sets.
    fn again(&mut self, now: Millis, policy: &Policy) {
        let wait = policy.retry.saturating_mul(1 << self.tries.min(16)).min(policy.retry_max);
        self.tries += 1;
        self.since.get_or_insert(now);
        self.at = Some(now.plus(wait));
    }

    /// It has failed for as long as the store may be out of reach.
    fn spent(&self, now: Millis, policy: &Policy) -> bool {
        self.since.is_some_and(|since| now.since(since) >= policy.unreachable)
    }

    /// It is time for the next try. Says so once.
    fn due(&mut self, now: Millis) -> bool {
        let due = self.at.is_some_and(|at| at <= now);
        if due {
            self.at = None;
        }
        due
    }
}

/// The machine of one runner and one session.
pub struct Runner {
    me: Identity,
    policy: Policy,
    phase: Phase,
    watch: Option<Watch>,
    /// The lease, once taken; shared with the heart by the shell.
    lease: Option<Lease>,
    stopping: Option<Millis>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Runner {
    /// A runner that has done nothing yet: give it [`Input::Start`].
    #[must_use]
    pub fn new(me: Identity, policy: Policy) -> Runner {
        Runner { me, policy, phase: Phase::Ended, watch: None, lease: None, stopping: None }
    }

    /// This runner has a request about the statement on its way, or will have.
    #[must_use]
    pub fn has_in_hand(&self, id: &StatementId) -> bool {
        match &self.phase {
            Phase::Serving(serving) => serving.hand.as_ref().is_some_and(|hand| hand.id() == id),
            Phase::Sweeping(sweep) => sweep.is_at(id),
            _ => false,
        }
    }

    /// The lease, once the session is this runner's. The heart renews it; the loop asks it.
    pub fn lease(&mut self) -> Option<&mut Lease> {
        self.lease.as_mut()
    }

    /// Takes an input at a time, gives what to do.
    pub fn step(&mut self, input: Input, now: Millis) -> Vec<Action> {
        let mut out = Vec::new();
        match input {
            Input::Start => self.read_session(now, now, &mut out),
            Input::Fatal(error) => self.fail_session(error, &mut out),
            Input::Stop if self.stopping.is_some() => {
                // The session is ended already while it is swept: nothing is cut short but the sweep.
                let swept = if let Phase::Sweeping(sweep) = &self.phase { Some(sweep.exit().clone()) } else { None };
                self.abandon(swept.unwrap_or(Exit { code: 1, why: "stopped at once" }), &mut out);
            }
            Input::Stop => {
                self.stopping = Some(now);
                self.tick(now, &mut out);
            }
            Input::Tick | Input::LeaseChanged => self.tick(now, &mut out),
            Input::Session(answer) => self.session_read(answer, now, &mut out),
            Input::Owned(sent, answer) => self.owned(sent, answer, now, &mut out),
            Input::SessionEnded(answer) => self.session_ended(answer, now, &mut out),
            Input::Replayed(answer) => self.replayed(answer, now, &mut out),
            Input::Open(answer) if matches!(self.phase, Phase::Sweeping(_)) => self.swept(answer, now, &mut out),
            Input::Open(answer) => self.open(answer, now, &mut out),
            answer if matches!(self.phase, Phase::Sweeping(_)) => self.sweep_input(answer, &mut out),
            answer => self.hand_input(answer, now, &mut out),
        }
        if self.lost().is_some() {
            self.leave_lost(now, &mut out);
        }
        out
    }

    /// When to give the next [`Input::Tick`], if nothing else happens.
    #[must_use]
    pub fn wake(&self) -> Option<Millis> {
        match &self.phase {
            Phase::Pausing { until, .. } => Some(*until),
            Phase::Ending { retry, .. } | Phase::Replaying { retry } => retry.at,
            Phase::Sweeping(sweep) => sweep.wake(),
            Phase::Serving(serving) => {
                let poll = (!serving.polling && serving.hand.is_none()).then_some(serving.next_poll);
                let hand = serving.hand.as_ref().and_then(|hand| hand.wake(&self.policy, self.stopping));
                poll.into_iter().chain(hand).chain(serving.retry.at).min()
            }
            Phase::Reading { .. } | Phase::Taking { .. } | Phase::Ended => None,
        }
    }

    fn lost(&self) -> Option<Lost> {
        self.lease.as_ref().and_then(Lease::lost)
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Pausing { since, until } if self.stopping.is_some() || *until <= now => {
                let since = *since;
                if self.stopping.is_some() {
                    self.exit(Exit { code: 0, why: "stopped before the session was taken" }, out);
                } else {
                    self.read_session(since, now, out);
                }
            }
            Phase::Ending { .. } => self.end_again(now, out),
            Phase::Replaying { .. } if self.stopping.is_some() => self.leave_stopped(out),
            Phase::Replaying { .. } => self.replay_again(now, out),
            Phase::Serving(_) => self.serve(now, out),
            Phase::Sweeping(_) => self.sweep_tick(now, out),
            _ => {}
        }
    }

    /// The lease is lost for good: everything is abandoned, nothing more is written.
    fn leave_lost(&mut self, now: Millis, out: &mut Vec<Action>) {
        // While it is swept the session is ended, as it should be.
        if matches!(self.phase, Phase::Ended | Phase::Sweeping(_)) {
            return;
        }
        let exit = match self.lost() {
            Some(Lost::Taken) => Exit { code: 0, why: "another runner owns the session" },
            Some(Lost::Ended) => Exit { code: self.ended_code(), why: "the session has ended" },
            Some(Lost::Excluded) => Exit { code: 0, why: "the session excludes this job" },
            Some(Lost::Gone) => Exit { code: 0, why: "the session's document is gone" },
            Some(Lost::Unreachable) => Exit { code: 1, why: "the store is out of reach" },
            None => return,
        };
        let exit = match &self.phase {
            Phase::Ending { exit, .. } if exit.code == 0 || self.lost() != Some(Lost::Unreachable) => exit.clone(),
            _ => exit,
        };
        out.clear();
        if self.lost() == Some(Lost::Ended) && self.me.batch.is_none() {
            // However a session ends, its runner sweeps it: what it had begun is left in it.
            if matches!(&self.phase, Phase::Serving(serving) if serving.hand.is_some()) {
                out.push(Action::Drop);
            }
            return self.begin_sweep(exit, now, out);
        }
        self.abandon(exit, out);
    }

    /// A batch job whose session was ended by somebody else has not done its work.
    fn ended_code(&self) -> u8 {
        u8::from(self.me.batch.is_some())
    }

    fn abandon(&mut self, exit: Exit, out: &mut Vec<Action>) {
        if matches!(&self.phase, Phase::Serving(serving) if serving.hand.is_some()) {
            out.push(Action::Drop);
        }
        self.exit(exit, out);
    }

    fn exit(&mut self, exit: Exit, out: &mut Vec<Action>) {
        self.phase = Phase::Ended;
        if let Some(lease) = &mut self.lease {
            lease.finish();
        }
        out.push(Action::Exit(exit));
    }

    fn end_session(&mut self, change: SessionChange, exit: Exit, out: &mut Vec<Action>) {
        let Some(lease) = &mut self.lease else { return self.exit(exit, out) };
        lease.finish();
        out.push(Action::EndSession(lease.version(), change.clone()));
        self.phase = Phase::Ending { change, retry: Retry::default(), exit };
    }

    fn fail_session(&mut self, error: String, out: &mut Vec<Action>) {
        let exit = Exit { code: 1, why: "a fatal error" };
        if matches!(&self.phase, Phase::Serving(serving) if serving.hand.is_some()) {
            out.push(Action::Drop);
        }
        if self.lease.is_some() {
            self.end_session(SessionChange::Fail { error }, exit, out);
        } else {
            self.exit(exit, out);
        }
    }

    /// Why a session fails that could be kept, but in which nothing goes on.
    fn too_long(&self, what: &str) -> String {
        let seconds = self.policy.unreachable / 1_000;
        format!(
            "the store did not take {what} for {seconds} s; the runner's log says why, look at the result and the state index"
        )
    }

    fn end_again(&mut self, now: Millis, out: &mut Vec<Action>) {
        let (Phase::Ending { change, retry, .. }, Some(lease)) = (&mut self.phase, &self.lease) else { return };
        if retry.due(now) {
            out.push(Action::EndSession(lease.version(), change.clone()));
        }
    }

    fn session_ended(&mut self, answer: Result<Version, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Phase::Ending { change, retry, exit } = &mut self.phase else { return };
        match answer {
            Ok(_) => {
                out.push(Action::Note(Note::SessionEnded(match change {
                    SessionChange::End => "dead",
                    SessionChange::Fail { .. } => "fail",
                    _ => "running",
                })));
                let (exit, gone) = (exit.clone(), matches!(change, SessionChange::GiveUp));
                if gone || self.me.batch.is_some() {
                    self.exit(exit, out);
                } else {
                    self.begin_sweep(exit, now, out);
                }
            }
            // The heart may have renewed in between: what the read says decides whether to try again.
            Err(Trouble::Conflict) => out.push(Action::ReadSession),
            // If its answer was lost and it was applied, the next one is refused, and the session is read.
            Err(Trouble::Unavailable | Trouble::Unknown) if !retry.spent(now, &self.policy) => {
                retry.again(now, &self.policy)
            }
            Err(Trouble::Unavailable | Trouble::Unknown | Trouble::Refused | Trouble::Corrupt) => {
                self.exit(Exit { code: 1, why: "the session's end could not be written" }, out);
            }
        }
    }

    /// What a stop does to a session that has nothing in hand.
    fn leave_stopped(&mut self, out: &mut Vec<Action>) {
        let exit = Exit { code: 0, why: "told to stop" };
        let change = match self.policy.on_stop {
            OnStop::End => SessionChange::End,
            OnStop::Handover => SessionChange::GiveUp,
        };
        self.end_session(change, exit, out);
    }
}
