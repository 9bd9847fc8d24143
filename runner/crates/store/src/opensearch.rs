//! A store in OpenSearch: documents are read by `_mget`, written by `_bulk`, found by `_search`.
//!
//! Ids stand in bodies only, never in a path, so there is none that a URL could misread.

mod answer;
mod connection;
mod options;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use firesteel_model::{Pattern, Version};
use firesteel_session::ports::StoreError;
use opensearch::http::Method;
use serde_json::{Value, json};

use crate::ambient::wall_clock;
use crate::documents::{Documents, Field, Found, Index, Key, Op, Opened, Order, Search};
use crate::store::Settings;
use crate::wire::mapping;
use answer::{error_type, refusal};
use connection::{Connection, Request};

pub use options::{Auth, OpenSearchOptions};

/// Hits of one request of a search that is paged.
const PAGE: usize = 500;
/// The most hits that one request may ask for: `index.max_result_window`.
const WINDOW: usize = 10_000;
/// How long a measurement of the store's clock holds, in milliseconds.
const MEASURED_FOR: u64 = 60_000;

/// Documents in OpenSearch.
#[derive(Debug)]
pub struct OpenSearch {
    connection: Connection,
    settings: Settings,
    clock: Mutex<Option<Measured>>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    /// When, by our clock.
    at: u64,
    /// The store's clock less ours.
    ahead: i64,
}

impl OpenSearch {
    /// Names the store; it is reached at the first request.
    ///
    /// # Errors
    /// `Refused`: a name can't be that of an index.
    pub fn new(options: OpenSearchOptions, settings: Settings) -> Result<OpenSearch, StoreError> {
        for index in [Index::Requests, Index::Results, Index::State] {
            let name = settings.name(index);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
            if !name.chars().all(plain)
                || name.starts_with(['-', '_'])
                || matches!(name, "" | "." | "..")
                || name.len() > 255
            {
                return Err(StoreError::Refused(format!(
                    "index `{}`: a name should be of a-z, 0-9, `-`, `_` and `.`, and begin with none of `-` and `_`",
                    name.escape_debug()
                )));
            }
        }
        Ok(OpenSearch { connection: Connection::new(options), settings, clock: Mutex::new(None) })
    }

    /// How many requests were sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.connection.requests()
    }

    fn request(&self, method: Method, path: String, body: impl Into<Bytes>) -> Request {
        Request { method, path, query: Vec::new(), body: body.into(), writes: false }
    }

    /// One page of a search's hits.
    async fn page(&self, search: &Search, size: usize, after: Option<&Value>) -> Result<Vec<Value>, StoreError> {
        let sort = match search.order {
            Order::Oldest(field) | Order::OldestOfEachSession(field) => {
                let missing = if field == Field::Session { json!("_first") } else { json!(0) };
                json!([{ field.name(): { "order": "asc", "missing": missing } }, { "statementId": { "order": "asc" } }])
            }
            Order::Newest(field) | Order::NewestUpTo(field, _) => json!([{ field.name(): { "order": "desc" } }]),
        };
        let mut body = json!({
            "size": size,
            "query": query(search),
            "sort": sort,
            "seq_no_primary_term": true,
            "track_total_hits": false,
        });
        if let Some(after) = after {
            body["search_after"] = after.clone();
        }
        if let Order::OldestOfEachSession(_) = search.order {
            body["collapse"] = json!({ "field": Field::Session.name() });
        }
        let path = format!("/{}/_search", self.settings.name(search.index));
        let request = Request {
            query: vec![("preference", "_primary"), ("allow_partial_search_results", "false")],
            ..self.request(Method::Post, path, body.to_string())
        };
        let answer = self.connection.send(&request).await?;
        if answer.status == 404 {
            return Ok(Vec::new());
        }
        let mut found = answer.read(false)?;
        let shards = &found["_shards"];
        let whole = found["timed_out"] == json!(false)
            && shards["failed"] == json!(0)
            && shards["successful"] == shards["total"];
        if !whole {
            return Err(StoreError::Unavailable("the search did not reach every shard in time".to_owned()));
        }
        match found["hits"]["hits"].take() {
            Value::Array(hits) => Ok(hits),
            _ => Err(StoreError::Corrupt("what answered is not OpenSearch: a search has no hits".to_owned())),
        }
    }
}

