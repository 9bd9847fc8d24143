//! Stories: a world that answers every action well unless the story says otherwise, and the actions it was asked for.

use std::collections::VecDeque;

use super::*;
use crate::attempt::{Attempt, Kind};
use crate::failure::{Code, Failure, Stage};
use crate::ids::{JobId, QueryId, RunnerId, SessionId};
use crate::session::{Owner, Session, SessionState};
use crate::statement::{QueryText, StatementState};

fn at(seq_no: u64) -> Version {
    Version { term: 1, seq_no }
}

fn statement(name: &str, state: StatementState) -> Statement {
    Statement {
        id: StatementId::new(name).expect("short"),
        session: SessionId::new("s").expect("short"),
        query_id: Some(QueryId::new(format!("q-{name}")).expect("short")),
        lang: "sql".into(),
        query: QueryText("SELECT 1".into()),
        data_source: "d".into(),
        submit_time: 1,
        state,
    }
}

fn waiting(name: &str, seq_no: u64) -> Stored<Statement> {
    Stored { version: at(seq_no), value: statement(name, StatementState::Waiting) }
}

fn running(name: &str, seq_no: u64) -> Stored<Statement> {
    Stored { version: at(seq_no), value: statement(name, StatementState::Running { job: None }) }
}

fn owned_by(runner: &str, last_update: u64) -> Stored<Session> {
    Stored {
        version: at(2),
        value: Session {
            id: SessionId::new("s").expect("short"),
            state: SessionState::Running,
            data_source: "d".into(),
            application: String::new(),
            job: None,
            excluded: Vec::new(),
            owner: Some(Owner { runner: RunnerId::new(runner).expect("short"), lease_millis: 60_000 }),
            last_update,
            draining: false,
            recovering: false,
            error: String::new(),
        },
    }
}

fn me() -> Identity {
    Identity {
        runner: RunnerId::new("me").expect("short"),
        job: None,
        application: None,
        session: SessionId::new("s").expect("short"),
        data_source: "d".into(),
        excluded: Vec::new(),
        batch: None,
    }
}

/// A runner in a world. `told` are answers that the story gives instead of the good ones, each to the next action of its name.
struct World {
    runner: Runner,
    now: Millis,
    seq_no: u64,
    told: Vec<(&'static str, Input)>,
    hits: VecDeque<Vec<Stored<Statement>>>,
    kind: Kind,
    log: Vec<String>,
    /// Actions of these names stay unanswered.
    held: Vec<&'static str>,
}

impl World {
    fn new(me: Identity, policy: Policy) -> World {
        World {
            runner: Runner::new(me, policy),
            now: Millis(1_000),
            seq_no: 100,
            told: Vec::new(),
            hits: VecDeque::new(),
            kind: Kind::Read,
            log: Vec::new(),
            held: Vec::new(),
        }
    }

    fn serving(hits: Vec<Stored<Statement>>) -> World {
        let mut world = World::new(me(), Policy::default());
        world.hits.push_back(hits);
        world
    }

    fn tell(mut self, action: &'static str, input: Input) -> World {
        self.told.push((action, input));
        self
    }

    fn hold(mut self, action: &'static str) -> World {
        self.held.push(action);
        self
    }

    /// Plays from the start until nothing is on its way.
    fn play(&mut self) -> String {
        self.give(Input::Start)
    }

    /// Gives an input and answers what follows; returns the actions asked for since, notes left out.
    fn give(&mut self, input: Input) -> String {
        let mut inputs = VecDeque::from([input]);
        self.log.clear();
        while let Some(input) = inputs.pop_front() {
            for action in self.runner.step(input, self.now) {
                let name = name(&action);
                if !matches!(action, Action::Note(_)) {
                    self.log.push(shown(&action));
                }
                if self.held.contains(&name) {
                    continue;
                }
                let told = self.told.iter().position(|(n, _)| *n == name).map(|i| self.told.remove(i).1);
                inputs.extend(told.or_else(|| self.answer(&action)));
            }
            assert!(self.log.len() < 100, "it goes round and round: {:?}", self.log);
        }
        self.log.join(" ")
    }

