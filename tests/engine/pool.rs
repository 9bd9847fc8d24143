//! Sessions that share workers, of which only so many may be alive.

use std::sync::Arc;

use firesteel_engine::{Pool, Workers};
use firesteel_session::ports::Engine;
use futures::FutureExt;

use crate::bench::{Bench, listed, until};

const LONG: &str = "SELECT value FROM generate_series(1, 90000000000) WHERE value % 7 = 8";

/// Sessions, each with its own journal, on one pool.
fn sessions(workers: usize, number: usize) -> (Arc<Pool>, Vec<Bench>) {
    let first = Bench::with(|s| s.workers = Some(workers));
    let pool = Arc::clone(first.engine.pool());
    let mut benches = vec![first];
    while benches.len() < number {
        let mut bench = Bench::new();
        bench.engine = pool.session();
        benches.push(bench);
    }
    (pool, benches)
}

async fn pid(engine: &Workers) -> Option<u32> {
    engine.worker_pid().await.filter(|pid| listed(*pid))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_idle_worker_is_ended_for_a_session_that_needs_one_and_its_own_session_is_rebuilt() {
    let (_pool, sessions) = sessions(2, 3);
    sessions[0].ok("CREATE VIEW v AS SELECT 1 AS a").await;
    sessions[1].ok("CREATE VIEW v AS SELECT 2 AS a").await;
    let (first, second) = (sessions[0].pid().await, sessions[1].pid().await);
    assert_eq!(sessions[2].ok("SELECT 3 AS a").await, "a: Int32\n3\n");
    assert!(!listed(first) && listed(second), "the first had nothing to do for longer");
    assert_eq!(sessions[0].ok("SELECT a FROM v").await, "a: Int64\n1\n");
    assert!(!listed(second));
    assert_eq!(sessions[1].ok("SELECT a FROM v").await, "a: Int64\n2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_all_are_busy_a_session_waits_and_who_waited_longer_comes_first() {
    let (_pool, sessions) = sessions(2, 4);
    let (one, two) = (sessions[0].begin(LONG).await.unwrap(), sessions[1].begin(LONG).await.unwrap());
    let (first, second) = (sessions[0].pid().await, sessions[1].pid().await);
    let (mut third, mut fourth) = (Box::pin(sessions[2].plan("SELECT 3")), Box::pin(sessions[3].plan("SELECT 4")));
    assert!((&mut third).now_or_never().is_none());
    assert!((&mut fourth).now_or_never().is_none());
    assert!(listed(first) && listed(second));
    drop(two);
    let third = tokio::select! {
        planned = third => planned,
        _ = &mut fourth => panic!("it came second"),
    };
    assert!(third.is_ok());
    assert!(listed(first), "a busy one is not ended");
    assert!(!listed(second));
    drop(third);
    assert!(fourth.await.is_ok());
    assert!(listed(first), "a busy one is not ended");
    drop(one);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_is_kept_ahead_for_whoever_comes_and_waits_as_long_as_it_takes() {
    let bench = Bench::with(|s| {
        s.workers = Some(3);
        s.spare = true;
        s.retire_idle_millis = 50;
    });
    bench.ok("SELECT 1").await;
    if let Some(pid) = pid(&bench.engine).await {
        until("the session's worker is retired", || !listed(pid)).await;
    }
    let children = || std::fs::read_dir(bench.dir.path().join("spill")).unwrap().count();
    until("the folder of the retired one is gone", || children() == 1).await;
    let other = bench.engine.pool().session();
    let plan = other.plan(&Default::default(), &crate::bench::request("sql", "SELECT 1")).await;
    assert!(plan.is_ok());
    drop(plan);
    other.close().await;
    bench.engine.close().await;
    assert_eq!(children(), 0, "all are ended");
}
