//! The one place of this crate that reads a clock.

use std::time::Instant;

/// Now, on this process's own clock: for deadlines of calls, which nobody else sees.
#[expect(clippy::disallowed_methods, reason = "deadlines of this process's own, on its own clock")]
pub fn now() -> Instant {
    Instant::now()
}
