//! SHOW, DESCRIBE, USE, SET: the session talks about itself in Spark's columns.

use expect_test::expect;

use crate::bench::Bench;

fn bench() -> Bench {
    Bench::new()
        .file("Sales.csv", "Id,Region,amount\n1,north,2.5\n")
        .file("people.json", "{\"name\":\"Ann\",\"tags\":[\"a\"],\"home\":{\"zip\":1}}\n")
}

#[tokio::test]
async fn show_lists_what_there_is() {
    let bench = bench();
    bench.ok("CREATE TEMPORARY VIEW North AS SELECT * FROM sales WHERE region = 'north'").await;
    bench
        .check(
            "SHOW CATALOGS",
            expect![[r#"
        catalog: Utf8
        mys3
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW DATABASES",
            expect![[r#"
        namespace: Utf8
        default
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW SCHEMAS IN mys3 LIKE 'x*'",
            expect![[r#"
        namespace: Utf8
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW TABLES",
            expect![[r#"
        namespace: Utf8 | tableName: Utf8 | isTemporary: Boolean
        default | North | true
        default | Sales | false
        default | people | false
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW TABLES IN mys3.default LIKE 's*|p*'",
            expect![[r#"
        namespace: Utf8 | tableName: Utf8 | isTemporary: Boolean
        default | Sales | false
        default | people | false
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW TABLES FROM default",
            expect![[r#"
        namespace: Utf8 | tableName: Utf8 | isTemporary: Boolean
        default | North | true
        default | Sales | false
        default | people | false
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW VIEWS",
            expect![[r#"
        namespace: Utf8 | viewName: Utf8 | isTemporary: Boolean
        default | North | true
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW COLUMNS IN sales",
            expect![[r#"
        col_name: Utf8
        Id
        Region
        amount
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW COLUMNS FROM north FROM default",
            expect![[r#"
        col_name: Utf8
        Id
        Region
        amount
    "#]],
        )
        .await;
    bench
        .check(
            "SHOW FUNCTIONS LIKE 'sha*'",
            expect![[r#"
        function: Utf8
        sha
        sha1
        sha2
        sha224
        sha256
        sha384
        sha512
    "#]],
        )
        .await;
    assert_eq!(
        bench.fails("SHOW TABLES IN other").await,
        "ANALYSIS there is no database `other`; there is `default`, `mys3`"
    );
    bench
        .check(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'default' ORDER BY 1",
            expect![[r#"
        table_name: Utf8 | table_type: Utf8
        North | VIEW
        Sales | BASE TABLE
        people | BASE TABLE
    "#]],
        )
        .await;
}

#[tokio::test]
async fn describe_tells_names_and_types() {
    let bench = bench();
    bench
        .check(
            "DESC sales",
            expect![[r#"
        col_name: Utf8 | data_type: Utf8 | comment: Utf8
        Id | bigint | NULL
        Region | string | NULL
        amount | double | NULL
    "#]],
        )
        .await;
    bench
        .check(
            "DESCRIBE TABLE mys3.default.people",
            expect![[r#"
        col_name: Utf8 | data_type: Utf8 | comment: Utf8
        home | struct<zip:bigint> | NULL
        name | string | NULL
        tags | array<string> | NULL
    "#]],
        )
        .await;
    let extended = bench
        .ok("DESCRIBE EXTENDED sales")
        .await
        .replace(&bench.data().canonicalize().unwrap().display().to_string(), "DATA");
    expect![[r#"
        col_name: Utf8 | data_type: Utf8 | comment: Utf8
        Id | bigint | NULL
        Region | string | NULL
        amount | double | NULL
         |  | NULL
        # Detailed Table Information |  | NULL
        Catalog | mys3 | NULL
        Database | default | NULL
        Table | Sales | NULL
        Type | EXTERNAL | NULL
        Provider | csv | NULL
        Location | file:DATA/Sales.csv | NULL
    "#]]
    .assert_eq(&extended);
    bench
        .check(
            "DESC SELECT id, 1 AS one, id / 2 FROM sales",
            expect![[r#"
        col_name: Utf8 | data_type: Utf8 | comment: Utf8
        Id | bigint | NULL
        one | int | NULL
        (Id / 2) | double | NULL
    "#]],
        )
        .await;
    assert_eq!(bench.fails("DESC salse").await, "ANALYSIS there is no table `salse`; did you mean `Sales`?");
}

#[tokio::test]
async fn settings_hold_for_the_session_and_go_back() {
    let bench = bench();
    bench
        .check(
            "SET spark.sql.session.timeZone = +02:00",
            expect![[r#"
        key: Utf8 | value: Utf8
        spark.sql.session.timezone | +02:00
    "#]],
        )
        .await;
    bench
        .check(
            "SET datafusion.execution.time_zone",
            expect![[r#"
        key: Utf8 | value: Utf8
        datafusion.execution.time_zone | +02:00
    "#]],
        )
        .await;
    bench.ok("RESET spark.sql.session.timeZone").await;
    bench
        .check(
            "SET datafusion.execution.time_zone",
            expect![[r#"
        key: Utf8 | value: Utf8
        datafusion.execution.time_zone | 
    "#]],
        )
        .await;
    bench.ok("SET datafusion.sql_parser.default_null_ordering = nulls_max").await;
    bench
        .check(
            "SELECT a FROM (VALUES (NULL), (1)) AS t(a) ORDER BY a",
            expect![[r#"
        a: Int64
        1
        NULL
    "#]],
        )
        .await;
    bench.ok("RESET").await;
    bench
        .check(
            "SELECT a FROM (VALUES (1), (NULL)) AS t(a) ORDER BY a",
            expect![[r#"
        a: Int64
        NULL
        1
    "#]],
        )
        .await;
    assert!(bench.ok("SET").await.contains("datafusion.execution.batch_size | 8192\n"));
}

#[tokio::test]
async fn use_goes_to_what_exists() {
    let bench = bench();
    for text in ["USE default", "USE mys3", "USE mys3.default", "USE DATABASE `default`"] {
        bench.ok(text).await;
    }
    assert_eq!(
        bench.fails("USE elsewhere").await,
        "ANALYSIS there is no database `elsewhere`; there is `default`, `mys3`"
    );
    bench
        .check(
            "SELECT id FROM sales",
            expect![[r#"
        Id: Int64
        1
    "#]],
        )
        .await;
}

#[tokio::test]
async fn a_setting_of_parquet_holds_for_the_files_of_the_data_folder() {
    let bench = Bench::new().file("strikes.parquet", include_bytes!("../../sample-data/birdstrikes.parquet"));
    let sql = "EXPLAIN SELECT * FROM strikes WHERE damage = 'Small'";
    assert!(bench.ok(sql).await.contains("FilterExec"), "filtered above the file");
    bench.ok("SET datafusion.execution.parquet.pushdown_filters = true").await;
    let pushed = bench.ok(sql).await;
    assert!(pushed.contains("predicate=") && !pushed.contains("FilterExec"), "{pushed}");
    bench.ok("RESET").await;
    assert!(bench.ok(sql).await.contains("FilterExec"), "as it was");
}
