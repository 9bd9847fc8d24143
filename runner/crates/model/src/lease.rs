//! A runner's right to a session, renewed by heartbeats.
//!
//! The lease runs from the *sending* of the last renewal that was acknowledged. When it has run out the runner
//! claims, decides and begins nothing, but goes on trying: still its own, it is renewed and work resumes.

use crate::ids::{JobId, RunnerId};
use crate::policy::Policy;
use crate::session::Session;
use crate::version::{Millis, Stored, Version};

/// Why a lease will not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Another runner owns the session.
    Taken,
    /// The session is `dead` or `fail`.
    Ended,
    /// The session excludes this job.
    Excluded,
    /// The session's document is gone.
    Gone,
    /// The store has been out of reach for too long.
    Unreachable,
}

/// What the heart does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing before then.
    Wait(Millis),
    /// Renew, expecting this version.
    Renew(Version),
    /// Read the session, then look again.
    Read,
    /// Nothing ever again.
    Stop,
}

/// The lease of one runner on one session. Shared by the loop, which asks, and the heart, which renews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    runner: RunnerId,
    job: Option<JobId>,
    version: Version,
    renewed: Millis,
    length: u64,
    interval: u64,
    due: Millis,
    doubtful: bool,
    silent_since: Option<Millis>,
    unreachable: u64,
    retry: u64,
    lost: Option<Lost>,
    over: bool,
}

impl Lease {
    /// A lease just taken: the write that took it was sent at `sent` and got `version`.
    #[must_use]
    pub fn taken(runner: RunnerId, job: Option<JobId>, policy: &Policy, sent: Millis, version: Version) -> Lease {
        Lease {
            runner,
            job,
            version,
            renewed: sent,
            length: policy.lease,
            interval: policy.heartbeat,
            due: sent.plus(policy.first_heartbeat.min(policy.heartbeat)),
            doubtful: false,
            silent_since: None,
            unreachable: policy.unreachable,
            retry: policy.retry_max.min(policy.heartbeat / 4).max(1),
            lost: None,
            over: false,
        }
    }

    /// The runner may claim, decide and begin.
    #[must_use]
    pub fn holds(&self, now: Millis) -> bool {
        self.lost.is_none() && !self.over && now.since(self.renewed) < self.length
    }

    /// Why it is lost for good, if it is.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// The last version seen of the session's document.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The runner ends or gives up the session itself: the heart stops.
    pub fn finish(&mut self) {
        self.over = true;
    }

    /// What the heart does at `now`.
    #[must_use]
    pub fn beat(&self, now: Millis) -> Beat {
        if self.lost.is_some() || self.over {
            Beat::Stop
        } else if now < self.due {
            Beat::Wait(self.due)
        } else if self.doubtful {
            Beat::Read
        } else {
            Beat::Renew(self.version)
        }
    }

    /// A renewal sent at `sent` was acknowledged.
    pub fn renewed(&mut self, sent: Millis, version: Version) {
        self.renewed = self.renewed.max(sent);
        self.version = self.version.max(version);
        self.due = sent.plus(self.interval);
        self.doubtful = false;
        self.silent_since = None;
    }

    /// A renewal was refused: read before the next.
    pub fn doubted(&mut self, now: Millis) {
        self.doubtful = true;
        self.due = now;
    }

    /// A search saw the session like this. If that is news and means that the lease is lost, says so and has the session read:
    /// a search is never decided on.
    pub fn hinted(&mut self, session: &Stored<Session>, now: Millis) -> bool {
        let news = session.version > self.version && self.judged(Some(session)).is_some();
        if news {
            self.doubted(now);
        }
        news
    }

    /// What a session's document says of this lease.
    fn judged(&self, session: Option<&Stored<Session>>) -> Option<Lost> {
        let Some(session) = session.map(|s| &s.value) else { return Some(Lost::Gone) };
        if session.state.is_ended() {
            Some(Lost::Ended)
        } else if self.job.as_ref().is_some_and(|job| session.excluded.contains(job)) {
            Some(Lost::Excluded)
        } else if session.owner.as_ref().map(|o| &o.runner) != Some(&self.runner) {
            Some(Lost::Taken)
        } else {
            None
        }
    }

    /// The store did not answer, or does not write: what ends this is a renewal, not a read.
    pub fn silent(&mut self, now: Millis) {
        let since = *self.silent_since.get_or_insert(now);
        self.doubtful = true;
        self.due = now.plus(self.retry);
        if now.since(since) >= self.unreachable {
            self.lost = Some(Lost::Unreachable);
        }
    }

    /// The answer to a renewal was lost: read before the next, at once the first time and after a while when that happens again and again.
    pub fn unanswered(&mut self, now: Millis) {
        let first = self.silent_since.is_none();
        self.silent(now);
        if first {
            self.due = now;
        }
    }

