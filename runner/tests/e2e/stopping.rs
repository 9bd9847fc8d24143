//! How a runner leaves.

use rustix::process::Signal;

use crate::harness::Home;

const ENDLESS: &str = "SELECT count(*) FROM routes a, routes b, routes c";

#[test]
fn sigterm_ends_the_session_and_the_running_statement() {
    let home = Home::new();
    let runner = home.serve(&["--stop-grace", "100ms"]);
    let id = home.run(&["submit", "--no-wait", ENDLESS]).ok();
    home.reaches(id.trim(), "running");
    let answer = runner.stops();
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert_eq!(home.state_of("default").as_deref(), Some("dead"));
    assert_eq!(home.state_of(id.trim()).as_deref(), Some("failed"));
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_request() {
    let home = Home::new();
    let mut runner = home.serve(&["--stop-grace", "1s"]);
    let id = home.run(&["submit", "--no-wait", ENDLESS]).ok();
    home.reaches(id.trim(), "running");
    runner.signal(Signal::TERM);
    runner.signal(Signal::INT);
    runner.says("ended");
    assert_eq!(runner.ends().code, 0);
    assert_eq!(home.state_of("default").as_deref(), Some("dead"));
    assert_eq!(home.state_of(id.trim()).as_deref(), Some("failed"));
}

#[test]
fn a_session_handed_over_goes_on_with_its_running_statement() {
    let home = Home::new();
    let runner = home.serve(&["--on-stop", "handover", "--stop-grace", "100ms"]);
    let id = home.run(&["submit", "--no-wait", ENDLESS]).ok();
    home.reaches(id.trim(), "running");
    assert_eq!(runner.stops().code, 0);
    assert_eq!(home.state_of("default").as_deref(), Some("running"));
    assert_eq!(home.state_of(id.trim()).as_deref(), Some("waiting"));
    let successor = home.serve(&[]);
    home.reaches(id.trim(), "running");
    assert_eq!(home.run(&["submit", "--cancel", id.trim()]).code, 0);
    drop(successor);
}

#[test]
fn ctrl_c_is_sigterm() {
    let home = Home::new();
    let runner = home.serve(&[]);
    runner.signal(Signal::INT);
    assert_eq!(runner.ends().code, 0);
    assert_eq!(home.state_of("default").as_deref(), Some("dead"));
}

#[test]
fn an_idle_session_ends_by_itself() {
    let home = Home::new();
    let answer = home.serve(&["--inactivity", "200ms"]).ends();
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert_eq!(home.state_of("default").as_deref(), Some("dead"));
}

#[test]
fn a_store_that_stays_away_is_given_up() {
    let times = ["--unreachable", "300ms", "--retry", "10ms", "--retry-max", "50ms"];
    let answer = Home::new().run(&[&["run", "--store", "http://127.0.0.1:9", "--session", "s"], &times[..]].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    let batch = ["run", "--store", "http://127.0.0.1:9", "--type", "batch", "--query", "SELECT 1"];
    assert_eq!(Home::new().run(&[&batch, &times[..]].concat()).code, 1);
}

#[test]
fn a_standby_takes_over_from_a_runner_that_was_killed() {
    let home = Home::new();
    let times = ["--heartbeat", "100ms", "--first-heartbeat", "50ms"];
    let first = home.serve(&times);
    let mut standby = home.start(&[&["run", "--standby", "--session", "default"], &times[..]].concat());
    standby.says("another runner owns the session");
    first.signal(Signal::KILL);
    assert_eq!(first.ends().code, -1);
    standby.says("serving the session");
    assert_eq!(home.run(&["submit", "--format", "csv", "SELECT 1 AS one"]).ok(), "one\n1\n");
    assert_eq!(standby.stops().code, 0);
}

#[test]
fn a_killed_runner_takes_its_workers_along() {
    let home = Home::new();
    let runner = home.serve(&[]);
    home.run(&["submit", "SELECT 1"]).ok();
    let workers = children_of(runner.pid());
    assert!(!workers.is_empty(), "statements run in workers");
    runner.signal(Signal::KILL);
    runner.ends();
    for worker in workers {
        // Gone within the deadline of any test: a process that is dead has no command line.
        let alive = || std::fs::read(format!("/proc/{worker}/cmdline")).is_ok_and(|line| !line.is_empty());
        assert!((0..1_000_000).any(|_| !alive()), "worker {worker} lives");
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    children.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}