    fn later(&mut self, millis: u64, input: Input) -> String {
        self.now = self.now.plus(millis);
        self.give(input)
    }

    fn answer(&mut self, action: &Action) -> Option<Input> {
        let mut version = || {
            self.seq_no += 1;
            at(self.seq_no)
        };
        Some(match action {
            Action::ReadSession => Input::Session(Ok(None)),
            Action::CreateSession(_) | Action::Own(..) => Input::Owned(self.now, Ok(version())),
            Action::Prove(_) => Input::Proved(self.now, Ok(version())),
            Action::EndSession(..) => Input::SessionEnded(Ok(version())),
            Action::Poll | Action::PollEvery => {
                Input::Open(Ok(Sight { statements: self.hits.pop_front().unwrap_or_default(), session: None }))
            }
            Action::ReadStatement(_) => Input::Statement(Ok(None)),
            Action::Write(..) | Action::Decide(..) => Input::Written(Ok(version())),
            Action::Examine(_) => Input::Examined(Ok(Beside::default())),
            Action::Count(..) => Input::Counted(Ok(())),
            Action::Plan(_) => Input::Planned(Ok(self.kind)),
            Action::Mark(..) => Input::Marked(Ok(())),
            Action::Run(..) => Input::Ran(Ok(())),
            Action::Stage(..) => Input::Staged(Ok(())),
            Action::Publish(..) | Action::PublishFailure(..) | Action::Settle(..) => Input::Published(Ok(())),
            Action::Replay => Input::Replayed(Ok(None)),
            Action::Void(..) => Input::Voided(Ok(())),
            Action::Discard(..) => Input::Discarded(Ok(())),
            Action::Look(_) | Action::Drop | Action::KeepDefine | Action::Taint | Action::Note(_) | Action::Exit(_) => {
                return None;
            }
        })
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::ReadSession => "read-session",
        Action::CreateSession(_) => "create-session",
        Action::Own(..) => "own",
        Action::Prove(_) => "prove",
        Action::EndSession(..) => "end",
        Action::Poll => "poll",
        Action::PollEvery => "poll-every",
        Action::ReadStatement(_) => "read",
        Action::Write(..) => "claim",
        Action::Decide(..) => "decide",
        Action::Examine(_) => "examine",
        Action::Count(..) => "count",
        Action::Plan(_) => "plan",
        Action::Mark(..) => "mark",
        Action::Run(..) => "run",
        Action::Look(_) => "look",
        Action::Drop => "drop",
        Action::Stage(..) => "stage",
        Action::Publish(..) => "publish",
        Action::PublishFailure(..) => "publish-failure",
        Action::Discard(..) => "discard",
        Action::Settle(..) => "settle",
        Action::Replay => "replay",
        Action::Void(..) => "void",
        Action::KeepDefine => "keep",
        Action::Taint => "taint",
        Action::Note(_) => "note",
        Action::Exit(_) => "exit",
    }
}

fn shown(action: &Action) -> String {
    let name = name(action);
    match action {
        Action::Write(s, v, _) => format!("{name}:{}@{}", s.id, v.seq_no),
        Action::Run(s, a) | Action::Stage(s, a) | Action::Publish(s, a) | Action::Discard(s, a) => {
            format!("{name}:{}#{a}", s.id)
        }
        Action::Decide(s, v, _, verdict) => {
            let verdict = match verdict {
                Verdict::Success => "success".to_owned(),
                Verdict::Release => "release".to_owned(),
                Verdict::Failed(Fault::Timeout) => "timeout".to_owned(),
                Verdict::Failed(Fault::WaitTimeout) => "wait-timeout".to_owned(),
                Verdict::Failed(Fault::SessionEnded) => "session-ended".to_owned(),
                Verdict::Failed(Fault::Failure(f)) => f.code.as_str().to_owned(),
            };
            format!("{name}:{}@{}={verdict}", s.id, v.seq_no)
        }
        Action::Settle(s, _) => format!("{name}:{}={}", s.id, s.state.name()),
        Action::ReadStatement(id) => format!("{name}:{id}"),
        Action::Count(_, n, _) => format!("{name}={n}"),
        Action::EndSession(_, change) => format!(
            "{name}={}",
            match change {
                SessionChange::End => "dead",
                SessionChange::Fail { .. } => "fail",
                SessionChange::GiveUp => "given-up",
                _ => "?",
            }
        ),
        Action::Exit(exit) => format!("{name}={}", exit.code),
        _ => name.to_owned(),
    }
}

fn check(mut world: World, expected: &str) -> World {
    assert_eq!(world.play(), expected);
    world
}

#[test]
fn a_read_costs_claim_stage_decide_and_publish() {
    check(
        World::serving(vec![waiting("a", 5), waiting("b", 6)]),
        "read-session create-session replay poll-every \
         claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 \
         claim:b@6 plan run:b#1.104.1 stage:b#1.104.1 decide:b@104=success publish:b#1.104.1 poll",
    );
}

#[test]
fn a_write_begins_after_its_marker_a_proof_of_the_lease_and_a_look_at_its_claim() {
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.kind = Kind::Write;
    let world = world.tell("read", Input::Statement(Ok(Some(running("a", 102)))));
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan mark prove read:a run:a#1.102.1 stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 poll",
    );
}

