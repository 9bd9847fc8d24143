//! What is not allowed is refused before it runs, by its name.

use crate::bench::{Bench, request};

const ALLOWED: &str =
    "allowed are queries, EXPLAIN, SHOW, DESCRIBE, SET, USE, views, external tables, functions and prepared statements";

#[tokio::test]
async fn every_way_out_of_sql_is_closed() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n");
    bench.ok("CREATE VIEW v AS SELECT a FROM t").await;
    for (text, what) in [
        ("COPY t TO '/tmp/x.csv'", "COPY TO"),
        ("COPY (SELECT 1) TO '/tmp/x.csv' STORED AS CSV", "COPY TO"),
        ("EXPLAIN COPY t TO '/tmp/x.csv'", "EXPLAIN of anything but a query"),
        ("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 'x')", "EXPLAIN of anything but a query"),
        ("INSERT INTO t VALUES (1, 'x')", "INSERT"),
        ("PREPARE q AS INSERT INTO t VALUES (1, 'x')", "PREPARE of anything but a query"),
        ("UPDATE t SET a = 1", "UPDATE"),
        ("DELETE FROM t", "DELETE"),
        ("CREATE TABLE n AS SELECT 1", "CREATE TABLE AS"),
        ("CREATE TABLE n (a INT)", "CREATE TABLE"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("DROP DATABASE d", "DROP DATABASE"),
        ("TRUNCATE TABLE t", "TRUNCATE TABLE"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE"),
        ("BEGIN TRANSACTION", "BEGIN TRANSACTION"),
        ("GRANT SELECT ON t TO x", "GRANT"),
    ] {
        assert_eq!(bench.fails(text).await, format!("NOT_ALLOWED {what} is not allowed here; {ALLOWED}"), "{text}");
    }
    assert_eq!(
        bench.fails("SELECT 1; DROP VIEW v").await,
        "NOT_ALLOWED the text holds 2 statements, only one is allowed; submit them one by one"
    );
    assert_eq!(
        bench.fails("DROP TABLE t").await,
        "NOT_ALLOWED `t` is a file of the data folder, which statements do not remove"
    );
    assert_eq!(bench.ok("SELECT * FROM v").await, "a: Int64\n1\n", "all is as it was");
}

#[tokio::test]
async fn limits_and_catalogs_are_not_set_by_statements() {
    let bench = Bench::new();
    for (text, message) in [
        (
            "SET datafusion.runtime.memory_limit = '100G'",
            "the setting `datafusion.runtime.memory_limit` may not be changed by a statement; SET shows those that may be",
        ),
        (
            "SET datafusion.runtime.temp_directory = '/'",
            "the setting `datafusion.runtime.temp_directory` may not be changed by a statement; SET shows those that may be",
        ),
        (
            "SET datafusion.catalog.location = '/'",
            "the setting `datafusion.catalog.location` may not be changed by a statement; SET shows those that may be",
        ),
        (
            "RESET datafusion.runtime.memory_limit",
            "the setting `datafusion.runtime.memory_limit` may not be changed by a statement; SET shows those that may be",
        ),
        (
            "SET datafusion.execution.batchsize = 1",
            "the setting `datafusion.execution.batchsize` may not be changed by a statement; did you mean `datafusion.execution.batch_size`?",
        ),
        (
            "SET datafusion.execution.batch_size = 1000000",
            "`datafusion.execution.batch_size` may be 1 to 65536, not 1000000",
        ),
    ] {
        assert_eq!(bench.fails(text).await, format!("NOT_ALLOWED {message}"), "{text}");
    }
    assert_eq!(
        bench.fails("SET datafusion.execution.batch_size = 'many'").await,
        "ANALYSIS `datafusion.execution.batch_size` cannot be `many`: external error: invalid digit found in string"
    );
}

#[tokio::test]
async fn files_outside_the_folders_are_not_read_by_any_name() {
    let bench = Bench::with(|s| s.low_privileges = false).file("t.csv", "a\n1\n").file("sub/u.csv", "a\n2\n");
    std::fs::write(bench.dir.path().join("secret.csv"), "s\nhush\n").unwrap();
    std::os::unix::fs::symlink(bench.dir.path().join("secret.csv"), bench.data().join("link.csv")).unwrap();
    std::os::unix::fs::symlink(bench.dir.path(), bench.data().join("up")).unwrap();
    let secret = bench.dir.path().join("secret.csv").display().to_string();
    let external = |place: &str| format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{place}'");
    for text in [
        "SELECT * FROM '/etc/passwd'".to_owned(),
        "SELECT * FROM `/etc/passwd`".to_owned(),
        "SELECT * FROM csv.`/etc/passwd`".to_owned(),
        "DESCRIBE `/etc/passwd`".to_owned(),
        format!("SELECT * FROM `file://{secret}`"),
        external("/etc/passwd"),
        external(&secret),
        external(&format!("file://{secret}")),
        external("../secret.csv"),
        external("sub/../../secret.csv"),
        external("link.csv"),
        external("up/secret.csv"),
        external("up/"),
        external("/proc/self/environ"),
        external("s3://bucket/x.csv"),
        external("http://169.254.169.254/latest/meta-data"),
        external("https://example.com/x.csv"),
    ] {
        let message = bench.fails(&text).await;
        assert!(
            message.starts_with("NOT_ALLOWED `")
                && message.ends_with("is not among what may be read; allowed: DIR/data"),
            "{text}: {message}"
        );
    }
    assert_eq!(bench.fails("SELECT * FROM link").await, "ANALYSIS there is no table `link`; there is `t`");
    for text in [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('x')",
        "SELECT * FROM parquet_metadata('x')",
    ] {
        let message = bench.fails(text).await;
        assert!(message.starts_with("ANALYSIS "), "{text}: {message}");
    }
    assert_eq!(bench.fails(&external("none.csv")).await, "ANALYSIS there is no file or folder `none.csv`");
    assert_eq!(
        bench.fails("CREATE EXTERNAL TABLE x STORED AS CSV OPTIONS ('aws.access_key_id' 'x') LOCATION 't.csv'").await,
        "NOT_ALLOWED the option `aws.access_key_id` is not allowed here; allowed are those that begin with `format.`"
    );
    bench.ok(&external("sub/u.csv")).await;
    assert_eq!(bench.ok("SELECT * FROM x").await, "a: Int64\n2\n");
}

#[tokio::test]
async fn nothing_and_other_languages_are_told_apart() {
    use firesteel_session::ports::Engine;
    let bench = Bench::new();
    for text in ["", "  \n", ";", "-- only a comment", "/* and */ ;"] {
        assert_eq!(
            bench.fails(text).await,
            "EMPTY_STATEMENT the statement is empty; write a query, such as SELECT 1",
            "{text:?}"
        );
    }
    for (lang, message) in
        [("sq", "did you mean `sql`?"), ("ppl", "did you mean `sql`?"), ("klingon", "there is `sql`")]
    {
        let failed = bench.engine.plan(&Default::default(), &request(lang, "SELECT 1")).await.map(|_| ()).unwrap_err();
        let text = crate::bench::error(&failed);
        assert!(text.starts_with("UNKNOWN_LANGUAGE there is no language"), "{text}");
        assert!(lang == "ppl" || text.ends_with(message), "{text}");
    }
    assert!(bench.engine.plan(&Default::default(), &request("SQL", "SELECT 1")).await.is_ok());
}
