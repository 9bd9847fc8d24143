//! What a result document holds: Arrow batches in, rows of JSON text out, packed into pages.
//!
//! [`Encoder`] turns a batch into rows, one string a row; [`Pager`] decides which rows stand in the result document,
//! which go into pages beside it, and when a result is too large.

mod columns;
mod encoder;
mod iso;
mod pager;
mod values;

pub use encoder::Encoder;
pub use pager::{Finished, Limits, OnLimit, Pager, Verdict};
