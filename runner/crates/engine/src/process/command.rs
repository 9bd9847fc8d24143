//! The command that starts a worker, and what it is given of ours.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::settings::Settings;

/// What the worker's environment keeps of ours. No credentials, nothing that changes what a program loads.
const ENVIRONMENT: &[&str] = &["TZ", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What starts a worker that talks over `socket`.
pub(super) fn of(settings: &Settings, socket: UnixStream, errors: &File) -> Command {
    // The running program itself, even if its file was replaced since.
    let own = PathBuf::from("/proc/self/exe");
    let program = settings.executable.clone().unwrap_or(own);
    let mut command = Command::new(program);
    command
        .arg0("firesteel")
        .arg("worker")
        .env_clear()
        .envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        // Each arena of the allocator keeps what its threads gave back; two do for as many threads as a worker has at work.
        .env("MALLOC_ARENA_MAX", "2")
        .current_dir("/")
        // A Ctrl-C at the prompt is for the runner.
        .process_group(0)
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null())
        .stderr(errors.try_clone().map_or_else(|_| Stdio::null(), Stdio::from));
    command
}
