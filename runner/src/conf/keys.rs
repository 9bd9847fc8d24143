//! The one table of settings: `--help`, `--conf` and docs/configuration.md are made of it.

use std::path::PathBuf;

use firesteel_model::Pattern;
use firesteel_model::policy::OnStop;
use firesteel_session::ports::LargeResults;
use firesteel_session::result::OnLimit;

use super::values::{Expected, duration, number, one_of, size, text, truth};
use super::{Auth, Configuration, Hidden, JobType, LogFormat, plain_access};

/// What a key is about, which decides the commands that take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Where sessions, statements and results are.
    Store,
    /// Which session.
    Session,
    /// What the job runs.
    Job,
    /// When the runner does what.
    Times,
    /// What statements may read and use.
    Engine,
    /// How large results may be.
    Results,
    /// Logs.
    Logs,
}

impl Group {
    /// All, in the order in which they are explained.
    pub const ALL: [Group; 7] =
        [Group::Store, Group::Session, Group::Job, Group::Engine, Group::Results, Group::Times, Group::Logs];

    /// The heading in `--help` and in the manual.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Group::Store => "Store",
            Group::Session => "Session",
            Group::Job => "Job",
            Group::Times => "Times",
            Group::Engine => "Engine",
            Group::Results => "Results",
            Group::Logs => "Logs",
        }
    }
}

/// A key of the launch contract with the same meaning.
#[derive(Clone, Copy, Debug)]
pub struct Spark {
    /// Its whole name.
    pub name: &'static str,
    /// The unit of a plain number.
    pub unit: Option<&'static str>,
    /// The value is Java-escaped.
    pub escaped: bool,
}

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// The option without its dashes. `firesteel.` and it make the key for `--conf`. None: only Spark's key sets it.
    pub option: Option<&'static str>,
    /// The launch contract's name for it.
    pub spark: Option<Spark>,
    /// What stands for the value in `--help`; empty for an option without a value.
    pub value: &'static str,
    /// What holds if it isn't set.
    pub default: &'static str,
    /// What it means: one sentence without its full stop.
    pub what: &'static str,
    /// What it is about.
    pub group: Group,
    /// May be given several times; in `--conf` separated by commas.
    pub list: bool,
    /// Its value is not shown, not even when it is wrong.
    pub secret: bool,
    /// Shown by `-h` and not only by `--help`.
    pub common: bool,
    /// Takes a value, or says what it expected.
    pub set: fn(&mut Configuration, &str) -> Result<(), Expected>,
}

impl Key {
    /// The key's name for `--conf`.
    #[must_use]
    pub fn conf(&self) -> Option<String> {
        self.option.map(|option| format!("firesteel.{option}"))
    }
}

type Set = fn(&mut Configuration, &str) -> Result<(), Expected>;

const fn key(
    group: Group,
    option: &'static str,
    value: &'static str,
    default: &'static str,
    what: &'static str,
    set: Set,
) -> Key {
    Key {
        option: Some(option),
        spark: None,
        value,
        default,
        what,
        group,
        list: false,
        secret: false,
        common: false,
        set,
    }
}

impl Key {
    const fn spark(mut self, name: &'static str) -> Key {
        self.spark = Some(Spark { name, unit: None, escaped: false });
        self
    }

    const fn spark_in(mut self, name: &'static str, unit: &'static str) -> Key {
        self.spark = Some(Spark { name, unit: Some(unit), escaped: false });
        self
    }

    const fn escaped(mut self) -> Key {
        if let Some(spark) = &mut self.spark {
            spark.escaped = true;
        }
        self
    }

    const fn without_option(mut self) -> Key {
        self.option = None;
        self
    }

    const fn list(mut self) -> Key {
        self.list = true;
        self
    }

    const fn secret(mut self) -> Key {
        self.secret = true;
        self
    }

    const fn common(mut self) -> Key {
        self.common = true;
        self
    }
}

