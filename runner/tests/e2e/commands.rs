//! The command line: what it explains, and what it says when it is wrong.

use crate::harness::Home;

fn wrong(arguments: &[&str]) -> String {
    let answer = Home::new().run(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {}{}", answer.out, answer.err);
    assert_eq!(answer.out, "");
    assert!(answer.err.starts_with("firesteel: "), "{}", answer.err);
    answer.err
}

#[test]
fn help_version_completions_and_manual() {
    let home = Home::new();
    let help = home.run(&["--help"]).ok();
    assert!(help.contains("firesteel repl") && help.contains("Exit codes: 0 success"), "{help}");
    assert!(!help.contains("worker "), "the worker is not for users");
    assert!(home.run(&["run", "--help"]).ok().contains("--execution-timeout <TIME>"));
    assert_eq!(home.run(&["--version"]).ok(), format!("firesteel {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(home.run(&["completions", shell]).ok().contains("firesteel"), "{shell}");
    }
    let manual = home.run(&["man"]).ok();
    for page in [".TH firesteel 1", ".TH firesteel-run 1", ".TH firesteel-submit 1"] {
        assert!(manual.contains(page), "{page}");
    }
}

#[test]
fn what_is_wrong_names_the_nearest_that_is_right() {
    assert!(wrong(&["stauts"]).contains("'status'"));
    assert!(wrong(&["run", "--sesion", "s"]).contains("'--session'"));
    assert!(wrong(&["submit", "--format", "tabel", "SELECT 1"]).contains("'table'"));
    assert_eq!(
        wrong(&["run", "--conf", "firesteel.hartbeat=1s"]),
        "firesteel: unknown setting `firesteel.hartbeat`\n  did you mean `firesteel.heartbeat`? docs/configuration.md lists all\n"
    );
    assert_eq!(
        wrong(&["run", "--heartbeat", "often"]),
        "firesteel: --heartbeat: `often` is not a duration such as 100ms, 20s or 10min\n"
    );
    assert!(wrong(&["run", "--log", "loud"]).contains("`loud` is not a level"));
}

#[test]
fn the_launch_contract_is_strict_where_it_must_be() {
    assert!(wrong(&["run", "a", "b", "c"]).contains("3 arguments, but at most two"));
    assert!(
        wrong(&["--class", "org.Other"]).contains("org.apache.spark.sql.FlintREPL or org.apache.spark.sql.FlintJob")
    );
    assert!(wrong(&["run", "--conf", "spark.flint.job.type=streaming"]).contains("streaming jobs are not supported"));
    assert!(
        wrong(&["--class", "org.apache.spark.sql.FlintREPL", "--conf", "spark.executor.cores=2"])
            .contains("which session?")
    );
    assert!(wrong(&["--class", "org.apache.spark.sql.FlintJob"]).contains("a batch job needs a statement"));
}

#[test]
fn a_store_that_is_not_there_is_exit_code_3() {
    let answer = Home::new().run(&["status", "--store", "http://127.0.0.1:9"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.err.starts_with("firesteel: ") && answer.err.contains("is --store right?"), "{}", answer.err);
}
