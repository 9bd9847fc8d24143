//! Every way to set something, and docs/configuration.md.

use expect_test::expect_file;

use super::keys::Group;
use super::*;

fn with(arguments: &[&str]) -> Result<Configuration, Problem> {
    let mut configuration = Configuration::default();
    for argument in arguments {
        configuration.conf(argument)?;
    }
    configuration.settle();
    Ok(configuration)
}

fn refused(argument: &str) -> String {
    let problem = with(&[argument]).expect_err("a wrong setting");
    match problem.hint() {
        Some(hint) => format!("{problem} ({hint})"),
        None => problem.to_string(),
    }
}

#[test]
fn the_launch_contract_sets_what_our_own_keys_set() {
    let theirs = with(&[
        "spark.flint.job.sessionId=s/1",
        "spark.flint.job.requestIndex=.query_execution_request_x",
        "spark.flint.datasource.name=x",
        "spark.flint.job.inactivityLimitMillis=180000",
        "spark.flint.job.queryExecutionTimeoutSec=1800",
        "spark.flint.job.queryWaitTimeoutMillis=5000",
        "spark.flint.job.queryLoopExecutionFrequency=250",
        "spark.flint.deployment.excludeJobs=a, b",
        "spark.executor.cores=2",
    ])
    .expect("all known");
    assert_eq!(theirs.session.as_deref(), Some("s/1"));
    assert_eq!(theirs.policy.inactivity, 180_000);
    assert_eq!(theirs.policy.execution_timeout, 1_800_000);
    assert_eq!(theirs.policy.wait_timeout, 5_000);
    assert_eq!(theirs.policy.poll, 250);
    assert_eq!(theirs.exclude_jobs, ["a", "b"]);
    assert_eq!(theirs.ignored, ["spark.executor.cores"]);
    assert!(!theirs.names_opensearch);
    let ours = with(&["firesteel.session=s/1", "firesteel.execution-timeout=30min", "firesteel.exclude-jobs=a,b"])
        .expect("all known");
    assert_eq!(ours.session, theirs.session);
    assert_eq!(ours.policy.execution_timeout, theirs.policy.execution_timeout);
    assert_eq!(ours.exclude_jobs, theirs.exclude_jobs);
}