macro_rules! set {
    ($field:ident $(. $more:ident)*, $read:expr) => {
        |c, v| {
            c.$field$(.$more)* = $read(v)?;
            Ok(())
        }
    };
    (some $field:ident $(. $more:ident)*, $read:expr) => {
        |c, v| {
            c.$field$(.$more)* = Some($read(v)?);
            Ok(())
        }
    };
}

fn path(value: &str) -> Result<PathBuf, Expected> {
    text(value).map(PathBuf::from).map_err(|_| "a path".to_owned())
}

/// `none` takes a limit away.
fn limit(value: &str, read: fn(&str) -> Result<u64, Expected>) -> Result<Option<u64>, Expected> {
    if value == "none" { Ok(None) } else { read(value).map(Some).map_err(|e| format!("{e}, or none")) }
}

fn threads(value: &str) -> Result<usize, Expected> {
    number(value)
        .ok()
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| "a number from 1 to 1024".to_owned())
}

fn positive(value: &str) -> Result<u64, Expected> {
    duration(value).and_then(|ms| if ms > 0 { Ok(ms) } else { Err("longer than nothing".to_owned()) })
}

/// Where a store may be. Whether an OpenSearch answers there is seen at the first request.
fn store(value: &str) -> Result<String, Expected> {
    let right = match value.split_once("://") {
        None => !value.is_empty(),
        Some(("http" | "https", _)) => firesteel_store::OpenSearchOptions::new(value).is_ok(),
        Some((scheme, _)) => scheme == "sqlite",
    };
    if right {
        Ok(value.to_owned())
    } else {
        Err("http://HOST[:PORT], https://HOST[:PORT] or the path of a file".to_owned())
    }
}

/// A size that something fits into.
fn room(value: &str) -> Result<u64, Expected> {
    size(value).and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("more than no bytes".to_owned()) })
}

/// Memory that a statement can be run in.
fn memory(value: &str) -> Result<u64, Expected> {
    size(value).and_then(|bytes| if bytes >= 1 << 20 { Ok(bytes) } else { Err("at least 1MiB".to_owned()) })
}

fn some(value: &str) -> Result<u64, Expected> {
    number(value).and_then(|n| if n > 0 { Ok(n) } else { Err("more than none".to_owned()) })
}

