//! An engine whose statements are words: `rows N`, `wait MS`, `set K`, `write`, `fail`, `die`, `hang`, `show`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::{Entry, Journal};
use firesteel_session::ports::{Engine, EngineError, Output, Plan, Progress, Request};
use futures::{StreamExt, stream};
use tokio::sync::watch;

/// Counts what reached the world outside, and what each worker was made of.
#[derive(Clone, Default)]
pub struct Words {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    writes: BTreeMap<String, u32>,
    runs: BTreeMap<String, u32>,
    worker: Vec<String>,
    generation: u64,
    closed: bool,
}

impl Words {
    /// How often the effect of this statement took place.
    pub fn writes(&self, statement: &str) -> u32 {
        self.seen.lock().unwrap().writes.get(statement).copied().unwrap_or(0)
    }

    /// How often this statement was run.
    pub fn runs(&self, statement: &str) -> u32 {
        self.seen.lock().unwrap().runs.get(statement).copied().unwrap_or(0)
    }

    /// Whether the engine was told that the session is over.
    pub fn closed(&self) -> bool {
        self.seen.lock().unwrap().closed
    }
}

struct Planned {
    id: String,
    text: String,
    words: Words,
}

#[async_trait]
impl Engine for Words {
    async fn plan(&self, journal: &Journal, request: &Request) -> Result<Box<dyn Plan>, EngineError> {
        {
            let mut seen = self.seen.lock().unwrap();
            if seen.generation != journal.generation() {
                seen.worker.clear();
                seen.generation = journal.generation();
            }
            let known = seen.worker.len();
            seen.worker.extend(journal.entries().iter().skip(known).map(|e| e.text.clone()));
        }
        if request.text.0 == "bad" {
            return Err(Failure::new(Code::Syntax, Stage::Plan, "not a word").into());
        }
        Ok(Box::new(Planned { id: request.statement.to_string(), text: request.text.0.clone(), words: self.clone() }))
    }

    async fn close(&self) {
        self.seen.lock().unwrap().closed = true;
    }
}

impl Planned {
    fn word(&self, n: usize) -> &str {
        self.text.split(' ').nth(n).unwrap_or_default()
    }
}

#[async_trait]
impl Plan for Planned {
    fn kind(&self) -> Kind {
        match self.word(0) {
            "write" => Kind::Write,
            "set" => Kind::Define,
            _ => Kind::Read,
        }
    }

    fn entry(&self) -> Option<Entry> {
        (self.kind() == Kind::Define).then(|| Entry::new(self.word(1).to_owned()))
    }

    async fn run(self: Box<Self>) -> Result<Output, EngineError> {
        *self.words.seen.lock().unwrap().runs.entry(self.id.clone()).or_default() += 1;
        let number = |n: usize| self.word(n).parse::<u64>().unwrap_or(0);
        match self.word(0) {
            "fail" => return Err(Failure::new(Code::Execution, Stage::Execute, "as asked").into()),
            "die" => return Err(EngineError::Died("signal 9".into())),
            "hang" => std::future::pending().await,
            "write" => {
                tokio::time::sleep(Duration::from_millis(number(1))).await;
                *self.words.seen.lock().unwrap().writes.entry(self.id.clone()).or_default() += 1;
            }
            "set" => self.words.seen.lock().unwrap().worker.push(self.word(1).to_owned()),
            _ => {}
        }
        let (schema, batches): (SchemaRef, Vec<RecordBatch>) = match self.word(0) {
            "rows" => numbers(number(1)),
            "show" => texts(self.words.seen.lock().unwrap().worker.clone()),
            _ => numbers(1),
        };
        let wait = if self.word(0) == "wait" { number(1) } else { 0 };
        let rows = stream::iter(batches.into_iter().map(Ok));
        let batches =
            stream::once(tokio::time::sleep(Duration::from_millis(wait))).map(move |()| rows.clone()).flatten().boxed();
        Ok(Output { schema, batches, progress: watch::channel(Progress { rows: 7, bytes: 70, elapsed_millis: 0 }).1 })
    }
}

fn numbers(n: u64) -> (SchemaRef, Vec<RecordBatch>) {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let batches = (0..n.div_ceil(1_000))
        .map(|b| {
            let values = (b * 1_000..n.min((b + 1) * 1_000)).map(|v| i64::try_from(v).unwrap());
            RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()
        })
        .collect();
    (schema, batches)
}

fn texts(rows: Vec<String>) -> (SchemaRef, Vec<RecordBatch>) {
    let schema = Arc::new(Schema::new(vec![Field::new("entry", DataType::Utf8, false)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(StringArray::from(rows))]).unwrap();
    (schema, vec![batch])
}
