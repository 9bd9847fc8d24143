//! Jobs as processes of this machine, with a shell script in the program's place.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use firesteel_control::launch::{Process, ProcessOptions};
use firesteel_model::steer::JobState;
use firesteel_model::{JobId, QueryText};
use firesteel_session::ports::control::{Launch, Launcher, Task};

use crate::world::id;

fn unique() -> String {
    "1".to_owned()
}

fn launcher(folder: &Path, shared: Option<u64>, script: &str) -> Process {
    let program = folder.join("program");
    if !program.exists() {
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let arguments = vec!["--store=x".to_owned()];
    Process::new(ProcessOptions { program, arguments, folder: folder.join("jobs"), shared, unique }).unwrap()
}

fn launch(token: &str, task: Task) -> Launch {
    Launch {
        token: token.to_owned(),
        known_as: None,
        name: String::new(),
        application: "app".to_owned(),
        task,
        data_source: "d".to_owned(),
        settings: vec![("firesteel.inactivity".to_owned(), "5ms".to_owned())],
    }
}

/// Waits until a job's state is such.
async fn until(launcher: &Process, job: &JobId, is: impl Fn(&JobState) -> bool) -> JobState {
    for _ in 0..3_000 {
        let state = launcher.state("app", job).await.unwrap();
        if is(&state) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the job is {:?}", launcher.state("app", job).await);
}

#[tokio::test]
async fn a_job_is_told_what_to_do_and_how_it_ended_is_known_to_whoever_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"echo "$SERVERLESS_EMR_VIRTUAL_CLUSTER_ID $1 $2 $# $(cat "$3")"; exit 3"#;
    let first = launcher(folder.path(), None, script);
    let job = first.start(&launch("t", Task::Session(id("a b")))).await.unwrap();
    let next = launcher(folder.path(), None, script);
    let state = until(&next, &job, JobState::is_over).await;
    let said = r#"app run --arguments-file 3 ["--store=x","--data-source=d","--conf","firesteel.inactivity=5ms","--session=a b"]"#;
    assert_eq!(state, JobState::Failed { why: format!("exit code 3; its log ends: {said}") });
    assert_eq!(next.log("app", &job, 9).await.unwrap(), [said]);
    assert_eq!(first.start(&launch("t", Task::Session(id("a b")))).await.unwrap(), job, "a token starts one job");
    assert_eq!(next.list("app").await.unwrap(), [(job, state)]);
    let unknown = JobId::new("../../etc").unwrap();
    assert_eq!(next.state("app", &unknown).await.unwrap(), JobState::Gone);
}

#[tokio::test]
async fn a_job_that_runs_is_running_to_another_launcher_and_ends_when_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 0' TERM; while :; do sleep 0.01; done";
    let first = launcher(folder.path(), None, script);
    let job = first.start(&launch("t", Task::Session(id("s")))).await.unwrap();
    drop(first);
    let next = launcher(folder.path(), None, script);
    until(&next, &job, |_| folder.path().join(format!("jobs/{job}/pid")).exists()).await;
    assert_eq!(next.state("app", &job).await.unwrap(), JobState::Running);
    next.cancel("app", &job).await.unwrap();
    assert_eq!(until(&next, &job, JobState::is_over).await, JobState::Cancelled);
    next.cancel("app", &job).await.unwrap();
}

#[tokio::test]
async fn a_job_that_does_not_end_is_killed_when_it_is_cancelled_again() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = launcher(folder.path(), None, "trap '' TERM; echo begun; while :; do sleep 0.01; done");
    let job = launcher.start(&launch("t", Task::Session(id("s")))).await.unwrap();
    until(&launcher, &job, |_| {
        std::fs::read_to_string(folder.path().join(format!("jobs/{job}/log"))).is_ok_and(|log| log == "begun\n")
    })
    .await;
    launcher.cancel("app", &job).await.unwrap();
    assert_eq!(launcher.state("app", &job).await.unwrap(), JobState::Running);
    launcher.cancel("app", &job).await.unwrap();
    until(&launcher, &job, JobState::is_over).await;
}

#[tokio::test]
async fn one_process_serves_all_sessions_until_it_ends_and_a_batch_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = launcher(
        folder.path(),
        Some(600_000),
        "trap 'exit 0' TERM; echo $# $(cat \"$3\"); while :; do sleep 0.01; done",
    );
    let one = launcher.start(&launch("s", Task::Session(id("s")))).await.unwrap();
    let two = launcher.start(&launch("t", Task::Session(id("t")))).await.unwrap();
    assert_eq!(one, two);
    let batch = Task::Batch { query_id: "q".to_owned(), query: QueryText("SELECT 'a b'".to_owned()) };
    let batch = launcher.start(&launch("b", batch)).await.unwrap();
    assert_ne!(batch, one);
    let log = |job: &JobId| {
        let path = folder.path().join(format!("jobs/{job}/log"));
        move |_: &JobState| std::fs::read_to_string(&path).is_ok_and(|log| log.ends_with('\n'))
    };
    for (job, said) in [
        (&one, r#"3 ["--store=x","--data-source=d","--sessions=*","--exit-idle=600000ms","--standby"]"#),
        (
            &batch,
            r#"3 ["--store=x","--data-source=d","--conf","firesteel.inactivity=5ms","--type=batch","--query-id=q","--query=SELECT 'a b'"]"#,
        ),
    ] {
        until(&launcher, job, log(job)).await;
        assert_eq!(launcher.log("app", job, 9).await.unwrap(), [said]);
        launcher.cancel("app", job).await.unwrap();
        until(&launcher, job, JobState::is_over).await;
    }
}
