//! Rounds of searches: one for all sessions whose turn it is.
//!
//! Each session has its turn at the interval that it would have in a process of its own: short after work, long after a while
//! without. A session whose turn comes within half its interval joins, so that sessions without work soon share one search.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firesteel_model::policy::Policy;
use firesteel_model::runner::serve::interval;
use firesteel_model::{Millis, Pattern, Session, SessionId, Stored};
use tokio::sync::{Notify, mpsc, oneshot};

use super::Common;
use crate::ports::{Open, Overview, StoreError};

/// The most sessions of one search.
const MOST: usize = 10_000;

type Answer = Result<Open, StoreError>;

/// Who waits for statements, and when each has its turn.
pub(super) struct Rounds {
    policy: Policy,
    turns: Mutex<Turns>,
    asked: Notify,
}

#[derive(Default)]
struct Turns {
    of: BTreeMap<SessionId, Turn>,
    /// When the next round begins, as far as is known.
    planned: Option<Millis>,
}

struct Turn {
    /// When the session last had work.
    worked: Millis,
    /// When the last search that it was part of began.
    searched: Option<Millis>,
    ask: Option<Ask>,
}

struct Ask {
    since: Millis,
    limit: usize,
    tell: oneshot::Sender<Answer>,
}

impl Turn {
    fn interval(&self, policy: &Policy, now: Millis) -> u64 {
        interval(policy, now.since(self.worked))
    }

    fn next(&self, policy: &Policy, now: Millis) -> Millis {
        self.searched.map_or(now, |searched| searched.plus(self.interval(policy, now)))
    }
}