fn query(search: &Search) -> Value {
    let all = |terms: &[(Field, Vec<String>)], patterns: &[Pattern]| {
        let mut filter: Vec<Value> = terms.iter().map(|(f, wanted)| json!({ "terms": { f.name(): wanted } })).collect();
        if !patterns.is_empty() {
            let like = |p| json!({ "wildcard": { Field::Session.name(): { "value": wildcard(p) } } });
            filter.push(any(patterns.iter().map(like).collect()));
        }
        if let Order::NewestUpTo(field, most) = search.order {
            filter.push(json!({ "range": { field.name(): { "lte": most, "format": "epoch_millis" } } }));
        }
        json!({ "bool": { "filter": filter } })
    };
    let mut alternatives = vec![all(&search.terms, &[])];
    alternatives.extend(search.or.iter().map(|or| all(&or.terms, &or.patterns)));
    if alternatives.len() == 1 { alternatives.remove(0) } else { json!({ "bool": { "filter": any(alternatives) } }) }
}

fn any(queries: Vec<Value>) -> Value {
    json!({ "bool": { "should": queries, "minimum_should_match": 1 } })
}

/// The pattern as a wildcard query has it, where more than the star is special.
fn wildcard(pattern: &Pattern) -> String {
    pattern.as_str().replace('\\', r"\\").replace('?', r"\?")
}

fn version(found: &Value) -> Result<Version, StoreError> {
    let number = |field: &str| {
        found[field].as_u64().ok_or_else(|| StoreError::Corrupt(format!("OpenSearch answered without `{field}`")))
    };
    Ok(Version { term: number("_primary_term")?, seq_no: number("_seq_no")? })
}

fn found(hit: &mut Value) -> Result<Found, StoreError> {
    let id = hit["_id"].as_str().unwrap_or_default().to_owned();
    Ok(Found { id, version: version(hit)?, source: hit["_source"].take() })
}

/// The lines of one op, appended to a bulk's body.
fn append(body: &mut Vec<u8>, settings: &Settings, op: Op) {
    let mut lines = |action: &str, key: &Key, at: Option<Version>, document: &[&str]| {
        let mut meta = json!({ "_index": settings.name(key.index), "_id": key.id });
        if let Some(at) = at {
            meta["if_seq_no"] = json!(at.seq_no);
            meta["if_primary_term"] = json!(at.term);
        }
        body.extend_from_slice(json!({ action: meta }).to_string().as_bytes());
        body.push(b'\n');
        for part in document {
            body.extend_from_slice(part.as_bytes());
        }
    };
    match op {
        Op::Create { key, body } => lines("create", &key, None, &[&body, "\n"]),
        // An update that changes nothing must still change the version: another holds the old one.
        Op::Update { key, at, fields } => {
            lines("update", &key, Some(at), &["{\"detect_noop\":false,\"doc\":", &fields, "}\n"]);
        }
        Op::Delete { key, at } => lines("delete", &key, Some(at), &[]),
    }
}

/// What became of one op of a bulk.
fn outcome(item: &Value) -> Result<Version, StoreError> {
    // One member, named after the action.
    let result = item.as_object().and_then(|o| o.values().next()).unwrap_or(&Value::Null);
    match result["status"].as_u64().and_then(|s| u16::try_from(s).ok()) {
        Some(200..300) => version(result),
        // What was to be changed is not there: changed by another, as any other version.
        Some(404) => Err(StoreError::Conflict),
        Some(status) => Err(refusal(status, error_type(result), true)),
        None => Err(StoreError::Unknown("OpenSearch did not say what became of a document".to_owned())),
    }
}

