//! `firesteel repl` where standard input is no terminal.

use expect_test::{Expect, expect};

use crate::harness::Home;

fn check(statements: &str, expected: Expect) {
    expected.assert_eq(&Home::new().ask(statements).ok());
}

#[test]
fn statements_over_the_sample_data() {
    check(
        "SELECT city, state FROM airports WHERE iata = 'BOS';
         -- a comment; with a semicolon
         SELECT count(*) AS n,
                'it''s; \"quoted\"' AS text,
                CAST(NULL AS INT) AS nothing
         FROM routes;
         SELECT 1 AS a, 2 AS a WHERE false",
        expect![[r#"
            timing is off
            ┌────────┬───────┐
            │ city   │ state │
            ├────────┼───────┤
            │ Boston │ MA    │
            └────────┴───────┘
            (1 row)
            ┌──────┬────────────────┬─────────┐
            │ n    │ text           │ nothing │
            ├──────┼────────────────┼─────────┤
            │ 5366 │ it's; "quoted" │    NULL │
            └──────┴────────────────┴─────────┘
            (1 row)
            ┌───┬─────┐
            │ a │ a_1 │
            ├───┼─────┤
            └───┴─────┘
            (0 rows)
        "#]],
    );
}

#[test]
fn tables_are_listed_and_described() {
    check(
        "\\format csv\n\\d\n\\d airports\n",
        expect![[r#"
        timing is off
        namespace,tableName,isTemporary
        default,airports,false
        default,birdstrikes,false
        default,earthquakes,false
        default,routes,false
        default,weather,false
        col_name,data_type,comment
        iata,string,
        name,string,
        city,string,
        state,string,
        country,string,
        latitude,double,
        longitude,double,
    "#]],
    );
}

#[test]
fn views_and_settings_hold_for_the_session() {
    check(
        "\\format json
         CREATE VIEW big AS SELECT origin, sum(flights) AS n FROM routes GROUP BY origin;
         SELECT origin FROM big ORDER BY n DESC LIMIT 2;
         SET datafusion.execution.batch_size = 100;",
        expect![[r#"
            timing is off
            {"origin":"ATL"}
            {"origin":"ORD"}
            {"key":"datafusion.execution.batch_size","value":"100"}
        "#]],
    );
}

#[test]
fn every_format() {
    let home = Home::new();
    let statement = "SELECT 1 AS n, 'a,b' AS text, CAST(NULL AS INT) AS nothing";
    let print = |format: &str| home.run_with(&["repl", "--format", format], statement).ok();
    assert_eq!(print("json"), "{\"n\":1,\"text\":\"a,b\"}\n");
    assert_eq!(print("csv"), "n,text,nothing\n1,\"a,b\",\n");
    assert!(print("table").contains("│ 1 │ a,b  │    NULL │"));
    let arrow = home.run_with(&["repl", "--format", "arrow"], "SELECT true AS yes");
    assert_eq!(arrow.code, 0);
    assert!(arrow.out.contains("yes"), "a stream names its columns");
}

#[test]
fn a_failure_stops_unless_it_may_not() {
    let home = Home::new();
    let script = "SELECT 1 AS first; SELECT * FROM no_such_table; SELECT 3 AS third;";
    let stopped = home.run_with(&["repl", "--format", "csv"], script);
    assert_eq!((stopped.code, stopped.out.as_str()), (1, "first\n1\n"));
    assert!(stopped.err.contains("no_such_table"), "{}", stopped.err);
    assert!(stopped.err.contains("\n  ANALYSIS: see docs/errors/ANALYSIS.md\n"), "{}", stopped.err);
    let went_on = home.run_with(&["repl", "--format", "csv", "--on-error", "continue"], script);
    assert_eq!((went_on.code, went_on.out.as_str()), (1, "first\n1\nthird\n3\n"));
}

#[test]
fn the_files_of_a_folder_are_tables() {
    let home = Home::new();
    home.file("logs/requests.csv", "path,ms\n/,12\n/a,7\n");
    home.file("logs/events.jsonl", "{\"kind\":\"start\"}\n{\"kind\":\"stop\"}\n");
    let folder = home.path().join("logs").display().to_string();
    let out = home.run_with(
        &["repl", "--data", &folder, "--format", "csv"],
        "SELECT sum(ms) AS ms, (SELECT count(*) FROM events) AS n FROM requests",
    );
    assert_eq!(out.ok(), "ms,n\n19,2\n");
    let missing = home.run(&["repl", "--data", "/no/such/folder"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.starts_with("firesteel: --data: /no/such/folder is no folder\n"), "{}", missing.err);
}

#[test]
fn it_leaves_nothing_behind() {
    let home = Home::new();
    home.ask("SELECT 1").ok();
    let left: Vec<_> =
        std::fs::read_dir(home.path()).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("repl")), "{left:?}");
}

#[test]
fn not_even_when_it_is_told_to_end() {
    let home = Home::new();
    let mut running = home.start(&["repl", "--log", "info"]);
    running.says("serving the session");
    assert_eq!(running.stops().code, 143);
    let left: Vec<_> =
        std::fs::read_dir(home.path()).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("repl")), "{left:?}");
}

#[test]
fn who_reads_only_the_first_line_is_no_error() {
    let home = Home::new();
    let mut shell = home.program("bash");
    let line =
        format!("echo 'SELECT * FROM routes' | {} repl --format csv | head -n 1", env!("CARGO_BIN_EXE_firesteel"));
    shell.args(["-o", "pipefail", "-c", &line]);
    let answer = crate::harness::finish(shell, "");
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
}
