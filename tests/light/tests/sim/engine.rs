//! An engine whose statements are words, in a worker that may die: `rows N`, `wait MS`, `write MS`, `set K`, `show`, `drip N`, `fail`,
//! `bad`, `die`, `hang`. Each row says which run of a statement made it, so that rows of two runs cannot be taken for one result.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::{Entry, Journal};
use firesteel_session::ports::{Engine, EngineError, Output, Plan, Progress, Request};
use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::ledger::Ledger;

/// How many rows a batch has: more than one batch for results that have pages.
const BATCH: u64 = 10;

/// The engine of one process.
#[derive(Clone)]
pub struct Words {
    process: String,
    ledger: Ledger,
    worker: Arc<Mutex<Worker>>,
    deaths: Arc<watch::Sender<u64>>,
}

/// What the worker was made of, as far as it goes.
#[derive(Default)]
struct Worker {
    applied: Vec<Entry>,
    generation: u64,
}

impl Words {
    pub fn new(process: &str, ledger: Ledger) -> Words {
        Words { process: process.to_owned(), ledger, worker: Arc::default(), deaths: Arc::new(watch::channel(0).0) }
    }

    /// The worker dies, under whatever it runs.
    pub fn crash(&self) {
        *self.worker.lock().unwrap() = Worker::default();
        self.deaths.send_modify(|n| *n += 1);
    }
}

#[async_trait]
impl Engine for Words {
    async fn plan(&self, journal: &Journal, request: &Request) -> Result<Box<dyn Plan>, EngineError> {
        let deaths = self.deaths.subscribe();
        tokio::time::sleep(Duration::from_millis(2)).await;
        {
            let mut worker = self.worker.lock().unwrap();
            if worker.generation != journal.generation() || journal.missing(&worker.applied).is_none() {
                *worker = Worker { generation: journal.generation(), ..Worker::default() };
            }
            let missing = journal.missing(&worker.applied).unwrap_or_default();
            worker.applied.extend(missing);
        }
        if request.text.0 == "bad" {
            return Err(Failure::new(Code::Syntax, Stage::Plan, "not a word").into());
        }
        let (statement, text) = (request.statement.to_string(), request.text.0.clone());
        Ok(Box::new(Planned { statement, text, words: self.clone(), deaths }))
    }

    async fn close(&self) {}
}

struct Planned {
    statement: String,
    text: String,
    words: Words,
    deaths: watch::Receiver<u64>,
}

fn died() -> EngineError {
    EngineError::Died("signal 9".into())
}

impl Planned {
    fn word(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    fn argument(&self) -> &str {
        self.text.split(' ').nth(1).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.argument().parse().unwrap_or(1)
    }

    /// Works for so long, unless the worker dies.
    async fn work(&self, millis: u64) -> Result<(), EngineError> {
        let mut deaths = self.deaths.clone();
        tokio::select! {
            biased;
            _ = deaths.changed() => Err(died()),
            () = tokio::time::sleep(Duration::from_millis(millis)) => Ok(()),
        }
    }
}

#[async_trait]
impl Plan for Planned {
    fn kind(&self) -> Kind {
        match self.word() {
            "write" => Kind::Write,
            "set" => Kind::Define,
            _ => Kind::Read,
        }
    }

    fn entry(&self) -> Option<Entry> {
        (self.kind() == Kind::Define).then(|| Entry::new(self.argument().to_owned()))
    }

    async fn run(self: Box<Self>) -> Result<Output, EngineError> {
        let run = self.words.ledger.began(&self.words.process, &self.statement);
        if self.deaths.has_changed().unwrap_or(true) {
            return Err(died());
        }
        match self.word() {
            "fail" => return Err(Failure::new(Code::Execution, Stage::Execute, "as asked").into()),
            "die" => {
                self.words.crash();
                return Err(died());
            }
            "hang" => {
                self.work(3_600_000).await?;
            }
            "write" => {
                self.work(self.number()).await?;
                self.words.ledger.effect(&self.statement);
                self.work(3).await?;
            }
            "wait" => self.work(self.number()).await?,
            "set" => self.words.worker.lock().unwrap().applied.push(Entry::new(self.argument().to_owned())),
            _ => {}
        }
        let batches = match self.word() {
            "rows" | "drip" => (0..self.number().div_ceil(BATCH))
                .map(|b| numbers(run, b * BATCH..self.number().min((b + 1) * BATCH)))
                .collect(),
            "show" => vec![texts(run, &self.words.worker.lock().unwrap().applied)],
            _ => vec![numbers(run, 0..1)],
        };
        let schema = batches.first().unwrap_or(&numbers(run, 0..0)).schema();
        let progress = watch::channel(Progress { rows: 7, bytes: 70, elapsed_millis: 0 }).1;
        let planned = Arc::new(self);
        let batches = stream::iter(batches).then(move |batch| {
            let planned = Arc::clone(&planned);
            async move { planned.work(if planned.word() == "drip" { 200 } else { 1 }).await.map(|()| batch) }
        });
        Ok(Output { schema, batches: batches.boxed(), progress })
    }
}

fn numbers(run: i64, rows: std::ops::Range<u64>) -> RecordBatch {
    let values: Vec<i64> = rows.map(|v| i64::try_from(v).unwrap()).collect();
    batch("n", DataType::Int64, run, values.len(), Arc::new(Int64Array::from(values)))
}

fn texts(run: i64, rows: &[Entry]) -> RecordBatch {
    let texts: StringArray = rows.iter().map(|e| Some(e.text.as_str())).collect();
    batch("entry", DataType::Utf8, run, rows.len(), Arc::new(texts))
}

fn batch(name: &str, data_type: DataType, run: i64, rows: usize, values: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new(name, data_type, false), Field::new("run", DataType::Int64, false)]);
    RecordBatch::try_new(Arc::new(schema), vec![values, Arc::new(Int64Array::from(vec![run; rows]))]).unwrap()
}