#[async_trait]
impl Documents for OpenSearch {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        let name = self.settings.name(index);
        loop {
            let answer = self.connection.send(&self.request(Method::Get, format!("/{name}/_mapping"), "")).await?;
            if answer.status != 404 {
                let Value::Object(indices) = answer.read(false)? else {
                    return Err(StoreError::Corrupt(
                        "what answered is not OpenSearch: a mapping is no object".to_owned(),
                    ));
                };
                let mappings = indices.into_iter().map(|(name, mut index)| (name, index["mappings"].take()));
                return Ok(Opened::Theirs(mappings.collect()));
            }
            if !create {
                return Ok(Opened::Missing);
            }
            let request = self.request(Method::Put, format!("/{name}"), mapping::body(index));
            let answer = self.connection.send(&Request { writes: true, ..request }).await?;
            let body = serde_json::from_slice(&answer.body).unwrap_or_default();
            if answer.status != 400 || error_type(&body) != "resource_already_exists_exception" {
                return answer.read(true).map(|_| Opened::Ours);
            }
            // Another made it in between: its mapping is checked like any other.
        }
    }

    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        let docs: Vec<Value> = keys
            .iter()
            .map(|key| json!({ "_index": self.settings.name(key.index), "_id": key.id, "_source": sources }))
            .collect();
        let request = Request {
            query: vec![("preference", "_primary")],
            ..self.request(Method::Post, "/_mget".to_owned(), json!({ "docs": docs }).to_string())
        };
        let mut answer = self.connection.send(&request).await?.read(false)?;
        let docs = answer["docs"].as_array_mut().filter(|docs| docs.len() == keys.len());
        let docs = docs.ok_or_else(|| StoreError::Corrupt("OpenSearch did not answer for each document".to_owned()))?;
        docs.iter_mut()
            .map(|doc| match doc["found"].as_bool() {
                Some(true) => found(doc).map(Some),
                Some(false) => Ok(None),
                None if error_type(doc) == "index_not_found_exception" => Ok(None),
                None => {
                    Err(StoreError::Unavailable(format!("OpenSearch could not read a document ({})", error_type(doc))))
                }
            })
            .collect()
    }

    async fn bulk(&self, ops: Vec<Op>, refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        let number = ops.len();
        let mut body = Vec::new();
        for op in ops {
            append(&mut body, &self.settings, op);
        }
        let request = Request {
            query: vec![("refresh", if refresh { "true" } else { "false" })],
            writes: true,
            ..self.request(Method::Post, "/_bulk".to_owned(), body)
        };
        let answer = self.connection.send(&request).await?.read(true)?;
        let items = answer["items"].as_array().filter(|items| items.len() == number);
        let items =
            items.ok_or_else(|| StoreError::Unknown("OpenSearch did not answer for each document".to_owned()))?;
        Ok(items.iter().map(outcome).collect())
    }

    async fn refresh(&self, index: Index) -> Result<(), StoreError> {
        let request = self.request(Method::Post, format!("/{}/_refresh", self.settings.name(index)), "");
        let answer = self.connection.send(&request).await?;
        if answer.status == 404 {
            return Ok(());
        }
        if answer.read(false)?["_shards"]["failed"] != json!(0) {
            return Err(StoreError::Unavailable("a shard was not refreshed".to_owned()));
        }
        Ok(())
    }

    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        // Only the oldest first are paged: their order has no ties.
        let most = match search.order {
            Order::Oldest(_) => PAGE,
            Order::Newest(_) | Order::NewestUpTo(..) | Order::OldestOfEachSession(_) => WINDOW,
        };
        let (mut hits, mut after) = (Vec::new(), None);
        loop {
            let size = most.min(search.limit - hits.len());
            let mut page = match size {
                0 => Vec::new(),
                _ => self.page(search, size, after.as_ref()).await?,
            };
            after = page.last_mut().map(|hit| hit["sort"].take());
            for hit in &mut page {
                hits.push(found(hit)?);
            }
            if page.len() < size || size < PAGE || most == WINDOW {
                return Ok(hits);
            }
        }
    }

    async fn measure(&self) -> Result<(), StoreError> {
        let last = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let before = wall_clock();
        if last.is_some_and(|m| before.abs_diff(m.at) < MEASURED_FOR) {
            return Ok(());
        }
        let request = Request {
            query: vec![("filter_path", "nodes.*.timestamp")],
            ..self.request(Method::Get, "/_nodes/_local/stats/http".to_owned(), "")
        };
        let theirs = match self.connection.send(&request).await?.read(false) {
            Ok(answer) => answer["nodes"].as_object().and_then(|n| n.values().next()?["timestamp"].as_i64()),
            Err(StoreError::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        let ours = i64::try_from(u64::midpoint(before, wall_clock())).unwrap_or(i64::MAX);
        if theirs.is_none() && last.is_none() {
            tracing::warn!("the store does not tell its time (node stats): this machine's clock is used");
        }
        let ahead = theirs.map_or(0, |theirs| theirs.saturating_sub(ours));
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(Measured { at: before, ahead });
        Ok(())
    }

    fn now(&self) -> u64 {
        let measured = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        wall_clock().saturating_add_signed(measured.map_or(0, |m| m.ahead))
    }
}