    /// The session was read: it tells whose it is, and at which version the next renewal may be tried.
    pub fn seen(&mut self, session: Option<&Stored<Session>>, now: Millis) {
        self.lost = self.lost.or(self.judged(session));
        if let Some(session) = session.filter(|_| self.lost.is_none()) {
            self.version = self.version.max(session.version);
        }
        if self.doubtful {
            self.doubtful = false;
            self.due = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SessionId;
    use crate::session::{Owner, SessionState};

    fn runner(name: &str) -> RunnerId {
        RunnerId::new(name).expect("short")
    }

    fn at(seq_no: u64) -> Version {
        Version { term: 1, seq_no }
    }

    fn lease() -> Lease {
        Lease::taken(runner("me"), None, &Policy::default(), Millis(1_000), at(5))
    }

    fn session(owner: &str, state: SessionState, seq_no: u64) -> Stored<Session> {
        Stored {
            version: at(seq_no),
            value: Session {
                state,
                owner: Some(Owner { runner: runner(owner), lease_millis: 60_000 }),
                ..Session::new(SessionId::new("s").expect("short"), "d")
            },
        }
    }

    #[test]
    fn the_first_beat_comes_early_and_the_rest_at_the_interval() {
        let mut l = lease();
        assert_eq!(l.beat(Millis(1_000)), Beat::Wait(Millis(4_000)));
        assert_eq!(l.beat(Millis(4_000)), Beat::Renew(at(5)));
        l.renewed(Millis(4_000), at(6));
        assert_eq!(l.beat(Millis(4_100)), Beat::Wait(Millis(24_000)));
    }

    #[test]
    fn a_lease_runs_from_the_sending_and_resumes_when_renewed() {
        let mut l = lease();
        assert!(l.holds(Millis(60_999)));
        assert!(!l.holds(Millis(61_000)), "60 s after it was sent, not after it was answered");
        l.renewed(Millis(70_000), at(9));
        assert!(l.holds(Millis(129_999)));
    }

    #[test]
    fn a_refused_beat_is_read_about_and_tried_again_at_the_new_version() {
        let mut l = lease();
        l.doubted(Millis(4_000));
        assert_eq!(l.beat(Millis(4_000)), Beat::Read);
        l.seen(Some(&session("me", SessionState::Running, 8)), Millis(4_001));
        assert_eq!(l.beat(Millis(4_001)), Beat::Renew(at(8)));
    }

    #[test]
    fn answers_that_are_lost_again_and_again_slow_the_beat_down_and_count_as_silence() {
        let mut l = lease();
        l.unanswered(Millis(4_000));
        assert_eq!(l.beat(Millis(4_000)), Beat::Read);
        l.seen(Some(&session("me", SessionState::Running, 5)), Millis(4_001));
        assert_eq!(l.beat(Millis(4_001)), Beat::Renew(at(5)));
        l.unanswered(Millis(4_002));
        assert_eq!(l.beat(Millis(4_002)), Beat::Wait(Millis(9_002)));
        l.unanswered(Millis(604_000));
        assert_eq!(l.lost(), Some(Lost::Unreachable));
    }

    #[test]
    fn what_the_read_says_ends_it() {
        for (seen, lost) in [
            (None, Lost::Gone),
            (Some(session("other", SessionState::Running, 8)), Lost::Taken),
            (Some(session("me", SessionState::Dead, 8)), Lost::Ended),
            (Some(session("me", SessionState::Fail, 8)), Lost::Ended),
        ] {
            let mut l = lease();
            l.seen(seen.as_ref(), Millis(4_000));
            assert_eq!((l.lost(), l.beat(Millis(4_000)), l.holds(Millis(4_000))), (Some(lost), Beat::Stop, false));
        }
    }

    #[test]
    fn a_search_that_shows_it_lost_is_read_about_unless_it_is_old() {
        let mut l = lease();
        assert!(!l.hinted(&session("other", SessionState::Running, 4), Millis(2_000)), "older than the lease itself");
        assert!(!l.hinted(&session("me", SessionState::Running, 9), Millis(2_000)));
        assert_eq!(l.beat(Millis(2_000)), Beat::Wait(Millis(4_000)));
        assert!(l.hinted(&session("me", SessionState::Dead, 9), Millis(2_000)));
        assert_eq!((l.beat(Millis(2_000)), l.lost()), (Beat::Read, None), "not lost before it was read");
    }

    #[test]
    fn a_store_out_of_reach_for_too_long_ends_it() {
        let mut l = lease();
        l.silent(Millis(4_000));
        assert_eq!(l.beat(Millis(4_000)), Beat::Wait(Millis(9_000)));
        l.silent(Millis(603_999));
        assert_eq!(l.lost(), None);
        l.silent(Millis(604_000));
        assert_eq!(l.lost(), Some(Lost::Unreachable));
    }

    #[test]
    fn a_store_that_is_read_but_not_written_for_too_long_ends_it() {
        let mut l = lease();
        for now in (4_000..604_000).step_by(5_000) {
            l.silent(Millis(now));
            l.seen(Some(&session("me", SessionState::Running, 5)), Millis(now));
            assert_eq!((l.lost(), l.beat(Millis(now))), (None, Beat::Renew(at(5))), "{now}");
        }
        l.silent(Millis(604_000));
        assert_eq!(l.lost(), Some(Lost::Unreachable));
        let mut l = lease();
        l.silent(Millis(4_000));
        l.renewed(Millis(600_000), at(6));
        l.silent(Millis(604_000));
        assert_eq!(l.lost(), None, "a renewal begins the time anew");
    }
}
