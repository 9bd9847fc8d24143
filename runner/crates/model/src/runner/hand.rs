//! One statement, from its claim to its published result.
//!
//! Each [`Step`] has one action on its way; a retry sends that action again. Steps that claim, begin or decide
//! wait while the lease does not hold. What the store says is believed only by version: a claim is what its write
//! got, a decision is what its write was told.

use super::verdict::failed;
use super::{Action, Fault, Input, Note, Phase, Retry, Runner, Trouble, Verdict};
use crate::attempt::{Attempt, Kind};
use crate::failure::{Code, Failure, Stage};
use crate::ids::StatementId;
use crate::policy::{OnStop, Policy};
use crate::session::Session;
use crate::statement::{Event, Statement, StatementState};
use crate::version::{Millis, Stored, Version};

/// Where the statement in hand stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Claiming,
    Reading(After),
    AskingSession,
    Examining(Why),
    Counting(u32),
    Planning,
    Marking,
    Proving,
    Confirming,
    Running,
    Staging,
    Deciding(Verdict),
    Publishing,
    Discarding,
    /// Publishes what counts and removes the rest: more than one attempt may have staged, or another decision stands.
    Settling,
    /// An attempt's define is taken out of the journal, before the next step or before the statement is put down.
    Voiding(Attempt, Option<Box<Step>>),
}

/// What the statement is read after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    Claim,
    Decide(Verdict),
}

/// What is looked for beside the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Adopted,
    Died,
    Marker,
    Decided,
}

/// The statement in hand.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) statement: Statement,
    pub(super) version: Version,
    pub(super) waited_from: Millis,
    pub(super) step: Step,
    pub(super) retry: Retry,
    /// Writes in a row whose answers were lost.
    doubts: Retry,
    pub(super) foreign: bool,
    pub(super) n: u32,
    pub(super) kind: Option<Kind>,
    pub(super) begun: bool,
    pub(super) marked: bool,
    /// A define that may be in the journal.
    pub(super) journalled: bool,
    /// The attempt of a predecessor whose result and journal entry count.
    pub(super) kept: Option<Attempt>,
    pub(super) companion: Option<Version>,
    pub(super) claimed_at: Millis,
    pub(super) timeout: Option<u64>,
    pub(super) next_look: Millis,
    pub(super) looking: bool,
}

impl Hand {
    pub(super) fn new(hit: Stored<Statement>, waited_from: Millis, now: Millis) -> Hand {
        Hand {
            statement: hit.value,
            version: hit.version,
            waited_from,
            step: Step::Claiming,
            retry: Retry::default(),
            doubts: Retry::default(),
            foreign: false,
            n: 0,
            kind: None,
            begun: false,
            marked: false,
            journalled: false,
            kept: None,
            companion: None,
            claimed_at: now,
            timeout: None,
            next_look: now,
            looking: false,
        }
    }

    pub(super) fn id(&self) -> &StatementId {
        &self.statement.id
    }

    pub(super) fn attempt(&self) -> Attempt {
        self.kept.unwrap_or(Attempt { claim: self.version, n: self.n })
    }

    /// The engine is at work, or about to be: a cancel, a timeout or a stop ends it here.
    pub(super) fn at_work(&self) -> bool {
        matches!(self.step, Step::Planning | Step::Marking | Step::Proving | Step::Confirming | Step::Running)
    }

    fn needs_lease(&self) -> bool {
        matches!(
            self.step,
            Step::Claiming
                | Step::Counting(_)
                | Step::Planning
                | Step::Marking
                | Step::Proving
                | Step::Confirming
                | Step::Running
                | Step::Staging
                | Step::Deciding(_)
        )
    }

    fn deadline(&self, policy: &Policy) -> Millis {
        self.claimed_at.plus(self.timeout.unwrap_or(u64::MAX).min(policy.execution_timeout))
    }

    /// When a stop ends the work: at once if it can be released, else after the grace time.
    fn stop_at(&self, policy: &Policy, stopping: Millis) -> Millis {
        if policy.on_stop == OnStop::Handover && !self.marked { stopping } else { stopping.plus(policy.stop_grace) }
    }

