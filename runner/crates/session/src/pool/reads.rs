//! Reads of sessions, gathered: those who watch other runners' leases, each on its own, ask by one request.

use std::sync::{Mutex, MutexGuard, PoisonError};

use firesteel_model::{Session, SessionId, Stored};
use tokio::sync::{Notify, oneshot};

use super::Common;
use crate::ports::StoreError;

/// Between two requests, in milliseconds.
const GATHERED_FOR: u64 = 50;
/// Sessions of one request.
const MOST: usize = 500;

type Answer = Result<Option<Stored<Session>>, StoreError>;

/// Who waits to be told of a session.
#[derive(Default)]
pub(super) struct Reads {
    asks: Mutex<Vec<(SessionId, oneshot::Sender<Answer>)>>,
    asked: Notify,
}

impl Reads {
    fn asks(&self) -> MutexGuard<'_, Vec<(SessionId, oneshot::Sender<Answer>)>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn read(&self, id: &SessionId) -> Answer {
        let (tell, told) = oneshot::channel();
        self.asks().push((id.clone(), tell));
        self.asked.notify_one();
        told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the runner is leaving".into())))
    }

    /// Answers them for as long as anybody waits for it.
    pub(super) async fn run(&self, common: &Common) {
        loop {
            self.asked.notified().await;
            while let Some(asks) = self.next() {
                let now = common.clock.now();
                let ids: Vec<SessionId> = asks.iter().map(|(id, _)| id.clone()).collect();
                let answers = common.store.sessions_at(&ids).await;
                let mut answers = answers.map(Vec::into_iter);
                for (_, tell) in asks {
                    let none = || Err(StoreError::Unknown("the store did not answer for each session".into()));
                    // Who no longer waits has left.
                    let _ = tell.send(match &mut answers {
                        Ok(answers) => answers.next().unwrap_or_else(none),
                        Err(error) => Err(error.clone()),
                    });
                }
                common.clock.sleep_until(now.plus(GATHERED_FOR)).await;
            }
        }
    }

    fn next(&self) -> Option<Vec<(SessionId, oneshot::Sender<Answer>)>> {
        let mut asks = self.asks();
        let number = asks.len().min(MOST);
        (number > 0).then(|| asks.drain(..number).collect())
    }
}
