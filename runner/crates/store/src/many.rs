//! Many sessions in one request: for a process that serves them all.

use std::collections::{BTreeMap, BTreeSet};

use firesteel_model::{Pattern, Session, SessionChange, SessionId, Stored, Version};
use firesteel_session::ports::{Overview, StoreError};

use crate::documents::{Documents, Field, Found, Key, Op, Or, Order, Search};
use crate::store::{Scope, Store, reading, stored_session, text};
use crate::wire;

/// Hits of a search over many sessions. Beyond them each session's oldest is searched for by itself.
const HITS: usize = 500;
/// The most sessions of which one search brings the oldest statement.
const MOST_SESSIONS: usize = 10_000;

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|v| (*v).to_owned()).collect()
}

impl<D: Documents> Store<D> {
    pub(crate) async fn overview(
        &self,
        sessions: &[SessionId],
        fresh: &[Pattern],
        limit: usize,
    ) -> Result<Overview, StoreError> {
        let wanted: BTreeMap<&str, &SessionId> = sessions.iter().map(|id| (id.as_str(), id)).collect();
        let of = |kind, states: &[&str]| vec![(Field::Type, texts(&[kind])), (Field::State, texts(states))];
        let search = |ids: Vec<String>, order, limit| {
            let served = |kind, states: &[&str]| {
                let mut terms = of(kind, states);
                terms.push((Field::Session, ids.clone()));
                terms
            };
            // A session that was ended by another is noticed by the same search.
            let mut or = vec![Or { terms: served("session", &["dead", "fail"]), patterns: Vec::new() }];
            if !fresh.is_empty() {
                or.push(Or { terms: of("session", &["not_started"]), patterns: fresh.to_vec() });
            }
            Search { index: self.index(), terms: served("statement", &["waiting", "running"]), or, order, limit }
        };
        let all = wanted.keys().map(|id| (*id).to_owned()).collect();
        let mut found = self.documents.search(&search(all, Order::Oldest(Field::Submitted), HITS)).await?;
        if found.len() >= HITS {
            // One session with many would hide the others: of each that is not among the hits, the oldest.
            let seen: BTreeSet<&str> = found.iter().filter_map(|hit| hit.source["sessionId"].as_str()).collect();
            let rest = wanted.keys().filter(|id| !seen.contains(**id)).map(|id| (*id).to_owned()).collect();
            let order = Order::OldestOfEachSession(Field::Submitted);
            found.extend(self.documents.search(&search(rest, order, MOST_SESSIONS)).await?);
        }
        let (mut of, mut fresh) = (BTreeMap::<&SessionId, Vec<Found>>::new(), BTreeMap::new());
        for hit in found {
            match hit.source["sessionId"].as_str().and_then(|id| wanted.get(id)) {
                Some(id) => of.entry(id).or_default().push(hit),
                None => fresh.extend(self.session_hit(&hit)),
            }
        }
        let open = of.into_iter().map(|(id, hits)| {
            let mut open = self.open(id, hits);
            open.statements.truncate(limit);
            (id.clone(), open)
        });
        Ok(Overview { open: open.collect(), fresh: fresh.into_values().collect() })
    }

    pub(crate) async fn live(&self, patterns: &[Pattern]) -> Result<Vec<Stored<Session>>, StoreError> {
        let terms = vec![(Field::Type, texts(&["session"])), (Field::State, texts(&["not_started", "running"]))];
        let order = Order::Oldest(Field::Session);
        let search = Search { index: self.index(), terms, or: Vec::new(), order, limit: usize::MAX };
        let found = self.documents.search(&search).await?;
        let ours = found.iter().filter_map(|hit| self.session_hit(hit)).map(|(_, session)| session);
        Ok(ours.filter(|s| patterns.iter().any(|pattern| pattern.matches(s.value.id.as_str()))).collect())
    }

    pub(crate) async fn read_sessions(
        &self,
        scope: Scope,
        ids: &[SessionId],
    ) -> Result<Vec<Result<Option<Stored<Session>>, StoreError>>, StoreError> {
        let keys: Vec<Key> = ids.iter().map(|id| scope.session_key(id)).collect();
        let found = self.documents.get(&keys, true).await?;
        Ok(ids.iter().zip(found).map(|(id, found)| reading(found, |f| stored_session(id, f))).collect())
    }

    pub(crate) async fn change_sessions(
        &self,
        changes: &[(SessionId, Version, SessionChange)],
    ) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.stamp().await;
        let op = |(id, at, change): &(SessionId, Version, SessionChange)| Op::Update {
            key: self.session_key(id),
            at: *at,
            fields: text(&wire::session::change(change, now)),
        };
        self.documents.bulk(changes.iter().map(op).collect(), false).await
    }

    /// A session as a search saw it. One that is unreadable is told by whoever reads it by its id.
    pub(crate) fn session_hit(&self, hit: &Found) -> Option<(SessionId, Stored<Session>)> {
        let id = SessionId::new(hit.source["sessionId"].as_str()?).ok()?;
        // Where a document says another id than it has, nobody could read it by what it says.
        let consistent = self.session_key(&id).id == hit.id;
        let session = stored_session(&id, hit).ok().filter(|_| consistent)?;
        Some((id, session))
    }
}
