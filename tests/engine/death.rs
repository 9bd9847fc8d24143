//! A worker that dies takes one statement with it; the session goes on as it was.

use std::process::{Command, Stdio};
use std::time::Duration;

use futures::StreamExt;

use crate::bench::{Bench, error, listed, until, used};

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

const LONG: &str = "SELECT value FROM generate_series(1, 90000000000) WHERE value % 7 = 8";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_is_told_of_and_the_next_has_the_sessions_state() {
    let bench = Bench::new().file("t.csv", "a,b\n1,x\n2,y\n");
    bench.ok("CREATE VIEW v AS SELECT a + 1 AS c FROM t").await;
    bench.ok("SET spark.sql.session.timeZone = +02:00").await;
    bench.ok("USE mys3.default").await;
    bench.ok("PREPARE p AS SELECT c FROM v WHERE c > $1").await;
    let pid = bench.pid().await;
    let mut output = bench.begin(LONG).await.unwrap();
    let before = used(pid);
    until("the worker is at work", || used(pid) > before).await;
    kill(pid);
    let died = output.batches.next().await.unwrap().unwrap_err();
    assert_eq!(error(&died), "died: killed by signal 9 from outside, perhaps because the machine ran out of memory");
    assert!(output.batches.next().await.is_none(), "nothing follows");
    until("the worker is reaped", || !listed(pid)).await;
    assert_eq!(bench.ok("SELECT * FROM v").await, "c: Int64\n2\n3\n");
    assert_eq!(
        bench.ok("SET spark.sql.session.timeZone").await,
        "key: Utf8 | value: Utf8\nspark.sql.session.timezone | +02:00\n"
    );
    assert_eq!(bench.ok("EXECUTE p(2)").await, "c: Int64\n3\n");
    assert_ne!(bench.pid().await, pid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_while_idle_is_replaced_unseen() {
    let bench = Bench::with(|s| s.spare = true);
    bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    let pid = bench.pid().await;
    kill(pid);
    until("the worker is reaped", || !listed(pid)).await;
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_is_retired_and_rebuilt_when_it_is_needed() {
    let bench = Bench::with(|s| s.retire_idle_millis = 50);
    bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    if let Some(pid) = bench.engine.worker_pid().await {
        until("the worker is retired", || !listed(pid)).await;
    }
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n1\n");
}

#[tokio::test]
async fn a_define_that_was_taken_back_is_not_in_the_next_worker() {
    let bench = Bench::new();
    bench.ok("CREATE VIEW kept AS SELECT 1 AS a").await;
    // Run, but never journalled: its statement was cancelled at the last moment.
    let output = bench.begin("CREATE VIEW lost AS SELECT 2 AS a").await.unwrap();
    crate::bench::collect(output).await.unwrap();
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT a FROM kept").await, "a: Int64\n1\n");
    assert_eq!(bench.fails("SELECT a FROM lost").await, "ANALYSIS there is no table `lost`; there is `kept`");
}

#[tokio::test]
async fn a_define_that_was_run_and_not_journalled_is_undone_even_without_a_word() {
    let bench = Bench::new();
    let output = bench.begin("CREATE VIEW lost AS SELECT 2 AS a").await.unwrap();
    crate::bench::collect(output).await.unwrap();
    assert_eq!(bench.fails("SELECT a FROM lost").await, "ANALYSIS there is no table `lost`, and no other");
}

#[tokio::test]
async fn a_view_whose_file_is_gone_says_so_and_nothing_else_is_hurt() {
    let bench = Bench::new().file("t.csv", "a\n1\n");
    bench.ok("CREATE VIEW v AS SELECT a FROM t").await;
    bench.ok("CREATE VIEW w AS SELECT 5 AS b").await;
    std::fs::remove_file(bench.data().join("t.csv")).unwrap();
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT b FROM w").await, "b: Int64\n5\n");
    assert_eq!(
        bench.fails("SELECT a FROM v").await,
        "ANALYSIS `v` could not be made again from the session's journal: there is no table `t`, and no other; make it anew, or DROP it"
    );
}

#[tokio::test]
async fn a_program_that_is_no_worker_and_a_folder_that_is_none_are_told_of() {
    let bench = Bench::with(|s| s.executable = Some("/bin/false".into()));
    assert_eq!(bench.fails("SELECT 1").await, "died: it exited with code 1");
    let bench = Bench::with(|s| s.data = vec!["/no/such/folder".into()]);
    assert_eq!(
        bench.fails("SELECT 1").await,
        "INTERNAL the data folder /no/such/folder cannot be read: No such file or directory (os error 2)"
    );
    let bench = Bench::with(|s| s.executable = Some("/no/such/program".into()));
    assert_eq!(
        bench.fails("SELECT 1").await,
        "INTERNAL a worker could not be started: No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn closing_ends_the_workers() {
    use firesteel_session::ports::Engine;
    let bench = Bench::with(|s| s.spare = true);
    bench.ok("SELECT 1").await;
    let pid = bench.pid().await;
    bench.engine.close().await;
    assert!(!listed(pid), "reaped");
    assert_eq!(
        std::fs::read_dir(bench.dir.path().join("spill")).unwrap().count(),
        0,
        "nothing is left in the spill folder"
    );
}

/// The worker's socket is all that ties it to its runner: when that closes, it leaves, even in the middle of a query.
#[tokio::test]
async fn a_worker_leaves_when_its_runner_is_gone() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_firesteel"))
        .arg("worker")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    drop(ours);
    let end = async {
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::bench::PATIENCE, end).await.expect("it leaves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_that_overflows_is_told_of_and_the_next_statement_is_answered() {
    let bench = Bench::with(|s| s.stack = 600 * 1024);
    bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    let deep = format!("SELECT {}1", "1 + ".repeat(50_000));
    assert_eq!(bench.fails(&deep).await, "died: stack overflow: the statement nests too deeply");
    assert_eq!(bench.ok("SELECT a FROM v").await, "a: Int64\n1\n");
}

#[tokio::test]
async fn a_worker_has_no_new_privileges_and_none_of_our_environment() {
    let bench = Bench::new();
    bench.ok("SELECT 1").await;
    let pid = bench.pid().await;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let names: Vec<String> = environment
        .split(|b| *b == 0)
        .filter(|v| !v.is_empty())
        .map(|v| String::from_utf8_lossy(v).split('=').next().unwrap_or_default().to_owned())
        .collect();
    // The last is the worker's own.
    let kept = ["TZ", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "MALLOC_ARENA_MAX"];
    assert!(names.iter().all(|n| kept.contains(&n.as_str())), "{names:?}");
}

#[tokio::test]
async fn an_external_table_keeps_its_columns_when_it_is_made_again() {
    let bench = Bench::new().file("sub/x.csv", "a,b\n1,x\n");
    bench.ok("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'sub/x.csv' OPTIONS ('format.has_header' 'true')").await;
    assert_eq!(bench.ok("SELECT * FROM e").await, "a: Int64 | b: Utf8\n1 | x\n");
    std::fs::write(bench.data().join("sub/x.csv"), "a,b\n2,3\n").unwrap();
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT * FROM e").await, "a: Int64 | b: Utf8\n2 | 3\n", "text, as it was");
    std::fs::remove_file(bench.data().join("sub/x.csv")).unwrap();
    bench.journal.lock().unwrap().taint();
    assert_eq!(
        bench.fails("SELECT * FROM e").await,
        "ANALYSIS `e` could not be made again from the session's journal: there is no file or folder `sub/x.csv`; make it anew, or DROP it"
    );
}

#[tokio::test]
async fn a_table_of_folders_keeps_the_columns_of_its_paths() {
    let bench = Bench::new().file("p/year=2023/x.csv", "a\n1\n").file("p/year=2024/x.csv", "a\n2\n");
    bench
        .ok("CREATE EXTERNAL TABLE p STORED AS CSV PARTITIONED BY (year) LOCATION 'p/' OPTIONS ('format.has_header' 'true')")
        .await;
    let sql = "SELECT a, CAST(year AS INT) AS y FROM p ORDER BY a";
    assert_eq!(bench.ok(sql).await, "a: Int64 | y: Int32\n1 | 2023\n2 | 2024\n");
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok(sql).await, "a: Int64 | y: Int32\n1 | 2023\n2 | 2024\n");
}
