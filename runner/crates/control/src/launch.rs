//! What starts jobs: as processes of this machine, or elsewhere by an API.

mod process;

pub use process::{Process, ProcessOptions};
