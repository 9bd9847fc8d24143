//! `run`, `submit` and `status` from separate processes at once, on a SQLite file.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::harness::{Home, is_of, samples};

const CSV: &[&str] = &["submit", "--format", "csv"];

fn csv<'a>(more: &[&'a str]) -> Vec<&'a str> {
    CSV.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn many_submit_to_one_runner() {
    let home = Home::new();
    let runner = home.serve(&[]);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let home = &home;
            scope.spawn(move || {
                let statement = format!("SELECT {n} AS n, count(*) AS airports FROM airports");
                assert_eq!(home.run(&csv(&[&statement])).ok(), format!("n,airports\n{n},3376\n"));
            });
        }
    });
    let status = home.run(&["status"]).ok();
    assert_eq!(status.matches(" success ").count(), 8, "{status}");
    assert!(!status.contains("SELECT"), "no statement's text without --queries");
    assert!(home.run(&["status", "--queries"]).ok().contains("SELECT 7 AS n"));
    let stopped = runner.stops();
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    assert!(!stopped.err.contains("SELECT"), "no statement's text in the log: {}", stopped.err);
    assert_eq!(home.state_of("default").as_deref(), Some("dead"));
}

#[test]
fn a_statement_waits_for_a_runner_and_its_user_is_told_how_to_start_one() {
    let home = Home::new();
    let mut waiting = home.start(&csv(&["SELECT 1 AS one"]));
    waiting.says("nobody serves the session");
    let hint = waiting.says("start a runner: ");
    assert_eq!(hint, "  start a runner: firesteel run --session default");
    let runner = home.serve(&["--session", "default"]);
    let answer = waiting.ends();
    assert_eq!((answer.code, answer.out.as_str()), (0, "one\n1\n"));
    assert_eq!(runner.stops().code, 0);
    // An ended session never runs again: the next one is used, by both sides.
    let runner = home.serve(&[]);
    assert_eq!(home.run(&csv(&["SELECT 2 AS two"])).ok(), "two\n2\n");
    assert_eq!(home.state_of("default-2").as_deref(), Some("running"));
    let ended = home.run(&["submit", "--session", "default", "SELECT 3"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.starts_with("firesteel: session `default` has ended (dead) and never runs again\n"),
        "{}",
        ended.err
    );
    drop(runner);
}

#[test]
fn every_exit_code_of_submit() {
    let home = Home::new();
    assert_eq!(home.run(&["submit", "--timeout", "300ms", "SELECT 1"]).code, 4, "nobody served it in time");
    let runner = home.serve(&[]);
    let failed = home.run(&["submit", "SELECT * FROM nowhere"]);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(failed.err.contains("nowhere"), "{}", failed.err);
    let unknown = home.run(&["submit", "--lang", "klingon", "SELECT 1"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("UNKNOWN_LANGUAGE"), "{}", unknown.err);
    let slow = home.run(&["submit", "--timeout", "1s", "SELECT count(*) FROM routes a, routes b, routes c"]);
    assert_eq!(slow.code, 4, "{}", slow.err);
    assert_eq!(home.run(&["submit", "--cancel", "no-such-id"]).code, 2);
    assert_eq!(home.run_with(&csv(&["-"]), "SELECT 5 AS five\n").ok(), "five\n5\n");
    drop(runner);
}

#[test]
fn a_running_statement_is_cancelled_and_the_next_one_answered() {
    let home = Home::new();
    let runner = home.serve(&[]);
    let id = home.run(&["submit", "--no-wait", "SELECT count(*) FROM routes a, routes b, routes c"]).ok();
    let id = id.trim();
    home.until_any(|row| is_of(row, id) && row["state"] == "running" && row["rowsRead"].as_u64() > Some(0));
    assert_eq!(home.run(&["submit", "--cancel", id]).code, 0);
    assert_eq!(home.run(&csv(&["SELECT 1 AS one"])).ok(), "one\n1\n");
    assert_eq!(home.state_of(id).as_deref(), Some("cancelled"));
    let again = home.run(&["submit", "--cancel", id]);
    assert_eq!((again.code, again.err.as_str()), (0, ""), "it is cancelled, as asked");
    drop(runner);
}

#[test]
fn ctrl_c_cancels_what_was_submitted() {
    let home = Home::new();
    let runner = home.serve(&[]);
    let waiting = home.start(&["submit", "SELECT count(*) FROM routes a, routes b, routes c"]);
    home.until_any(|row| row["type"] == "statement" && row["state"] == "running");
    waiting.signal(Signal::INT);
    let answer = waiting.ends();
    assert_eq!((answer.code, answer.err.as_str()), (4, "firesteel: the statement was interrupted and is cancelled\n"));
    drop(runner);
}

#[test]
fn a_result_of_many_pages_comes_whole() {
    let home = Home::new();
    let runner = home.serve(&[]);
    let out =
        home.run(&csv(&["SELECT b.origin AS x, a.* FROM routes a CROSS JOIN (SELECT * FROM routes LIMIT 40) b"])).ok();
    assert_eq!(out.lines().count(), 1 + 5_366 * 40);
    let table = home.run(&["submit", "SELECT a.iata FROM airports a CROSS JOIN (SELECT * FROM routes LIMIT 100)"]).ok();
    assert!(table.contains("(337600 rows, "), "{}", table.lines().last().unwrap_or_default());
    drop(runner);
}

#[test]
fn limits_on_results_fail_or_truncate_and_say_so() {
    let home = Home::new();
    let runner = home.serve(&["--result-rows", "10"]);
    let failed = home.run(&["submit", "SELECT * FROM airports"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("result too large: 11 rows") && failed.err.contains("limit 10 rows"), "{}", failed.err);
    runner.stops();
    let runner = home.serve(&["--result-rows", "10", "--on-limit", "truncate"]);
    let cut = home.run(&["submit", "SELECT iata FROM airports"]).ok();
    assert!(cut.contains("(10 rows, ") && cut.contains("; the result is longer: a limit was reached)"), "{cut}");
    for format in ["json", "csv", "arrow"] {
        let cut = home.run(&["submit", "--format", format, "SELECT iata FROM airports"]);
        assert_eq!(cut.err, "firesteel: 10 rows; the result is longer: a limit was reached\n", "{format}");
    }
    drop(runner);
}

#[test]
fn a_control_planes_launch_string_starts_the_job() {
    let home = Home::new();
    let data = samples();
    let store = home.path().join("s.db").display().to_string();
    let string = format!(
        r#" --class org.apache.spark.sql.FlintREPL --jars a.jar --conf spark.executor.cores=2 --conf spark.flint.job.sessionId="s \"1\"" --conf spark.flint.datasource.name=mys3 --conf firesteel.data={data} --conf firesteel.store={store}"#
    );
    let mut runner = home.start(&[&string, "query_execution_result_mys3"]);
    runner.says("serving the session");
    let asked =
        home.run(&csv(&["--store", &store, "--session", "s \"1\"", "SELECT count(*) AS n FROM mys3.default.airports"]));
    assert_eq!(asked.ok(), "n\n3376\n");
    assert_eq!(runner.stops().code, 0);
}

#[test]
fn a_batch_job_runs_one_statement_and_its_exit_code_says_how() {
    let home = Home::new();
    // Not in this process's folder: what an earlier format left there would be refused.
    let store = home.path().join("b.db").display().to_string();
    let batch = |query: &str| {
        let query = format!("spark.flint.job.query={query}");
        home.run(&[
            "--class",
            "org.apache.spark.sql.FlintJob",
            "--store",
            &store,
            "--conf",
            &query,
            "--data",
            &samples(),
        ])
    };
    assert_eq!(batch(r"SELECT\n count(*) FROM airports").code, 0);
    assert_eq!(batch("SELECT * FROM nowhere").code, 1);
    let positional = home.run(&["run", "--type", "batch", "--store", &store, "SELECT 1", "index"]);
    assert_eq!(positional.code, 0, "{}", positional.err);
}

#[test]
fn metrics_can_be_scraped() {
    let home = Home::new();
    let mut runner = home.start(&["run", "--metrics-addr", "127.0.0.1:0"]);
    let line = runner.says("metrics are at /metrics");
    let address =
        line.split("address=").nth(1).expect("the address").split_whitespace().next().expect("a word").to_owned();
    runner.says("serving the session");
    home.run(&["submit", "SELECT 1"]).ok();
    home.run(&["submit", "SELECT nothing"]);
    let mut stream = TcpStream::connect(&address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("open");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    for line in [
        "firesteel_statements_total 2",
        "firesteel_statements_succeeded_total 1",
        "firesteel_statements_failed_total 1",
        "firesteel_sessions_active 1",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
    }
}

#[test]
fn logs_may_be_json() {
    let home = Home::new();
    let mut runner = home.start(&["run", "--log-format", "json", "--session", "s"]);
    let line = runner.says("serving the session");
    let json: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((json["level"].as_str(), json["session"].as_str()), (Some("INFO"), Some("s")));
}
