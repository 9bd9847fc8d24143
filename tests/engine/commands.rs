//! SHOW, DESCRIBE, USE, SET: the session talks about itself in Spark's columns.

use expect_test::expect;

use crate::bench::Bench;

fn bench() -> Bench {
    Bench::new().file("Sales.csv", "Id,Region,amount\n1,north,2.5\n").file("people.json", "{\"name\":\"Ann\",\"tags\":[\"a\"],\"home\":{\"zip\":1}}\n")
}

#[tokio::test]
async fn show_lists_what_there_is() {
    let bench = bench();
    bench.ok("CREATE TEMPORARY VIEW North AS SELECT * FROM sales WHERE region = 'north'").await;
    bench.check("SHOW CATALOGS", expect![[""]]).await;
    bench.check("SHOW DATABASES", expect![[""]]).await;
    bench.check("SHOW SCHEMAS IN mys3 LIKE 'x*'", expect![[""]]).await;
    bench.check("SHOW TABLES", expect![[""]]).await;
    bench.check("SHOW TABLES IN mys3.default LIKE 's*|p*'", expect![[""]]).await;
    bench.check("SHOW TABLES FROM default", expect![[""]]).await;
    bench.check("SHOW VIEWS", expect![[""]]).await;
    bench.check("SHOW COLUMNS IN sales", expect![[""]]).await;
    bench.check("SHOW COLUMNS FROM north FROM default", expect![[""]]).await;
    bench.check("SHOW FUNCTIONS LIKE 'sha*'", expect![[""]]).await;
    assert_eq!(bench.fails("SHOW TABLES IN other").await, "ANALYSIS there is no database `other`; there is `default`, `mys3`");
    bench.check("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'default' ORDER BY 1", expect![[""]]).await;
}

#[tokio::test]
async fn describe_tells_names_and_types() {
    let bench = bench();
    bench.check("DESC sales", expect![[""]]).await;
    bench.check("DESCRIBE TABLE mys3.default.people", expect![[""]]).await;
    let extended = bench.ok("DESCRIBE EXTENDED sales").await.replace(&bench.data().canonicalize().unwrap().display().to_string(), "DATA");
    expect![[""]].assert_eq(&extended);
    bench.check("DESC SELECT id, 1 AS one, id / 2 FROM sales", expect![[""]]).await;
    assert_eq!(bench.fails("DESC salse").await, "ANALYSIS there is no table `salse`; did you mean `Sales`?");
}

#[tokio::test]
async fn settings_hold_for_the_session_and_go_back() {
    let bench = bench();
    bench.check("SET spark.sql.session.timeZone = +02:00", expect![[""]]).await;
    bench.check("SET datafusion.execution.time_zone", expect![[""]]).await;
    bench.ok("RESET spark.sql.session.timeZone").await;
    bench.check("SET datafusion.execution.time_zone", expect![[""]]).await;
    bench.ok("SET datafusion.sql_parser.default_null_ordering = nulls_max").await;
    bench.check("SELECT a FROM (VALUES (NULL), (1)) AS t(a) ORDER BY a", expect![[""]]).await;
    bench.ok("RESET").await;
    bench.check("SELECT a FROM (VALUES (1), (NULL)) AS t(a) ORDER BY a", expect![[""]]).await;
    assert!(bench.ok("SET").await.contains("datafusion.execution.batch_size | 8192\n"));
}

#[tokio::test]
async fn use_goes_to_what_exists() {
    let bench = bench();
    for text in ["USE default", "USE mys3", "USE mys3.default", "USE DATABASE `default`"] {
        bench.ok(text).await;
    }
    assert_eq!(bench.fails("USE elsewhere").await, "ANALYSIS there is no database `elsewhere`; there is `default`, `mys3`");
    bench.check("SELECT id FROM sales", expect![[""]]).await;
}
