//! The one place that reads the machine's clock.

use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::Millis;
use rustix::time::{ClockId, clock_gettime};

use crate::ports::Clock;

/// The machine's monotonic clock, counting the time that it was suspended.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let t = clock_gettime(CLOCK);
        let (s, ns) = (u64::try_from(t.tv_sec).unwrap_or(0), u64::try_from(t.tv_nsec).unwrap_or(0));
        Millis(s * 1_000 + ns / 1_000_000)
    }

    async fn sleep_until(&self, until: Millis) {
        tokio::time::sleep(Duration::from_millis(until.since(self.now()))).await;
    }
}
