//! Nobody gets more than there is, whoever races whom; and what has ended is given back.

use std::sync::Arc;
use std::time::Duration;

use firesteel_control::access::{Caller, Role};
use firesteel_control::admission::Limits;
use firesteel_control::plane::{NewSession, NewStatement, Plane};
use firesteel_control::refusal::Refusal;
use firesteel_model::permits::ABOUT_TO_BE_MADE;
use firesteel_model::{Event, SessionId};
use tokio::task::JoinSet;

use crate::faulty::{Fault, Plan};
use crate::world::{World, anybody, id, named, no_faults, session, statement};

/// Each request takes its own time; some are lost on their way, done or not.
fn rough(seed: u64) -> Plan {
    let mut state = seed;
    Box::new(move |kind, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = state >> 33;
        let fault = if kind == "bulk" && n.is_multiple_of(23) { Fault::Refuse } else { Fault::None };
        (Duration::from_millis(n % 7), fault)
    })
}

fn limits(queue: u32, statements: u32, sessions: u32) -> Limits {
    Limits { queue, statements, sessions, user_sessions: 1_000, user_statements: 0 }
}

/// Submits until it is let in or refused for good.
async fn submit(plane: &Plane, session: &str, name: &str) -> Result<SessionId, Refusal> {
    loop {
        match plane.submit(&anybody(), named(name, statement(session, "SELECT 1"))).await {
            // The store was away: the same id makes it the same statement.
            Err(Refusal::NoStore(_)) => {}
            done => return done.map(|submitted| submitted.session),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn three_replicas_never_let_more_in_than_the_queue_and_the_domain_take() {
    let world = Arc::new(World::new());
    let made = world.plane();
    for n in 0..8 {
        made.allocate(&anybody(), session(&format!("s{n}"))).await.unwrap();
    }
    let mut users = JoinSet::new();
    for replica in 0..3_u64 {
        let plane = world.replica(limits(5, 20, 100), rough(replica + 1));
        for user in 0..8_u64 {
            let (world, plane) = (Arc::clone(&world), Arc::clone(&plane));
            users.spawn(async move {
                let (mut let_in, mut refused) = (0_u32, 0_u32);
                for n in 0..12_u64 {
                    let session = format!("s{}", (user + n) % 8);
                    let name = format!("{replica}-{user}-{n}");
                    match submit(&plane, &session, &name).await {
                        Ok(_) => let_in += 1,
                        Err(Refusal::Limit { value, limit, .. }) => {
                            assert!(value >= limit, "{value} of {limit}");
                            refused += 1;
                        }
                        Err(other) => panic!("{other}"),
                    }
                    let open = world.open().await;
                    assert!(open <= 20, "{open} in the domain");
                    let queued = world.store.every_open_statement(&id(&session)).await.unwrap().statements.len();
                    assert!(queued <= 5, "{queued} in {session}");
                    // A runner ends one now and then.
                    if n % 3 == 2 {
                        let done = world.store.every_open_statement(&id(&session)).await.unwrap();
                        if let Some(oldest) = done.statements.first() {
                            let next = firesteel_model::statement::next(&oldest.value.state, Event::Cancel).unwrap();
                            let _ = world.store.write_statement(&oldest.value.id, oldest.version, &next).await;
                        }
                    }
                    world.pass(400).await;
                }
                (let_in, refused)
            });
        }
    }
    let sums = users.join_all().await;
    let (let_in, refused) = sums.iter().fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    assert_eq!(let_in + refused, 288);
    assert!(let_in >= 40 && refused >= 40, "{let_in} let in, {refused} refused: neither limit was ever met");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_which_limit_and_its_value_and_stores_nothing() {
    let world = World::new();
    let plane = world.replica(limits(2, 3, 2), no_faults());
    plane.allocate(&anybody(), session("s")).await.unwrap();
    plane.allocate(&anybody(), session("t")).await.unwrap();
    for name in ["a", "b"] {
        plane.submit(&anybody(), named(name, statement("s", "SELECT 1"))).await.unwrap();
    }
    let refused = plane.submit(&anybody(), named("c", statement("s", "SELECT 1"))).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "waiting and running statements of session `s`: 2 of 2 are in use; try again in 1 s"
    );
    assert_eq!((refused.status(), refused.retry_after()), (429, Some(1)));
    plane.submit(&anybody(), named("d", statement("t", "SELECT 1"))).await.unwrap();
    let refused = plane.submit(&anybody(), named("e", statement("t", "SELECT 1"))).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "waiting and running statements of the domain: 3 of 3 are in use; try again in 1 s"
    );
    let refused = plane.allocate(&anybody(), session("u")).await.unwrap_err();
    assert_eq!(refused.to_string(), "open sessions of the domain: 2 of 2 are in use; try again in 60 s");
    assert_eq!(world.store.session(&id("u")).await, Ok(None));
    assert_eq!(world.store.allocation(&id("u")).await, Ok(None));
    assert_eq!(world.open().await, 3);
    assert_eq!(world.jobs.states.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_of_sessions_those_who_have_one_go_on() {
    let world = World::new();
    let plane = world.replica(limits(15, 1_000, 1), no_faults());
    plane.allocate(&anybody(), session("s")).await.unwrap();
    assert!(plane.allocate(&anybody(), session("t")).await.is_err());
    assert_eq!(plane.submit(&anybody(), statement("s", "SELECT 1")).await.unwrap().session, id("s"));
    plane.close(&anybody(), &id("s"), 0).await.unwrap();
    plane.allocate(&anybody(), session("t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_user_has_a_limit_of_their_own() {
    let world = World::new();
    let plane = world.replica(Limits { user_sessions: 1, ..Limits::default() }, no_faults());
    let user = |user: &str| firesteel_control::access::Caller {
        user: user.to_owned(),
        role: firesteel_control::access::Role::Owner,
    };
    plane.allocate(&user("ann"), session("s")).await.unwrap();
    let refused = plane.allocate(&user("ann"), session("t")).await.unwrap_err();
    assert_eq!(refused.to_string(), "open sessions of user `ann`: 1 of 1 are in use; try again in 60 s");
    plane.allocate(&user("bob"), session("t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_is_given_back_and_so_is_the_slot_of_a_submit_that_never_came() {
    let world = World::new();
    let plane = world.plane();
    plane.allocate(&anybody(), session("s")).await.unwrap();
    let submitted = plane.submit(&anybody(), statement("s", "SELECT 1")).await.unwrap();
    // A replica took a slot, and died before it made the statement.
    plane.admission.statement(&id("s"), &named("lost", statement("s", "")).id.unwrap()).await.unwrap();
    plane.admission.collect().await.unwrap();
    assert_eq!(plane.admission.in_use().await, Ok((1, 2)));
    plane.cancel(&anybody(), submitted.id.as_str()).await.unwrap();
    world.pass(ABOUT_TO_BE_MADE + 10).await;
    plane.admission.collect().await.unwrap();
    assert_eq!(plane.admission.in_use().await, Ok((1, 0)));
    plane.close(&anybody(), &id("s"), 0).await.unwrap();
    plane.admission.collect().await.unwrap();
    assert_eq!(plane.admission.in_use().await, Ok((0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_user_has_no_more_statements_in_all_sessions_than_they_may_though_three_replicas_race() {
    let world = Arc::new(World::new());
    let ann = Caller { user: "ann".to_owned(), role: Role::Owner };
    let strict = Limits { user_statements: 4, ..Limits::default() };
    let mut users = JoinSet::new();
    for replica in 0..3_u64 {
        let plane = world.replica(strict, rough(replica + 1));
        let ann = ann.clone();
        users.spawn(async move {
            let mut let_in = Vec::new();
            for n in 0..6 {
                let session = format!("s{replica}");
                let new = || named(&format!("{replica}-{n}"), statement(&session, "SELECT 1"));
                let asked = NewSession { id: Some(id(&session)), ..NewSession::default() };
                while plane.allocate(&ann, asked.clone()).await.is_err() {}
                let done = loop {
                    match plane.submit(&ann, new()).await {
                        Err(Refusal::NoStore(_)) => {}
                        done => break done,
                    }
                };
                match done {
                    Ok(submitted) => let_in.push(submitted.id),
                    Err(refused) => assert_eq!(
                        refused.to_string(),
                        "waiting and running statements of user `ann`: 4 of 4 are in use; try again in 1 s"
                    ),
                }
            }
            let_in
        });
    }
    let let_in: Vec<_> = users.join_all().await.into_iter().flatten().collect();
    assert!(let_in.len() <= 4 && world.open().await == let_in.len(), "{let_in:?}");
    // Others are not held up, and what has ended is given back.
    let plane = world.replica(strict, no_faults());
    let bob = Caller { user: "bob".to_owned(), role: Role::Owner };
    plane.submit(&bob, NewStatement { session: None, ..statement("s0", "SELECT 1") }).await.unwrap();
    for id in &let_in {
        plane.cancel(&ann, id.as_str()).await.unwrap();
    }
    for n in 0..4 {
        plane.submit(&ann, named(&format!("later-{n}"), statement("s0", "SELECT 1"))).await.unwrap();
    }
    let none = NewStatement { session: None, ..named("fifth", statement("s0", "SELECT 1")) };
    let before = world.jobs.states.lock().unwrap().len();
    let refused = plane.submit(&ann, none).await;
    assert!(matches!(refused, Err(Refusal::Limit { value: 4, .. })), "{refused:?}");
    assert_eq!(world.jobs.states.lock().unwrap().len(), before, "no session was made for it");
}