#[test]
fn a_write_whose_claim_is_gone_when_looked_at_never_begins() {
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.kind = Kind::Write;
    let cancelled = Stored { version: at(140), value: statement("a", StatementState::Cancelled) };
    let world = world.tell("read", Input::Statement(Ok(Some(cancelled))));
    check(world, "read-session create-session replay poll-every claim:a@5 plan mark prove read:a drop poll");
}

#[test]
fn a_define_is_kept_when_it_is_decided_and_voided_when_it_is_overruled() {
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.kind = Kind::Define;
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success keep publish:a#1.102.1 poll",
    );
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.kind = Kind::Define;
    let cancelled = Stored { version: at(140), value: statement("a", StatementState::Cancelled) };
    let world = world
        .tell("decide", Input::Written(Err(Trouble::Conflict)))
        .tell("read", Input::Statement(Ok(Some(cancelled))));
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success read:a drop taint void settle:a=cancelled poll",
    );
}

#[test]
fn a_statement_whose_claim_was_refused_is_read_before_a_younger_one_is_looked_at() {
    let world = World::serving(vec![waiting("a", 5), waiting("b", 6)])
        .tell("claim", Input::Written(Err(Trouble::Conflict)))
        .tell("read", Input::Statement(Ok(Some(waiting("a", 9)))))
        .hold("plan");
    check(world, "read-session create-session replay poll-every claim:a@5 read:a claim:a@9 plan");
    let done = Stored { version: at(9), value: statement("a", StatementState::Success) };
    let world = World::serving(vec![waiting("a", 5), waiting("b", 6)])
        .tell("claim", Input::Written(Err(Trouble::Conflict)))
        .tell("read", Input::Statement(Ok(Some(done))))
        .hold("plan");
    check(world, "read-session create-session replay poll-every claim:a@5 read:a claim:b@6 plan");
}

#[test]
fn a_claim_whose_answer_was_lost_is_adopted_under_a_new_version_after_the_session_was_read() {
    let world = World::serving(vec![waiting("a", 5)])
        .tell("read-session", Input::Session(Ok(None)))
        .tell("claim", Input::Written(Err(Trouble::Unknown)))
        .tell("read-session", Input::Session(Ok(Some(owned_by("me", 0)))))
        .tell("read", Input::Statement(Ok(Some(running("a", 7)))))
        .hold("plan");
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 read-session read:a claim:a@7 examine count=2 plan",
    );
    let world = World::serving(vec![waiting("a", 5)])
        .tell("read-session", Input::Session(Ok(None)))
        .tell("claim", Input::Written(Err(Trouble::Unknown)))
        .tell("read-session", Input::Session(Ok(Some(owned_by("other", 0)))));
    check(world, "read-session create-session replay poll-every claim:a@5 read-session drop exit=0");
}

