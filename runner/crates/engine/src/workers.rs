//! The engine of one session, in worker processes of a [`Pool`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::arrow::buffer::Buffer;
use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::{Entry, Journal};
use firesteel_session::ports::{Engine, EngineError, Output, Plan, Request};
use futures::stream::{self, StreamExt};

use crate::pool::Pool;
use crate::process::{Line, Process, Said};
use crate::settings::Settings;
use crate::wire::{self, ToWorker};

/// An [`Engine`] for one session, in worker processes: one at a time. It takes one from the pool when a statement needs it, and loses
/// it when it was idle for long, or when another session needs it more.
pub struct Workers {
    pool: Arc<Pool>,
    /// Nobody else has the pool.
    alone: bool,
    seat: tokio::sync::Mutex<Option<Assigned>>,
}

struct Assigned {
    process: Process,
    generation: u64,
    ledger: Arc<Mutex<Ledger>>,
}

/// Which of the journal's entries a worker has applied.
#[derive(Default)]
struct Ledger {
    applied: Vec<Entry>,
    /// Defines and replays that began and have not said how they ended.
    unsure: u32,
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// An engine with a pool of its own.
    #[must_use]
    pub fn new(settings: Settings) -> Workers {
        Workers::alone(Pool::new(settings))
    }

    /// An engine that ends the pool when it is closed.
    #[must_use]
    pub fn alone(pool: Arc<Pool>) -> Workers {
        Workers { alone: true, ..Workers::of(pool) }
    }

    pub(crate) fn of(pool: Arc<Pool>) -> Workers {
        Workers { pool, alone: false, seat: tokio::sync::Mutex::default() }
    }

    /// The pool that it takes workers from.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The process id of the session's worker, for whoever wants to look at it.
    pub async fn worker_pid(&self) -> Option<u32> {
        self.seat.lock().await.as_ref().map(|a| a.process.pid())
    }

    /// A worker that has applied a prefix of `journal` and nothing else, and has nothing left to stop.
    async fn seat<'a>(&self, seat: &'a mut Option<Assigned>, journal: &Journal) -> Result<&'a Assigned, EngineError> {
        if let Some(assigned) = &*seat {
            let mut situation = assigned.process.situation();
            // It confirms, or is killed: neither takes longer than the grace.
            let alive =
                situation.wait_for(|s| s.dead.is_some() || s.stopping == 0).await.is_ok_and(|s| s.dead.is_none());
            let ledger = lock(&assigned.ledger);
            let fits = assigned.generation == journal.generation()
                && assigned.process.has(&self.pool.settings().plugins)
                && ledger.unsure == 0
                && journal.missing(&ledger.applied).is_some();
            drop(ledger);
            if !alive || !fits || assigned.process.outgrown() {
                *seat = None;
            }
        }
        if seat.is_none() {
            let process = self.pool.take().await?;
            tracing::debug!(pid = process.pid(), "worker assigned");
            *seat = Some(Assigned { process, generation: journal.generation(), ledger: Arc::default() });
        }
        Ok(seat.as_ref().expect("it was just set"))
    }

    async fn begin(
        &self,
        journal: &Journal,
        request: &Request,
    ) -> Result<(Line, Arc<Mutex<Ledger>>, Option<Unsure>), EngineError> {
        let plugins = self.pool.brought(&request.lang).await?;
        let mut seat = self.seat.lock().await;
        // One may be retired between the look and the statement; more than that is no accident.
        for _ in 0..3 {
            let assigned = self.seat(&mut seat, journal).await?;
            let n = self.pool.number();
            let missing = journal.missing(&lock(&assigned.ledger).applied).unwrap_or_default();
            let plan = ToWorker::Plan {
                n,
                statement: request.statement.as_str().to_owned(),
                session: request.session.clone(),
                lang: request.lang.clone(),
                text: request.text.0.clone(),
                entries: missing.iter().map(|e| e.text.clone()).collect(),
                plugins: plugins.clone(),
            };
            let frame = wire::message(&plan)
                .ok()
                .filter(|f| f.len() as u64 <= self.pool.settings().max_frame)
                .ok_or_else(|| {
                    Failure::new(
                        Code::Syntax,
                        Stage::Accept,
                        format!(
                            "the statement is too long: its text has {} bytes, a message at most {}",
                            request.text.0.len(),
                            self.pool.settings().max_frame
                        ),
                    )
                })?;
            if let Ok(line) = assigned.process.begin(n, &frame) {
                let ledger = Arc::clone(&assigned.ledger);
                lock(&ledger).applied = journal.entries().to_vec();
                let unsure = (!missing.is_empty()).then(|| Unsure::new(&ledger));
                return Ok((line, ledger, unsure));
            }
            *seat = None;
        }
        Err(EngineError::Died("workers end as soon as they are started".into()))
    }
}

/// Counts as unsure from its making until it is told how the thing ended.
struct Unsure(Arc<Mutex<Ledger>>);

impl Unsure {
    fn new(ledger: &Arc<Mutex<Ledger>>) -> Unsure {
        lock(ledger).unsure += 1;
        Unsure(Arc::clone(ledger))
    }