    pub(super) fn wake(&self, policy: &Policy, stopping: Option<Millis>) -> Option<Millis> {
        let mut wake = self.retry.at;
        let mut soonest = |at: Millis| wake = Some(wake.map_or(at, |w| w.min(at)));
        if self.at_work() {
            soonest(self.deadline(policy));
            if !self.looking {
                soonest(self.next_look);
            }
            if let Some(stopping) = stopping {
                soonest(self.stop_at(policy, stopping));
            }
        }
        wake
    }
}

impl Runner {
    pub(super) fn hand(&mut self) -> Option<&mut Hand> {
        match &mut self.phase {
            Phase::Serving(serving) => serving.hand.as_deref_mut(),
            _ => None,
        }
    }

    /// A hit was picked: claim it, or decide what needs no claim.
    pub(super) fn hand_begin(&mut self, now: Millis, out: &mut Vec<Action>) {
        let (batch, wait_timeout) = (self.me.batch.is_some(), self.policy.wait_timeout);
        let Some(hand) = self.hand() else { return };
        let step = match &hand.statement.state {
            StatementState::Running { .. } => Step::Reading(After::Claim),
            _ if hand.statement.query_id.is_none() => Step::Deciding(failed(
                Code::BadStatement,
                Stage::Accept,
                "the statement has no queryId of at most 512 bytes, so nobody could ask for its result; submit it again with one",
            )),
            _ if !batch && now.since(hand.waited_from) >= wait_timeout => {
                Step::Deciding(Verdict::Failed(Fault::WaitTimeout))
            }
            _ => Step::Claiming,
        };
        self.enter(step, now, out);
    }

    /// Goes to a step and sends its action, unless the lease does not hold and the step needs it.
    pub(super) fn enter(&mut self, step: Step, now: Millis, out: &mut Vec<Action>) {
        if let Some(hand) = self.hand() {
            hand.step = step;
            hand.retry = Retry::default();
        }
        self.send(now, out);
    }

    /// The same after a write whose answer was lost: at once the first time, later and later when that happens again and again.
    pub(super) fn enter_in_doubt(&mut self, step: Step, now: Millis, out: &mut Vec<Action>) {
        let policy = self.policy.clone();
        let Some(hand) = self.hand() else { return };
        let first = hand.doubts == Retry::default();
        hand.doubts.again(now, &policy);
        if first {
            return self.enter(step, now, out);
        }
        hand.step = step;
        hand.retry = hand.doubts;
    }

    fn send(&mut self, now: Millis, out: &mut Vec<Action>) {
        let holds = self.lease.as_ref().is_some_and(|lease| lease.holds(now));
        let session = self.lease.as_ref().map(crate::lease::Lease::version);
        let (watch, job) = (self.policy.watch, self.me.job.clone());
        let Some(hand) = self.hand() else { return };
        if hand.needs_lease() && !holds {
            hand.retry.at = Some(now.plus(watch));
            return;
        }
        let statement = || Box::new(hand.statement.clone());
        let id = || hand.statement.id.clone();
        out.extend(match &hand.step {
            Step::Claiming => Some(Action::Write(statement(), hand.version, Event::Claim { job })),
            Step::Reading(_) | Step::Confirming => Some(Action::ReadStatement(id())),
            Step::AskingSession => Some(Action::ReadSession),
            Step::Examining(_) => Some(Action::Examine(id())),
            Step::Counting(attempts) => Some(Action::Count(id(), *attempts, hand.companion)),
            Step::Planning => Some(Action::Plan(statement())),
            Step::Marking => Some(Action::Mark(id(), hand.attempt())),
            Step::Proving => session.map(Action::Prove),
            Step::Running => Some(Action::Run(statement(), hand.attempt())),
            Step::Staging => Some(Action::Stage(statement(), hand.attempt())),
            Step::Deciding(verdict) => Some(Action::Decide(statement(), hand.version, hand.attempt(), verdict.clone())),
            Step::Publishing if hand.statement.state == StatementState::Success => {
                Some(Action::Publish(statement(), hand.attempt()))
            }
            Step::Publishing => Some(Action::PublishFailure(statement(), hand.attempt())),
            Step::Discarding => Some(Action::Discard(statement(), hand.attempt())),
            Step::Settling => Some(Action::Settle(statement(), hand.attempt())),
            Step::Voiding(attempt, _) => Some(Action::Void(id(), *attempt)),
        });
        match hand.step {
            Step::Running => hand.begun = true,
            Step::Staging => hand.journalled = hand.kind == Some(Kind::Define),
            _ => {}
        }
    }

