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
    assert!(wrong(&["foo"]).contains("the nearest subcommand is '"));
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
fn a_store_or_a_size_that_cannot_be_is_wrong_usage() {
    let expected = "is not http://HOST[:PORT], https://HOST[:PORT] or the path of a file";
    assert_eq!(wrong(&["status", "--store", "ftp://x"]), format!("firesteel: --store: `ftp://x` {expected}\n"));
    assert_eq!(wrong(&["run", "--store", "http://"]), format!("firesteel: --store: `http://` {expected}\n"));
    assert!(
        wrong(&["status", "--store", "http://h", "--request-index", "A B"]).contains("index `A B`: a name should be")
    );
    assert!(wrong(&["run", "--memory", "0"]).contains("--memory: `0` is not at least 1MiB"));
    assert!(
        wrong(&["run", "--spill-dir", "/dev/null"]).contains("--spill-dir: the spill folder /dev/null cannot be used")
    );
    assert!(wrong(&["repl", "--spill", "0"]).contains("--spill: `0` is not more than no bytes"));
}

#[test]
fn status_makes_no_store_and_a_file_that_is_none_is_told() {
    let home = Home::new();
    let missing = home.path().join("missing.db").display().to_string();
    let answer = home.run(&["status", "--store", &missing]);
    let told = format!("firesteel: no store at {missing}: start one with `firesteel run --store {missing}`\n");
    assert_eq!((answer.code, answer.err), (3, told));
    assert!(!home.path().join("missing.db").exists());
    let other = home.file("other.txt", &"no store at all\n".repeat(100)).display().to_string();
    let answer = home.run(&["status", "--store", &other]);
    let told = format!("firesteel: `{other}` is not a Firesteel store (SQLite) file; name another or remove it\n");
    assert_eq!((answer.code, answer.err), (3, told));
}

#[test]
fn a_store_that_is_not_there_is_exit_code_3() {
    let answer = Home::new().run(&["status", "--store", "http://127.0.0.1:9"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.err.starts_with("firesteel: ") && answer.err.contains("is --store right?"), "{}", answer.err);
}
