//! A statement that is dropped stops its work, whatever it does, and the next one is answered.

use crate::bench::{Bench, error, lives, rests, until, used};

/// Each part asks for the type of all before it.
fn planning() -> String {
    format!("SELECT {}value FROM generate_series(1, 2)", "value + ".repeat(20_000))
}

/// Each would run for minutes.
fn long_queries() -> Vec<(&'static str, String)> {
    let n = |text: &str| text.to_owned();
    vec![
        (
            "cross join",
            n(
                "SELECT sum(a.value % 7 + b.value % 5) FROM generate_series(1, 900000) a CROSS JOIN generate_series(1, 900000) b",
            ),
        ),
        (
            "nested-loop join",
            n(
                "SELECT count(*) FROM generate_series(1, 500000) a JOIN generate_series(1, 500000) b ON a.value * 3 < b.value % 1000 + a.value",
            ),
        ),
        (
            "skewed hash join",
            n("SELECT sum(a.v + b.v) FROM (SELECT value % 2 AS k, value AS v FROM generate_series(1, 500000)) a \
               JOIN (SELECT value % 2 AS k, value AS v FROM generate_series(1, 500000)) b ON a.k = b.k"),
        ),
        (
            "recursive query",
            n(
                "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 900000000) SELECT max(n) FROM t",
            ),
        ),
        ("sort", n("SELECT value FROM generate_series(1, 900000000) ORDER BY value % 1000003, value DESC")),
        ("aggregate", n("SELECT value % 1000, sum(value) FROM generate_series(1, 90000000000) GROUP BY value % 1000")),
        (
            "window",
            n("SELECT sum(value) OVER (PARTITION BY value % 10 ORDER BY value) FROM generate_series(1, 900000000)"),
        ),
        ("distinct", n("SELECT count(DISTINCT value % 1000000) FROM generate_series(1, 90000000000)")),
        (
            "regular expression",
            n(
                "SELECT count(*) FROM generate_series(1, 9000000000) WHERE regexp_like(repeat(cast(value AS STRING), 20), '(1|2|3)+.*9{3}x')",
            ),
        ),
        ("filter", n("SELECT value FROM generate_series(1, 90000000000) WHERE value % 7 = 8")),
        (
            "hash of text",
            n("SELECT count(*) FROM generate_series(1, 9000000000) WHERE md5(cast(value AS STRING)) = 'x'"),
        ),
        ("planning", planning()),
        ("rows that nobody takes", n("SELECT value FROM generate_series(1, 90000000000)")),
        (
            "set difference",
            n(
                "SELECT value FROM generate_series(1, 900000000) EXCEPT SELECT value * 2 FROM generate_series(1, 900000000)",
            ),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_statement_stops_and_the_next_is_answered() {
    let bench = Bench::new();
    for (name, text) in long_queries() {
        bench.ok("SELECT 1").await;
        let pid = bench.pid().await;
        let before = used(pid);
        let mut work = Box::pin(async {
            match bench.begin(&text).await {
                // Held and not read.
                Ok(_output) => std::future::pending::<String>().await,
                Err(e) => error(&e),
            }
        });
        let busy = until(name, || used(pid) >= before + 20 || (name.starts_with("rows") && used(pid) > before));
        tokio::select! {
            end = &mut work => panic!("{name} ended by itself: {end}"),
            () = busy => {}
        }
        drop(work);
        assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n", "{name}");
        let now = bench.pid().await;
        if now == pid {
            until(&format!("{name}: the worker rests"), || rests(pid)).await;
        } else {
            // Its memory goes before its name does.
            until(&format!("{name}: the killed worker is gone"), || !lives(pid)).await;
        }
    }
}

#[tokio::test]
async fn a_plan_that_is_never_run_costs_nothing() {
    let bench = Bench::with(|s| s.retire_above = u64::MAX);
    for _ in 0..20 {
        drop(bench.plan("SELECT 1").await.unwrap());
    }
    let pid = bench.pid().await;
    assert_eq!(bench.ok("SELECT 2").await, "2: Int32\n2\n");
    assert_eq!(bench.pid().await, pid, "the same worker");
}

#[tokio::test]
async fn a_dropped_plan_stops_while_it_is_planned() {
    let bench = Bench::new();
    bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    let text = planning();
    let work = bench.plan(&text);
    // Polled once, so it is on its way.
    assert!(futures::poll!(Box::pin(work)).is_pending());
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n1\n");
}
