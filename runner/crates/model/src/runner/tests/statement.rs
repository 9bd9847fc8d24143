//! One statement, from its claim on.

use super::*;

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
fn writes_whose_answers_are_lost_again_and_again_are_sent_less_and_less_often_until_the_session_fails() {
    let served = "read-session create-session replay poll-every claim:a@5 plan run:a#1.102.1 stage:a#1.102.1 decide:a@102=success read:a";
    let lost = |world: World| {
        world
            .tell("decide", Input::Written(Err(Trouble::Unknown)))
            .tell("read", Input::Statement(Ok(Some(running("a", 102)))))
    };
    let mut world = World::serving(vec![waiting("a", 5)]);
    world.runner.policy.lease = u64::MAX;
    world = check(lost(lost(world)), &format!("{served} decide:a@102=success"));
    for wait in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
        world = lost(world);
        assert_eq!(world.runner.wake(), Some(world.now.plus(wait)));
        assert_eq!(world.later(wait, Input::Tick), "read:a decide:a@102=success");
    }
    let mut world = lost(world);
    assert_eq!(world.later(600_000, Input::Tick), "drop end=fail poll-every exit=1");
    // One that is answered makes the next one that is lost the first.
    let world = lost(World::serving(vec![waiting("a", 5)]));
    check(world, &format!("{served} decide:a@102=success publish:a#1.102.1 poll"));
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
