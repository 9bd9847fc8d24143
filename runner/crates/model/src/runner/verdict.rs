//! How the statement in hand is decided, and what is done about it: the answers that lead to a decision and those that follow it.

use super::hand::{After, Step, Why};
use super::{Action, Beside, Fault, Note, RunTrouble, Runner, StageTrouble, Trouble, Verdict, Watched};
use crate::attempt::{Kind, MAX_ATTEMPTS};
use crate::failure::{Code, Failure, Stage};
use crate::statement::{Statement, StatementState};
use crate::version::{Millis, Stored, Version};

/// How often a decided result is tried to be published, or remains to be removed, before a sweep is left to do it.
const LAST_TRIES: u32 = 8;

pub(super) fn failed(code: Code, stage: Stage, message: impl Into<String>) -> Verdict {
    Verdict::Failed(Fault::Failure(Failure::new(code, stage, message)))
}

fn interrupted() -> Verdict {
    failed(
        Code::Interrupted,
        Stage::Execute,
        "interrupted: outcome unknown; the statement writes and its runner or worker was lost after it began, look at its target before you send it again",
    )
}

impl Runner {
    /// The engine's work is over, one way or the other: what was begun is dropped unless it succeeded.
    pub(super) fn decide(&mut self, verdict: Verdict, now: Millis, out: &mut Vec<Action>) {
        if verdict != Verdict::Success {
            out.push(Action::Drop);
        }
        self.enter(Step::Deciding(verdict), now, out);
    }

    /// Another decision stands: what this attempt staged goes.
    pub(super) fn overruled(&mut self, state: &'static str, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        out.push(Action::Drop);
        if hand.kind == Some(Kind::Define) && hand.begun {
            out.push(Action::VoidDefine);
        }
        let (id, begun) = (hand.statement.id.clone(), hand.begun);
        out.push(Action::Note(Note::Overruled(id.clone())));
        out.push(Action::Note(Note::Ended(id, state, now.since(hand.claimed_at))));
        if begun {
            self.enter(Step::Discarding, now, out);
        } else {
            self.put_down(now, out);
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
        let Some(read) = read else { return self.overruled("deleted", now, out) };
        if read.version == hand.version {
            return self.enter(Step::Deciding(verdict), now, out);
        }
        let name = read.value.state.name();
        match (&read.value.state, verdict) {
            (StatementState::Success, Verdict::Success) => self.enter(Step::Examining(Why::Decided), now, out),
            (StatementState::Failed { .. } | StatementState::Timeout { .. }, Verdict::Failed(fault)) => {
                hand.statement.state = read.value.state;
                out.push(Action::Note(Note::Ended(read.value.id, name, now.since(hand.claimed_at))));
                self.enter(Step::Publishing(Some(fault)), now, out);
            }
            (StatementState::Waiting, Verdict::Release) => self.put_down(now, out),
            _ => self.overruled(name, now, out),
        }
    }

    pub(super) fn examined(&mut self, beside: &Beside, why: Why, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        let attempt = hand.attempt();
        hand.companion = beside.companion;
        match why {
            Why::Decided if beside.candidate == Some(attempt) => {
                out.push(Action::Note(Note::Ended(hand.statement.id.clone(), "success", now.since(hand.claimed_at))));
                self.publish_success(now, out);
            }
            Why::Decided => self.overruled("success", now, out),
            Why::Marker => match beside.marker {
                Some(marker) if marker == attempt => self.marked(now, out),
                Some(_) => self.decide(interrupted(), now, out),
                None => self.enter(Step::Marking, now, out),
            },
            Why::Adopted | Why::Died if beside.marker.is_some() => self.decide(interrupted(), now, out),
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
                    self.decide(interrupted(), now, out);
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
            Err(StageTrouble::Superseded) => self.overruled("superseded", now, out),
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
            Ok(version) => {
                let id = hand.statement.id.clone();
                let void = hand.kind == Some(Kind::Define) && hand.begun && verdict != Verdict::Success;
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
                        if void {
                            out.push(Action::VoidDefine);
                        }
                        self.enter(Step::Publishing(Some(fault)), now, out);
                    }
                    Verdict::Release => {
                        hand.version = version;
                        if void {
                            out.push(Action::VoidDefine);
                        }
                        out.push(Action::Note(Note::Released(id)));
                        self.put_down(now, out);
                    }
                }
            }
            Err(Trouble::Conflict | Trouble::Unknown) => self.enter(Step::Reading(After::Decide(verdict)), now, out),
            Err(_) => self.again(now),
        }
    }

    pub(super) fn publish_success(&mut self, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        hand.statement.state = StatementState::Success;
        if hand.kind == Some(Kind::Define) {
            out.push(Action::KeepDefine);
        }
        self.enter(Step::Publishing(None), now, out);
    }

    pub(super) fn finished(&mut self, answer: Result<(), Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        match answer {
            Err(Trouble::Unavailable | Trouble::Unknown | Trouble::Conflict) if hand.retry.tries < LAST_TRIES => {
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
            None => self.overruled("deleted", now, out),
            Some(s) if s.value.state.is_terminal() || s.version > hand.version => {
                self.overruled(s.value.state.name(), now, out)
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
