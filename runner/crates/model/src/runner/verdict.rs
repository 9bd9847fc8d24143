//! How the statement in hand is decided, and what is done about it: the answers that lead to a decision and those that follow it.

use super::hand::{After, Step, Why};
use super::{Action, Beside, Fault, Note, Phase, RunTrouble, Runner, StageTrouble, Trouble, Verdict, Watched};
use crate::attempt::{Kind, MAX_ATTEMPTS};
use crate::failure::{Code, Failure, Stage};
use crate::statement::{Statement, StatementState};
use crate::version::{Millis, Stored, Version};

/// How often a decided result is tried to be published, or remains to be removed, before a sweep is left to do it.
const LAST_TRIES: u32 = 8;

pub(super) fn failed(code: Code, stage: Stage, message: impl Into<String>) -> Verdict {
    Verdict::Failed(Fault::Failure(Failure::new(code, stage, message)))
}

/// What a statement that writes fails with if it was begun and nobody knows how it ended.
#[must_use]
pub fn interrupted() -> Fault {
    Fault::Failure(Failure::new(
        Code::Interrupted,
        Stage::Execute,
        "interrupted: outcome unknown; the statement writes and its runner or worker was lost after it began, look at its target before you send it again",
    ))
}

impl Runner {
    /// The engine's work is over, one way or the other: what was begun is dropped unless it succeeded.
    pub(super) fn decide(&mut self, verdict: Verdict, now: Millis, out: &mut Vec<Action>) {
        if verdict != Verdict::Success {
            out.push(Action::Drop);
        }
        self.enter(Step::Deciding(verdict), now, out);
    }

    /// Another decision stands, the state that was read (None: the statement is gone): what this attempt staged goes.
    pub(super) fn overruled(&mut self, state: Option<StatementState>, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        let name = state.as_ref().map_or("deleted", StatementState::name);
        let ended = state.filter(StatementState::is_terminal);
        out.push(Action::Drop);
        out.push(Action::Note(Note::Overruled(hand.statement.id.clone())));
        out.push(Action::Note(Note::Ended(hand.statement.id.clone(), name, now.since(hand.claimed_at))));
        let then = match ended {
            _ if !hand.begun => None,
            Some(state) => {
                hand.statement.state = state;
                Some(Step::Settling)
            }
            None => Some(Step::Discarding),
        };
        self.not_in_force(then, now, out);
    }

    /// A define that was run did not succeed: its worker is rebuilt, and the journal forgets it before anything else happens.
    fn not_in_force(&mut self, then: Option<Step>, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        let (attempt, journalled) = (hand.attempt(), hand.journalled);
        if hand.kind == Some(Kind::Define) && hand.begun {
            out.push(Action::Taint);
        }
        match then {
            then if journalled => self.enter(Step::Voiding(attempt, then.map(Box::new)), now, out),
            Some(step) => self.enter(step, now, out),
            None => self.put_down(now, out),
        }
    }

    pub(super) fn read_to_decide(
        &mut self,
        read: Option<Stored<Statement>>,
        verdict: Verdict,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        let Some(hand) = self.hand() else { return };
        let Some(read) = read else { return self.overruled(None, now, out) };
        if read.version == hand.version {
            return self.enter(Step::Deciding(verdict), now, out);
        }
        let name = read.value.state.name();
        match (&read.value.state, verdict) {
            (StatementState::Success, Verdict::Success) => self.enter(Step::Examining(Why::Decided), now, out),
            (StatementState::Failed { .. } | StatementState::Timeout { .. }, Verdict::Failed(_)) => {
                hand.statement.state = read.value.state;
                out.push(Action::Note(Note::Ended(read.value.id, name, now.since(hand.claimed_at))));
                self.publish_failure(now, out);
            }
            (StatementState::Waiting, Verdict::Release) => self.not_in_force(None, now, out),
            _ => self.overruled(Some(read.value.state), now, out),
        }
    }

