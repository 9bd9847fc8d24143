//! What starts jobs: as processes of this machine, or elsewhere by an API.

mod emr;
mod process;

pub use emr::{EmrOptions, EmrServerless};
pub use process::{Process, ProcessOptions};

/// `spark-submit`'s own options that mean nothing to a job of this program's, wherever they are given. Each takes a value.
pub const UNUSED_OPTIONS: &[&str] = &[
    "--name",
    "--master",
    "--deploy-mode",
    "--jars",
    "--packages",
    "--repositories",
    "--py-files",
    "--files",
    "--archives",
    "--driver-memory",
    "--driver-cores",
    "--executor-memory",
    "--executor-cores",
    "--num-executors",
    "--properties-file",
];