fn file_text(value: &str) -> Result<String, Expected> {
    let text = std::fs::read_to_string(value).map_err(|e| format!("a file that can be read ({e})"))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn job_type(value: &str) -> Result<JobType, Expected> {
    if value == "streaming" {
        return Err(
            "something that there is to run: streaming jobs are not supported; use interactive or batch".to_owned()
        );
    }
    one_of(value, &[("interactive", JobType::Interactive), ("batch", JobType::Batch)])
}

/// Every setting there is.
pub const KEYS: &[Key] = &[
    key(Group::Store, "store", "URL|FILE", "a SQLite file in the user's data folder", "Where sessions, statements and results are: `http(s)://HOST[:PORT]` is OpenSearch, anything else a SQLite file", set!(some store, store)).common(),
    key(Group::Store, "request-index", "NAME", "flint_ql_sessions", "The index of sessions and statements", set!(some request_index, text)).spark("spark.flint.job.requestIndex"),
    key(Group::Store, "result-index", "NAME", "query_execution_result_<data source>", "The index of results", set!(some result_index, text)).spark("spark.flint.job.resultIndex"),
    key(Group::Store, "state-index", "NAME", "firesteel_state", "The index of what is only Firesteel's: progress, result pages, markers", set!(some state_index, text)),
    key(Group::Store, "auth", "KIND", "noauth", "How requests to OpenSearch are authorised: noauth, basic or sigv4", set!(auth, |v| one_of(v, &[("noauth", Auth::None), ("basic", Auth::Basic), ("sigv4", Auth::SigV4)]))).spark("spark.datasource.flint.auth"),
    key(Group::Store, "username", "NAME", "", "The user, for basic", set!(some username, text)).spark("spark.datasource.flint.auth.username"),
    key(Group::Store, "password", "TEXT", "", "The password, for basic; others on this machine can see it in the list of processes, so prefer --password-file", set!(some password, |v: &str| Ok::<_, Expected>(Hidden(v.to_owned())))).spark("spark.datasource.flint.auth.password").secret(),
    key(Group::Store, "password-file", "FILE", "", "A file that holds the password", set!(some password, |v| file_text(v).map(Hidden))),
    key(Group::Store, "region", "NAME", "", "The AWS region, for sigv4", set!(some region, text)).spark("spark.datasource.flint.region"),
    key(Group::Store, "ca-file", "FILE", "the platform's certificates", "Certificates to trust, as PEM", set!(some ca_file, path)),
    key(Group::Store, "host", "NAME", "localhost", "OpenSearch's host", set!(some host, text)).spark("spark.datasource.flint.host").without_option(),
    key(Group::Store, "port", "NUMBER", "9200", "OpenSearch's port", set!(some port, number)).spark("spark.datasource.flint.port").without_option(),
    key(Group::Store, "scheme", "NAME", "http", "http or https", set!(some scheme, |v| one_of(v, &[("http", "http"), ("https", "https")]).map(str::to_owned))).spark("spark.datasource.flint.scheme").without_option(),
    key(Group::Store, "durability", "KIND", "full for run, normal for repl", "SQLite: full waits for the disk at each write, normal may lose the last writes to a power cut", set!(some durable, |v| one_of(v, &[("full", true), ("normal", false)]))),
    key(Group::Session, "session", "ID", "default, on a SQLite store", "The session", set!(some session, text)).spark("spark.flint.job.sessionId").common(),
    key(Group::Session, "data-source", "NAME", "local", "The data source, which is the default catalog", set!(some data_source, text)).spark("spark.flint.datasource.name").common(),
    key(Group::Job, "type", "TYPE", "interactive", "What the job runs: a session's statements (interactive) or one (batch)", set!(some job_type, job_type)).spark("spark.flint.job.type"),
    key(Group::Job, "sessions", "PATTERN", "", "Serve every session whose id is like this, in which * stands for any characters, instead of one; sessions are not made, and the process ends when it is told to", |c, v| {
        c.sessions.push(Pattern::new(v).map_err(|bad| format!("a pattern such as team-* ({bad})"))?);
        Ok(())
    }).list().common(),
    key(Group::Job, "query", "SQL", "", "The statement of a batch job", set!(some query, text)).spark("spark.flint.job.query").escaped(),
    key(Group::Job, "query-id", "ID", "", "The query id of a batch job", set!(some query_id, text)).spark("spark.flint.job.queryId"),
    key(Group::Job, "exclude-jobs", "ID", "", "A job that must leave the session", |c, v| {
        c.exclude_jobs.extend(Some(v.trim()).filter(|v| !v.is_empty()).map(str::to_owned));
        Ok(())
    }).spark("spark.flint.deployment.excludeJobs").list(),
    key(Group::Job, "standby", "", "false", "Wait beside another runner of the session for as long as it lives, instead of leaving", set!(policy.standby, truth)).common(),
    key(Group::Job, "on-stop", "WHAT", "end", "What SIGTERM does to the session: end it, or leave it for a successor (handover)", set!(policy.on_stop, |v| one_of(v, &[("end", OnStop::End), ("handover", OnStop::Handover)]))),
    key(Group::Job, "exit-idle", "TIME", "never", "With --sessions: the process ends when it has served no session for so long", set!(some exit_idle, positive)),
    key(Group::Job, "timeout-state", "STATE", "failed", "The state of a statement that ran out of time: failed, or the peer's timeout", set!(policy.timeout_state, |v| one_of(v, &[("failed", false), ("timeout", true)]))),
    key(Group::Job, "metrics-addr", "HOST:PORT", "", "Serve Prometheus' metrics there, at /metrics", set!(some metrics_addr, text)).common(),
    key(Group::Engine, "data", "DIR", "", "A folder whose files are tables; nothing else on this machine is read", |c, v| {
        c.engine.data.push(path(v)?);
        Ok(())
    }).list().common(),
    key(Group::Engine, "export", "DIR", "", "A folder that statements may write into, by COPY (query) TO 'NAME' STORED AS PARQUET; without it they write nothing", set!(some engine.export, path)).common(),
    key(Group::Engine, "allow", "URL", "", "A bucket or host that may be read: s3://BUCKET[/PATH], https://HOST[:PORT][/PATH]; no other is", |c, v| {
        c.engine.stores.push(plain_access(&text(v)?));
        Ok(())
    }).list().common(),
    key(Group::Engine, "object-stores", "FILE", "", "Buckets and hosts that may be read, with endpoints and keys: a JSON array of {url, endpoint, region, access_key_id, secret_access_key, session_token}", |c, v| {
        let stores: Vec<_> = serde_json::from_str(&file_text(v)?).map_err(|e| format!("a JSON array of stores (line {}, column {})", e.line(), e.column()))?;
        c.engine.stores.extend::<Vec<firesteel_engine::settings::StoreAccess>>(stores);
        Ok(())
    }),
    key(Group::Engine, "plugins", "DIR", "", "The folder of query plugins, as firesteel plugin add fills it; a change there is picked up between statements", set!(some plugins, path)),
    key(Group::Engine, "bundled", "NAMES", "ppl", "Which of this program's own plugins statements may use without a folder of plugins: ppl, or none; one of the folder takes the place of one of its name", |c, v| {
        c.bundled = one_of(v, &[("ppl", &["ppl"][..]), ("none", &[][..])])?.iter().map(|name| (*name).to_owned()).collect();
        Ok(())
    }),
    key(Group::Engine, "memory", "SIZE", "1GiB", "What a statement's operators may reserve; beyond it they spill, or the statement fails", set!(engine.memory_pool, memory)).common(),
    key(Group::Engine, "worker-memory", "SIZE", "twice --memory and 256MiB", "What a worker process may have resident; beyond it the worker is killed and its statement fails", set!(some engine.memory_limit, memory)),
    key(Group::Engine, "spill", "SIZE", "10GiB", "What one statement may have on disk while it runs", set!(engine.spill_limit, room)),
    key(Group::Engine, "spill-dir", "DIR", "a folder in the temporary folder", "Where statements spill", set!(some engine.spill_dir, path)),
    key(Group::Engine, "threads", "NUMBER", "the number of cores", "Threads that run queries", set!(some engine.threads, threads)),
    key(Group::Engine, "max-workers", "NUMBER", "twice the number of cores", "Worker processes alive at once; a session that needs one more waits for the longest idle of the others to be ended", set!(some engine.workers, threads)),
    key(Group::Engine, "cancel-grace", "TIME", "500ms", "A statement that was told to stop and has not after so long takes its worker with it", set!(engine.cancel_grace_millis, duration)),
    key(Group::Engine, "retire-idle", "TIME", "10min", "A worker without a statement for so long is ended; the next statement gets a new one in the same state", set!(engine.retire_idle_millis, duration)),
    key(Group::Results, "result-rows", "NUMBER", "none", "The most rows of a result", set!(limits.max_rows, |v| limit(v, some))).common(),
    key(Group::Results, "result-bytes", "SIZE", "none", "The most bytes of a result's rows", set!(limits.max_bytes, |v| limit(v, room))),
    key(Group::Results, "on-limit", "WHAT", "fail", "At those limits: fail the statement, or truncate its result and say so", set!(limits.on_limit, |v| one_of(v, &[("fail", OnLimit::Fail), ("truncate", OnLimit::Truncate)]))),
    key(Group::Results, "document-bytes", "SIZE", "8MB", "The most bytes of rows in a result document", set!(limits.document_bytes, room)),
    key(Group::Results, "large-results", "WHAT", "fail", "What happens to a result that one document cannot hold, unless its statement says: fail, keep the first rows (first), or put the rest into pages (pages)", set!(limits.large_results, |v| one_of(v, &[("fail", LargeResults::Fail), ("first", LargeResults::First), ("pages", LargeResults::Pages)]))),
    key(Group::Times, "execution-timeout", "TIME", "10min", "A statement that ran longer is stopped and fails", set!(policy.execution_timeout, duration)).spark_in("spark.flint.job.queryExecutionTimeoutSec", "s").common(),
    key(Group::Times, "wait-timeout", "TIME", "10min", "A statement that waited longer fails instead of running", set!(policy.wait_timeout, duration)).spark_in("spark.flint.job.queryWaitTimeoutMillis", "ms"),
    key(Group::Times, "inactivity", "TIME", "10min", "The session ends after so long without a statement", set!(policy.inactivity, duration)).spark_in("spark.flint.job.inactivityLimitMillis", "ms").common(),
    key(Group::Times, "heartbeat", "TIME", "20s", "Between renewals of the session", set!(policy.heartbeat, positive)),
    key(Group::Times, "first-heartbeat", "TIME", "3s", "Before the first renewal", set!(policy.first_heartbeat, duration)),
    key(Group::Times, "lease", "TIME", "three heartbeats", "How long the runner's silence must be watched before another may take the session", set!(some lease, positive)),
    key(Group::Times, "peer-lease", "TIME", "3min", "The same for a session whose owner publishes no lease", set!(policy.peer_lease, positive)),
    key(Group::Times, "poll", "TIME", "100ms", "Between looks for statements", set!(policy.poll, positive)).spark_in("spark.flint.job.queryLoopExecutionFrequency", "ms"),
    key(Group::Times, "poll-busy", "TIME", "20ms; 3ms on SQLite", "Between looks for a while after work", set!(some poll_busy, positive)),
    key(Group::Times, "busy-for", "TIME", "5s", "How long after work that is", set!(policy.busy_for, duration)),
    key(Group::Times, "poll-idle", "TIME", "900ms", "Between looks when there was no work for a while", set!(policy.poll_idle, positive)),
    key(Group::Times, "idle-after", "TIME", "1min", "When that begins", set!(policy.idle_after, duration)),
    key(Group::Times, "watch", "TIME", "200ms", "Between looks at the running statement, to see whether it was cancelled", set!(policy.watch, positive)),
    key(Group::Times, "launch-grace", "TIME", "1min", "How long a missing index or session means `not yet`, when a launcher started the job", set!(policy.launch_grace, duration)),
    key(Group::Times, "unreachable", "TIME", "10min", "How long the store may be out of reach before the runner gives up", set!(policy.unreachable, duration)),
    key(Group::Times, "stop-grace", "TIME", "20s", "How long a running statement may go on after SIGTERM", set!(policy.stop_grace, duration)),
    key(Group::Times, "sweep", "TIME", "30s", "How long statements that are left in a session that is over may wait for its recovery; then they fail with `session ended`", set!(policy.sweep, duration)),
    key(Group::Times, "sweep-every", "TIME", "1min", "Between looks, in all sessions of the request index, for what runners that died have left", set!(policy.sweep_every, positive)),
    key(Group::Times, "retry", "TIME", "50ms", "The first wait after an error of the store; it doubles", set!(policy.retry, positive)),
    key(Group::Times, "retry-max", "TIME", "5s", "The longest wait between two tries", set!(policy.retry_max, positive)),
    key(Group::Logs, "log", "LEVEL", "info for run, else warn", "What is logged: error, warn, info, debug, trace, or by part: firesteel_session=debug,info", set!(some log, text)).common(),
    key(Group::Logs, "log-format", "FORMAT", "text", "How it is written: text or json", set!(log_format, |v| one_of(v, &[("text", LogFormat::Text), ("json", LogFormat::Json)]))),
];
