//! What a statement does is read from its plan.

use firesteel_model::Kind;

use crate::bench::Bench;

#[tokio::test]
async fn every_form_has_its_kind() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n");
    bench.ok("CREATE VIEW v AS SELECT a FROM t").await;
    bench.ok("PREPARE p AS SELECT a FROM t WHERE a = $1").await;
    for (text, kind) in [
        ("SELECT 1", Kind::Read),
        ("WITH x AS (SELECT a FROM t) SELECT * FROM x UNION ALL SELECT 2", Kind::Read),
        ("VALUES (1), (2)", Kind::Read),
        ("EXPLAIN SELECT a FROM t", Kind::Read),
        ("EXPLAIN ANALYZE SELECT a FROM t", Kind::Read),
        ("EXECUTE p(1)", Kind::Read),
        ("SHOW TABLES", Kind::Read),
        ("DESCRIBE t", Kind::Read),
        ("SET spark.sql.session.timeZone", Kind::Read),
        ("SET spark.sql.session.timeZone = 'UTC'", Kind::Define),
        ("RESET", Kind::Define),
        ("USE default", Kind::Define),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT b FROM t", Kind::Define),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT b FROM t", Kind::Define),
        ("DROP VIEW v", Kind::Define),
        ("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 't.csv'", Kind::Define),
        ("PREPARE q AS SELECT 1", Kind::Define),
        ("DEALLOCATE p", Kind::Define),
    ] {
        let plan = bench.plan(text).await.unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(plan.kind(), kind, "{text}");
        assert_eq!(plan.entry().is_some(), kind == Kind::Define, "{text}");
    }
    assert_eq!(
        bench.ok("SHOW VIEWS").await,
        "namespace: Utf8 | viewName: Utf8 | isTemporary: Boolean\ndefault | v | true\n",
        "a plan changes nothing"
    );
}