#[test]
fn a_statement_that_another_left_running_is_adopted_or_settled_by_what_is_beside_it() {
    let beside = |marker, attempts| Beside { marker, attempts, companion: Some(at(3)), candidate: None };
    let marker = Attempt { claim: at(7), n: 1 };
    for (beside, expected) in [
        (beside(None, 1), "examine count=2 plan run:a#1.102.1"),
        (beside(None, 2), "examine count=3 plan run:a#1.102.1"),
        (beside(None, 3), "examine drop decide:a@102=TOO_MANY_ATTEMPTS settle:a=failed poll"),
        (beside(Some(marker), 1), "examine drop decide:a@102=INTERRUPTED settle:a=failed poll"),
    ] {
        let world = World::serving(vec![running("a", 7)])
            .tell("read", Input::Statement(Ok(Some(running("a", 7)))))
            .tell("examine", Input::Examined(Ok(beside)))
            .hold("run");
        check(world, &format!("read-session create-session replay poll-every read:a claim:a@7 {expected}"));
    }
}

#[test]
fn a_decision_whose_answer_was_lost_counts_by_the_candidate_and_nothing_else() {
    let success = Stored { version: at(150), value: statement("a", StatementState::Success) };
    let candidate = |n| Beside { candidate: Some(Attempt { claim: at(102), n }), ..Beside::default() };
    for (beside, end) in [(candidate(1), "publish:a#1.102.1"), (candidate(2), "drop settle:a=success")] {
        let world = World::serving(vec![waiting("a", 5)])
            .tell("decide", Input::Written(Err(Trouble::Unknown)))
            .tell("read", Input::Statement(Ok(Some(success.clone()))))
            .tell("examine", Input::Examined(Ok(beside)));
        check(
            world,
            &format!(
                "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success read:a examine {end} poll"
            ),
        );
    }
}

#[test]
fn a_decision_that_was_not_applied_is_sent_again() {
    let world = World::serving(vec![waiting("a", 5)])
        .tell("decide", Input::Written(Err(Trouble::Unknown)))
        .tell("read", Input::Statement(Ok(Some(running("a", 102)))));
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success read:a decide:a@102=success publish:a#1.102.1 poll",
    );
}

#[test]
fn a_cancelled_statement_is_stopped_at_the_next_look_and_leaves_nothing() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(200, Input::Tick), "look");
    let cancelled = Stored { version: at(140), value: statement("a", StatementState::Cancelled) };
    let seen = Watched { statement: Some(cancelled), session: Some(owned_by("me", 0)), timeout: None };
    assert_eq!(world.give(Input::Watched(Ok(seen))), "drop settle:a=cancelled poll");
}

#[test]
fn a_look_that_shows_another_owner_abandons_everything() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(200, Input::Tick), "look");
    let seen = Watched { statement: Some(running("a", 150)), session: Some(owned_by("other", 0)), timeout: None };
    assert_eq!(world.give(Input::Watched(Ok(seen))), "drop exit=0");
}

#[test]
fn a_statement_that_a_runner_which_woke_too_late_took_back_is_adopted_from_it() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(200, Input::Tick), "look");
    let seen = Watched { statement: Some(running("a", 150)), session: Some(owned_by("me", 0)), timeout: None };
    world.hits.extend([vec![waiting("a", 5), running("b", 6)], vec![running("a", 150)]]);
    let mut world =
        world.tell("read", Input::Statement(Ok(None))).tell("read", Input::Statement(Ok(Some(running("a", 150)))));
    assert_eq!(
        world.give(Input::Watched(Ok(seen))),
        "drop discard:a#1.102.1 poll read:b poll read:a claim:a@150 examine count=2 plan run:a#1.103.1",
        "the first hit of it is older than the claim and says nothing new"
    );
}

#[test]
fn a_statement_that_runs_too_long_is_stopped_and_fails_with_timeout() {
    let mut world = World::serving(vec![waiting("a", 5)]).hold("run");
    world.runner.policy.lease = u64::MAX;
    let mut world = check(world, "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1");
    assert_eq!(world.later(599_999, Input::Tick), "look");
    assert_eq!(world.later(1, Input::Tick), "drop decide:a@102=timeout settle:a=failed poll");
}

