//! Limits end a statement with their name, and only that statement.

use firesteel_model::Code;
use firesteel_session::ports::EngineError;
use futures::StreamExt;

use crate::bench::{Bench, error, listed, until};

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_makes_operators_spill_or_fail_by_name() {
    let bench = Bench::with(|s| s.memory_pool = 64 * MIB);
    let mut sorted = bench
        .begin("SELECT value % 1000003 AS m, value FROM generate_series(1, 8000000) ORDER BY value % 1000003")
        .await
        .unwrap();
    let (mut rows, mut last) = (0, -1);
    while let Some(batch) = sorted.batches.next().await {
        let batch = batch.unwrap_or_else(|e| panic!("{}", error(&e)));
        let column = batch.column(0).as_any().downcast_ref::<arrow_array::Int64Array>().unwrap();
        for m in column.values() {
            assert!(last <= *m, "in order");
            last = *m;
        }
        rows += batch.num_rows();
    }
    assert_eq!(rows, 8_000_000, "it spills, and nothing is lost");
    drop(sorted);
    assert_eq!(
        bench.fails("SELECT count(*) FROM (SELECT value AS v FROM generate_series(1, 9000000)) a JOIN (SELECT value AS v FROM generate_series(1, 9000000)) b ON a.v = b.v").await,
        "MEMORY_LIMIT the statement needed more memory than its pool has (64 MB, setting `memory_pool`); read fewer rows or columns at once, or raise the limit"
    );
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_spill_folder_has_a_limit() {
    let bench = Bench::with(|s| {
        s.memory_pool = 64 * MIB;
        s.spill_limit = MIB;
    });
    assert_eq!(
        bench.fails("SELECT value FROM generate_series(1, 8000000) ORDER BY value % 1000003").await,
        "SPILL_LIMIT the statement spilled more than 1 MB (setting `spill_limit`); read fewer rows at once, or raise the limit"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_outgrows_its_limit_is_killed_with_the_reason() {
    let bench = Bench::with(|s| s.memory_limit = Some(300 * MIB));
    bench.ok("CREATE VIEW v AS SELECT 7 AS a").await;
    let pid = bench.pid().await;
    // What the pool does not count: one value of half a gigabyte after the other.
    let failed = bench
        .run("SELECT max(length(repeat(cast(value AS STRING), 100000000))) FROM generate_series(100000, 900000)")
        .await
        .unwrap_err();
    assert!(matches!(&failed, EngineError::Failed(f) if f.code == Code::Memory && !f.retryable), "{}", error(&failed));
    assert_eq!(
        error(&failed),
        "MEMORY_LIMIT the statement needed more memory than a worker may have (300 MB, setting `memory_limit`); read fewer rows or columns at once, or raise the limit"
    );
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n7\n");
    assert_ne!(bench.pid().await, pid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_keeps_too_much_is_replaced() {
    let bench = Bench::with(|s| (s.retire_above, s.retire_large_millis) = (MIB, 20));
    bench.ok("CREATE VIEW v AS SELECT 7 AS a").await;
    let pid = bench.pid().await;
    until("the worker is retired when it has nothing to do", || !listed(pid)).await;
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n7\n");

    let bench = Bench::with(|s| (s.retire_above, s.retire_large_millis) = (MIB, 600_000));
    bench.ok("CREATE VIEW v AS SELECT 7 AS a").await;
    let pid = bench.pid().await;
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n7\n");
    assert_eq!(bench.pid().await, pid, "it is kept while it is used");
    drop(bench.begin("SELECT value FROM generate_series(1, 90000000000)").await.unwrap());
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n7\n");
    assert_ne!(bench.pid().await, pid, "at once after a statement that was stopped");
}

#[tokio::test]
async fn a_message_has_a_limit_in_both_directions() {
    let bench = Bench::with(|s| s.max_frame = MIB);
    let long = format!("SELECT '{}'", "x".repeat(2 << 20));
    assert_eq!(
        bench.fails(&long).await,
        "SYNTAX the statement is too long: its text has 2097161 bytes, a message at most 1048576"
    );
    assert_eq!(
        bench.fails("SELECT repeat('x', 2000000)").await,
        "RESULT_TOO_LARGE a row of the result has 1.9 MB, the limit is 1 MB (setting `max_frame`)"
    );
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n");
}

#[tokio::test]
async fn wide_rows_cross_in_small_messages() {
    let bench = Bench::new();
    let mut output = bench.begin("SELECT repeat('x', 100000) AS x FROM generate_series(1, 1000)").await.unwrap();
    let (mut rows, mut batches) = (0, 0);
    while let Some(batch) = output.batches.next().await {
        rows += batch.unwrap().num_rows();
        batches += 1;
    }
    assert_eq!(rows, 1000);
    assert!(batches > 10, "{batches} batches");
}

#[tokio::test]
async fn types_cross_as_they_are() {
    let bench = Bench::new();
    let text = bench
        .ok("SELECT CAST(1 AS TINYINT) AS a, CAST(1.5 AS FLOAT) AS b, CAST('1.25' AS DECIMAL(10, 2)) AS c, DATE '2024-02-29' AS d, \
             TIMESTAMP '2024-02-29 12:00:00' AS e, array(1, NULL) AS f, named_struct('x', 1, 'y', 'z') AS g, NULL AS h, true AS i, X'00ff' AS j, \
             map(array('k'), array(1)) AS k, INTERVAL '1' DAY AS l, arrow_cast('dict', 'Dictionary(Int32, Utf8)') AS m")
        .await;
    expect_test::expect![[r#"
        a: Int8 | b: Float32 | c: Decimal128(10, 2) | d: Date32 | e: Timestamp(µs) | f: List(Int64, field: 'element') | g: Struct("x": Int64, "y": Utf8) | h: Null | i: Boolean | j: Binary | k: Map("entries": non-null Struct("key": non-null Utf8, "value": Int64), unsorted) | l: Interval(MonthDayNano) | m: Dictionary(Int32, Utf8)
        1 | 1.5 | 1.25 | 2024-02-29 | 2024-02-29T12:00:00 | [1, NULL] | {x: 1, y: z} | NULL | true | 00ff | {k: 1} | 1 days | dict
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn empty_results_have_columns() {
    let bench = Bench::new();
    assert_eq!(bench.ok("SELECT 1 AS a, 'x' AS b WHERE false").await, "a: Int32 | b: Utf8\n");
    assert_eq!(bench.ok("SELECT NULL AS a FROM generate_series(1, 2)").await, "a: Null\nNULL\nNULL\n");
}

#[tokio::test]
async fn an_error_in_the_middle_is_no_short_result() {
    let bench = Bench::new();
    let failed = bench
        .fails("SELECT CAST(CASE WHEN value = 90000 THEN 'x' ELSE '1' END AS INT) FROM generate_series(1, 100000)")
        .await;
    assert!(failed.starts_with("EXECUTION "), "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_tells_rows_and_bytes() {
    let lines: String = (0..20_000).map(|n| format!("{n},abcdefgh\n")).collect();
    let bench = Bench::new().file("t.csv", format!("a,b\n{lines}"));
    let output = bench.begin("SELECT count(*) FROM t WHERE b <> 'x'").await.unwrap();
    let progress = output.progress.clone();
    crate::bench::collect(output).await.unwrap();
    let seen = *progress.borrow();
    assert_eq!(seen.rows, 20_000);
    assert!(seen.bytes >= lines.len() as u64, "{seen:?}");
}
