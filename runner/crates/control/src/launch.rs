//! What starts jobs: as processes of this machine, or elsewhere by an API.

mod emr;
mod process;

pub use emr::{EmrOptions, EmrServerless};
pub use process::{Process, ProcessOptions};