#[test]
fn a_statements_own_timeout_holds_if_it_is_shorter() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(200, Input::Tick), "look");
    let seen = Watched { statement: Some(running("a", 102)), session: Some(owned_by("me", 0)), timeout: Some(1_000) };
    assert_eq!(world.give(Input::Watched(Ok(seen))), "");
    assert_eq!(world.later(800, Input::Tick), "drop decide:a@102=timeout settle:a=failed poll");
}

#[test]
fn a_statement_that_waited_too_long_is_failed_not_run() {
    let mut world = World::serving(Vec::new());
    world.runner.policy.wait_timeout = 500;
    let mut world = check(world.hold("plan"), "read-session create-session replay poll-every");
    world.hits.push_back(vec![waiting("a", 5), waiting("b", 6)]);
    assert_eq!(world.later(20, Input::Tick), "poll claim:a@5 plan", "waiting is counted from the first sight of it");
    world.held.clear();
    world.hits.push_back(vec![waiting("b", 6)]);
    let done = world.later(600, Input::Planned(Ok(Kind::Read)));
    assert_eq!(
        done,
        "run:a#1.102.1 stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 decide:b@6=wait-timeout publish-failure poll"
    );
}

#[test]
fn a_statement_without_a_query_id_is_refused() {
    let mut hit = waiting("a", 5);
    hit.value.query_id = None;
    check(
        World::serving(vec![hit]),
        "read-session create-session replay poll-every decide:a@5=BAD_STATEMENT publish-failure poll",
    );
}

#[test]
fn a_read_whose_worker_died_runs_once_more_and_then_fails_with_the_reason() {
    let died = || Input::Ran(Err(RunTrouble::Died { why: "signal 9".into() }));
    let world = World::serving(vec![waiting("a", 5)]).tell("run", died());
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 drop examine count=2 plan run:a#1.102.2 stage:a#1.102.2 decide:a@102=success settle:a=success poll",
    );
    let world = World::serving(vec![waiting("a", 5)]).tell("run", died()).tell("run", died());
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 drop examine count=2 plan run:a#1.102.2 drop decide:a@102=WORKER_DIED settle:a=failed poll",
    );
}

#[test]
fn a_write_whose_worker_died_is_interrupted() {
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.kind = Kind::Write;
    let world = world
        .tell("read", Input::Statement(Ok(Some(running("a", 102)))))
        .tell("run", Input::Ran(Err(RunTrouble::Died { why: "signal 9".into() })));
    check(
        world,
        "read-session create-session replay poll-every claim:a@5 plan mark prove read:a run:a#1.102.1 drop decide:a@102=INTERRUPTED settle:a=failed poll",
    );
}

#[test]
fn what_cannot_be_staged_fails_the_statement_with_the_reason() {
    let refused = Failure::new(Code::ResultWrite, Stage::Result, "result write failed: x");
    for (trouble, code) in [
        (StageTrouble::Refused(refused), "RESULT_WRITE_FAILED"),
        (StageTrouble::DuplicateQueryId, "DUPLICATE_QUERY_ID"),
    ] {
        let world = World::serving(vec![waiting("a", 5)]).tell("stage", Input::Staged(Err(trouble)));
        check(
            world,
            &format!(
                "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 drop decide:a@102={code} settle:a=failed poll"
            ),
        );
    }
}

#[test]
fn without_its_lease_a_runner_begins_and_decides_nothing_but_keeps_a_running_read() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(60_000, Input::Ran(Ok(()))), "", "nor stages it: a successor may have published its own");
    let sent = world.now;
    world.runner.lease().expect("owned").renewed(sent, at(200));
    assert_eq!(world.later(200, Input::Tick), "stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 poll");
}

#[test]
fn an_idle_session_ends_after_a_complete_search_that_finds_nothing() {
    let mut world = World::serving(Vec::new());
    world.runner.policy.lease = u64::MAX;
    let mut world = check(world, "read-session create-session replay poll-every");
    assert_eq!(world.later(599_999, Input::Tick), "poll");
    world.hits.push_back(vec![waiting("a", 5)]);
    assert_eq!(
        world.later(1_001, Input::Tick),
        "poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 poll",
        "a statement that the last search finds is served"
    );
    assert_eq!(world.later(600_000, Input::Tick), "poll-every end=dead poll-every exit=0");
}

