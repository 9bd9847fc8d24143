//! DataFusion behind the port [`Engine`](firesteel_session::ports::Engine): in worker processes, or in this one.
//!
//! The binary makes a [`Workers`] from [`Settings`] and calls [`worker::main`] for its hidden command `worker`:
//!
//! ```no_run
//! use firesteel_engine::{Settings, Workers};
//! // In `firesteel worker`, before anything else (no arguments, no runtime, no log):
//! //     return firesteel_engine::worker::main(|_, _| Ok(Vec::new()));
//! let settings = Settings { catalog: "mys3".into(), data: vec!["data".into()], ..Settings::default() };
//! let engine = Workers::new(settings); // starts nothing; `engine.pool().warm()` starts a worker ahead of the first statement
//! // For many sessions: `let pool = Pool::new(settings)`, and of each session `pool.session()`.
//! ```
//!
//! Read in this order: [`settings`]; [`session`], what happens to a statement (`dialect`, `tokens`, `command`, `allow`, `define`,
//! `names`, `pretty`, `spark`, `generate`, `clauses`); `tables` and `reach`, what may be read, `export`, what may be written; [`worker`] and [`workers`], the two ends of
//! the socket, with [`pool`], `process` and `wire` between them.

mod allow;
mod balance;
mod catalog;
mod clauses;
mod command;
mod connect;
mod cooperate;
mod define;
mod dialect;
mod entry;
mod export;
mod failures;
mod files;
mod functions;
mod generate;
pub mod in_process;
mod knobs;
mod lost;
mod names;
mod operators;
mod patterns;
pub mod plugins;
pub mod pool;
mod pretty;
mod process;
mod query;
mod reach;
mod sandbox;
pub mod session;
pub mod settings;
mod show;
mod spark;
mod spark_casts;
mod spark_range;
mod spark_text;
mod spark_types;
mod spill;
mod tables;
mod tokens;
mod wire;
pub mod worker;
pub mod workers;

pub use in_process::InProcess;
pub use pool::{Bring, Pool};
pub use settings::{PluginSet, Secret, Settings, StoreAccess};
pub use workers::Workers;
