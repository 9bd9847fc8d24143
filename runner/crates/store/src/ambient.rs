//! The one file of this crate that asks the machine for time and randomness.

use std::time::{SystemTime, UNIX_EPOCH};

/// Epoch milliseconds by this machine's clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one file of this crate that may")]
pub fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A number that differs from process to process.
#[must_use]
pub fn random_seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| wall_clock())
}
