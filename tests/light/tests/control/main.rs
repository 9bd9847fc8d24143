//! The control plane over a store in memory, on a clock that is paused: who is let in, what is submitted, who is watched.

#![allow(clippy::unwrap_used, reason = "tests")]

mod admission;
#[path = "../shell/faulty.rs"]
#[allow(dead_code, reason = "the loop's stories need more of it")]
mod faulty;
mod jobs;
mod process;
mod submitting;
mod watching;
mod world;
