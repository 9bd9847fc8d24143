//! One suite for every store: what is true of one is true of all. A real OpenSearch takes part if `OPENSEARCH_URL`
//! names one.

#![allow(clippy::unwrap_used, reason = "tests")]

mod batch;
mod control;
mod faults;
mod file;
mod http;
mod http_errors;
mod left;
mod many;
mod peer;
mod people;
mod results;
mod server;
mod sessions;
mod statements;
mod stores;
mod tls;
