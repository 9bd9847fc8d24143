//! What an operator may set of the engine. Everything has a default; an unknown field is an error.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// The engine's settings. Sizes in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The data source: the session's default catalog.
    pub catalog: String,
    /// Folders whose files are tables. Nothing else on this machine is read.
    pub data: Vec<PathBuf>,
    /// The folder that statements may write into, by `COPY`. Without one they write nothing.
    pub export: Option<PathBuf>,
    /// Buckets and hosts that may be read. Nothing else on the network is.
    pub stores: Vec<StoreAccess>,
    /// The program that has the `worker` command. Default: this very program.
    pub executable: Option<PathBuf>,
    /// Workers that may be alive at once, for all sessions together. Default: twice the cores.
    pub workers: Option<usize>,
    /// Threads that run queries, in each worker. Default: the number of cores.
    pub threads: Option<usize>,
    /// What a statement's operators may reserve, in bytes. Above it they spill, or the statement fails.
    pub memory_pool: u64,
    /// What a worker may have resident, in bytes. Above it the worker is killed. Default: twice the pool and 256 MB.
    pub memory_limit: Option<u64>,
    /// Where statements spill. Default: a folder of this user's in the temporary folder.
    pub spill_dir: Option<PathBuf>,
    /// What one statement may have in the spill folder, in bytes.
    pub spill_limit: u64,
    /// The stack of each thread that plans and runs queries, in bytes of address space.
    pub stack: u64,
    /// A statement that was told to stop and has not after so long takes its worker with it.
    pub cancel_grace_millis: u64,
    /// How often a busy worker's resident size is looked at.
    pub watch_millis: u64,
    /// How often progress is reported.
    pub progress_millis: u64,
    /// An assigned worker without a statement for so long is ended; the journal rebuilds it.
    pub retire_idle_millis: u64,
    /// A worker that keeps more than this resident is ended, in bytes: at once after a statement that was stopped, else
    /// when it has had nothing to do for a while.
    pub retire_above: u64,
    /// That while.
    pub retire_large_millis: u64,
    /// The largest message between runner and worker, in bytes. A single row must fit.
    pub max_frame: u64,
    /// Batches that a worker may send before the first of them is taken.
    pub credit: u32,
    /// Keep one worker started and unassigned.
    pub spare: bool,
    /// Give up privileges in the worker, where the platform offers it.
    pub low_privileges: bool,
    /// The query plugins.
    pub plugins: PluginSet,
}

/// The query plugins of a worker, as their host wrote them: opaque here but for the files that they need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginSet {
    /// Each as its host reads it, in the order of the chain.
    pub plugins: Vec<serde_json::Value>,
    /// Files and folders that are read.
    pub reads: Vec<PathBuf>,
    /// Folders that are written, too.
    pub writes: Vec<PathBuf>,
    /// They talk to hosts on the network.
    pub network: bool,
    /// The languages of which a worker is given the plugin with the first statement that needs it.
    pub on_demand: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            catalog: "local".to_owned(),
            data: Vec::new(),
            export: None,
            stores: Vec::new(),
            executable: None,
            workers: None,
            threads: None,
            memory_pool: 1024 * MIB,
            memory_limit: None,
            spill_dir: None,
            spill_limit: 10 * 1024 * MIB,
            stack: 128 * MIB,
            cancel_grace_millis: 500,
            watch_millis: 50,
            progress_millis: 200,
            retire_idle_millis: 600_000,
            retire_above: 128 * MIB,
            retire_large_millis: 2_000,
            max_frame: 64 * MIB,
            credit: 4,
            spare: true,
            low_privileges: true,
            plugins: PluginSet::default(),
        }
    }
}

impl Settings {
    /// The worker's resident size at which it is killed, in bytes.
    #[must_use]
    pub fn hard_limit(&self) -> u64 {
        self.memory_limit.unwrap_or(2 * self.memory_pool + 256 * MIB)
    }

    /// How many threads run queries.
    #[must_use]
    pub fn query_threads(&self) -> usize {
        self.threads.unwrap_or_else(cores).max(1)
    }

    /// How many workers may be alive.
    #[must_use]
    pub fn most_workers(&self) -> usize {
        self.workers.unwrap_or_else(|| 2 * cores()).max(1)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A bucket or a host that may be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreAccess {
    /// `s3://BUCKET` or `http(s)://HOST[:PORT]`, optionally with a path: then only what is below it.
    pub url: String,
    /// An S3-compatible service other than AWS, such as `http://localhost:9000`.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The bucket's region.
    #[serde(default)]
    pub region: Option<String>,
    /// The access key's id. Without one, requests are not signed.
    #[serde(default)]
    pub access_key_id: Option<String>,
    /// The access key.
    #[serde(default)]
    pub secret_access_key: Option<Secret>,
    /// The token of temporary credentials.
    #[serde(default)]
    pub session_token: Option<Secret>,
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn an_unknown_setting_is_an_error_and_a_secret_is_not_shown() {
        let error = serde_json::from_str::<Settings>(r#"{"memory_pol":1}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `memory_pol`"), "{error}");
        let text = r#"{"stores":[{"url":"s3://b","secret_access_key":"hush"}]}"#;
        let settings: Settings = serde_json::from_str(text).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
    }

    #[test]
    fn the_hard_limit_leaves_room_for_what_the_pool_does_not_count() {
        let settings = Settings { memory_pool: MIB, ..Settings::default() };
        assert_eq!(settings.hard_limit(), 258 * MIB);
        assert_eq!(Settings { memory_limit: Some(7), ..settings }.hard_limit(), 7);
    }
}
