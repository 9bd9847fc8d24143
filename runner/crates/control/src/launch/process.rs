//! Jobs as processes of this machine: one a session, or one for all sessions.
//!
//! Each job has a folder, so that whoever comes next knows of it: a lock that its processes hold as long as they live, their log, and the exit code.
//! A shell stands between, which writes the exit code down even when nobody waits for it, and hands signals on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use async_trait::async_trait;
use firesteel_model::JobId;
use firesteel_model::steer::JobState;
use firesteel_session::ports::control::{Launch, LaunchError, Launcher, Task};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sha2::{Digest, Sha256};

/// Writes down who it is, runs its arguments, hands signals on, and writes down how they ended. Its standard input is the lock.
const SHELL: &str = r#"echo $$ >"$0/pid.new" && mv "$0/pid.new" "$0/pid"
"$@" <&0 & child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT HUP
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
echo "$code" >"$0/exit.new" && mv "$0/exit.new" "$0/exit""#;

/// The end of a log that is read at most, in bytes.
const TAIL: u64 = 64 * 1024;
/// Lines of a failed job's log that its reason quotes.
const LAST_WORDS: usize = 5;
/// Folders of jobs that have ended beyond this number are removed, oldest first.
const MOST_ENDED: usize = 500;

/// How jobs are started.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The program.
    pub program: PathBuf,
    /// What it is given beside what the job is to do.
    pub arguments: Vec<String>,
    /// Where the jobs' folders are.
    pub folder: PathBuf,
    /// One process serves all sessions, and ends when it has served none for so many milliseconds. None: each session has its own.
    pub shared: Option<u64>,
    /// An id that nobody else has.
    pub unique: fn() -> String,
}

/// Jobs as processes of this machine.
#[derive(Clone, Debug)]
pub struct Process {
    options: ProcessOptions,
}

fn unavailable(what: &str, error: &io::Error) -> LaunchError {
    LaunchError::Unavailable(format!("{what}: {error}"))
}

fn refused(what: &str, error: &io::Error) -> LaunchError {
    LaunchError::Refused(format!("{what}: {error}"))
}

impl Process {
    /// Jobs in a folder, which is made if it is missing.
    ///
    /// # Errors
    /// `Refused`: it can't be made.
    pub fn new(options: ProcessOptions) -> Result<Process, LaunchError> {
        fs::create_dir_all(&options.folder)
            .map_err(|e| refused(&format!("the jobs' folder `{}` can't be made", options.folder.display()), &e))?;
        Ok(Process { options })
    }

    fn folder(&self, job: &JobId) -> PathBuf {
        self.options.folder.join(name_of(job.as_str()))
    }

