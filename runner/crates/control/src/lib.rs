//! The control plane: allocates sessions, launches jobs, watches them and answers clients. Several replicas share one store, and none
//! is special: what one must know of another is in a document, and is changed by conditional writes only.
//!
//! Read [`plane`] first, the library that every API uses; [`admission`] says who may have how much; [`http`] is the APIs.

pub mod access;
pub mod admission;
pub mod http;
pub mod launch;
mod metrics;
pub mod openapi;
pub mod peers;
pub mod plane;
pub mod refusal;
pub mod sigv4;
pub mod watch;

pub use metrics::metrics;
