//! The control plane over a store in memory, on a clock that is paused: who is let in, what is submitted, who is watched.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests: a failure is the message; the clock is tokio's paused one"
)]

mod admission;
mod batches;
#[path = "../shell/faulty.rs"]
#[allow(dead_code, reason = "the loop's stories need more of it")]
mod faulty;
mod jobs;
mod openapi;
mod process;
mod recovering;
mod submitting;
mod watching;
mod world;