#[test]
fn a_stop_lets_the_statement_finish_within_its_grace_time() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.give(Input::Stop), "");
    assert_eq!(
        world.later(100, Input::Ran(Ok(()))),
        "stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 end=dead poll-every exit=0"
    );

    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.give(Input::Stop), "");
    assert_eq!(
        world.later(20_000, Input::Tick),
        "drop decide:a@102=RUNNER_STOPPED settle:a=failed end=dead poll-every exit=0"
    );

    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.give(Input::Stop), "");
    assert_eq!(world.give(Input::Stop), "drop exit=1", "the second stop is at once");
}

#[test]
fn a_handover_releases_a_read_before_the_lease() {
    let mut world = World::serving(vec![waiting("a", 5)]).hold("run");
    world.runner.policy.on_stop = OnStop::Handover;
    let mut world = check(world, "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1");
    assert_eq!(world.give(Input::Stop), "drop decide:a@102=release end=given-up exit=0");
}

#[test]
fn a_session_of_another_is_taken_only_after_its_whole_lease_in_silence() {
    let other = |last_update| Input::Session(Ok(Some(owned_by("other", last_update))));
    let mut world = World::new(me(), Policy::default()).tell("read-session", other(1));
    assert_eq!(world.play(), "read-session");
    let mut world = world.tell("read-session", other(1));
    assert_eq!(world.later(59_999, Input::Tick), "read-session", "not yet");
    let mut world = world.tell("read-session", other(1));
    assert_eq!(world.later(3_000, Input::Tick), "read-session own replay poll-every");
}

#[test]
fn a_session_that_is_renewed_is_left_or_waited_for() {
    let other = |last_update| Input::Session(Ok(Some(owned_by("other", last_update))));
    for (standby, expected) in [(false, "read-session exit=0"), (true, "read-session")] {
        let mut world = World::new(me(), Policy { standby, ..Policy::default() }).tell("read-session", other(1));
        assert_eq!(world.play(), "read-session");
        let mut world = world.tell("read-session", other(2));
        assert_eq!(world.later(30_000, Input::Tick), expected);
    }
}

#[test]
fn a_session_that_is_over_or_excludes_this_job_is_left() {
    let mut dead = owned_by("other", 1);
    dead.value.state = SessionState::Dead;
    let mut excludes = owned_by("other", 1);
    excludes.value.excluded = vec![JobId::new("j1").expect("short")];
    let j1 = || JobId::new("j1").expect("short");
    for (session, excluded) in [(dead, vec![]), (excludes, vec![]), (owned_by("other", 1), vec![j1()])] {
        let me = Identity { job: Some(j1()), excluded, ..me() };
        let mut world = World::new(me, Policy::default()).tell("read-session", Input::Session(Ok(Some(session))));
        assert_eq!(world.play(), "read-session exit=0");
    }
}

#[test]
fn a_launched_job_creates_nothing_and_waits_for_its_session_for_a_while() {
    let me = Identity { job: Some(JobId::new("j1").expect("short")), ..me() };
    let mut world = World::new(me, Policy::default());
    assert_eq!(world.play(), "read-session");
    assert_eq!(world.later(59_000, Input::Tick), "read-session");
    assert_eq!(world.later(1_000, Input::Tick), "read-session exit=1");
}

/// What a takeover finds: the journal ends with a define of `a` under this attempt, which its runner did not decide.
fn pending(attempt: Attempt) -> World {
    let id = StatementId::new("a").expect("short");
    World::serving(vec![waiting("older", 4), running("a", 5)])
        .tell("replay", Input::Replayed(Ok(Some((id, attempt)))))
        .tell("read", Input::Statement(Ok(Some(running("a", 7)))))
}

#[test]
fn a_define_that_a_predecessor_journalled_succeeds_without_being_run_again_before_anything_else_is_served() {
    let attempt = Attempt { claim: at(5), n: 1 };
    check(
        pending(attempt).tell(
            "examine",
            Input::Examined(Ok(Beside { attempts: 1, candidate: Some(attempt), ..Beside::default() })),
        ),
        "read-session create-session replay poll-every read:a claim:a@7 examine decide:a@102=success keep settle:a=success \
         claim:older@4 plan run:older#1.104.1 stage:older#1.104.1 decide:older@104=success publish:older#1.104.1 poll",
    );
}