    /// Nobody else starts jobs in this folder as long as the file is held.
    fn alone(&self) -> Result<File, LaunchError> {
        let path = self.options.folder.join("starting");
        let file = open(&path).map_err(|e| unavailable("the jobs' folder", &e))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| unavailable("the jobs' folder", &e.into()))?;
        Ok(file)
    }

    fn start_now(&self, launch: &Launch) -> Result<JobId, LaunchError> {
        let _alone = self.alone()?;
        self.prune();
        let id = |text: String| JobId::new(text).map_err(|bad| LaunchError::Refused(bad.to_string()));
        let Some(idle) = self.options.shared.filter(|_| matches!(launch.task, Task::Session(_))) else {
            let job = id(format!("job-{}", hex(launch.token.as_bytes())))?;
            return self.spawn(&job, launch, self.own(launch));
        };
        let current = self.options.folder.join("shared");
        if let Ok(there) = fs::read_to_string(&current) {
            let job = id(there.trim().to_owned())?;
            if self.look(&job) == JobState::Running && !self.folder(&job).join("cancelled").exists() {
                return Ok(job);
            }
        }
        let job = id(format!("shared-{}", (self.options.unique)()))?;
        fs::write(&current, job.as_str()).map_err(|e| unavailable("the jobs' folder", &e))?;
        let all = ["--sessions=*", &format!("--exit-idle={idle}ms"), "--standby"].map(str::to_owned).to_vec();
        self.spawn(&job, launch, all)
    }

    /// What the program is told to do for one job.
    fn own(&self, launch: &Launch) -> Vec<String> {
        let mut arguments = Vec::new();
        for (key, value) in &launch.settings {
            arguments.extend(["--conf".to_owned(), format!("{key}={value}")]);
        }
        match &launch.task {
            Task::Session(session) => arguments.push(format!("--session={session}")),
            Task::Batch { query_id, query } => {
                arguments.extend([
                    "--type=batch".to_owned(),
                    format!("--query-id={query_id}"),
                    format!("--query={}", query.0),
                ]);
            }
            Task::Contract { class, conf, query, result_index } => {
                arguments.extend(["--class".to_owned(), class.clone()]);
                for pair in conf {
                    arguments.extend(["--conf".to_owned(), pair.0.clone()]);
                }
                arguments.extend(query.iter().map(|query| format!("--query={}", query.0)));
                arguments.extend(result_index.iter().map(|index| format!("--result-index={index}")));
            }
        }
        arguments
    }

    /// Starts a job in its folder, unless it was started before.
    fn spawn(&self, job: &JobId, launch: &Launch, task: Vec<String>) -> Result<JobId, LaunchError> {
        let folder = self.folder(job);
        let failed = |e: &io::Error| unavailable(&format!("the job's folder `{}`", folder.display()), e);
        fs::create_dir_all(&folder).map_err(|e| failed(&e))?;
        if folder.join("pid").exists() {
            return Ok(job.clone());
        }
        let lock = open(&folder.join("lock")).map_err(|e| failed(&e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            // It is being started.
            return Ok(job.clone());
        }
        fs::write(folder.join("name"), job.as_str()).map_err(|e| failed(&e))?;
        let log = open(&folder.join("log")).map_err(|e| failed(&e))?;
        let twin = log.try_clone().map_err(|e| failed(&e))?;
        // The contract's arguments say the data source themselves.
        let source = match launch.task {
            Task::Contract { .. } => None,
            _ => Some(format!("--data-source={}", launch.data_source)),
        };
        // Not on the command line, which everybody on this machine can see: a statement or a password may be among them.
        let file = folder.join("arguments");
        let arguments: Vec<&String> = self.options.arguments.iter().chain(&source).chain(&task).collect();
        let text = serde_json::to_vec(&arguments).map_err(|e| LaunchError::Refused(e.to_string()))?;
        let mut options = OpenOptions::new();
        let written = options.create(true).write(true).truncate(true).mode(0o600).open(&file);
        written.and_then(|mut file| file.write_all(&text)).map_err(|e| failed(&e))?;
        Command::new("/bin/sh")
            .args(["-c", SHELL])
            .arg(&folder)
            .arg(&self.options.program)
            .args(["run", "--arguments-file"])
            .arg(&file)
            .env("SERVERLESS_EMR_JOB_ID", launch.known_as.as_deref().unwrap_or(job.as_str()))
            .env("SERVERLESS_EMR_VIRTUAL_CLUSTER_ID", &launch.application)
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(log))
            .stderr(Stdio::from(twin))
            // What ends this program by a terminal's signal does not end its jobs.
            .process_group(0)
            .spawn()
            .map(reap)
            .map_err(|e| refused("a job's process could not be started", &e))?;
        Ok(job.clone())
    }

    fn look(&self, job: &JobId) -> JobState {
        let folder = self.folder(job);
        let Ok(lock) = File::open(folder.join("lock")) else { return JobState::Gone };
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_err() {
            return JobState::Running;
        }
        if folder.join("cancelled").exists() {
            return JobState::Cancelled;
        }
        let said = match fs::read_to_string(folder.join("exit")).ok().and_then(|code| code.trim().parse::<i32>().ok()) {
            Some(0) => return JobState::Succeeded,
            Some(code) if code > 128 => format!("signal {} ended it", code - 128),
            Some(code) => format!("exit code {code}"),
            None => "it was killed, or this machine was restarted".to_owned(),
        };
        let words = tail(&folder.join("log"), LAST_WORDS).join("\n");
        JobState::Failed { why: if words.is_empty() { said } else { format!("{said}; its log ends: {words}") } }
    }

    /// The first time it is asked to end; the second time it is made to.
    fn cancel_now(&self, job: &JobId) -> Result<(), LaunchError> {
        let folder = self.folder(job);
        if self.look(job) != JobState::Running {
            return Ok(());
        }
        let asked = folder.join("cancelled");
        let again = asked.exists();
        fs::write(&asked, "").map_err(|e| unavailable("the job's folder", &e))?;
        let pid = fs::read_to_string(folder.join("pid")).ok().and_then(|pid| pid.trim().parse::<i32>().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            return Err(LaunchError::Unavailable("the job has only just been started".to_owned()));
        };
        // The lock is held, so this group is the job's.
        let done = if again { kill_process_group(pid, Signal::KILL) } else { kill_process(pid, Signal::TERM) };
        done.map_err(|e| unavailable("the job could not be told to end", &e.into()))
    }

    fn jobs(&self) -> Vec<(JobId, PathBuf)> {
        let folders = fs::read_dir(&self.options.folder).into_iter().flatten().filter_map(Result::ok);
        let named = folders.filter_map(|folder| {
            let name = fs::read_to_string(folder.path().join("name")).ok()?;
            Some((JobId::new(name).ok()?, folder.path()))
        });
        named.collect()
    }

    /// Removes the folders of the jobs that ended longest ago.
    fn prune(&self) {
        let jobs = self.jobs();
        if jobs.len() <= MOST_ENDED {
            return;
        }
        let changed = |path: &Path| fs::metadata(path.join("exit")).and_then(|m| m.modified()).ok();
        let mut ended: Vec<_> = jobs
            .into_iter()
            .filter(|(job, _)| self.look(job).is_over())
            .map(|(_, path)| (changed(&path), path))
            .collect();
        ended.sort();
        let many = ended.len().saturating_sub(MOST_ENDED / 2);
        for (_, path) in ended.into_iter().take(many) {
            let _ = fs::remove_dir_all(path);
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Process) -> Result<T, LaunchError> + Send + 'static,
    ) -> Result<T, LaunchError> {
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        done.map_err(|e| LaunchError::Unknown(format!("the launcher's thread ended: {e}")))?
    }
}

