//! The Java class that stands where Spark's job stood, run by a plain `java -cp`.

use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Home, Running, finish, repository, samples};

/// The classes, compiled into the home folder; None, said aloud: there is no JDK.
fn classes(home: &Home) -> Option<String> {
    let out = home.path().join("classes").display().to_string();
    let sources = repository().join("runner/shim/src/main/java/org/apache/spark/sql");
    let files = ["FlintREPL", "FlintJob", "NativeJob"].map(|name| sources.join(format!("{name}.java")));
    match Command::new("javac").args(["--release", "11", "-d", &out]).args(files).output() {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(out)
        }
        Err(_) => {
            assert!(std::env::var_os("CI").is_none(), "javac is not installed");
            eprintln!("SKIPPED: needs a JDK");
            None
        }
    }
}

fn java(home: &Home, classes: &str, properties: &[&str], class: &str, arguments: &[&str]) -> Command {
    let mut java = home.program("java");
    java.env("FIRESTEEL_BINARY", env!("CARGO_BIN_EXE_firesteel"));
    java.args(properties).args(["-cp", classes, &format!("org.apache.spark.sql.{class}")]).args(arguments);
    java
}

#[test]
fn the_class_runs_a_batch_with_its_settings_and_arguments_and_ends_with_its_exit_code() {
    let home = Home::new();
    let Some(classes) = classes(&home) else { return };
    let store = format!("-Dfiresteel.store={}", home.path().join("store.db").display());
    let data = format!("-Dfiresteel.data={}", samples());
    let run = |query: &str| {
        let properties = [store.as_str(), &data, "-Dspark.flint.job.queryId=q", "-Dspark.executor.memory=1g"];
        finish(java(&home, &classes, &properties, "FlintJob", &[query, "results"]), "")
    };
    let good = run("SELECT count(*) AS n FROM airports");
    assert_eq!(good.code, 0, "{}", good.err);
    assert_eq!(run("SELECT nothing").code, 1);
    let wrong = finish(java(&home, &classes, &[], "FlintJob", &["a", "b", "c"]), "");
    assert_eq!(
        (wrong.code, wrong.err.lines().next()),
        (2, Some("firesteel: 3 arguments, but at most two: [QUERY] RESULT_INDEX"))
    );
}

#[test]
fn sigterm_ends_the_session_that_the_class_serves() {
    let home = Home::new();
    let Some(classes) = classes(&home) else { return };
    let store = home.path().join("store.db").display().to_string();
    let given = format!("-Dfiresteel.store={store}");
    let mut running = Running::new(java(&home, &classes, &[&given, "-Dspark.flint.job.sessionId=s"], "FlintREPL", &[]));
    running.says("serving the session");
    running.signal(Signal::TERM);
    let ended = running.ends();
    assert_eq!(ended.code, 0, "{}", ended.err);
    let status = home.run(&["status", "--store", &store, "--format", "json"]).ok();
    assert!(status.contains("\"dead\""), "{status}");
}

#[test]
fn without_the_program_the_class_says_how_to_name_it() {
    let home = Home::new();
    let Some(classes) = classes(&home) else { return };
    let mut java = java(&home, &classes, &[], "FlintREPL", &[]);
    java.env_remove("FIRESTEEL_BINARY");
    let answer = finish(java, "");
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.err,
        "firesteel: the program is neither beside the jar nor in it; set FIRESTEEL_BINARY to its path\n"
    );
}
