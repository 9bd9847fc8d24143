//! What the control plane needs of the documents: sessions steered, statements moved, allocations, books of slots, listings.

use async_trait::async_trait;
use firesteel_model::batch::BatchState;
use firesteel_model::permits::Book;
use firesteel_model::steer::Steer;
use firesteel_model::{Attempt, Event, Expect, Session, SessionId, Statement, StatementId, Stored, Version, statement};
use firesteel_session::ports::control::{Allocation, Batch, ControlStore, Listing};
use firesteel_session::ports::{Outcome, ResultStore, SessionStore, StoreError};
use serde_json::{Map, Value, json};

use crate::documents::{Documents, Field, Index, Key, Op, Order, Search};
use crate::store::{Store, reading, state, text};
use crate::wire::{self, ids};

/// The fields that a change by the control plane writes.
fn steered(steer: &Steer) -> Map<String, Value> {
    let fields = match steer {
        Steer::Launched { job, application } => json!({ "jobId": job.as_str(), "applicationId": application }),
        Steer::Drain => json!({ "draining": true }),
        Steer::RecoverTo(to) => json!({ "draining": true, "recoverTo": to.as_str() }),
        Steer::End => json!({ "state": "dead" }),
        Steer::Fail { error } => json!({ "state": "fail", "error": error }),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

impl<D: Documents> Store<D> {
    fn newest(&self, kind: &str, listing: &Listing, by: Field) -> Search {
        let mut terms = vec![(Field::Type, vec![kind.to_owned()])];
        if let Some(session) = &listing.session {
            terms.push((Field::Session, vec![session.as_str().to_owned()]));
        }
        if !listing.states.is_empty() {
            terms.push((Field::State, listing.states.clone()));
        }
        let order = match listing.up_to {
            Some(time) => Order::NewestUpTo(by, time),
            None => Order::Newest(by),
        };
        Search { index: self.index(), terms, or: Vec::new(), order, limit: listing.limit }
    }

    async fn put(&self, key: Key, expect: Expect, body: String) -> Result<Version, StoreError> {
        let op = match expect {
            Expect::Absent => Op::Create { key, body },
            Expect::Version(at) => Op::Update { key, at, fields: body },
        };
        self.write(op, false).await
    }
}

#[async_trait]
impl<D: Documents> ControlStore for Store<D> {
    async fn steer_session(&self, id: &SessionId, expect: Version, steer: &Steer) -> Result<Version, StoreError> {
        let fields = text(&steered(steer));
        self.write(Op::Update { key: self.session_key(id), at: expect, fields }, false).await
    }

    async fn recovery_of(&self, id: &SessionId) -> Result<Option<SessionId>, StoreError> {
        let to = |found: &crate::documents::Found| {
            let fields = wire::Fields::of(&found.source)?;
            let bad = |_| wire::BadField::new("recoverTo", "an id");
            fields.some_text("recoverTo")?.map(|to| SessionId::new(to).map_err(bad)).transpose()
        };
        Ok(reading(self.find(self.session_key(id)).await?, to)?.flatten())
    }

    async fn move_statement(&self, id: &StatementId, expect: Version, to: &SessionId) -> Result<Version, StoreError> {
        let fields = json!({ "sessionId": to.as_str(), "state": "waiting" }).to_string();
        // Refreshed, so that the session's next search finds it.
        let moved = self.write(Op::Update { key: self.statement_key(id), at: expect, fields }, true).await?;
        // By this the companion is found when the new session is swept; a sweep that finds the old one asks the statement.
        if let Some((at, _)) = self.read_companion(id).await? {
            let fields = json!({ "sessionId": to.as_str() }).to_string();
            let _ = self.write(Op::Update { key: state(ids::companion(id)), at, fields }, false).await;
        }
        Ok(moved)
    }

    async fn statements_at(&self, ids: &[StatementId]) -> Result<Vec<Option<Stored<Statement>>>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Key> = ids.iter().map(|id| self.statement_key(id)).collect();
        let found = self.documents.get(&keys, true).await?;
        found.into_iter().map(|found| reading(found, |f| self.read_statement(f))).collect()
    }

    async fn allocation(&self, id: &SessionId) -> Result<Option<Stored<Allocation>>, StoreError> {
        reading(self.find(state(ids::allocation(id))).await?, |f| {
            Ok(Stored { version: f.version, value: wire::control::read_allocation(&f.source)?.1 })
        })
    }

    async fn write_allocation(
        &self,
        id: &SessionId,
        expect: Expect,
        allocation: &Allocation,
    ) -> Result<Version, StoreError> {
        self.put(state(ids::allocation(id)), expect, text(&wire::control::allocation(id, allocation))).await
    }

    async fn allocations(&self, user: Option<&str>, limit: usize) -> Result<Vec<(SessionId, Allocation)>, StoreError> {
        let mut terms = vec![(Field::Kind, vec!["allocation".to_owned()])];
        if let Some(user) = user {
            terms.push((Field::User, vec![user.to_owned()]));
        }
        let order = Order::Newest(Field::Submitted);
        let found = self.documents.search(&Search { index: Index::State, terms, or: Vec::new(), order, limit }).await?;
        // One that another version wrote is nobody's as far as this one can tell.
        Ok(found.iter().filter_map(|hit| wire::control::read_allocation(&hit.source).ok()).collect())
    }

    async fn book(&self, name: &str) -> Result<Option<Stored<Book>>, StoreError> {
        Ok(self.books(&[name.to_owned()]).await?.pop().flatten())
    }

    async fn books(&self, names: &[String]) -> Result<Vec<Option<Stored<Book>>>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Key> = names.iter().map(|name| state(ids::permits(name))).collect();
        let found = self.documents.get(&keys, true).await?;
        let read = |f: &crate::documents::Found| {
            Ok(Stored { version: f.version, value: wire::control::read_book(&f.source)? })
        };
        found.into_iter().map(|found| reading(found, read)).collect()
    }

    async fn write_book(&self, name: &str, expect: Expect, book: &Book) -> Result<Version, StoreError> {
        self.put(state(ids::permits(name)), expect, text(&wire::control::book(name, book))).await
    }

    async fn batch(&self, id: &str) -> Result<Option<Stored<Batch>>, StoreError> {
        reading(self.find(state(ids::job_run(id))).await?, |f| {
            Ok(Stored { version: f.version, value: wire::batch::read(&f.source)?.1 })
        })
    }

    async fn write_batch(&self, id: &str, expect: Expect, batch: &Batch) -> Result<Version, StoreError> {
        self.put(state(ids::job_run(id)), expect, text(&wire::batch::document(id, batch))).await
    }

    async fn batches(&self, user: Option<&str>, open: bool, limit: usize) -> Result<Vec<(String, Batch)>, StoreError> {
        let mut terms = vec![(Field::Kind, vec!["jobrun".to_owned()])];
        if open {
            let states = BatchState::ALL.into_iter().filter(|state| !state.is_over());
            terms.push((Field::State, states.map(|state| state.name().to_owned()).collect()));
        }
        if let Some(user) = user {
            terms.push((Field::User, vec![user.to_owned()]));
        }
        let order = Order::Newest(Field::Submitted);
        let found = self.documents.search(&Search { index: Index::State, terms, or: Vec::new(), order, limit }).await?;
        Ok(found.iter().filter_map(|hit| wire::batch::read(&hit.source).ok()).collect())
    }

    async fn list_sessions(&self, listing: &Listing) -> Result<Vec<Stored<Session>>, StoreError> {
        let found = self.documents.search(&self.newest("session", listing, Field::Renewed)).await?;
        Ok(found.iter().filter_map(|hit| self.session_hit(hit)).map(|(_, session)| session).collect())
    }

    async fn list_statements(&self, listing: &Listing) -> Result<Vec<Stored<Statement>>, StoreError> {
        let found = self.documents.search(&self.newest("statement", listing, Field::Submitted)).await?;
        Ok(found.iter().filter_map(|hit| self.read_statement(hit).ok()).collect())
    }

    async fn fail_statement(&self, statement: &Statement, expect: Version, error: &str) -> Result<(), StoreError> {
        let failed = statement::next(&statement.state, Event::Fail { error: error.to_owned() })
            .map_err(|_| StoreError::Conflict)?;
        let attempt = Attempt { claim: expect, n: 0 };
        let outcome = |statement| Outcome {
            statement,
            attempt,
            job: "",
            application: "",
            job_type: "interactive",
            run_millis: 0,
        };
        // Whoever dies between the two writes leaves something that a sweep finds.
        self.announce(&outcome(statement)).await?;
        self.write_statement(&statement.id, expect, &failed).await?;
        self.settle(&outcome(&Statement { state: failed, ..statement.clone() })).await
    }
}
