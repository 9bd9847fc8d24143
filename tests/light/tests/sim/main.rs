//! The simulation: runners that die, stand still, are cut off or started twice at any instant, a store that fails, users and a control plane,
//! all by seed. Every write is checked as it is made.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests: a failure is the message; the clock is tokio's paused one"
)]

mod dice;
mod engine;
mod ledger;
mod observer;
mod plant;
mod play;
mod process;
mod results;
mod seeds;
mod walk;
mod wire;
mod world;
