//! Whose session it is: read, judge, take, or watch another's lease run out. What it is made of is read once it is ours.

use super::{Action, Exit, Identity, Input, Note, Phase, Retry, Runner, Serving, Trouble};
use crate::attempt::Attempt;
use crate::ids::{RunnerId, StatementId};
use crate::lease::Lease;
use crate::policy::Policy;
use crate::session::{Owner, Session, SessionChange, SessionState};
use crate::version::{Millis, Stored, Version};

/// What is to be done about a session as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is not for us.
    Leave(&'static str),
    /// Nobody holds it, or we do.
    Take,
    /// Somebody holds it: it may be taken after this much silence, in milliseconds.
    Watch(u64),
}

/// Judges a session by itself, without a clock.
#[must_use]
pub fn judge(session: &Session, me: &Identity, policy: &Policy) -> Judgement {
    if session.state.is_ended() {
        return Judgement::Leave("the session has ended");
    }
    if me.job.as_ref().is_some_and(|job| session.excluded.contains(job) || me.excluded.contains(job)) {
        return Judgement::Leave("the session excludes this job");
    }
    match &session.owner {
        Some(owner) if owner.runner == me.runner || owner.lease_millis == 0 => Judgement::Take,
        Some(owner) => Judgement::Watch(owner.lease_millis),
        None if session.state == SessionState::NotStarted => Judgement::Take,
        None => Judgement::Watch(policy.peer_lease),
    }
}

/// Another's lease, watched by ourselves: no clock of another machine is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    owner: Option<RunnerId>,
    last_update: u64,
    since: Millis,
}

/// What watching showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// Not long enough yet.
    Quiet,
    /// It was renewed while we looked.
    Alive,
    /// It was silent for its whole lease.
    Silent,
}

impl Watch {
    fn look(watch: &mut Option<Watch>, session: &Session, lease: u64, now: Millis) -> Sight {
        let owner = session.owner.as_ref().map(|o| o.runner.clone());
        match watch {
            Some(w) if w.owner == owner && w.last_update == session.last_update => {
                if now.since(w.since) >= lease {
                    Sight::Silent
                } else {
                    Sight::Quiet
                }
            }
            _ => {
                let first = watch.is_none();
                *watch = Some(Watch { owner, last_update: session.last_update, since: now });
                if first { Sight::Quiet } else { Sight::Alive }
            }
        }
    }
}

impl Runner {
    pub(super) fn read_session(&mut self, since: Millis, _now: Millis, out: &mut Vec<Action>) {
        self.phase = Phase::Reading { since };
        out.push(Action::ReadSession);
    }

    fn pause(&mut self, since: Millis, now: Millis, wait: u64) {
        self.phase = Phase::Pausing { since, until: now.plus(wait) };
    }

    pub(super) fn session_read(
        &mut self,
        answer: Result<Option<Stored<Session>>, Trouble>,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        match self.phase {
            Phase::Reading { since } => self.judge_session(answer, since, now, out),
            Phase::Ending { .. } => self.read_while_ending(answer, now, out),
            Phase::Serving(_) => self.hand_input(Input::Session(answer), now, out),
            Phase::Pausing { .. }
            | Phase::Taking { .. }
            | Phase::Replaying { .. }
            | Phase::Sweeping(_)
            | Phase::Ended => {}
        }
    }

    fn judge_session(
        &mut self,
        answer: Result<Option<Stored<Session>>, Trouble>,
        since: Millis,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        let session = match answer {
            Ok(Some(session)) => session,
            Ok(None) if self.me.job.is_none() => return self.create(since, out),
            Ok(None) if now.since(since) >= self.policy.launch_grace => {
                return self.exit(Exit { code: 1, why: "the session was not created in time" }, out);
            }
            Ok(None) => return self.pause(since, now, self.policy.watch),
            Err(Trouble::Corrupt | Trouble::Refused) => {
                return self.exit(Exit { code: 1, why: "the session cannot be read" }, out);
            }
            Err(_) if now.since(since) >= self.policy.unreachable => {
                return self.exit(Exit { code: 1, why: "the store is out of reach" }, out);
            }
            Err(_) => return self.pause(since, now, self.policy.watch),
        };
        match judge(&session.value, &self.me, &self.policy) {
            Judgement::Leave(why) => self.exit(Exit { code: self.ended_code(), why }, out),
            Judgement::Take => self.take(since, &session, out),
            Judgement::Watch(lease) => {
                let first = self.watch.is_none();
                match Watch::look(&mut self.watch, &session.value, lease, now) {
                    Sight::Silent => self.take(since, &session, out),
                    Sight::Alive if self.duplicate(&session.value) => {
                        self.exit(Exit { code: 0, why: "another runner of the same launch serves the session" }, out);
                    }
                    Sight::Alive if !self.policy.standby && self.me.batch.is_none() => {
                        self.exit(Exit { code: 0, why: "another runner serves the session" }, out);
                    }
                    Sight::Alive | Sight::Quiet => {
                        if first {
                            out.push(Action::Note(Note::Waiting { lease }));
                        }
                        // The store answers: what it does not later is counted from here.
                        self.pause(now, now, (lease / 20).clamp(20, 1_000));
                    }
                }
            }
        }
    }

