//! Query plugins: WebAssembly components, what they are given and what limits them.
//!
//! Read in this order: [`load`], from a component to a [`plugin::Loaded`], which the engine sees through the port
//! [`Plugin`](firesteel_session::ports::plugins::Plugin); `guest`, what an instance may ask for; `instance`, how a call is made, watched and
//! ended; `columns` and `tables`, how rows cross; [`limits`] and [`grants`]. [`compile`] and [`cache`]: code is compiled once, elsewhere.
//! [`shelf`] is the operator's folder of plugins, [`bundled`] what this program has inside.

pub mod alone;
mod bindings;
pub mod bundled;
pub mod cache;
mod clock;
mod columns;
pub mod compile;
pub mod component;
pub mod encode;
pub mod grants;
mod guest;
mod instance;
mod ipc;
pub mod limits;
pub mod load;
pub mod machine;
pub mod plugin;
pub mod shelf;
mod tables;
mod wasi;