impl Rounds {
    pub(super) fn new(policy: Policy) -> Rounds {
        Rounds { policy, turns: Mutex::default(), asked: Notify::new() }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the open statements of a session: until there are any, or a search long enough after the question found none.
    pub(super) async fn open_statements(&self, id: &SessionId, limit: usize, now: Millis) -> Answer {
        let (tell, told) = oneshot::channel();
        self.ask(id, Ask { since: now, limit, tell });
        told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the runner is leaving".into())))
    }

    fn ask(&self, id: &SessionId, ask: Ask) {
        let (mut turns, now) = (self.turns(), ask.since);
        let turn = turns.of.entry(id.clone()).or_insert(Turn { worked: now, searched: None, ask: None });
        turn.ask = Some(ask);
        let next = turn.next(&self.policy, now);
        if turns.planned.is_none_or(|planned| next < planned) {
            turns.planned = Some(next);
            self.asked.notify_one();
        }
    }

    /// The session has work: its next turns come soon.
    pub(super) fn worked(&self, id: &SessionId, now: Millis) {
        if let Some(turn) = self.turns().of.get_mut(id) {
            turn.worked = now;
        }
    }

    /// Whoever waits is told that there is nothing: there is something else to do.
    pub(super) fn release(&self) {
        for turn in self.turns().of.values_mut() {
            if let Some(ask) = turn.ask.take() {
                let _ = ask.tell.send(Ok(Open::default()));
            }
        }
    }

    /// The session was left.
    pub(super) fn forget(&self, id: &SessionId) {
        self.turns().of.remove(id);
    }

    /// Searches for as long as anybody waits for it, and hands on the sessions that nobody has begun to serve.
    pub(super) async fn run(
        &self,
        common: &Common,
        patterns: &[Pattern],
        fresh: &mpsc::UnboundedSender<Vec<Stored<Session>>>,
    ) {
        let policy = &self.policy;
        let mut looked: Option<Millis> = None;
        let mut tries = 0;
        loop {
            let now = common.clock.now();
            let look = looked.map_or(now, |at| at.plus(policy.poll_idle));
            let (sessions, limit) = self.begin(now, look);
            if sessions.is_empty() && now < look {
                let planned = self.turns().planned.map_or(look, |at| at.min(look));
                tokio::select! {
                    () = common.clock.sleep_until(planned) => {}
                    () = self.asked.notified() => {}
                }
                continue;
            }
            // It costs no request of its own, but is no use several times a blink.
            let new = looked.is_none_or(|at| now.since(at) >= policy.poll);
            let patterns = if new { patterns } else { &[] };
            let answer = common.store.open_statements_of(&sessions, patterns, limit).await;
            let after = common.clock.now();
            common.counters.heard(after, &common.name, "search for statements", &answer);
            match answer {
                Ok(mut overview) => {
                    tries = 0;
                    if new {
                        looked = Some(now);
                        let _ = fresh.send(std::mem::take(&mut overview.fresh));
                    }
                    self.answer(&sessions, overview, after);
                }
                // Who asked goes on waiting: a search is no proof of anything, and the lease has an eye of its own on the store.
                Err(_) => {
                    let wait = policy.retry.saturating_mul(1 << tries.min(16)).min(policy.retry_max);
                    tries += 1;
                    common.clock.sleep_until(after.plus(wait)).await;
                }
            }
        }
    }

    /// The sessions of a round that begins now, none if no turn has come; and the most statements that one of them wants.
    fn begin(&self, now: Millis, look: Millis) -> (Vec<SessionId>, usize) {
        let mut turns = self.turns();
        let (mut sessions, mut limit, mut soonest) = (Vec::new(), 0, None::<Millis>);
        for (id, turn) in &mut turns.of {
            // Who no longer waits has left, or will ask again.
            turn.ask.take_if(|ask| ask.tell.is_closed());
            let Some(ask) = &turn.ask else { continue };
            let next = turn.next(&self.policy, now);
            soonest = Some(soonest.map_or(next, |soonest| soonest.min(next)));
            if next <= now.plus(turn.interval(&self.policy, now) / 2) && sessions.len() < MOST {
                limit = limit.max(ask.limit);
                sessions.push(id.clone());
            }
        }
        turns.planned = soonest;
        if look > now && soonest.is_none_or(|soonest| soonest > now) {
            return (Vec::new(), 0);
        }
        turns.planned = None;
        for id in &sessions {
            if let Some(turn) = turns.of.get_mut(id) {
                turn.searched = Some(now);
            }
        }
        (sessions, limit)
    }

    fn answer(&self, sessions: &[SessionId], mut overview: Overview, now: Millis) {
        let mut turns = self.turns();
        for id in sessions {
            let Some(turn) = turns.of.get_mut(id) else { continue };
            let open = overview.open.remove(id);
            // One that found nothing is asked again, until the loop should look whether it has something else to do.
            let patience = self.policy.poll_idle;
            if let Some(ask) = turn.ask.take_if(|ask| open.is_some() || now.since(ask.since) >= patience) {
                let _ = ask.tell.send(Ok(open.unwrap_or_default()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> SessionId {
        SessionId::new(id).expect("short")
    }

    fn rounds() -> Rounds {
        Rounds::new(Policy { poll_busy: 20, busy_for: 5_000, poll: 100, poll_idle: 900, ..Policy::default() })
    }

    fn ask(rounds: &Rounds, of: &str, at: u64) -> oneshot::Receiver<Answer> {
        let (tell, told) = oneshot::channel();
        rounds.ask(&id(of), Ask { since: Millis(at), limit: 10, tell });
        told
    }

    fn begin(rounds: &Rounds, at: u64) -> Vec<String> {
        rounds.begin(Millis(at), Millis(u64::MAX)).0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sessions_without_work_share_a_search_whenever_they_asked_and_one_with_work_has_its_own() {
        let rounds = rounds();
        // Both have been idle since time 0.
        let (_a, _b) = (ask(&rounds, "a", 0), ask(&rounds, "b", 0));
        assert_eq!(begin(&rounds, 0), ["a", "b"]);
        assert_eq!(begin(&rounds, 100_000), ["a", "b"]);
        assert_eq!(begin(&rounds, 100_899), Vec::<String>::new());
        assert_eq!(rounds.turns().planned, Some(Millis(100_900)));
        rounds.worked(&id("b"), Millis(100_400));
        assert_eq!(begin(&rounds, 100_420), ["b"], "20 ms apart after work");
        assert_eq!(begin(&rounds, 100_439), Vec::<String>::new());
        assert_eq!(begin(&rounds, 100_440), ["b"]);
        assert_eq!(begin(&rounds, 100_460), ["a", "b"], "less than half its interval early");
        let _c = ask(&rounds, "c", 100_461);
        assert_eq!(begin(&rounds, 100_461), ["c"], "one that was never searched for does not wait");
    }

    #[test]
    fn who_asks_last_does_not_move_a_round_and_who_is_due_before_it_does() {
        let rounds = rounds();
        let _a = ask(&rounds, "a", 0);
        begin(&rounds, 100_000);
        begin(&rounds, 100_001);
        assert_eq!(rounds.turns().planned, Some(Millis(100_900)));
        let _a = ask(&rounds, "a", 100_002);
        assert_eq!(rounds.turns().planned, Some(Millis(100_900)));
        let _b = ask(&rounds, "b", 100_003);
        assert_eq!(rounds.turns().planned, Some(Millis(100_003)));
    }

    #[test]
    fn a_session_without_statements_is_answered_after_a_while_and_one_with_some_at_once() {
        let rounds = rounds();
        let (mut a, mut b) = (ask(&rounds, "a", 0), ask(&rounds, "b", 0));
        let sessions = [id("a"), id("b")];
        let seen = |ids: &[&str]| Overview {
            open: ids.iter().map(|name| (id(name), Open::default())).collect(),
            ..Overview::default()
        };
        rounds.answer(&sessions, seen(&["b"]), Millis(899));
        assert!(a.try_recv().is_err());
        assert_eq!(b.try_recv().expect("told"), Ok(Open::default()));
        rounds.answer(&sessions, seen(&[]), Millis(900));
        assert_eq!(a.try_recv().expect("told"), Ok(Open::default()));
    }

    #[test]
    fn a_session_that_was_left_is_searched_for_no_more() {
        let rounds = rounds();
        let (a, _b) = (ask(&rounds, "a", 0), ask(&rounds, "b", 0));
        drop(a);
        rounds.forget(&id("b"));
        assert_eq!(begin(&rounds, 0), Vec::<String>::new());
    }
}
