//! Stories of answers that get lost on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use firesteel_model::{SessionChange, Statement, StatementState, Version};
use firesteel_session::ports::{Outcome, ResultStore, SessionStore, StageError, StoreError};
use firesteel_store::documents::{Found, Index, Key, Op, Opened, Search};
use firesteel_store::{Documents, Memory, Scope, Store};

use crate::people::{attempt, columns, failed, outcome, query, rows, running, session, statement, totals};

/// Loses the answers of all bulks whose number is in the set bits: they are done, or done in part, and not acknowledged.
#[derive(Clone)]
struct Lossy {
    memory: Memory,
    bulks: Arc<AtomicU64>,
    lost: u64,
    /// Of a bulk whose answer is lost, so many ops are done.
    done: usize,
    /// It never tells its time.
    timeless: bool,
}

impl Lossy {
    fn new(memory: &Memory, lost: u64, done: usize) -> Lossy {
        Lossy { memory: memory.clone(), bulks: Arc::default(), lost, done, timeless: false }
    }
}

#[async_trait]
impl Documents for Lossy {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        self.memory.open(index, create).await
    }
    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        self.memory.get(keys, sources).await
    }
    async fn bulk(&self, mut ops: Vec<Op>, refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        let n = self.bulks.fetch_add(1, Ordering::SeqCst);
        if self.lost & (1 << n) == 0 {
            return self.memory.bulk(ops, refresh).await;
        }
        ops.truncate(self.done);
        self.memory.bulk(ops, refresh).await?;
        Err(StoreError::Unknown("lost".to_owned()))
    }
    async fn refresh(&self, index: Index) -> Result<(), StoreError> {
        self.memory.refresh(index).await
    }
    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        self.memory.search(search).await
    }
    async fn measure(&self) -> Result<(), StoreError> {
        if self.timeless {
            std::future::pending::<()>().await;
        }
        self.memory.measure().await
    }
    fn now(&self) -> u64 {
        self.memory.now()
    }
}

/// Tries until the answer arrives.
async fn insist<E, F: Future<Output = Result<(), E>>>(mut attempt: impl FnMut() -> F, lost: impl Fn(&E) -> bool) {
    for _ in 0..10 {
        match attempt().await {
            Ok(()) => return,
            Err(error) => assert!(lost(&error), "something else than a lost answer"),
        }
    }
    panic!("no answer in ten tries");
}

/// Which answers are lost is counted in the bits of a number, so every pattern of losses over the first requests is told.
#[tokio::test]
async fn a_result_is_published_once_and_whole_whatever_answers_are_lost() {
    for (lost, done) in (0..1 << 6).flat_map(|lost| (0..=3).map(move |done| (lost, done))) {
        let memory = Memory::new(|| 5);
        let sound = Store::new(memory.clone(), Scope::Requests);
        let st = statement("st", 1);
        let made = sound.create_statement(&st, None).await.unwrap();
        let claim = sound.write_statement(&st.id, made, &running("job1")).await.unwrap();
        let lossy = Lossy::new(&memory, lost, done);
        let store = Store::new(lossy, Scope::Requests);
        let outcome = outcome(&st, attempt(claim, 1));
        let (columns, rows) = (columns(), rows());
        insist(
            || store.stage(&outcome, &columns, &rows, totals()),
            |e| matches!(e, StageError::Store(StoreError::Unknown(_))),
        )
        .await;
        assert_eq!(sound.result(&query("q-st")).await, Ok(None), "{lost:b} {done}");
        sound.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
        insist(|| store.publish(&outcome), |e| matches!(e, StoreError::Unknown(_))).await;
        let seen = sound.result(&query("q-st")).await.unwrap().unwrap();
        assert_eq!((seen.rows, seen.columns), (rows, columns), "{lost:b} {done}");
        sound
            .settle(&Outcome {
                statement: &Statement { state: StatementState::Success, ..st.clone() },
                ..outcome.clone()
            })
            .await
            .unwrap();
        let companion = sound.companion(&st.id).await.unwrap().unwrap().value;
        assert!(companion.published && companion.candidate == Some(outcome.attempt), "{lost:b} {done}");
    }
}

#[tokio::test]
async fn a_failure_is_published_once_whatever_answers_are_lost() {
    for (lost, done) in (0..1 << 6).flat_map(|lost| (0..=2).map(move |done| (lost, done))) {
        let memory = Memory::new(|| 5);
        let lossy = Lossy::new(&memory, lost, done);
        let store = Store::new(lossy, Scope::Requests);
        let st = Statement { state: failed("why"), ..statement("st", 1) };
        let outcome = outcome(&st, attempt(Version { term: 1, seq_no: 0 }, 1));
        insist(|| store.announce(&outcome), |e| matches!(e, StoreError::Unknown(_))).await;
        insist(|| store.publish_failure(&outcome), |e| matches!(e, StoreError::Unknown(_))).await;
        let sound = Store::new(memory, Scope::Requests);
        sound.settle(&outcome).await.unwrap();
        assert_eq!(sound.result(&query("q-st")).await.unwrap().unwrap().error, "why", "{lost:b} {done}");
        assert!(sound.companion(&st.id).await.unwrap().unwrap().value.published, "{lost:b} {done}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_does_not_wait_for_a_store_that_does_not_tell_its_time() {
    let memory = Memory::new(|| 5);
    let s = session("s");
    let made = Store::new(memory.clone(), Scope::Requests).create_session(&s).await.unwrap();
    let timeless = Lossy { timeless: true, ..Lossy::new(&memory, 0, 0) };
    let store = Store::new(timeless, Scope::Requests);
    let renewed = store.write_session(&s.id, made, &SessionChange::Renew);
    let renewed = tokio::time::timeout(std::time::Duration::from_secs(1), renewed).await;
    assert!(renewed.unwrap().unwrap() > made);
}