#[test]
fn a_journalled_define_whose_result_is_another_attempts_leaves_the_journal_before_it_is_run_again() {
    let attempt = Attempt { claim: at(5), n: 1 };
    let beside = || Beside { attempts: 1, ..Beside::default() };
    check(
        pending(attempt)
            .tell("examine", Input::Examined(Ok(beside())))
            .tell("examine", Input::Examined(Ok(beside())))
            .hold("run"),
        "read-session create-session replay poll-every read:a claim:a@7 examine void examine count=2 plan run:a#1.102.1",
    );
}

#[test]
fn a_journalled_define_that_was_cancelled_meanwhile_has_the_journal_read_again() {
    let attempt = Attempt { claim: at(5), n: 1 };
    let mut world = pending(attempt);
    world.told.pop();
    world.hits.push_back(vec![waiting("older", 4)]);
    let cancelled = Stored { version: at(8), value: statement("a", StatementState::Cancelled) };
    check(
        world.tell("read", Input::Statement(Ok(Some(cancelled)))).hold("run"),
        "read-session create-session replay poll-every read:a replay poll-every claim:older@4 plan run:older#1.102.1",
    );
}

#[test]
fn a_kept_define_that_is_cancelled_at_the_last_moment_leaves_the_journal_and_its_worker() {
    let attempt = Attempt { claim: at(5), n: 1 };
    let cancelled = Stored { version: at(9), value: statement("a", StatementState::Cancelled) };
    check(
        pending(attempt)
            .tell("examine", Input::Examined(Ok(Beside { candidate: Some(attempt), ..Beside::default() })))
            .tell("decide", Input::Written(Err(Trouble::Conflict)))
            .tell("read", Input::Statement(Ok(Some(cancelled))))
            .hold("run"),
        "read-session create-session replay poll-every read:a claim:a@7 examine decide:a@102=success read:a \
         drop taint void settle:a=cancelled claim:older@4 plan run:older#1.103.1",
    );
}

#[test]
fn a_journal_written_by_another_owner_has_the_session_read_and_nothing_decided() {
    for (action, answer, before) in [
        (
            "stage",
            Input::Staged(Err(StageTrouble::Fenced)),
            "replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1",
        ),
        ("replay", Input::Replayed(Err(Trouble::Conflict)), "replay"),
    ] {
        let mut world = World::serving(vec![waiting("a", 5)]).tell(action, answer);
        world.kind = Kind::Define;
        let mut world = check(world, &format!("read-session create-session {before}"));
        let now = world.now;
        let lease = world.runner.lease().expect("owned");
        assert_eq!(lease.beat(now), crate::lease::Beat::Read, "{action}");
        lease.seen(Some(&owned_by("other", 9)), now);
        let dropped = if action == "stage" { "drop exit=0" } else { "exit=0" };
        assert_eq!(world.give(Input::LeaseChanged), dropped, "{action}");
    }
}

#[test]
fn a_journal_that_cannot_be_read_gives_the_session_up_and_ends_no_session() {
    check(
        World::serving(Vec::new()).tell("replay", Input::Replayed(Err(Trouble::Corrupt))),
        "read-session create-session replay end=given-up exit=1",
    );
    let mut world = check(
        World::serving(Vec::new()).tell("replay", Input::Replayed(Err(Trouble::Unavailable))),
        "read-session create-session replay",
    );
    assert_eq!(world.later(50, Input::Tick), "replay poll-every", "a store that was away is asked again");
}

#[test]
fn a_batch_job_ends_with_its_statement_and_its_exit_code() {
    for (state, code) in [
        (StatementState::Success, 0),
        (StatementState::Failed { error: "x".into() }, 1),
        (StatementState::Cancelled, 1),
    ] {
        let batch = Identity { batch: Some(StatementId::new("a").expect("short")), ..me() };
        let mut world = World::new(batch, Policy::default());
        world.hits.push_back(vec![waiting("a", 5)]);
        world.hits.push_back(vec![Stored { version: at(9), value: statement("a", state) }]);
        check(
            world,
            &format!(
                "read-session create-session poll claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success settle:a=success poll end=dead exit={code}"
            ),
        );
    }
}