    pub(super) fn examined(&mut self, beside: &Beside, why: Why, now: Millis, out: &mut Vec<Action>) {
        let pending = match &self.phase {
            Phase::Serving(serving) => serving.pending.clone(),
            _ => None,
        };
        let Some(hand) = self.hand() else { return };
        let attempt = hand.attempt();
        hand.companion = beside.companion;
        let pending = pending.filter(|(id, _)| id == hand.id()).map(|(_, attempt)| attempt);
        if let (Why::Adopted, Some(pending)) = (&why, pending) {
            if beside.candidate == Some(pending) {
                out.push(Action::Note(Note::Kept(hand.id().clone())));
                (hand.kept, hand.kind, hand.begun, hand.journalled) = (Some(pending), Some(Kind::Define), true, true);
                self.settle_pending();
                return self.decide(Verdict::Success, now, out);
            }
            self.settle_pending();
            return self.enter(Step::Voiding(pending, Some(Box::new(Step::Examining(why)))), now, out);
        }
        match why {
            Why::Decided if beside.candidate == Some(attempt) => {
                out.push(Action::Note(Note::Ended(hand.statement.id.clone(), "success", now.since(hand.claimed_at))));
                self.publish_success(now, out);
            }
            Why::Decided => self.overruled(Some(StatementState::Success), now, out),
            Why::Marker => match beside.marker {
                Some(marker) if marker == attempt => self.marked(now, out),
                Some(_) => self.decide(Verdict::Failed(interrupted()), now, out),
                None => self.enter(Step::Marking, now, out),
            },
            Why::Adopted | Why::Died if beside.marker.is_some() => self.decide(Verdict::Failed(interrupted()), now, out),
            Why::Adopted | Why::Died => match beside.attempts.max(1) + 1 {
                next if next > MAX_ATTEMPTS => self.decide(
                    failed(Code::Attempts, Stage::Execute, format!("the statement was begun {MAX_ATTEMPTS} times and its runner or worker was lost each time; it may need more memory than there is")),
                    now,
                    out,
                ),
                next => self.enter(Step::Counting(next), now, out),
            },
        }
    }

    pub(super) fn marked(&mut self, now: Millis, out: &mut Vec<Action>) {
        if let Some(hand) = self.hand() {
            hand.marked = true;
        }
        self.enter(Step::Proving, now, out);
    }

    pub(super) fn run_trouble(&mut self, trouble: RunTrouble, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        match trouble {
            RunTrouble::Failed(failure) => self.decide(Verdict::Failed(Fault::Failure(failure)), now, out),
            RunTrouble::Died { why } => {
                out.push(Action::Note(Note::WorkerDied(hand.statement.id.clone(), why.clone())));
                if hand.marked && hand.begun {
                    self.decide(Verdict::Failed(interrupted()), now, out);
                } else if hand.n > 1 {
                    self.decide(
                        failed(Code::WorkerDied, Stage::Execute, format!("the statement's process died twice: {why}")),
                        now,
                        out,
                    );
                } else {
                    out.push(Action::Drop);
                    self.enter(Step::Examining(Why::Died), now, out);
                }
            }
        }
    }

    pub(super) fn staged(&mut self, answer: Result<(), StageTrouble>, now: Millis, out: &mut Vec<Action>) {
        match answer {
            Ok(()) => self.decide(Verdict::Success, now, out),
            Err(StageTrouble::DuplicateQueryId) => self.decide(
                failed(Code::DuplicateQueryId, Stage::Result, "another statement has the same queryId, so its reader could not tell the results apart; submit it again with one of its own"),
                now,
                out,
            ),
            // A later attempt is under a later claim: this one is lost.
            Err(StageTrouble::Superseded) => self.overruled(Some(StatementState::Running { job: None }), now, out),
            Err(StageTrouble::Fenced) => self.again_unless_fenced(true, now),
            Err(StageTrouble::Refused(failure)) => self.decide(Verdict::Failed(Fault::Failure(failure)), now, out),
            Err(StageTrouble::Again) => self.again(now),
        }
    }

