//! A session whose runners are killed: what it is made of, and what they had decided, is there for the next one.

use rustix::process::Signal;

use crate::harness::{Home, repository, samples};

const TIMES: [&str; 4] = ["--heartbeat", "200ms", "--first-heartbeat", "50ms"];

fn ask(home: &Home, statement: &str) -> String {
    home.run(&["submit", "--format", "csv", statement]).ok()
}

#[test]
fn settings_views_tables_and_prepared_statements_outlive_two_kills() {
    let home = Home::new();
    home.file("data/cities/a.csv", "city,people\nUlm,130\nBonn,330\n");
    let data = home.path().join("data").display().to_string();
    let serve = || home.serve(&[&TIMES[..], &["--data", &data]].concat());
    let first = serve();
    let external = format!(
        "CREATE EXTERNAL TABLE people STORED AS CSV LOCATION '{data}/cities/' OPTIONS ('format.has_header' 'true')"
    );
    for define in [
        "SET spark.sql.session.timeZone = +02:00",
        &external,
        "CREATE VIEW big AS SELECT city FROM people WHERE people > 200",
        "PREPARE more AS SELECT city FROM people WHERE people > $1 ORDER BY city",
        "CREATE VIEW dropped AS SELECT 1 AS one",
        "DROP VIEW dropped",
    ] {
        ask(&home, define);
    }
    assert!(home.run(&["submit", "CREATE VIEW wrong AS SELECT nothing FROM nowhere"]).code > 0);
    first.signal(Signal::KILL);
    first.ends();

    let second = serve();
    assert_eq!(ask(&home, "SELECT * FROM big"), "city\nBonn\n");
    ask(&home, "CREATE VIEW late AS SELECT city FROM big");
    second.signal(Signal::KILL);
    second.ends();

    let _third = serve();
    assert_eq!(ask(&home, "SELECT * FROM late"), "city\nBonn\n");
    assert_eq!(ask(&home, "EXECUTE more(100)"), "city\nBonn\nUlm\n");
    assert!(ask(&home, "SET spark.sql.session.timeZone").contains("+02:00"));
    let dropped = home.run(&["submit", "SELECT * FROM dropped"]);
    assert!(dropped.code > 0 && dropped.err.contains("dropped"), "{}", dropped.err);
}

#[test]
fn what_a_plugin_keeps_for_a_session_outlives_two_kills_and_is_of_that_session_alone() {
    let home = Home::new();
    let plugins = home.path().join("plugins").display().to_string();
    let notes = repository().join("plugins/examples/built/notes.wasm").display().to_string();
    home.run(&["plugin", "add", &notes, "--plugins", &plugins]).ok();
    let serve = || home.serve(&[&TIMES[..], &["--data", &samples(), "--plugins", &plugins]].concat());
    let say = |text: &str| home.run(&["submit", "--format", "csv", "--lang", "notes", text]).ok();

    let first = serve();
    assert_eq!(say("add it's one"), "note\nit's one\n");
    assert!(home.run(&["submit", "--lang", "notes", "remove all"]).code > 0);
    first.signal(Signal::KILL);
    first.ends();

    let second = serve();
    assert_eq!(say("add another"), "note\nanother\n");
    second.signal(Signal::KILL);
    second.ends();

    let _third = serve();
    assert_eq!(say("list"), "note\nit's one\nanother\n");
    assert_eq!(say("find other"), "note\nanother\n");
    let other = ["--session", "other", "--data", &samples(), "--plugins", &plugins];
    let mut other = home.start(&[&["run"], &other[..], &TIMES[..]].concat());
    other.says("serving the session");
    let listed = home.run(&["submit", "--session", "other", "--format", "csv", "--lang", "notes", "list"]).ok();
    assert_eq!(listed, "note\n");
}

#[test]
fn a_view_whose_file_is_gone_fails_the_statement_that_needs_it_and_no_other() {
    let home = Home::new();
    let table = home.file("data/cities.csv", "city\nUlm\n");
    let data = home.path().join("data").display().to_string();
    let serve = || home.serve(&[&TIMES[..], &["--data", &data]].concat());
    let first = serve();
    ask(&home, "CREATE VIEW v AS SELECT city FROM cities");
    ask(&home, "CREATE VIEW w AS SELECT 5 AS five");
    first.signal(Signal::KILL);
    first.ends();
    std::fs::remove_file(table).expect("it was there");
    let _second = serve();
    assert_eq!(ask(&home, "SELECT * FROM w"), "five\n5\n");
    let gone = home.run(&["submit", "SELECT * FROM v"]);
    assert!(gone.code > 0 && gone.err.contains("`v`") && gone.err.contains("cities"), "{}", gone.err);
}

#[test]
fn statements_that_wait_or_run_when_their_runner_is_killed_are_answered_by_its_standby() {
    let home = Home::new();
    let first = home.serve(&TIMES);
    let mut standby =
        home.start(&[&["run", "--standby", "--session", "default", "--data", &samples()], &TIMES[..]].concat());
    standby.says("another runner owns the session");
    let running = home.run(&["submit", "--no-wait", "SELECT count(*) FROM routes a, routes b, routes c"]).ok();
    home.reaches(running.trim(), "running");
    let waiting = home.run(&["submit", "--no-wait", "SELECT 7 AS seven"]).ok();
    first.signal(Signal::KILL);
    first.ends();
    standby.says("serving the session");
    standby.says("adopted a statement that another runner had begun");
    home.run(&["submit", "--cancel", running.trim()]).ok();
    home.reaches(waiting.trim(), "success");
    assert_eq!(home.state_of(running.trim()).as_deref(), Some("cancelled"));
}
