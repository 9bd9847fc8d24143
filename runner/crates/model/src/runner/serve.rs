//! Which statement is next: oldest first, never past one that is neither ended nor ours.

use super::hand::{Hand, Step};
use super::{Action, Exit, Phase, Retry, Runner, Serving, Sight, Trouble};
use crate::attempt::Attempt;
use crate::ids::StatementId;
use crate::policy::Policy;
use crate::session::SessionChange;
use crate::statement::{Statement, StatementState};
use crate::version::{Millis, Stored};

/// How long a search's hits are worked off before the next search, in milliseconds: a younger statement
/// cannot overtake for longer than this what was submitted late with an older time.
const HITS_LIVE: u64 = 1_000;

impl Serving {
    /// `settling`: a predecessor may have left statements running; `pending`: and one of them in the journal.
    pub(super) fn begin(now: Millis, settling: bool, pending: Option<(StatementId, Attempt)>) -> Serving {
        Serving {
            since: now,
            last_work: now,
            next_poll: now,
            polling: false,
            closing: false,
            retry: Retry::default(),
            found_at: None,
            settling,
            pending,
            queue: Default::default(),
            sighted: Default::default(),
            settled: Default::default(),
            hand: None,
        }
    }

    /// This runner is done with what the hit shows. One that is newer shows what somebody else did since: a runner that had not yet noticed
    /// that the session is ours may have taken the statement back, and is gone.
    fn is_settled(&self, hit: &Stored<Statement>) -> bool {
        self.settled.get(&hit.value.id).is_some_and(|settled| hit.version <= *settled)
    }
}

impl Runner {
    /// Does what is due: the statement in hand, else the next one, else a poll, else the session's end.
    pub(super) fn serve(&mut self, now: Millis, out: &mut Vec<Action>) {
        let Phase::Serving(serving) = &mut self.phase else { return };
        if serving.hand.is_some() {
            return self.hand_tick(now, out);
        }
        if self.stopping.is_some() {
            return self.leave_stopped(out);
        }
        if !self.lease.as_ref().is_some_and(|lease| lease.holds(now)) {
            serving.queue.clear();
            serving.next_poll = now.plus(self.policy.watch);
            return;
        }
        if self.pick(now, out) {
            return;
        }
        let Phase::Serving(serving) = &mut self.phase else { return };
        if serving.polling || now < serving.next_poll {
            return;
        }
        serving.polling = true;
        serving.closing = self.me.batch.is_none() && now.since(serving.last_work) >= self.policy.inactivity;
        out.push(if serving.closing || serving.settling { Action::PollEvery } else { Action::Poll });
    }

    /// What a search found.
    pub(super) fn open(&mut self, answer: Result<Sight, Trouble>, now: Millis, out: &mut Vec<Action>) {
        let Phase::Serving(serving) = &mut self.phase else { return };
        serving.polling = false;
        let hits = match answer {
            Ok(sight) => {
                if let (Some(session), Some(lease)) = (&sight.session, &mut self.lease)
                    && lease.hinted(session, now)
                {
                    // Read before anything is claimed: the heart does so at once.
                    serving.next_poll = now.plus(self.policy.watch);
                    return;
                }
                sight.statements
            }
            Err(_) => {
                serving.retry.again(now, &self.policy);
                serving.next_poll = serving.retry.at.take().unwrap_or(now);
                return;
            }
        };
        serving.retry = Retry::default();
        if self.me.batch.is_some() {
            match hits.first() {
                Some(hit) if hit.value.state.is_terminal() && !serving.settled.contains_key(&hit.value.id) => {
                    // Whoever decided it may have died before its result was published, and no sweep comes after a batch.
                    serving.hand = Some(Box::new(Hand::new(hit.clone(), now, now)));
                    return self.enter(Step::Settling, now, out);
                }
                Some(hit) if hit.value.state.is_terminal() => {
                    let code = u8::from(hit.value.state != StatementState::Success);
                    return self.end_session(
                        SessionChange::End,
                        Exit { code, why: "the batch statement has ended" },
                        out,
                    );
                }
                Some(_) => {}
                None => return self.fail_session("the batch statement's document is gone".into(), out),
            }
        }
        let Phase::Serving(serving) = &mut self.phase else { return };
        serving.sighted.retain(|id, _| hits.iter().any(|hit| hit.value.id == *id));
        serving.settled.retain(|id, _| hits.iter().any(|hit| hit.value.id == *id));
        for hit in &hits {
            serving.sighted.entry(hit.value.id.clone()).or_insert(now);
        }
        let (closing, empty) = (serving.closing, hits.is_empty());
        serving.queue = hits.into();
        if serving.settling {
            // Oldest first among themselves, for the sort is stable.
            serving.queue.make_contiguous().sort_by_key(|hit| !hit.value.state.is_running());
        }
        serving.found_at = Some(now);
        serving.next_poll = now.plus(interval(&self.policy, now.since(serving.last_work)));
        if closing && empty {
            return self.end_session(
                SessionChange::End,
                Exit { code: 0, why: "no statement for the inactivity limit" },
                out,
            );
        }
        self.serve(now, out);
    }

    /// Takes the next statement in hand, if the last search left one.
    fn pick(&mut self, now: Millis, out: &mut Vec<Action>) -> bool {
        let Phase::Serving(serving) = &mut self.phase else { return false };
        if serving.found_at.is_some_and(|at| now.since(at) >= HITS_LIVE) && self.me.batch.is_none() {
            serving.queue.clear();
            serving.found_at = None;
        }
        if serving.settling
            && serving.found_at.is_some()
            && !serving.queue.iter().any(|hit| hit.value.state.is_running() && !serving.is_settled(hit))
        {
            serving.settling = false;
            if serving.pending.is_some() {
                // Its statement ended meanwhile: the journal is to say so before anything hangs on it.
                self.replay(out);
                return true;
            }
        }
        while let Some(hit) = serving.queue.pop_front() {
            if serving.is_settled(&hit) {
                continue;
            }
            let sighted = *serving.sighted.entry(hit.value.id.clone()).or_insert(now);
            serving.last_work = now;
            serving.hand = Some(Box::new(Hand::new(hit, sighted.max(serving.since), now)));
            self.hand_begin(now, out);
            return true;
        }
        false
    }

    /// The statement in hand is done with, for this runner.
    pub(super) fn put_down(&mut self, now: Millis, out: &mut Vec<Action>) {
        let Phase::Serving(serving) = &mut self.phase else { return };
        if let Some(hand) = serving.hand.take() {
            serving.settled.insert(hand.id().clone(), hand.version);
            serving.last_work = now;
            serving.next_poll = now;
        }
        self.serve(now, out);
    }
}

/// The poll interval: short after work, long after a while without.
#[must_use]
pub fn interval(policy: &Policy, idle: u64) -> u64 {
    if idle < policy.busy_for {
        policy.poll_busy.min(policy.poll)
    } else if idle >= policy.idle_after {
        policy.poll_idle.max(policy.poll)
    } else {
        policy.poll
    }
}