#[async_trait]
impl Launcher for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    async fn start(&self, launch: &Launch) -> Result<JobId, LaunchError> {
        let launch = launch.clone();
        self.blocking(move |this| this.start_now(&launch)).await
    }

    async fn state(&self, _application: &str, job: &JobId) -> Result<JobState, LaunchError> {
        let job = job.clone();
        self.blocking(move |this| Ok(this.look(&job))).await
    }

    async fn cancel(&self, _application: &str, job: &JobId) -> Result<(), LaunchError> {
        let job = job.clone();
        self.blocking(move |this| this.cancel_now(&job)).await
    }

    async fn list(&self, _application: &str) -> Result<Vec<(JobId, JobState)>, LaunchError> {
        self.blocking(|this| Ok(this.jobs().into_iter().map(|(job, _)| (job.clone(), this.look(&job))).collect())).await
    }

    async fn log(&self, _application: &str, job: &JobId, lines: usize) -> Result<Vec<String>, LaunchError> {
        let job = job.clone();
        self.blocking(move |this| Ok(tail(&this.folder(&job).join("log"), lines))).await
    }

    fn shares_jobs(&self) -> bool {
        self.options.shared.is_some()
    }
}

/// Waits for the process, so that nothing of it is left when it has ended. How it ended is in its folder.
fn reap(mut child: Child) {
    let waiting = std::thread::Builder::new().name("job".to_owned()).spawn(move || drop(child.wait()));
    if let Err(error) = waiting {
        tracing::debug!(%error, "nobody waits for a job's shell");
    }
}

/// A name for a folder: a job's id as it is, unless it is none of ours.
fn name_of(job: &str) -> String {
    let plain = job.len() <= 100 && job.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if plain { job.to_owned() } else { format!("x-{}", hex(job.as_bytes())) }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A file that only its owner reads, made if it is missing.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)
}

/// The last lines of a file, without what moves a terminal's cursor.
fn tail(path: &Path, lines: usize) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut text = Vec::new();
        file.take(TAIL).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let plain = |line: &str| line.chars().filter(|c| !c.is_control() || *c == '\t').collect::<String>();
    let all: Vec<String> = text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].to_vec()
}
