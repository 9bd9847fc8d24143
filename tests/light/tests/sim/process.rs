//! A process: tasks that can be made to stand still, and a clock of its own.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::Millis;
use firesteel_session::ports::Clock;
use tokio::time::Instant;

/// Shut while the process stands still.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<Shut>>);

#[derive(Default)]
struct Shut {
    shut: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    pub fn shut(&self) {
        self.0.lock().unwrap().shut = true;
    }

    pub fn open(&self) {
        let waiting = {
            let mut gate = self.0.lock().unwrap();
            gate.shut = false;
            std::mem::take(&mut gate.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn passes(&self, context: &Context<'_>) -> bool {
        let mut gate = self.0.lock().unwrap();
        if gate.shut {
            gate.waiting.push(context.waker().clone());
        }
        !gate.shut
    }

    /// Waits while it is shut.
    pub async fn pass(&self) {
        poll_fn(|context| if self.passes(context) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// The same task, which takes no step while the gate is shut.
    pub async fn hold<T>(self, task: impl Future<Output = T>) -> T {
        let mut task = Box::pin(task);
        poll_fn(|context| if self.passes(context) { Pin::as_mut(&mut task).poll(context) } else { Poll::Pending }).await
    }
}

/// A monotonic clock that began anywhere, and that did not count some of the time.
#[derive(Clone)]
pub struct OwnClock {
    origin: Instant,
    ahead: u64,
    missed: Arc<AtomicU64>,
}

impl OwnClock {
    pub fn new(origin: Instant, ahead: u64) -> OwnClock {
        OwnClock { origin, ahead, missed: Arc::default() }
    }

    /// So many milliseconds passed that it does not count.
    pub fn miss(&self, millis: u64) {
        self.missed.fetch_add(millis, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for OwnClock {
    fn now(&self) -> Millis {
        let passed = u64::try_from(self.origin.elapsed().as_millis()).unwrap();
        Millis(self.ahead + passed - self.missed.load(Ordering::Relaxed))
    }

    async fn sleep_until(&self, until: Millis) {
        while self.now() < until {
            tokio::time::sleep(Duration::from_millis(until.since(self.now()))).await;
        }
    }
}
