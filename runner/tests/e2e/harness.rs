//! Processes of the binary, each with a deadline, none outliving its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).canonicalize().expect("the repository is there")
}

/// The sample tables.
pub fn samples() -> String {
    repository().join("sample-data").display().to_string()
}

/// A home folder: the default store is in it.
pub struct Home {
    dir: TempDir,
}

/// What a process said, and how it ended.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; -1: a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Answer {
    /// The output of a process that succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }
}

impl Home {
    pub fn new() -> Home {
        Home { dir: TempDir::new().expect("a temporary folder") }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file in the home folder.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below the home")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// A program that sees this home and no other surroundings that matter.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for variable in
            ["XDG_DATA_HOME", "XDG_CACHE_HOME", "SERVERLESS_EMR_JOB_ID", "SERVERLESS_EMR_VIRTUAL_CLUSTER_ID"]
        {
            command.env_remove(variable);
        }
        command.env("HOME", self.path()).env("TMPDIR", self.path());
        command
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_firesteel"));
        command.args(arguments);
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        finish(self.command(arguments), "")
    }

    /// Runs to the end, with this as standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Answer {
        finish(self.command(arguments), input)
    }

    /// Asks the prompt, which is none here: results without times.
    pub fn ask(&self, statements: &str) -> Answer {
        self.run_with(&["repl", "--data", &samples()], &format!("\\timing\n{statements}"))
    }

    /// Starts a process and lets it run.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::new(self.command(arguments))
    }

    /// A runner of the default session, serving.
    pub fn serve(&self, arguments: &[&str]) -> Running {
        let mut all = vec!["run"];
        let samples = samples();
        all.extend(["--data", &samples]);
        all.extend(arguments);
        let mut running = self.start(&all);
        running.says("serving the session");
        running
    }

    /// All that `status` shows.
    pub fn status(&self) -> Vec<Value> {
        let out = self.run(&["status", "--format", "json"]).ok();
        out.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect()
    }

    /// The state of the statement with this query id, or of this session.
    pub fn state_of(&self, id: &str) -> Option<String> {
        self.status().iter().find(|row| is_of(row, id))?["state"].as_str().map(str::to_owned)
    }

    /// Asks `status` until it shows a row that is so.
    #[track_caller]
    pub fn until_any(&self, is_so: impl Fn(&Value) -> bool) {
        let mut last = Vec::new();
        for _ in 0..2_000 {
            last = self.status();
            if last.iter().any(&is_so) {
                return;
            }
        }
        panic!("nothing ever was so: {last:?}");
    }

    /// Asks `status` until the statement or session is in this state.
    #[track_caller]
    pub fn reaches(&self, id: &str, state: &str) {
        self.until_any(|row| is_of(row, id) && row["state"] == state);
    }
}

/// Whether the row is of the statement with this query id, or of this session.
pub fn is_of(row: &Value, id: &str) -> bool {
    row["queryId"] == id || (row["type"] == "session" && row["sessionId"] == id)
}

/// Runs a command to its end, or kills it at the deadline.
pub fn finish(mut command: Command, input: &str) -> Answer {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = Pid::from_child(&child);
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let (done, ended) = channel();
    std::thread::spawn(move || {
        // It may end before it has read everything.
        let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let _ = done.send(child.wait_with_output());
        drop(writing);
    });
    let Ok(output) = ended.recv_timeout(DEADLINE) else {
        let _ = kill_process(pid, Signal::KILL);
        panic!("not done in time: {command:?}");
    };
    let output = output.expect("it can be waited for");
    Answer {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A process that runs until it is told to stop, or the test ends.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: String,
    reader: Option<JoinHandle<()>>,
    out: Option<JoinHandle<String>>,
}

impl Running {
    pub fn new(mut command: Command) -> Running {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (lines, received) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut stdout = child.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let out = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            text
        });
        Running { child, lines: received, seen: String::new(), reader: Some(reader), out: Some(out) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of its log holds this text, and returns the line.
    #[track_caller]
    pub fn says(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => {
                    self.seen += &format!("{line}\n");
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("it never said `{text}`, but:\n{}", self.seen),
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for its end.
    pub fn ends(mut self) -> Answer {
        // Its log ends when it does.
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it does not end; it said:\n{}", self.seen),
            }
        }
        let status = self.child.wait().expect("it can be waited for");
        let out = self.out.take().and_then(|out| out.join().ok()).unwrap_or_default();
        Answer { code: status.code().unwrap_or(-1), out, err: std::mem::take(&mut self.seen) }
    }

    /// SIGTERM, and its end.
    pub fn stops(self) -> Answer {
        self.signal(Signal::TERM);
        self.ends()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
