//! Files are tables, views and external tables are the session's own.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use expect_test::expect;

use crate::bench::Bench;

fn arrow_file() -> Vec<u8> {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["x", "it's"]));
    let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
    let mut out = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    out
}

#[tokio::test]
async fn every_format_is_read() {
    let bench = Bench::new()
        .file("c.csv", "a,b\n1,x\n,\"two, three\"\n")
        .file("t.tsv", "a\tb\n1\tx\n")
        .file("j.json", "{\"a\":1,\"b\":{\"c\":[true]}}\n{\"a\":2}\n")
        .file("l.ndjson", "{\"a\":1}\n")
        .file("k.json", " [{\"a\":1}, {\"a\":2}]\n")
        .file("w.arrow", arrow_file());
    bench
        .check(
            "SELECT * FROM c",
            expect![[r#"
        a: Int64 | b: Utf8
        1 | x
        NULL | two, three
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT * FROM t",
            expect![[r#"
        a: Int64 | b: Utf8
        1 | x
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT a, b.c[0] AS c FROM j",
            expect![[r#"
        a: Int64 | c: Boolean
        1 | true
        2 | NULL
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT * FROM l",
            expect![[r#"
        a: Int64
        1
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT * FROM k",
            expect![[r#"
        a: Int64
        1
        2
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT * FROM w",
            expect![[r#"
        a: Int64 | b: Utf8
        1 | x
        NULL | it's
    "#]],
        )
        .await;
}

#[tokio::test]
async fn odd_names_are_written_in_backticks_and_new_files_appear() {
    let bench = Bench::new()
        .file("odd name's [1]*.csv", "a\n1\n")
        .file("a.b.csv", "x\n2\n")
        .file("T.csv", "x\n3\n")
        .file("t.json", "{\"x\":4}\n");
    bench
        .check(
            "SELECT a FROM `odd name's [1]*`",
            expect![[r#"
        a: Int64
        1
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT x FROM `a.b`",
            expect![[r#"
        x: Int64
        2
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT x FROM t",
            expect![[r#"
        x: Int64
        3
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT x FROM `t.json`",
            expect![[r#"
        x: Int64
        4
    "#]],
        )
        .await;
    assert_eq!(bench.fails("SELECT * FROM later").await.split(';').next(), Some("ANALYSIS there is no table `later`"));
    std::fs::write(bench.data().join("later.csv"), "a\n1\n").unwrap();
    bench
        .check(
            "SELECT * FROM later",
            expect![[r#"
        a: Int64
        1
    "#]],
        )
        .await;
    std::fs::write(bench.data().join("later.csv"), "a,b\n1,more\n").unwrap();
    bench
        .check(
            "SELECT * FROM later",
            expect![[r#"
        a: Int64 | b: Utf8
        1 | more
    "#]],
        )
        .await;
}

#[tokio::test]
async fn views_hide_files_until_they_are_dropped() {
    let bench = Bench::new().file("t.csv", "A,b\n1,x\n2,y\n");
    bench.ok("CREATE VIEW big AS SELECT a AS Key, b, count(*) OVER () FROM t WHERE a > 1").await;
    bench
        .check(
            "SELECT * FROM big",
            expect![[r#"
                Key: Int64 | b: Utf8 | count(1) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING): Int64
                2 | y | 1
            "#]],
        )
        .await;
    assert_eq!(
        bench.fails("CREATE VIEW BIG AS SELECT 1").await,
        "ANALYSIS `BIG` exists; write CREATE OR REPLACE VIEW, or use another name"
    );
    bench.ok("CREATE OR REPLACE VIEW big (k) AS SELECT key + 1 FROM big").await;
    assert_eq!(
        bench.fails("CREATE VIEW two AS SELECT a, a FROM t").await,
        "ANALYSIS the view `two` would have the column `A` twice; give one of them another name"
    );
    assert_eq!(bench.fails("DROP TABLE big").await, "ANALYSIS `big` is a view; write DROP VIEW");
    bench.ok("DROP VIEW big").await;
    bench.ok("DROP VIEW IF EXISTS big").await;
    assert_eq!(bench.fails("DROP VIEW big").await, "ANALYSIS there is no view `big`, and no other");
    assert_eq!(
        bench.fails("CREATE VIEW `a/b` AS SELECT 1").await,
        "NOT_ALLOWED `a/b` cannot be a name; names hold no slashes"
    );
}

#[tokio::test]
async fn external_tables_take_their_columns_from_the_statement_or_the_file() {
    let bench = Bench::new().file("sub/x.csv", "1;x\n2;y\n");
    bench
        .ok("CREATE EXTERNAL TABLE e (Num INT, Text STRING) STORED AS CSV LOCATION 'sub/x.csv' OPTIONS ('format.has_header' 'false', 'format.delimiter' ';')")
        .await;
    bench
        .check(
            "SELECT num, TEXT FROM E",
            expect![[r#"
        Num: Int32 | Text: LargeUtf8
        1 | x
        2 | y
    "#]],
        )
        .await;
    bench.ok("CREATE OR REPLACE EXTERNAL TABLE e STORED AS CSV LOCATION 'sub/' OPTIONS ('format.has_header' 'true', 'format.delimiter' ';')").await;
    bench
        .check(
            "SELECT * FROM e",
            expect![[r#"
        1: Int64 | x: Utf8
        2 | y
    "#]],
        )
        .await;
    bench.ok("DROP TABLE e").await;
    assert_eq!(bench.fails("SELECT * FROM e").await, "ANALYSIS there is no table `e`, and no other");
}

#[tokio::test]
async fn prepared_statements_take_values() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n2,y\n");
    bench.ok("PREPARE find (BIGINT) AS SELECT b, 1 FROM t WHERE a = $1").await;
    bench
        .check(
            "EXECUTE find(2)",
            expect![[r#"
        b: Utf8 | 1: Int64
        y | 1
    "#]],
        )
        .await;
    bench.ok("DEALLOCATE find").await;
    assert!(bench.fails("EXECUTE find(2)").await.starts_with("EXECUTION "));
}
