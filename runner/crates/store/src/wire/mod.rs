//! The documents on the wire, and how they become what the model knows. A wire document is not a domain type.
//!
//! Written are numbers for times and never a null, for the control plane's parsers break on both alternatives; read
//! is what the peer and the control plane write: nulls, ISO times, lists of jobs as text or as an array.

pub mod batch;
pub mod control;
mod fields;
pub mod ids;
pub mod journal;
pub mod mapping;
pub mod result;
pub mod session;
pub mod state;
pub mod statement;

pub use fields::{BadField, Fields};
