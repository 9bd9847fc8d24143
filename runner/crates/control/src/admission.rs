//! Who may have how much: slots under limits, in books that any replica may change by a conditional write.
//!
//! A statement takes a slot of its session's queue; a queue borrows slots of the domain's book in blocks, so that most submits write one
//! document that no other session writes. Borrowed slots are raised in the domain's book first and lowered in the queue's first, so that the
//! domain's book is never below what the queues hold together, whoever dies in between. A full book is collected before anybody is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use firesteel_model::permits::{Book, Holder, block};
use firesteel_model::{Expect, Millis, SessionId, StatementId, Stored};
use firesteel_session::ports::control::ControlStore;
use firesteel_session::ports::{Clock, StoreError};
use tokio::sync::Mutex;

use crate::refusal::Refusal;

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Statements that wait or run in one session.
    pub queue: u32,
    /// Statements that wait or run in all sessions.
    pub statements: u32,
    /// Sessions that have not ended.
    pub sessions: u32,
    /// Sessions of one user that have not ended.
    pub user_sessions: u32,
    /// Statements of one user that wait or run in all sessions; 0: as many as all limits let in.
    pub user_statements: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { queue: 15, statements: 1_000, sessions: 1_000, user_sessions: 100, user_statements: 0 }
    }
}

/// The book of all sessions' borrowed slots.
const STATEMENTS: &str = "statements";
/// The book of all sessions.
const SESSIONS: &str = "sessions";
/// How often a book is read again because another changed it.
const ROUNDS: u32 = 200;
/// A full domain is looked through by one replica at most this often, in milliseconds.
const COLLECT_EVERY: u64 = 1_000;
/// In how many seconds a queue has usually moved on.
const RETRY_AFTER: u32 = 1;

/// Gives and takes slots.
pub struct Admission {
    store: Arc<dyn ControlStore>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    /// When this replica has last looked through a full domain. Held while it does so, and while it borrows.
    collected: Mutex<Option<Millis>>,
}

fn queue(session: &SessionId) -> String {
    format!("queue/{session}")
}

fn of_user(user: &str) -> String {
    format!("user/{user}")
}

fn statements_of(user: &str) -> String {
    format!("user-statements/{user}")
}

fn busy() -> Refusal {
    Refusal::NoStore("the slots are changed by others all the time".to_owned())
}

fn expect(stored: Option<&Stored<Book>>) -> Expect {
    stored.map_or(Expect::Absent, |book| Expect::Version(book.version))
}

