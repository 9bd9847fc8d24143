//! What a result document holds: Arrow batches in, rows of JSON text out, packed into pages.
//!
//! [`Encoder`] turns a batch into rows, one string a row; [`Pager`] decides which rows stand in the result document,
//! which go into pages beside it, and when a result is too large. For readers, [`row`] takes rows apart again, and [`ipc`] makes Arrow's
//! stream of them.

mod columns;
mod encoder;
pub mod ipc;
mod iso;
mod pager;
pub mod row;
mod values;

pub use encoder::Encoder;
pub use pager::{Finished, Limits, OnLimit, Pager, Verdict};
