//! A session's own functions: they mean what their expression means, and last as long as the session.

use firesteel_model::Kind;

use crate::bench::Bench;

#[tokio::test]
async fn a_function_means_what_its_expression_means_wherever_it_is_called() {
    let bench = Bench::new().file("t.csv", "A,b\n1,2\n3,\n");
    bench.ok("CREATE FUNCTION Area(Width DOUBLE, h DOUBLE) RETURNS DOUBLE COMMENT 'of a box' RETURN WIDTH * h").await;
    bench.ok("CREATE OR REPLACE TEMPORARY FUNCTION twice(x BIGINT) RETURN x + x").await;
    bench.ok("CREATE FUNCTION four(x INT) RETURNS STRING LANGUAGE SQL DETERMINISTIC RETURN CAST(twice(twice(x)) AS STRING)").await;
    bench.ok("CREATE FUNCTION answer() RETURNS INT RETURN 42").await;
    for (query, rows) in [
        ("SELECT area(2, 3) AS a", "a: Float64\n6.0\n"),
        ("SELECT AREA(a, b) AS a FROM t ORDER BY 1", "A: Float64\nNULL\n2.0\n"),
        ("SELECT four(5) AS f, answer() AS n", "f: LargeUtf8 | n: Int32\n20 | 42\n"),
        ("SELECT twice(sum(a)) AS s FROM t WHERE twice(a) > 1 HAVING twice(count(*)) = 4", "s: Int64\n8\n"),
        (
            "SELECT twice(a) AS d, count(*) AS n FROM t GROUP BY twice(a) ORDER BY twice(a) DESC",
            "d: Int64 | n: Int64\n6 | 1\n2 | 1\n",
        ),
        ("SELECT l.a FROM t l JOIN t r ON twice(l.a) = r.a + 1", "A: Int64\n1\n"),
        ("SELECT a FROM t WHERE a IN (SELECT twice(a) + 1 FROM t)", "A: Int64\n3\n"),
    ] {
        assert_eq!(bench.ok(query).await, rows, "{query}");
    }
    bench.ok("CREATE VIEW v AS SELECT twice(a) AS d FROM t").await;
    bench.ok("CREATE OR REPLACE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN 0").await;
    assert_eq!(
        bench.ok("SELECT twice(1) AS z, four(5) AS f").await,
        "z: Int64 | f: LargeUtf8\n0 | 20\n",
        "four keeps what it was made of"
    );
    let plan = bench.ok("EXPLAIN SELECT area(a, 2) FROM t").await;
    assert!(
        plan.contains("expr=[CAST(A@0 AS Float64) * 2 as area(A, 2)]"),
        "nothing is left of the call but its name: {plan}"
    );
    assert_eq!(bench.ok("SHOW FUNCTIONS LIKE 'are*'").await, "function: Utf8\narea\n");
}

#[tokio::test]
async fn functions_are_part_of_what_a_session_is_made_of() {
    let bench = Bench::new();
    assert_eq!(bench.plan("CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1").await.unwrap().kind(), Kind::Define);
    bench.ok("CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1").await;
    bench.ok("CREATE FUNCTION g(x INT) RETURNS INT RETURN f(x) + 1").await;
    bench.ok("CREATE FUNCTION gone() RETURNS INT RETURN 1").await;
    bench.ok("DROP FUNCTION gone").await;
    bench.ok("CREATE FUNCTION IF NOT EXISTS f(x INT) RETURNS INT RETURN 0").await;
    bench.ok("DROP TEMPORARY FUNCTION IF EXISTS nothing").await;
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT f(1) AS f, g(1) AS g").await, "f: Int32 | g: Int32\n2 | 3\n");
    assert!(bench.fails("SELECT gone()").await.starts_with("ANALYSIS "));
}

#[tokio::test]
async fn a_function_that_cannot_be_made_again_is_missed_by_what_needs_it_only() {
    let bench = Bench::new();
    let entry = r#"{"v":1,"text":"CREATE FUNCTION f(x INT) RETURNS INT RETURN of_another_version(x)"}"#;
    bench.journal.lock().unwrap().append(firesteel_session::journal::Entry::new(entry.to_owned()));
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT 1 AS a").await, "a: Int32\n1\n");
    let message = bench.fails("SELECT f(1)").await;
    assert!(
        message.starts_with("ANALYSIS the function `f` could not be made again from the session's journal: "),
        "{message}"
    );
    assert!(message.contains("of_another_version") && message.ends_with("make it anew, or DROP it"), "{message}");
    bench.ok("CREATE FUNCTION f(x INT) RETURNS INT RETURN x").await;
    assert_eq!(bench.ok("SELECT f(1) AS f").await, "f: Int32\n1\n");
}

#[tokio::test]
async fn what_no_function_can_be_is_refused_by_name() {
    let bench = Bench::new().file("t.csv", "a\n1\n");
    bench.ok("CREATE FUNCTION f(x INT, y INT) RETURNS INT RETURN x + y").await;
    for (statement, message) in [
        (
            "CREATE FUNCTION f(x INT) RETURN x",
            "ANALYSIS `f` exists; write CREATE OR REPLACE FUNCTION, or use another name",
        ),
        ("CREATE FUNCTION abs(x INT) RETURN x", "ANALYSIS `abs` is a function that is always there; use another name"),
        (
            "CREATE FUNCTION count(x INT) RETURN x",
            "ANALYSIS `count` is a function that is always there; use another name",
        ),
        ("DROP FUNCTION abs", "ANALYSIS `abs` is a function that is always there; use another name"),
        (
            "CREATE FUNCTION a.g(x INT) RETURN x",
            "ANALYSIS a function's name has one part: functions are the session's own, and in no database",
        ),
        ("CREATE FUNCTION g(x INT, X INT) RETURN x", "ANALYSIS the function `g` has the parameter `x` twice"),
        (
            "CREATE FUNCTION g(x INT) RETURN sum(x)",
            "ANALYSIS the function `g` must be an expression of its parameters, without aggregates, windows and subqueries",
        ),
        ("SELECT f(1)", "ANALYSIS the function `f` takes 2 arguments, not 1"),
    ] {
        assert_eq!(bench.fails(statement).await, message, "{statement}");
    }
    for (statement, begins) in [
        (
            "CREATE FUNCTION g AS 'com.example.Udf'",
            "NOT_ALLOWED a function of a class or a file is not allowed here; write CREATE FUNCTION",
        ),
        ("CREATE FUNCTION g(x INT) RETURNS TABLE RETURN SELECT 1", "SYNTAX "),
        ("CREATE FUNCTION g(x INT DEFAULT 1) RETURN x", "SYNTAX "),
        ("CREATE FUNCTION g(x INT) RETURN x; SELECT 1", "SYNTAX "),
        ("CREATE FUNCTION g(x INT) RETURN z", "ANALYSIS "),
        ("CREATE FUNCTION g(x INT) RETURN (SELECT max(a) FROM t)", "ANALYSIS "),
        ("CREATE FUNCTION g(x INT) RETURN g(x)", "ANALYSIS "),
        ("DROP FUNCTION nothing", "ANALYSIS there is no function `nothing`"),
    ] {
        let message = bench.fails(statement).await;
        assert!(message.starts_with(begins), "{statement}: {message}");
    }
}
