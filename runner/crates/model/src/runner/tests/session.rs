//! Whose session it is, which statement is next, and how it ends.

use super::*;

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
fn a_standby_that_has_watched_for_long_takes_one_failed_read_for_no_more_than_that() {
    let mut world = World::new(me(), Policy { standby: true, ..Policy::default() });
    for last_update in 0..2_000 {
        world = world.tell("read-session", Input::Session(Ok(Some(owned_by("other", last_update)))));
        assert_eq!(world.later(3_000, if last_update == 0 { Input::Start } else { Input::Tick }), "read-session");
    }
    for _ in 0..3 {
        world = world.tell("read-session", Input::Session(Err(Trouble::Unavailable)));
        assert_eq!(world.later(3_000, Input::Tick), "read-session", "no exit, after 100 minutes");
    }
    let mut world = world.tell("read-session", Input::Session(Err(Trouble::Unavailable)));
    assert_eq!(world.later(600_000, Input::Tick), "read-session exit=1", "out of reach for too long");
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
        .tell("end", Input::SessionEnded(Err(Trouble::Conflict)))
        .tell("read-session", Input::Session(Ok(Some(dead))));
    assert_eq!(world.give(Input::Stop), "end=dead");
    assert_eq!(world.later(50, Input::Tick), "end=dead read-session exit=0", "sent again, it is refused");
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
