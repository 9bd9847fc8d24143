//! The engine from outside: statements in, table text out, through a real worker process.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;
mod cancel;
mod commands;
mod death;
mod dialect;
mod export;
mod files;
mod functions;
mod generate;
#[path = "../../runner/crates/plugin-host/tests/harm/guests.rs"]
mod guests;
mod hostile;
mod ignored;
mod in_process;
mod journal;
mod kinds;
mod limits;
mod plugins;
mod pool;
mod ppl;
mod refused;
mod remote;
mod spark;
mod tables;
