//! What the planner would ignore is refused by its name, or done.

use expect_test::expect;

use crate::bench::Bench;

#[tokio::test]
async fn clauses_that_would_be_ignored_are_refused_by_name() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n2,y\n");
    for (text, message) in [
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "TABLESAMPLE … REPEATABLE"),
        ("SELECT a FROM t FOR UPDATE", "FOR UPDATE or FOR SHARE"),
        ("SELECT a FROM t FOR SHARE", "FOR UPDATE or FOR SHARE"),
        ("SELECT a, count(*) FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
        ("SELECT a, count(*) FROM t GROUP BY ALL WITH ROLLUP", "WITH ROLLUP here"),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN ('x', 'y'))", "PIVOT"),
        ("SELECT * FROM range(3) WITH ORDINALITY", "WITH ORDINALITY"),
        ("SELECT upper(b) FILTER (WHERE a = 1) FROM t", "FILTER here"),
        ("SELECT upper(b) OVER () FROM t", "OVER here"),
        ("SELECT upper(DISTINCT b) FROM t", "DISTINCT here"),
        ("SELECT split(b, '[0-9]') FROM t", "split by a regular expression or with a limit"),
        ("SELECT try_sum(DISTINCT a) FROM t", "DISTINCT in try_sum"),
        ("SELECT * FROM t WHERE a IN (SELECT a FROM t FOR UPDATE)", "FOR UPDATE or FOR SHARE"),
        (
            "WITH q AS (SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)) SELECT * FROM q",
            "TABLESAMPLE … REPEATABLE",
        ),
        ("EXPLAIN SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "TABLESAMPLE … REPEATABLE"),
        ("CREATE VIEW v AS SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "TABLESAMPLE … REPEATABLE"),
        ("PREPARE p AS SELECT * FROM t FOR UPDATE", "FOR UPDATE or FOR SHARE"),
    ] {
        let told = bench.fails(text).await;
        assert!(told.starts_with(&format!("NOT_SUPPORTED {message} is not supported; ")), "{text}: {told}");
    }
}

#[tokio::test]
async fn rollup_cube_and_grouping_sets_behind_the_columns_are_done() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n1,y\n2,y\n");
    let rollup = "1 | NULL | 2\n1 | x | 1\n1 | y | 1\n2 | NULL | 1\n2 | y | 1\n";
    for (modifier, rows) in [
        ("WITH ROLLUP", format!("NULL | NULL | 3\n{rollup}")),
        ("WITH CUBE", format!("NULL | NULL | 3\nNULL | x | 1\nNULL | y | 2\n{rollup}")),
        ("GROUPING SETS ((a, b), (a))", rollup.to_owned()),
    ] {
        let text = format!("SELECT a, b, count(*) AS n FROM t GROUP BY a, b {modifier} ORDER BY a, b");
        assert_eq!(bench.ok(&text).await, format!("a: Int64 | b: Utf8 | n: Int64\n{rows}"), "{modifier}");
    }
}

#[tokio::test]
async fn aggregates_heed_filter_and_distinct() {
    let bench = Bench::new().file("t.csv", "g,a\nx,1\nx,3\nx,3\ny,5\n");
    bench
        .check(
            "SELECT g, avg(a) FILTER (WHERE a > 1) AS f, avg(DISTINCT a) AS d, try_sum(a) FILTER (WHERE a > 1) AS s, \
             size(collect_list(a) FILTER (WHERE a > 1)) AS l, size(collect_set(a) FILTER (WHERE a > 1)) AS c, \
             size(collect_list(DISTINCT a)) AS u FROM t GROUP BY g ORDER BY g",
            expect![[r#"
                g: Utf8 | f: Float64 | d: Float64 | s: Int64 | l: Int32 | c: Int32 | u: Int32
                x | 3.0 | 2.0 | 6 | 2 | 1 | 2
                y | 5.0 | 5.0 | 5 | 1 | 1 | 1
            "#]],
        )
        .await;
    bench
        .check(
            "SELECT avg(CAST(a AS DECIMAL(5, 2))) AS m FROM t",
            expect![[r#"
                m: Decimal128(9, 6)
                3.000000
            "#]],
        )
        .await;
}

#[tokio::test]
async fn no_message_shows_a_tree() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n");
    for text in [
        "SELECT a FROM t WHERE b SIMILAR TO 'x'",
        "SELECT a FROM t WHERE a = ANY (1)",
        "SELECT * FROM t JOIN t u",
        "SELECT a FROM t ORDER BY a LIMIT b",
        "SELECT b COLLATE x FROM t",
        "SELECT MATCH (b) AGAINST ('x') FROM t",
        "SELECT a AT TIME ZONE b FROM t",
    ] {
        if let Err(e) = bench.run(text).await {
            let told = crate::bench::error(&e);
            assert!(!told.contains(" { ") && !told.contains("Ident"), "{text}: {told}");
        }
    }
}