    pub(super) fn again(&mut self, now: Millis) {
        let policy = self.policy.clone();
        if let Some(hand) = self.hand() {
            hand.retry.again(now, &policy);
        }
    }

    /// Tries again. If the journal has an entry of another owner, the heart reads the session first, which tells that it is lost.
    pub(super) fn again_unless_fenced(&mut self, fenced: bool, now: Millis) {
        if let Some(lease) = self.lease.as_mut().filter(|_| fenced) {
            lease.doubted(now);
        }
        self.again(now);
    }

    /// Time has passed: a retry, a timeout, a stop or a look may be due.
    pub(super) fn hand_tick(&mut self, now: Millis, out: &mut Vec<Action>) {
        let (policy, stopping) = (self.policy.clone(), self.stopping);
        let Some(hand) = self.hand() else { return };
        if hand.at_work() {
            if now >= hand.deadline(&policy) {
                return self.decide(Verdict::Failed(Fault::Timeout), now, out);
            }
            if let Some(stopping) = stopping
                && now >= hand.stop_at(&policy, stopping)
            {
                let verdict = if policy.on_stop == OnStop::Handover && !hand.marked {
                    Verdict::Release
                } else {
                    Verdict::Failed(Fault::Failure(
                        Failure::new(
                            Code::Stopped,
                            Stage::Execute,
                            "the runner was told to stop before the statement had ended; submit it again",
                        )
                        .retryable(),
                    ))
                };
                return self.decide(verdict, now, out);
            }
            if !hand.looking && now >= hand.next_look {
                hand.looking = true;
                hand.next_look = now.plus(policy.watch);
                out.push(Action::Look(hand.statement.id.clone()));
            }
        }
        if hand.retry.due(now) {
            if hand.retry.spent(now, &policy) {
                return self.fail_session(self.too_long("what a statement needs"), out);
            }
            self.send(now, out);
        }
    }

    /// An answer about the statement in hand. One that no step waits for came too late and means nothing.
    pub(super) fn hand_input(&mut self, input: Input, now: Millis, out: &mut Vec<Action>) {
        let Some(hand) = self.hand() else { return };
        let step = hand.step.clone();
        if matches!(input, Input::Written(Ok(_)) | Input::Counted(Ok(())) | Input::Marked(Ok(()))) {
            hand.doubts = Retry::default();
        }
        match (step, input) {
            (Step::Claiming, Input::Written(answer)) => self.claimed(answer, now, out),
            (Step::AskingSession, Input::Session(answer)) => {
                self.session_asked(answer, Step::Reading(After::Claim), now, out)
            }
            (Step::Proving, Input::Session(answer)) => self.session_asked(answer, Step::Proving, now, out),
            (Step::Reading(after), Input::Statement(answer)) => match (answer, after) {
                (Ok(read), After::Claim) => self.read_to_claim(read, now, out),
                (Ok(read), After::Decide(verdict)) => self.read_to_decide(read, verdict, now, out),
                (Err(Trouble::Corrupt), _) => self.put_down(now, out),
                (Err(_), _) => self.again(now),
            },
            (Step::Examining(why), Input::Examined(answer)) => match answer {
                Ok(beside) => self.examined(&beside, why, now, out),
                Err(_) => self.again(now),
            },
            (Step::Counting(_), Input::Counted(answer)) => match answer {
                Ok(()) => {
                    if let Some(hand) = self.hand() {
                        hand.n += 1;
                    }
                    self.enter(Step::Planning, now, out);
                }
                Err(Trouble::Conflict) => self.enter(Step::Examining(Why::Adopted), now, out),
                Err(Trouble::Unknown) => self.enter_in_doubt(Step::Examining(Why::Adopted), now, out),
                Err(_) => self.again(now),
            },
            (Step::Planning, Input::Planned(answer)) => match answer {
                Ok(kind) => {
                    if let Some(hand) = self.hand() {
                        hand.kind = Some(kind);
                    }
                    self.enter(if kind == Kind::Write { Step::Marking } else { Step::Running }, now, out);
                }
                Err(trouble) => self.run_trouble(trouble, now, out),
            },
            (Step::Marking, Input::Marked(answer)) => match answer {
                Ok(()) => self.marked(now, out),
                Err(Trouble::Conflict) => self.enter(Step::Examining(Why::Marker), now, out),
                Err(Trouble::Unknown) => self.enter_in_doubt(Step::Examining(Why::Marker), now, out),
                Err(_) => self.again(now),
            },
            (Step::Proving, Input::Proved(sent, answer)) => match answer {
                Ok(version) => {
                    if let Some(lease) = &mut self.lease {
                        lease.renewed(sent, version);
                    }
                    self.enter(Step::Confirming, now, out);
                }
                Err(Trouble::Conflict) => out.push(Action::ReadSession),
                // If it was applied, the next one is refused, and the session is read.
                Err(_) => self.again(now),
            },
            (Step::Confirming, Input::Statement(answer)) => match answer {
                Ok(Some(read)) if self.hand().is_some_and(|hand| hand.version == read.version) => {
                    self.enter(Step::Running, now, out)
                }
                Ok(read) => self.overruled(read.map(|read| read.value.state), now, out),
                Err(_) => self.again(now),
            },
            (Step::Running, Input::Ran(answer)) => match answer {
                Ok(()) => self.enter(Step::Staging, now, out),
                Err(trouble) => self.run_trouble(trouble, now, out),
            },
            (Step::Staging, Input::Staged(answer)) => self.staged(answer, now, out),
            (Step::Deciding(verdict), Input::Written(answer)) => self.decided(answer, verdict, now, out),
            (
                Step::Publishing | Step::Settling | Step::Discarding,
                Input::Published(answer) | Input::Discarded(answer),
            ) => self.finished(answer, now, out),
            (Step::Voiding(_, then), Input::Voided(answer)) => match answer {
                Ok(()) => {
                    let id = self.hand().map(|hand| hand.id().clone());
                    out.extend(id.map(|id| Action::Note(Note::Voided(id))));
                    match then {
                        Some(step) => self.enter(*step, now, out),
                        None => self.put_down(now, out),
                    }
                }
                Err(trouble) => self.again_unless_fenced(trouble == Trouble::Conflict, now),
            },
            (_, Input::Watched(answer)) => self.watched(answer, now, out),
            _ => {}
        }
    }