    pub(super) fn decided(
        &mut self,
        answer: Result<Version, Trouble>,
        verdict: Verdict,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        let timeout_state = self.policy.timeout_state;
        let Some(hand) = self.hand() else { return };
        match answer {
            Ok(_) => {
                let id = hand.statement.id.clone();
                match verdict {
                    Verdict::Success => {
                        // The claim's version stays: it names the attempt whose result is published.
                        out.push(Action::Note(Note::Ended(id, "success", now.since(hand.claimed_at))));
                        self.publish_success(now, out);
                    }
                    Verdict::Failed(fault) => {
                        hand.statement.state = fault.state(timeout_state);
                        out.push(Action::Note(Note::Ended(
                            id,
                            hand.statement.state.name(),
                            now.since(hand.claimed_at),
                        )));
                        self.publish_failure(now, out);
                    }
                    Verdict::Release => {
                        out.push(Action::Note(Note::Released(id)));
                        self.not_in_force(None, now, out);
                    }
                }
            }
            Err(Trouble::Conflict) => self.enter(Step::Reading(After::Decide(verdict)), now, out),
            Err(Trouble::Unknown) => self.enter_in_doubt(Step::Reading(After::Decide(verdict)), now, out),
            Err(_) => self.again(now),
        }
    }

    pub(super) fn publish_success(&mut self, now: Millis, out: &mut Vec<Action>) {
        let batch = self.me.batch.is_some();
        let Some(hand) = self.hand() else { return };
        hand.statement.state = StatementState::Success;
        if hand.kind == Some(Kind::Define) {
            out.push(Action::KeepDefine);
        }
        // Where another attempt may have left something, that is looked for too; of a batch at once, as no sweep comes after it.
        let alone = !hand.foreign && hand.n <= 1 && !batch;
        self.enter(if alone { Step::Publishing } else { Step::Settling }, now, out);
    }

    fn publish_failure(&mut self, now: Millis, out: &mut Vec<Action>) {
        let batch = self.me.batch.is_some();
        let Some(hand) = self.hand() else { return };
        let alone = !hand.begun && !hand.foreign && !batch;
        self.not_in_force(Some(if alone { Step::Publishing } else { Step::Settling }), now, out);
    }

    fn settle_pending(&mut self) {
        if let Phase::Serving(serving) = &mut self.phase {
            serving.pending = None;
        }
    }

    pub(super) fn finished(&mut self, answer: Result<(), Trouble>, now: Millis, out: &mut Vec<Action>) {
        // No sweep comes after a batch.
        let last = self.me.batch.is_some();
        let Some(hand) = self.hand() else { return };
        match answer {
            Err(Trouble::Unavailable | Trouble::Unknown | Trouble::Conflict)
                if last || hand.retry.tries < LAST_TRIES =>
            {
                self.again(now)
            }
            Err(_) => {
                out.push(Action::Note(Note::Unpublished(hand.statement.id.clone())));
                self.put_down(now, out);
            }
            Ok(()) => self.put_down(now, out),
        }
    }

    pub(super) fn watched(&mut self, answer: Result<Watched, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        hand.looking = false;
        let Ok(seen) = answer else { return };
        if seen.statement.as_ref().is_some_and(|s| s.value.id != hand.statement.id) {
            return;
        }
        if let Some(lease) = &mut self.lease {
            lease.seen(seen.session.as_ref(), now);
        }
        let Some(hand) = self.hand() else { return };
        if !hand.at_work() {
            return;
        }
        hand.timeout = seen.timeout.or(hand.timeout);
        match &seen.statement {
            None => self.overruled(None, now, out),
            Some(s) if s.value.state.is_terminal() || s.version > hand.version => {
                self.overruled(Some(s.value.state.clone()), now, out)
            }
            Some(_) => self.hand_tick(now, out),
        }
    }
}

impl Fault {
    /// The state that a statement with this fault ends in.
    #[must_use]
    pub fn state(&self, timeout_state: bool) -> StatementState {
        let error = match self {
            Fault::Timeout => "timeout".to_owned(),
            Fault::WaitTimeout => "wait timeout".to_owned(),
            Fault::SessionEnded => "session ended".to_owned(),
            Fault::Failure(failure) => failure.to_document(),
        };
        match self {
            Fault::Timeout if timeout_state => StatementState::Timeout { error },
            _ => StatementState::Failed { error },
        }
    }
}
