//! The prompt on a terminal, which `script` (of util-linux) plays.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::harness::{Home, samples};

struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Receiver<String>,
    screen: String,
}

impl Terminal {
    /// A prompt, or None after saying aloud why there is none.
    fn new(home: &Home) -> Option<Terminal> {
        // `exec`, or the shell stays in between, gets Ctrl-C too and ends with 130.
        let line = format!("stty cols 100 rows 40; exec {} repl --data {}", env!("CARGO_BIN_EXE_firesteel"), samples());
        let mut script = home.program("script");
        script.args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"]);
        script
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let Ok(mut child) = script.spawn() else {
            eprintln!("SKIPPED: needs `script` of util-linux");
            return None;
        };
        let keys = child.stdin.take().expect("piped");
        let mut stdout = child.stdout.take().expect("piped");
        let (show, shown) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stdout.read(&mut buffer) {
                if show.send(String::from_utf8_lossy(&buffer[..n]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Some(Terminal { child, keys, shown, screen: String::new() })
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the terminal is there");
    }

    /// Waits until the terminal shows this, and forgets what it showed until then.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        while !self.screen.contains(text) {
            match self.shown.recv_timeout(Duration::from_secs(60)) {
                Ok(more) => self.screen += &more,
                Err(_) => panic!("it does not show `{text}`, but:\n{}", self.screen),
            }
        }
        self.screen = self.screen.split_once(text).map_or("", |(_, rest)| rest).to_owned();
    }

    #[track_caller]
    fn ends(mut self) -> i32 {
        while self.shown.recv_timeout(Duration::from_secs(60)).is_ok() {}
        self.child.wait().expect("it can be waited for").code().unwrap_or(-1)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PROMPT: &str = "firesteel> ";

#[test]
fn statements_over_several_lines_commands_and_history() {
    let home = Home::new();
    let Some(mut terminal) = Terminal::new(&home) else { return };
    terminal.shows(PROMPT);
    terminal.types("\\?\r");
    terminal.shows("A statement ends with ;");
    terminal.shows(PROMPT);
    terminal.types("SELECT city,\rstate FROM airports WHERE iata = 'BOS';\r");
    terminal.shows("│ Boston │ MA    │");
    terminal.shows("(1 row, ");
    terminal.shows(PROMPT);
    terminal.types("SELECT 'never run\x03");
    terminal.shows(PROMPT);
    // The last statement again.
    terminal.types("\x1b[A");
    terminal.shows("state FROM airports");
    terminal.types("\r");
    terminal.shows("│ Boston │ MA    │");
    terminal.shows(PROMPT);
    terminal.types("\x04");
    assert_eq!(terminal.ends(), 0);
    let history = std::fs::read_to_string(home.path().join(".local/share/firesteel/history")).expect("a history");
    assert!(history.contains("SELECT city,"), "{history}");
}

#[test]
fn a_running_statement_shows_how_far_it_is_and_ctrl_c_cancels_it() {
    let home = Home::new();
    let Some(mut terminal) = Terminal::new(&home) else { return };
    terminal.shows(PROMPT);
    terminal.types("SELECT count(*) FROM routes a, routes b, routes c;\r");
    terminal.shows(" read, ");
    terminal.types("\x03");
    terminal.shows("firesteel: the statement was cancelled");
    terminal.shows(PROMPT);
    terminal.types("SELECT 42 AS answer;\r");
    terminal.shows("│     42 │");
    terminal.shows(PROMPT);
    terminal.types("quit\r");
    assert_eq!(terminal.ends(), 0);
}
