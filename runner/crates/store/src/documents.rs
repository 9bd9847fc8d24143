//! What the two ports need of a store, one level below them: documents with versions, and no knowledge of what is in them.
//!
//! Each store implements [`Documents`]; [`crate::Store`] is written once on top. A test wraps one implementation in
//! another that delays, fails or counts.

use async_trait::async_trait;
use firesteel_model::{Pattern, Version};
use firesteel_session::ports::StoreError;
use serde_json::Value;

/// Which of the three indices a document is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Sessions and statements: a contract with other programs.
    Requests,
    /// Results: a contract with other programs.
    Results,
    /// What only Firesteel keeps.
    State,
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its index.
    pub index: Index,
    /// Its `_id`: data, of any characters, at most 512 bytes.
    pub id: String,
}

/// A document as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its `_id`.
    pub id: String,
    /// The version that a conditional write must name.
    pub version: Version,
    /// What it says; [`Value::Null`] if it was not asked for.
    pub source: Value,
}

/// One conditional write. Bodies are JSON objects without nulls, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Makes a document that does not exist.
    Create {
        /// Where.
        key: Key,
        /// The whole document.
        body: String,
    },
    /// Merges fields into a document that is still at a version, which changes even if no field does.
    Update {
        /// Where.
        key: Key,
        /// The version it must be at.
        at: Version,
        /// The fields to write; the others stay.
        fields: String,
    },
    /// Removes a document that is still at a version.
    Delete {
        /// Where.
        key: Key,
        /// The version it must be at.
        at: Version,
    },
}

impl Op {
    /// Where it writes.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Op::Create { key, .. } | Op::Update { key, .. } | Op::Delete { key, .. } => key,
        }
    }
}

/// A field by which documents are found or sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// `type`: session or statement.
    Type,
    /// `state`
    State,
    /// `sessionId`
    Session,
    /// `kind`: what a document of the state index is.
    Kind,
    /// `queryId`
    Query,
    /// `status`: what became of a result.
    Status,
    /// `submitTime`
    Submitted,
    /// `lastUpdateTime`
    Renewed,
    /// `updateTime`
    Updated,
    /// `user`: to whom a document of the control plane belongs.
    User,
}

impl Field {
    /// Its name in the documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Field::Type => "type",
            Field::State => "state",
            Field::Session => "sessionId",
            Field::Kind => "kind",
            Field::Query => "queryId",
            Field::Status => "status",
            Field::Submitted => "submitTime",
            Field::Renewed => "lastUpdateTime",
            Field::Updated => "updateTime",
            Field::User => "user",
        }
    }
}

/// The order of a search's hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest first, ties by `statementId`.
    Oldest(Field),
    /// Largest first.
    Newest(Field),
    /// Largest first, of those that are not larger than this.
    NewestUpTo(Field, u64),
    /// The smallest of each session, the smallest of them first, ties by `statementId`.
    OldestOfEachSession(Field),
}

/// More documents that a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Or {
    /// Each field must have one of its values.
    pub terms: Vec<(Field, Vec<String>)>,
    /// `sessionId` must match one of these; none: it may be any.
    pub patterns: Vec<Pattern>,
}

/// A search for documents whose fields have exactly these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Where.
    pub index: Index,
    /// Each field must have one of its values.
    pub terms: Vec<(Field, Vec<String>)>,
    /// Documents that are found as well.
    pub or: Vec<Or>,
    /// In which order.
    pub order: Order,
    /// At most so many; `usize::MAX`: all, paged to the end.
    pub limit: usize,
}

/// What [`Documents::open`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// It does not exist and was not to be made.
    Missing,
    /// It is as our mapping says.
    Ours,
    /// It existed: the index's real name and its mapping.
    Theirs(Vec<(String, Value)>),
}

/// A store of documents.
#[async_trait]
pub trait Documents: Send + Sync + 'static {
    /// Makes an index if it is missing and `create`; else reads its mapping.
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError>;
    /// Reads documents by id in one request, in real time, in the order of `keys`. None: no such document or index.
    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError>;
    /// Performs writes in one request, each with its own outcome, in the order of `ops`; with `refresh`, returns when
    /// searches see them. An error of the whole is one of each.
    async fn bulk(&self, ops: Vec<Op>, refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError>;
    /// Makes searches see every earlier write. An error if any shard did not.
    async fn refresh(&self, index: Index) -> Result<(), StoreError>;
    /// Searches every shard's primary; less than all of them is an error. Empty if the index does not exist.
    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError>;
    /// Measures the store's clock against ours, if the last time was a minute or more ago.
    async fn measure(&self) -> Result<(), StoreError>;
    /// The store's time by the last measurement, in epoch milliseconds.
    fn now(&self) -> u64;
}
