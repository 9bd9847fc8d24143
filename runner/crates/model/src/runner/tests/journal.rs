//! What a session is made of, when its owner changes.

use super::*;

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