    fn claimed(&mut self, answer: Result<Version, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let job = self.me.job.clone();
        let watch = self.policy.watch;
        match answer {
            Ok(version) => {
                let Some(hand) = self.hand() else { return };
                hand.version = version;
                hand.statement.state = StatementState::Running { job };
                hand.claimed_at = now;
                hand.next_look = now.plus(watch);
                let id = hand.statement.id.clone();
                if hand.foreign {
                    out.push(Action::Note(Note::Adopted(id)));
                    self.enter(Step::Examining(Why::Adopted), now, out);
                } else {
                    hand.n = 1;
                    out.push(Action::Note(Note::Claimed(id)));
                    self.enter(Step::Planning, now, out);
                }
            }
            Err(Trouble::Conflict) => {
                out.push(Action::Note(Note::Conflict));
                self.enter(Step::Reading(After::Claim), now, out);
            }
            Err(Trouble::Unknown) => self.enter_in_doubt(Step::AskingSession, now, out),
            Err(_) => self.again(now),
        }
    }

    /// The session was read to learn whether it is still ours; if not, the lease says so and all is abandoned.
    fn session_asked(
        &mut self,
        answer: Result<Option<Stored<Session>>, Trouble>,
        then: Step,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        match answer {
            Ok(session) => {
                if let Some(lease) = &mut self.lease {
                    lease.seen(session.as_ref(), now);
                    if lease.lost().is_none() {
                        self.enter(then, now, out);
                    }
                }
            }
            Err(_) => self.again(now),
        }
    }

    fn read_to_claim(&mut self, read: Option<Stored<Statement>>, now: Millis, out: &mut Vec<Action>) {
        let Some(read) = read.filter(|read| !read.value.state.is_terminal()) else { return self.put_down(now, out) };
        let Some(hand) = self.hand() else { return };
        let running = matches!(read.value.state, StatementState::Running { .. });
        hand.version = read.version;
        hand.statement = read.value;
        if running {
            // Not in our hand, so it is another's or its claim's answer was lost: adopted under a new claim.
            hand.foreign = true;
            self.enter(Step::Claiming, now, out);
        } else {
            self.hand_begin(now, out);
        }
    }
}
