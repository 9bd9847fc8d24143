//! The loop itself, on a paused clock, over a store in memory that fails when told to, and an engine that does what its statements say.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests: a failure is the message; the clock is tokio's paused one"
)]

mod engine;
mod faulty;
mod pool;
mod stories;
mod takeover;
mod trouble;
mod world;
