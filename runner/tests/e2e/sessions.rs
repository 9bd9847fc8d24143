//! Many sessions in one process.

use std::cell::Cell;
use std::collections::BTreeSet;

use rustix::process::Signal;

use crate::harness::{Home, Running, samples};

/// A runner of all sessions `s-…`, started.
fn serve(home: &Home, arguments: &[&str]) -> Running {
    let samples = samples();
    let mut running = home.start(&[&["run", "--sessions", "s-*", "--data", &samples], arguments].concat());
    running.says("started");
    running
}

fn csv(home: &Home, session: &str, statement: &str) -> String {
    home.run(&["submit", "--format", "csv", "--session", session, statement]).ok()
}

/// Does something with each of some sessions, a few at a time.
fn each(sessions: &[String], what: impl Fn(usize, &str) + Sync) {
    std::thread::scope(|scope| {
        for first in 0..4 {
            let what = &what;
            scope.spawn(move || {
                for (n, session) in sessions.iter().enumerate().skip(first).step_by(4) {
                    what(n, session);
                }
            });
        }
    });
}

fn names(number: usize) -> Vec<String> {
    (0..number).map(|n| format!("s-{n:02}")).collect()
}

fn children_of(pid: u32) -> BTreeSet<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    children.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

#[test]
fn fifty_sessions_are_served_each_with_its_own_views_and_settings_and_end_together() {
    let home = Home::new();
    let runner = serve(&home, &["--max-workers", "3"]);
    let sessions = names(50);
    each(&sessions, |n, session| {
        csv(&home, session, &format!("CREATE VIEW v AS SELECT {n} AS n, count(*) AS airports FROM airports"));
    });
    // Three workers cannot have kept fifty states: these were rebuilt.
    each(&sessions, |n, session| {
        csv(&home, session, &format!("SET spark.sql.session.timeZone = +0{}:00", n % 10));
    });
    each(&sessions, |n, session| {
        assert_eq!(csv(&home, session, "SELECT * FROM v"), format!("n,airports\n{n},3376\n"));
        let zone = csv(&home, session, "SET spark.sql.session.timeZone");
        assert_eq!(zone, format!("key,value\nspark.sql.session.timezone,+0{}:00\n", n % 10));
    });
    assert!(children_of(runner.pid()).len() <= 3);
    let stopped = runner.stops();
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    let status = home.run(&["status", "--limit", "100"]).ok();
    assert_eq!(status.matches(" dead ").count(), 50, "{status}");
}

#[test]
fn five_sessions_share_two_workers_and_none_is_killed_while_it_is_busy() {
    let home = Home::new();
    let runner = serve(&home, &["--max-workers", "2"]);
    let sessions = names(5);
    let ids: Vec<String> = sessions
        .iter()
        .map(|session| {
            let statement = "SELECT count(*) AS n FROM routes a JOIN routes b ON a.flights < b.flights";
            home.run(&["submit", "--no-wait", "--session", session, statement]).ok().trim().to_owned()
        })
        .collect();
    let most = Cell::new(0);
    for id in &ids {
        home.until_any(|row| {
            most.set(most.get().max(children_of(runner.pid()).len()));
            row["queryId"] == id.as_str() && row["state"] == "success"
        });
    }
    assert!((1..=2).contains(&most.get()), "{most:?} workers");
    let stopped = runner.stops();
    assert_eq!(stopped.code, 0);
    assert!(!stopped.err.contains("the worker died"), "{}", stopped.err);
}

#[test]
fn sigterm_ends_every_session_and_what_runs_in_them() {
    let home = Home::new();
    let runner = serve(&home, &["--stop-grace", "100ms"]);
    let endless = "SELECT count(*) FROM routes a, routes b, routes c";
    let ids: Vec<String> = ["s-a", "s-b"]
        .iter()
        .map(|session| home.run(&["submit", "--no-wait", "--session", session, endless]).ok().trim().to_owned())
        .collect();
    csv(&home, "s-idle", "SELECT 1");
    for id in &ids {
        home.reaches(id, "running");
    }
    let stopped = runner.stops();
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    for session in ["s-a", "s-b", "s-idle"] {
        assert_eq!(home.state_of(session).as_deref(), Some("dead"), "{session}");
    }
    for id in &ids {
        assert_eq!(home.state_of(id).as_deref(), Some("failed"));
    }
}

#[test]
fn a_session_that_no_pattern_is_like_waits_and_its_user_is_told() {
    let home = Home::new();
    let runner = serve(&home, &[]);
    let mut waiting = home.start(&["submit", "--format", "csv", "--session", "other", "SELECT 1 AS one"]);
    waiting.says("nobody serves the session");
    let mut other = home.start(&["run", "--sessions", "none", "--sessions", "o*r"]);
    other.says("serving the session");
    let answer = waiting.ends();
    assert_eq!((answer.code, answer.out.as_str()), (0, "one\n1\n"));
    assert_eq!(other.stops().code, 0);
    assert_eq!(runner.stops().code, 0);
}

#[test]
fn a_stand_by_takes_all_sessions_of_a_process_that_was_killed() {
    let home = Home::new();
    let times = ["--heartbeat", "200ms", "--first-heartbeat", "50ms"];
    let first = serve(&home, &times);
    let sessions = names(3);
    each(&sessions, |n, session| assert_eq!(csv(&home, session, &format!("SELECT {n} AS n")), format!("n\n{n}\n")));
    let mut second = serve(&home, &[&["--standby"], &times[..]].concat());
    second.says("another runner owns the session");
    first.signal(Signal::KILL);
    assert_eq!(first.ends().code, -1);
    each(&sessions, |n, session| assert_eq!(csv(&home, session, &format!("SELECT {n} AS m")), format!("m\n{n}\n")));
    assert_eq!(second.stops().code, 0);
}

#[test]
fn one_session_and_many_are_not_asked_for_at_once() {
    let home = Home::new();
    let answer = home.run(&["run", "--sessions", "*", "--session", "s"]);
    assert_eq!(answer.code, 2);
    assert_eq!(answer.err, "firesteel: --session is one session, --sessions is many\n  give only one of the two\n");
}