impl Admission {
    /// Admission under these limits.
    #[must_use]
    pub fn new(store: Arc<dyn ControlStore>, clock: Arc<dyn Clock>, limits: Limits) -> Admission {
        Admission { store, clock, limits, collected: Mutex::new(None) }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Waits a little longer each time that a write was refused, so that one of many is through soon.
    async fn after_conflict(&self, round: u32) {
        let millis = u64::from(round.min(20)) * 2;
        if millis > 0 {
            self.clock.sleep_until(self.clock.now().plus(millis)).await;
        }
    }

    /// Takes a slot for a session. Asked again for the same session, it gives the same.
    ///
    /// # Errors
    /// `Limit`, and nothing was taken; the store's.
    pub async fn session(&self, session: &SessionId, user: &str) -> Result<(), Refusal> {
        let now = self.store.time().await?;
        if !user.is_empty() {
            let which = format!("open sessions of user `{}`", user.escape_debug());
            self.take_session(&of_user(user), which, session, self.limits.user_sessions, now).await?;
        }
        let taken =
            self.take_session(SESSIONS, "open sessions of the domain".to_owned(), session, self.limits.sessions, now);
        if let Err(refused) = taken.await {
            if !user.is_empty() {
                self.give_back(&of_user(user), session.as_str()).await;
            }
            return Err(refused);
        }
        Ok(())
    }

    async fn take_session(
        &self,
        name: &str,
        which: String,
        session: &SessionId,
        limit: u32,
        now: u64,
    ) -> Result<(), Refusal> {
        for round in 0..ROUNDS {
            let stored = self.store.book(name).await?;
            let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
            if !book.give(session.as_str(), 1, limit, now) {
                self.collect_sessions(&mut book, now).await?;
                if !book.give(session.as_str(), 1, limit, now) {
                    return Err(Refusal::Limit { which, value: book.held(), limit, retry_after: 60 });
                }
            }
            match self.store.write_book(name, expect(stored.as_ref()), &book).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => self.after_conflict(round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// Takes back what sessions hold that have ended.
    async fn collect_sessions(&self, book: &mut Book, now: u64) -> Result<(), Refusal> {
        let ids: Vec<SessionId> = book.holders.keys().filter_map(|id| SessionId::new(id.clone()).ok()).collect();
        let mut known = BTreeMap::new();
        for (id, session) in ids.iter().zip(self.store.sessions_at(&ids).await?) {
            // One that cannot be read may be at work.
            let holder = match session {
                Ok(None) => Holder::Missing,
                Ok(Some(session)) if session.value.state.is_ended() => Holder::Ended,
                Ok(Some(_)) | Err(_) => Holder::Alive,
            };
            known.insert(id.as_str().to_owned(), holder);
        }
        book.collect(now, |name| known.get(name).copied().unwrap_or(Holder::Missing));
        Ok(())
    }

    /// Takes a slot for a statement of this user, if users are limited. Asked again for the same statement, it gives the same.
    ///
    /// # Errors
    /// `Limit`, and nothing was taken; the store's.
    pub async fn user_statement(&self, user: &str, statement: &StatementId) -> Result<(), Refusal> {
        let limit = self.limits.user_statements;
        if limit == 0 || user.is_empty() {
            return Ok(());
        }
        let (name, now) = (statements_of(user), self.store.time().await?);
        for round in 0..ROUNDS {
            let stored = self.store.book(&name).await?;
            let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
            if !book.give(statement.as_str(), 1, limit, now) {
                self.collect_statements(&mut book, now).await?;
                if !book.give(statement.as_str(), 1, limit, now) {
                    let which = format!("waiting and running statements of user `{}`", user.escape_debug());
                    return Err(Refusal::Limit { which, value: book.held(), limit, retry_after: RETRY_AFTER });
                }
            }
            match self.store.write_book(&name, expect(stored.as_ref()), &book).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => self.after_conflict(round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// Gives a user's slot back: the statement was not submitted after all.
    pub async fn withdraw_user_statement(&self, user: &str, statement: &StatementId) {
        if self.limits.user_statements > 0 && !user.is_empty() {
            self.give_back(&statements_of(user), statement.as_str()).await;
        }
    }

    /// Takes a slot for a statement of this session. The time is the store's, and later than that of each statement of the session before.
    ///
    /// # Errors
    /// `Limit`, and nothing was taken; the store's.
    pub async fn statement(&self, session: &SessionId, statement: &StatementId) -> Result<u64, Refusal> {
        let name = queue(session);
        let now = self.store.time().await?;
        for round in 0..ROUNDS {
            let stored = self.store.book(&name).await?;
            let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
            if !book.give(statement.as_str(), 1, self.limits.queue, now) {
                self.collect_statements(&mut book, now).await?;
                if !book.give(statement.as_str(), 1, self.limits.queue, now) {
                    return Err(Refusal::Limit {
                        which: format!(
                            "waiting and running statements of session `{}`",
                            session.as_str().escape_debug()
                        ),
                        value: book.held(),
                        limit: self.limits.queue,
                        retry_after: RETRY_AFTER,
                    });
                }
            }
            if book.held() > book.borrowed {
                book.borrowed = self.borrow(session, &book, now).await?;
            }
            match self.store.write_book(&name, expect(stored.as_ref()), &book).await {
                Ok(_) => return Ok(book.last),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => self.after_conflict(round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// Gives a statement's slot back before it ended: it was not submitted after all.
    pub async fn withdraw(&self, session: &SessionId, statement: &StatementId) {
        self.give_back(&queue(session), statement.as_str()).await;
    }

    /// Gives a session's slots back: it was not made after all. What fails here is found when the book is full.
    pub async fn withdraw_session(&self, session: &SessionId, user: &str) {
        self.give_back(SESSIONS, session.as_str()).await;
        if !user.is_empty() {
            self.give_back(&of_user(user), session.as_str()).await;
        }
    }

    async fn give_back(&self, name: &str, holder: &str) {
        for round in 0..ROUNDS {
            let Ok(Some(mut stored)) = self.store.book(name).await else { return };
            if !stored.value.take_back(holder) {
                return;
            }
            match self.store.write_book(name, Expect::Version(stored.version), &stored.value).await {
                Err(StoreError::Conflict) => self.after_conflict(round).await,
                _ => return,
            }
        }
    }

    /// Takes back what statements hold that have ended.
    async fn collect_statements(&self, book: &mut Book, now: u64) -> Result<(), Refusal> {
        let ids: Vec<StatementId> = book.holders.keys().filter_map(|id| StatementId::new(id.clone()).ok()).collect();
        let mut known = BTreeMap::new();
        for (id, statement) in ids.iter().zip(self.store.statements_at(&ids).await?) {
            let holder = match statement {
                None => Holder::Missing,
                Some(statement) if statement.value.state.is_terminal() => Holder::Ended,
                Some(_) => Holder::Alive,
            };
            known.insert(id.as_str().to_owned(), holder);
        }
        book.collect(now, |name| known.get(name).copied().unwrap_or(Holder::Missing));
        Ok(())
    }

    /// Borrows what the queue needs from the domain's book, a block if there is as much. The number that it may hold then.
    async fn borrow(&self, session: &SessionId, queue: &Book, now: u64) -> Result<u32, Refusal> {
        let (needed, limit) = (queue.held(), self.limits.statements);
        let wanted = (queue.borrowed + block(self.limits.queue)).clamp(needed, self.limits.queue.max(needed));
        // One at a time in this replica: they would only refuse each other's writes.
        let mut collected = self.collected.lock().await;
        for round in 0..ROUNDS {
            let stored = self.store.book(STATEMENTS).await?;
            let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
            // Never below what it has: another replica may be about to use it.
            let has = book.holders.get(session.as_str()).map_or(0, |holding| holding.slots);
            let given = [wanted.max(has), needed.max(has)]
                .into_iter()
                .find(|slots| book.give(session.as_str(), *slots, limit, now));
            let Some(given) = given else {
                let wall = self.clock.now();
                if collected.is_some_and(|at| wall.since(at) < COLLECT_EVERY) {
                    return Err(full(&book, limit));
                }
                *collected = Some(wall);
                if self.collect_domain(now).await? == 0 {
                    return Err(full(&book, limit));
                }
                continue;
            };
            match self.store.write_book(STATEMENTS, expect(stored.as_ref()), &book).await {
                Ok(_) => return Ok(given),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => self.after_conflict(round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// Takes back what queues have borrowed and do not need. How many slots that were.
    async fn collect_domain(&self, now: u64) -> Result<u32, Refusal> {
        for round in 0..ROUNDS {
            let Some(stored) = self.store.book(STATEMENTS).await? else { return Ok(0) };
            let mut book = stored.value.clone();
            let sessions: Vec<String> = book.holders.keys().cloned().collect();
            for some in sessions.chunks(100) {
                let names: Vec<String> = some.iter().map(|session| format!("queue/{session}")).collect();
                for ((session, name), queue) in some.iter().zip(&names).zip(self.store.books(&names).await?) {
                    // Of a queue that another is at, nothing is taken back this time.
                    if let Some(needed) = self.fence(name, queue, now).await? {
                        match (needed, book.holders.get_mut(session)) {
                            (0, _) => drop(book.holders.remove(session)),
                            (needed, Some(holding)) => holding.slots = holding.slots.min(needed),
                            (_, None) => {}
                        }
                    }
                }
            }
            let freed = stored.value.held() - book.held();
            if freed == 0 {
                return Ok(0);
            }
            match self.store.write_book(STATEMENTS, Expect::Version(stored.version), &book).await {
                Ok(_) => return Ok(freed),
                Err(StoreError::Conflict | StoreError::Unknown(_)) => self.after_conflict(round).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// Lowers what a queue may hold to what it does hold, in its own book first: whoever was about to hold more is refused the write.
    /// None: another is at it.
    async fn fence(&self, name: &str, stored: Option<Stored<Book>>, now: u64) -> Result<Option<u32>, Refusal> {
        let mut book = stored.as_ref().map(|stored| stored.value.clone()).unwrap_or_default();
        self.collect_statements(&mut book, now).await?;
        book.borrowed = book.held();
        match self.store.write_book(name, expect(stored.as_ref()), &book).await {
            Ok(_) => Ok(Some(book.borrowed)),
            Err(StoreError::Conflict | StoreError::Unknown(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How much is in use now: sessions, and slots that queues hold or keep ready.
    ///
    /// # Errors
    /// The store's.
    pub async fn in_use(&self) -> Result<(u32, u32), Refusal> {
        let books = self.store.books(&[SESSIONS.to_owned(), STATEMENTS.to_owned()]).await?;
        let mut held = books.into_iter().map(|book| book.map_or(0, |book| book.value.held()));
        Ok((held.next().unwrap_or(0), held.next().unwrap_or(0)))
    }

    /// Takes back what has ended, without waiting for a full book: what is in use is then what is told.
    ///
    /// # Errors
    /// The store's.
    pub async fn collect(&self) -> Result<(), Refusal> {
        let now = self.store.time().await?;
        if let Some(stored) = self.store.book(SESSIONS).await? {
            let mut book = stored.value.clone();
            self.collect_sessions(&mut book, now).await?;
            if book != stored.value {
                // Another's change is as good.
                let _ = self.store.write_book(SESSIONS, Expect::Version(stored.version), &book).await;
            }
        }
        let _borrowing = self.collected.lock().await;
        self.collect_domain(now).await.map(drop)
    }
}

fn full(book: &Book, limit: u32) -> Refusal {
    Refusal::Limit {
        which: "waiting and running statements of the domain".to_owned(),
        value: book.held(),
        limit,
        retry_after: RETRY_AFTER,
    }
}