    /// A non-empty exclude list equal to ours was recorded by a duplicate of this launch.
    fn duplicate(&self, session: &Session) -> bool {
        let sorted = |jobs: &[crate::ids::JobId]| {
            let mut jobs = jobs.to_vec();
            jobs.sort();
            jobs
        };
        !session.excluded.is_empty() && sorted(&session.excluded) == sorted(&self.me.excluded)
    }

    fn owner(&self) -> Owner {
        Owner { runner: self.me.runner.clone(), lease_millis: self.policy.lease }
    }

    fn create(&mut self, since: Millis, out: &mut Vec<Action>) {
        self.phase = Phase::Taking { since };
        out.push(Action::CreateSession(Box::new(Session {
            state: SessionState::Running,
            application: self.me.application.clone().unwrap_or_default(),
            job: self.me.job.clone(),
            excluded: self.me.excluded.clone(),
            owner: Some(self.owner()),
            ..Session::new(self.me.session.clone(), self.me.data_source.clone())
        })));
    }

    fn take(&mut self, since: Millis, session: &Stored<Session>, out: &mut Vec<Action>) {
        self.phase = Phase::Taking { since };
        out.push(Action::Own(
            session.version,
            SessionChange::Own {
                owner: self.owner(),
                job: self.me.job.clone(),
                application: self.me.application.clone(),
                excluded: self.me.excluded.clone(),
            },
        ));
    }

    pub(super) fn owned(&mut self, sent: Millis, answer: Result<Version, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Phase::Taking { since } = self.phase else { return };
        match answer {
            Ok(version) => {
                self.lease =
                    Some(Lease::taken(self.me.runner.clone(), self.me.job.clone(), &self.policy, sent, version));
                self.watch = None;
                out.push(Action::Note(Note::Serving));
                if self.me.batch.is_some() {
                    // Nothing follows a batch's one statement, so it has no journal.
                    self.phase = Phase::Serving(Serving::begin(now, false, None));
                    self.serve(now, out);
                } else {
                    self.replay(out);
                }
            }
            // Whoever was first, or whether it was done: the read tells, since the runner's id is its own.
            Err(Trouble::Conflict) => self.read_session(since, now, out),
            Err(Trouble::Unavailable | Trouble::Unknown) if now.since(since) < self.policy.unreachable => {
                self.pause(since, now, self.policy.watch)
            }
            Err(_) => self.exit(Exit { code: 1, why: "the session could not be taken" }, out),
        }
    }

    /// Reads what the session is made of, before anything in it is touched.
    pub(super) fn replay(&mut self, out: &mut Vec<Action>) {
        self.phase = Phase::Replaying { retry: Retry::default() };
        out.push(Action::Replay);
    }

    pub(super) fn replay_again(&mut self, now: Millis, out: &mut Vec<Action>) {
        if let Phase::Replaying { retry } = &mut self.phase
            && retry.due(now)
        {
            if retry.spent(now, &self.policy) {
                return self.fail_session(self.too_long("the session's journal"), out);
            }
            out.push(Action::Replay);
        }
    }

    pub(super) fn replayed(
        &mut self,
        answer: Result<Option<(StatementId, Attempt)>, Trouble>,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        let Phase::Replaying { retry } = &mut self.phase else { return };
        match answer {
            Ok(pending) => {
                self.phase = Phase::Serving(Serving::begin(now, true, pending));
                self.serve(now, out);
            }
            Err(Trouble::Corrupt | Trouble::Refused) => {
                // A successor of the right version may read it: the session does not end for this.
                let exit = Exit { code: 1, why: "the session's journal cannot be read" };
                self.end_session(SessionChange::GiveUp, exit, out);
            }
            Err(trouble) => {
                retry.again(now, &self.policy);
                if trouble == Trouble::Conflict
                    && let Some(lease) = &mut self.lease
                {
                    lease.doubted(now);
                }
            }
        }
    }

    fn read_while_ending(
        &mut self,
        answer: Result<Option<Stored<Session>>, Trouble>,
        now: Millis,
        out: &mut Vec<Action>,
    ) {
        let (Phase::Ending { change, retry, exit }, Some(lease)) = (&mut self.phase, &mut self.lease) else { return };
        match answer {
            Ok(session) => {
                lease.seen(session.as_ref(), now);
                if lease.lost().is_some() {
                    // Ended, by us with the answer lost or by another: either way there is nothing left to write.
                    let exit = exit.clone();
                    self.exit(exit, out);
                } else {
                    out.push(Action::EndSession(lease.version(), change.clone()));
                }
            }
            Err(_) if retry.spent(now, &self.policy) => {
                self.exit(Exit { code: 1, why: "the session's end could not be written" }, out);
            }
            Err(_) => retry.again(now, &self.policy),
        }
    }
}