#[test]
fn a_query_is_unescaped_once_whichever_way_it_comes() {
    for argument in [r#"spark.flint.job.query="SELECT \"a\"\nFROM t""#, r#"spark.flint.job.query=SELECT \"a\"\nFROM t"#]
    {
        assert_eq!(with(&[argument]).expect("known").query.as_deref(), Some("SELECT \"a\"\nFROM t"), "{argument}");
    }
    let own = with(&[r"firesteel.query=SELECT '\n'"]).expect("known");
    assert_eq!(own.query.as_deref(), Some(r"SELECT '\n'"));
}

#[test]
fn what_is_wrong_names_key_value_and_what_was_expected() {
    assert_eq!(
        refused("firesteel.heartbeat=often"),
        "firesteel.heartbeat: `often` is not a duration such as 100ms, 20s or 10min"
    );
    assert_eq!(
        refused("firesteel.heartbeat=20"),
        "firesteel.heartbeat: `20` is not a duration such as 100ms, 20s or 10min"
    );
    assert_eq!(
        refused("spark.flint.job.queryExecutionTimeoutSec=x"),
        "spark.flint.job.queryExecutionTimeoutSec: `x` is not a duration such as 100ms, 20s or 10min"
    );
    assert_eq!(refused("firesteel.on-stop=die"), "firesteel.on-stop: `die` is not one of end, handover");
    assert_eq!(refused("firesteel.result-rows=-1"), "firesteel.result-rows: `-1` is not a whole number, or none");
    assert_eq!(
        refused("firesteel.hartbeat=1s"),
        "unknown setting `firesteel.hartbeat` (did you mean `firesteel.heartbeat`? docs/configuration.md lists all)"
    );
    assert_eq!(
        refused("spark.flint.job.type=streaming"),
        "spark.flint.job.type: `streaming` is not something that there is to run: streaming jobs are not supported; use interactive or batch"
    );
}

#[test]
fn a_store_is_a_url_of_opensearch_or_a_file() {
    for right in ["http://h", "https://u:p@h:9200", "a/b.db", "/tmp/x", "sqlite:a.db"] {
        assert_eq!(with(&[&format!("firesteel.store={right}")]).expect(right).store.as_deref(), Some(right));
    }
    let expected = "is not http://HOST[:PORT], https://HOST[:PORT] or the path of a file";
    assert_eq!(refused("firesteel.store=ftp://x"), format!("firesteel.store: `ftp://x` {expected}"));
    assert_eq!(refused("firesteel.store=http://"), format!("firesteel.store: `http://` {expected}"));
    assert_eq!(refused("firesteel.store=ftp://u:hush@x"), format!("firesteel.store: what is given {expected}"));
}

#[test]
fn sizes_into_which_nothing_fits_are_refused() {
    for (key, value, expected) in [
        ("memory", "0", "at least 1MiB"),
        ("memory", "1kB", "at least 1MiB"),
        ("worker-memory", "0", "at least 1MiB"),
        ("spill", "0", "more than no bytes"),
        ("document-bytes", "0MB", "more than no bytes"),
        ("result-bytes", "0", "more than no bytes, or none"),
        ("result-rows", "0", "more than none, or none"),
    ] {
        let told = format!("firesteel.{key}: `{value}` is not {expected}");
        assert_eq!(refused(&format!("firesteel.{key}={value}")), told);
    }
}

#[test]
fn a_secret_is_never_shown() {
    let configuration = with(&["spark.datasource.flint.auth.password=hush"]).expect("known");
    assert!(configuration.names_opensearch);
    assert!(!format!("{configuration:?}").contains("hush"));
    assert_eq!(configuration.password, Some(Hidden("hush".to_owned())));
}

#[test]
fn a_control_plane_writes_out_empty_values() {
    let configuration = with(&["spark.flint.job.sessionId=", "spark.flint.deployment.excludeJobs="]).expect("known");
    assert_eq!((configuration.session, configuration.exclude_jobs), (None, vec![]));
}

#[test]
fn the_lease_follows_the_heartbeat_unless_it_is_set() {
    assert_eq!(with(&["firesteel.heartbeat=1s"]).expect("known").policy.lease, 3_000);
    assert_eq!(with(&["firesteel.heartbeat=1s", "firesteel.lease=10s"]).expect("known").policy.lease, 10_000);
}

#[test]
fn the_defaults_that_are_told_are_the_defaults() {
    let plain = Configuration::default();
    for key in KEYS.iter().filter(|k| matches!(k.group, Group::Times | Group::Results)) {
        let mut set = plain.clone();
        if (key.set)(&mut set, key.default).is_ok() {
            assert_eq!(format!("{set:?}"), format!("{plain:?}"), "{:?}", key.option);
        } else {
            // What they are depends on another setting, so their column is no value.
            assert!(matches!(key.option, Some("lease" | "poll-busy")), "{:?}", key.option);
        }
    }
    let mut memory = plain.clone();
    memory.conf("firesteel.memory=1GiB").expect("a size");
    memory.conf("firesteel.spill=10GiB").expect("a size");
    memory.conf("firesteel.cancel-grace=500ms").expect("a duration");
    memory.conf("firesteel.retire-idle=10min").expect("a duration");
    assert_eq!(memory.engine, plain.engine);
}

#[test]
fn no_key_is_there_twice() {
    let mut names: Vec<String> = KEYS
        .iter()
        .filter_map(Key::conf)
        .chain(KEYS.iter().filter_map(|k| k.spark.map(|s| s.name.to_owned())))
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_manual_is_the_table() {
    expect_file![concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md")].assert_eq(&manual());
}

fn manual() -> String {
    let mut text = String::from(
        "# Settings

Made from the table in `runner/src/conf/keys.rs`; `UPDATE_EXPECT=1 cargo test --release -p firesteel` writes it anew.

Each setting is an option (`--heartbeat 20s`), a key of Firesteel's (`--conf firesteel.heartbeat=20s`) and, where the launch contract has
one, a key of Spark's (`--conf spark.flint.job.…`). An option wins over `--conf`; of two equal ones the last wins. Times carry a unit (`100ms`, `20s`,
`10min`, `1h`), plain numbers are taken only in Spark's keys, in the unit that their names say. Sizes are bytes or carry one (`512MB`,
`1GiB`). What may be given several times is separated by commas in `--conf`. An unknown key of Firesteel's is an error; unknown keys of
Spark's are accepted and listed once at `--log debug`.

Which commands take what: `run` all of it; `repl` *Engine*, *Results*, *Times* and *Logs*; `submit` and `status` *Store*, *Session* and *Logs*.
",
    );
    for group in Group::ALL {
        text += &format!(
            "\n## {}\n| option, key | Spark's key | default | meaning |\n|---|---|---|---|\n",
            group.heading()
        );
        for key in KEYS.iter().filter(|key| key.group == group) {
            let option = match key.option {
                Some(option) if key.value.is_empty() => format!("`--{option}`, `firesteel.{option}`"),
                Some(option) => format!("`--{option} {}`, `firesteel.{option}`", key.value.replace('|', "\\|")),
                None => "–".to_owned(),
            };
            let spark = key.spark.map_or("–".to_owned(), |spark| format!("`{}`", spark.name));
            let default = if key.default.is_empty() { "–" } else { key.default };
            let times = if key.list { "; may be given several times" } else { "" };
            text += &format!("| {option} | {spark} | {} | {}{times} |\n", default.replace('<', "&lt;"), key.what);
        }
    }
    text += "
## Environment
| variable | meaning |
|---|---|
| `SERVERLESS_EMR_VIRTUAL_CLUSTER_ID` | the application that a launcher runs the job for (`applicationId`) |
| `SERVERLESS_EMR_JOB_ID` | the job's id (`jobId`). With one, a missing index or session means \"not yet\" and is never made; without one, both are made at once |
| `NO_COLOR` | no colours |

## The launch contract
`firesteel [run] [--class CLASS] [--conf KEY=VALUE]… [[QUERY] RESULT_INDEX]`, or the same in one argument, the submit-parameter string of a control
plane, whose values may be double-quoted with Java's escapes. `CLASS` is `org.apache.spark.sql.FlintREPL` (a session's statements) or
`org.apache.spark.sql.FlintJob` (one statement). `spark-submit`'s own options in that string (`--jars`, `--name`, …) are passed over.
";
    text
}
