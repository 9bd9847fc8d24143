//! Compiling in a process of its own: what a component costs to compile, or does to what compiles it, is no harm to anybody else.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::cache::{Cache, Code, hash};
use crate::clock;
use crate::component;

/// The hidden command of the program that compiles: `plugin-compile`, source on standard input, code on standard output.
pub const COMMAND: &str = "plugin-compile";
/// How long compiling may take, unless the operator says otherwise.
pub const TIME: Duration = Duration::from_secs(600);
/// The address space of a process that compiles, in bytes.
const SPACE: u64 = 8 << 30;

/// The code of a source, from the cache or compiled now, by `program`.
///
/// # Errors
/// It cannot be compiled, takes too long, or cannot be kept.
pub fn code(cache: &Cache, source: &[u8], program: &Path, time: Duration) -> Result<Code, String> {
    let sum = hash(source);
    if let Some(code) = cache.find(&sum) {
        return Ok(code);
    }
    let code = elsewhere(source, program, time)?;
    cache.put(&sum, &code).map_err(|e| format!("{}: compiled code cannot be kept: {e}", cache.folder().display()))
}

/// Compiles a source in a process of its own.
fn elsewhere(source: &[u8], program: &Path, time: Duration) -> Result<Vec<u8>, String> {
    let start = |e: &dyn std::fmt::Display| format!("a process that compiles cannot be started: {e}");
    let mut child = Command::new(program)
        .arg(COMMAND)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| start(&e))?;
    let (Some(mut give), Some(mut take), Some(mut errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(start(&"it has no pipes"));
    };
    let (code, said, late) = thread::scope(|scope| {
        // Whoever stops reading has its reason, which it tells.
        scope.spawn(move || give.write_all(source));
        let code = scope.spawn(move || {
            let mut code = Vec::new();
            take.read_to_end(&mut code).map(|_| code)
        });
        let said = scope.spawn(move || {
            let mut said = Vec::new();
            let _ = errors.by_ref().take(4096).read_to_end(&mut said);
            String::from_utf8_lossy(&said).trim().to_owned()
        });
        let until = clock::now() + time;
        let mut late = false;
        while !code.is_finished() {
            if clock::now() >= until {
                late = true;
                let _ = child.kill();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        (code.join().map_err(|_| ()), said.join().unwrap_or_default(), late)
    });
    let ended = child.wait().map_err(|e| e.to_string())?;
    if late {
        return Err(format!(
            "limit `compile`: it was not compiled within {} s; make it smaller, or raise --compile-time",
            time.as_secs_f64()
        ));
    }
    match (ended.success(), code) {
        (true, Ok(Ok(code))) => Ok(code),
        (_, _) if !said.is_empty() => Err(said),
        _ => Err(format!("what compiles it ended early ({ended}), perhaps for want of memory")),
    }
}

/// The process that compiles.
#[must_use]
pub fn main() -> ExitCode {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let space = rustix::process::Rlimit { current: Some(SPACE), maximum: Some(SPACE) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::As, space);
    // Ends with whoever waits for it.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let done = read().and_then(|source| component::compile(&source)).and_then(|code| {
        let mut out = std::io::stdout().lock();
        out.write_all(&code).and_then(|()| out.flush()).map_err(|e| e.to_string())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn read() -> Result<Vec<u8>, String> {
    let mut source = Vec::new();
    let mut input = File::open("/dev/stdin").map_err(|e| e.to_string())?.take(component::LARGEST + 1);
    input.read_to_end(&mut source).map_err(|e| e.to_string())?;
    Ok(source)
}
