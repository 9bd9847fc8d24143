//! What a session and a statement are, and what to do next.
//!
//! Pure: the standard library only, no clock, no randomness, no I/O, so nothing here can fail for a
//! reason outside its arguments. Read in this order: [`ids`], [`version`], [`statement`], [`session`],
//! [`pattern`], [`attempt`], [`failure`], [`lease`], [`policy`], [`runner`]; then, for the
//! control plane, [`steer`], [`permits`] and [`batch`].

pub mod attempt;
pub mod batch;
pub mod failure;
pub mod ids;
pub mod lease;
pub mod pattern;
pub mod permits;
pub mod policy;
pub mod runner;
pub mod session;
pub mod statement;
pub mod steer;
pub mod version;

pub use attempt::{Attempt, Kind, MAX_ATTEMPTS};
pub use failure::{Code, Failure, Stage};
pub use ids::{BadId, JobId, QueryId, RunnerId, SessionId, StatementId};
pub use pattern::Pattern;
pub use session::{Owner, Session, SessionChange, SessionState};
pub use statement::{Event, Illegal, QueryText, Statement, StatementState};
pub use version::{Expect, Millis, Stored, Version};
