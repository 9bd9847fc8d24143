//! The ports, and the loop that performs what the model asks.
//!
//! Read [`ports`] first: what a store and an engine are to the loop. [`result`] turns Arrow batches into the
//! pages and rows of a result document; [`shell`] is the loop, the only place that awaits; [`pool`] runs many of them in one process.

pub mod clock;
pub mod counters;
pub mod journal;
pub mod pool;
pub mod ports;
pub mod result;
pub mod shell;
pub mod trouble;
