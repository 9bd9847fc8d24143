//! Write query plugins for Firesteel in Rust.
//!
//! A plugin is a function that returns a [`Plugin`], and [`export!`] that names it. What it can do is put into it: a [`Handler`] that changes or
//! answers statements, [functions](ScalarFunction) of SQL, a [`TablePolicy`], a [`ResultHook`], and someone to tell [`Events`].
//!
//! ```
//! use firesteel_plugin::{Column, Error, Plugin, ScalarFunction, Signature, schema};
//!
//! struct Double;
//!
//! impl ScalarFunction for Double {
//!     fn signature(&self) -> Signature {
//!         Signature::new("double").takes("value", schema::INT64).returns(schema::INT64).strict()
//!     }
//!     fn call(&self, arguments: &[Column], _rows: usize) -> Result<Column, Error> {
//!         Ok(Column::of(arguments[0].numbers::<i64>()?.iter().map(|n| n.wrapping_mul(2))))
//!     }
//! }
//!
//! fn plugin() -> Plugin {
//!     Plugin::new("double", "0.1.0", "twice a number").scalar(Double)
//! }
//!
//! firesteel_plugin::export!(plugin);
//!
//! // Natively, it is tested without a runner:
//! let host = firesteel_plugin::testing::Host::new();
//! let twice = host.scalar(&plugin(), "double", &[Column::of([1_i64, 2])]).unwrap();
//! assert_eq!(twice, Column::of([2_i64, 4]));
//! ```
//!
//! What the runner gives is in [`host`]; there is nothing else, unless the operator grants it. Nothing that a plugin keeps in memory lasts from
//! one call to the next for sure: what has to last belongs into [`host::session`].

mod column;
mod events;
mod export;
mod function;
mod handler;
pub mod host;
mod plugin;
mod policy;
mod results;
pub mod schema;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;

pub use column::{Cell, Column, Layout, Number, Runs, Table, Texts, Values};
pub use events::{Ended, Event, Events};
pub use function::{AggregateFunction, Page, ScalarFunction, Signature, TableFunction, Volatility};
pub use handler::{Handler, Origin, Position, Rejection, Rewritten, Statement, Verdict};
pub use plugin::{Access, Plugin, Requests};
pub use policy::{Decision, Mask, TablePolicy};
pub use results::{Changed, ResultHook};
pub use schema::Field;

/// Why something cannot be done. It fails the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// For the user: what is wrong, what was expected, what to do; lower case, no full stop.
    pub message: String,
    /// Which row of the batch it was, from 0.
    pub row: Option<u32>,
}

impl Error {
    /// An error of one row.
    pub fn in_row(row: usize, message: impl Into<String>) -> Error {
        Error { message: message.into(), row: u32::try_from(row).ok() }
    }
}

impl<T: Into<String>> From<T> for Error {
    fn from(message: T) -> Error {
        Error { message: message.into(), row: None }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
