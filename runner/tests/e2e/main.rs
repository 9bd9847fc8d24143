//! The binary from outside: its commands in processes of their own, on both stores.
//!
//! Each test is a story with a home folder, and so a store, of its own. What needs an OpenSearch takes it from `OPENSEARCH_URL`.

mod commands;
mod harness;
mod hostile;
mod job;
mod opensearch;
mod plugins;
mod prompt;
mod readme;
mod replicas;
mod secure;
mod serve;
mod sessions;
mod shim;
mod stopping;
mod takeover;
mod terminal;