    fn settled(self, applied: Option<Entry>) {
        let mut ledger = lock(&self.0);
        ledger.unsure -= 1;
        ledger.applied.extend(applied);
    }
}

#[async_trait]
impl Engine for Workers {
    async fn plan(&self, journal: &Journal, request: &Request) -> Result<Box<dyn Plan>, EngineError> {
        let (mut line, ledger, unsure) = self.begin(journal, request).await?;
        let said = line.next().await;
        // The replay comes before the plan.
        if let Some(unsure) = unsure {
            unsure.settled(None);
        }
        let planned = match said {
            Said::Planned { kind, entry } => Planned { line, ledger, kind: kind.into(), entry },
            said => return Err(unexpected(said)),
        };
        // Without one ahead a kill costs a little longer; it is no reason to fail.
        if self.pool.settings().spare
            && let Err(error) = self.pool.warm()
        {
            tracing::warn!(%error, "no spare worker could be started");
        }
        Ok(Box::new(planned))
    }

    async fn close(&self) {
        if let Some(assigned) = self.seat.lock().await.take() {
            assigned.process.end("the session is over").await;
        }
        if self.alone {
            self.pool.close().await;
        }
    }
}

fn unexpected(said: Said) -> EngineError {
    match said {
        Said::Failed(failure) => failure.into(),
        Said::Died(death) => death.into(),
        Said::Planned { .. } | Said::Arrow(_) | Said::Done => EngineError::Died("it spoke out of turn".into()),
    }
}

struct Planned {
    line: Line,
    ledger: Arc<Mutex<Ledger>>,
    kind: Kind,
    entry: Option<Entry>,
}

#[async_trait]
impl Plan for Planned {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn entry(&self) -> Option<Entry> {
        self.entry.clone()
    }

    async fn run(self: Box<Self>) -> Result<Output, EngineError> {
        let Planned { mut line, ledger, entry, .. } = *self;
        let progress = line.progress();
        let unsure = entry.map(|entry| (Unsure::new(&ledger), entry));
        line.run();
        let mut decoder = Decoder::default();
        let schema = match line.next().await {
            Said::Arrow(bytes) => {
                decoder.take(bytes)?;
                decoder.inner.schema().ok_or_else(|| EngineError::Died("it sent no schema".into()))?
            }
            said => {
                // It failed before it began: a define that fails changes nothing.
                if let (Some((unsure, _)), Said::Failed(_)) = (unsure, &said) {
                    unsure.settled(None);
                }
                return Err(unexpected(said));
            }
        };
        let rows = Rows { line, decoder, schema: SchemaRef::clone(&schema), unsure };
        let batches = stream::unfold(Some(rows), |rows| async move {
            let mut rows = rows?;
            match rows.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(rows))),
                Ok(None) => None,
                Err(e) => Some((Err(e), None)),
            }
        });
        Ok(Output { schema, batches: batches.boxed(), progress })
    }
}

fn unreadable(e: &dyn std::fmt::Display) -> EngineError {
    EngineError::Died(format!("its rows could not be read: {e}"))
}

/// Reads frames of whole messages.
///
/// [`StreamDecoder`] looks at a message without a body (a schema, rows of nulls only) when the next one begins. So the
/// four bytes that begin every message are fed behind each frame and taken from the start of the next.
#[derive(Default)]
struct Decoder {
    inner: StreamDecoder,
    begun: bool,
}

impl Decoder {
    fn take(&mut self, bytes: Vec<u8>) -> Result<Option<RecordBatch>, EngineError> {
        let beginning = [0xff; 4];
        if !bytes.starts_with(&beginning) {
            return Err(unreadable(&"they do not begin as a message"));
        }
        let mut buffer = Buffer::from_vec(bytes);
        if self.begun {
            buffer.advance(beginning.len());
        }
        let mut found = None;
        for mut buffer in [buffer, Buffer::from(beginning)] {
            while !buffer.is_empty() {
                if let Some(batch) = self.inner.decode(&mut buffer).map_err(|e| unreadable(&e))?
                    && found.replace(batch).is_some()
                {
                    return Err(unreadable(&"two batches in one message"));
                }
            }
        }
        self.begun = true;
        Ok(found)
    }
}

struct Rows {
    line: Line,
    decoder: Decoder,
    schema: SchemaRef,
    unsure: Option<(Unsure, Entry)>,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>, EngineError> {
        loop {
            match self.line.next().await {
                Said::Arrow(bytes) => {
                    self.line.credit();
                    if let Some(batch) = self.decoder.take(bytes)? {
                        return Ok(Some(
                            batch.with_schema(SchemaRef::clone(&self.schema)).map_err(|e| unreadable(&e))?,
                        ));
                    }
                }
                Said::Done => {
                    if let Some((unsure, entry)) = self.unsure.take() {
                        unsure.settled(Some(entry));
                    }
                    return Ok(None);
                }
                said => {
                    if let (Some((unsure, _)), Said::Failed(_)) = (self.unsure.take(), &said) {
                        unsure.settled(None);
                    }
                    return Err(unexpected(said));
                }
            }
        }
    }
}