#[test]
fn what_a_dead_runner_decided_of_a_batch_is_published_before_the_batch_ends() {
    let batch = Identity { batch: Some(StatementId::new("a").expect("short")), ..me() };
    let mut world = World::new(batch, Policy::default());
    let done = Stored { version: at(9), value: statement("a", StatementState::Success) };
    world.hits.extend([vec![done.clone()], vec![done]]);
    let mut world = world.tell("settle", Input::Published(Err(Trouble::Unavailable)));
    assert_eq!(world.play(), "read-session create-session poll settle:a=success");
    assert_eq!(world.later(5_000, Input::Tick), "settle:a=success poll end=dead exit=0");
}

#[test]
fn a_lost_answer_to_the_sessions_end_is_read_about() {
    let mut world = World::serving(Vec::new());
    world.runner.policy.lease = u64::MAX;
    let world = check(world, "read-session create-session replay poll-every");
    let mut dead = owned_by("me", 0);
    dead.value.state = SessionState::Dead;
    let mut world = world
        .tell("end", Input::SessionEnded(Err(Trouble::Unknown)))
        .tell("read-session", Input::Session(Ok(Some(dead))));
    assert_eq!(world.give(Input::Stop), "end=dead read-session exit=0");
    world.hits.clear();
}

#[test]
fn what_is_left_in_an_ended_session_may_be_recovered_for_a_while_and_is_then_failed() {
    let mut world = check(World::serving(Vec::new()), "read-session create-session replay poll-every");
    world.hits.push_back(vec![waiting("a", 5), waiting("b", 6)]);
    assert_eq!(world.give(Input::Stop), "end=dead poll-every");
    assert_eq!(world.runner.wake(), Some(world.now.plus(30_000)));
    assert_eq!(world.later(29_999, Input::Tick), "");
    world.hits.push_back(vec![waiting("a", 5), waiting("b", 6)]);
    let mut world = world.tell("decide", Input::Written(Err(Trouble::Conflict)));
    assert_eq!(
        world.later(1, Input::Tick),
        "poll-every decide:a@5=session-ended decide:b@6=session-ended settle:b=failed exit=0",
        "one that somebody moved meanwhile is theirs"
    );

    let mut world = check(World::serving(Vec::new()), "read-session create-session replay poll-every");
    world.hits.push_back(vec![waiting("a", 5)]);
    assert_eq!(world.give(Input::Stop), "end=dead poll-every");
    assert_eq!(world.give(Input::Stop), "exit=0", "a second stop ends the sweep, the session is ended already");
}

#[test]
fn a_session_that_another_ended_is_swept_by_its_runner() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]).hold("run"),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1",
    );
    assert_eq!(world.later(200, Input::Tick), "look");
    let mut dead = owned_by("me", 0);
    dead.value.state = SessionState::Dead;
    world.hits.push_back(vec![running("a", 102)]);
    let seen = Watched { statement: Some(running("a", 102)), session: Some(dead), timeout: None };
    assert_eq!(world.give(Input::Watched(Ok(seen))), "drop poll-every");
    world.hits.push_back(vec![running("a", 102)]);
    assert_eq!(
        world.later(30_000, Input::Tick),
        "poll-every examine decide:a@102=session-ended settle:a=failed exit=0"
    );
}

#[test]
fn polls_come_quickly_after_work_and_slowly_after_a_minute_without() {
    let mut world = check(
        World::serving(vec![waiting("a", 5)]),
        "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success publish:a#1.102.1 poll",
    );
    world.runner.policy.inactivity = u64::MAX;
    world.runner.lease().expect("owned").renewed(Millis(1_000_000), at(200));
    for (idle, interval) in [(0, 20), (5_000, 100), (60_000, 900)] {
        world.now = Millis(1_000 + idle);
        world.give(Input::Tick);
        assert_eq!(world.runner.wake(), Some(world.now.plus(interval)), "after {idle} ms");
    }
}
