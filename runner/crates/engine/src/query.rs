//! A query that runs: its rows, gathered into batches of a sensible size, and what it has read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::concat_batches;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use firesteel_model::{Code, Failure, Stage};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};

use crate::failures::{self, Limits};
use crate::names;

/// Batches below this many rows are put together, as long as the next one is there already.
const FEW: usize = 1024;
/// Rows and bytes of a batch that was put together.
const ENOUGH_ROWS: usize = 8192;
const ENOUGH_BYTES: usize = 1 << 20;

/// How deep a column's type may nest: what reads Arrow's messages goes no deeper.
const DEEPEST: usize = 24;

fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::LargeListView(f)
        | DataType::FixedSizeList(f, _)
        | DataType::Map(f, _) => 1 + depth(f.data_type()),
        DataType::Struct(fields) => 1 + fields.iter().map(|f| depth(f.data_type())).max().unwrap_or(0),
        DataType::Dictionary(_, value) => 1 + depth(value),
        DataType::RunEndEncoded(_, values) => 1 + depth(values.data_type()),
        _ => 0,
    }
}

/// A query's rows.
pub struct Running {
    /// Its columns as the user sees them; names may repeat.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: BoxStream<'static, Result<RecordBatch, Failure>>,
    /// What it has read.
    pub reads: Reads,
}

/// What a query has read so far.
#[derive(Clone, Default)]
pub struct Reads {
    /// The plan whose leaves count rows.
    pub plan: Option<Arc<dyn ExecutionPlan>>,
    /// Bytes asked for.
    pub bytes: Arc<AtomicU64>,
}

impl Reads {
    /// Rows and bytes.
    pub fn now(&self) -> (u64, u64) {
        fn leaves(plan: &Arc<dyn ExecutionPlan>) -> u64 {
            let children = plan.children();
            if children.is_empty() {
                return plan.metrics().and_then(|m| m.output_rows()).unwrap_or(0) as u64;
            }
            children.into_iter().map(leaves).sum()
        }
        (self.plan.as_ref().map_or(0, leaves), self.bytes.load(Ordering::Relaxed))
    }
}

impl Running {
    /// The rows of a DataFusion stream that reads these tables.
    ///
    /// # Errors
    /// A column nests too deeply to be sent.
    pub fn new(
        stream: SendableRecordBatchStream,
        reads: Reads,
        tables: Vec<String>,
        limits: Limits,
    ) -> Result<Running, Failure> {
        let planned = stream.schema();
        if let Some(field) = planned.fields().iter().find(|f| depth(f.data_type()) > DEEPEST) {
            let name: String = names::shown(field.name()).chars().take(60).collect();
            return Err(Failure::new(
                Code::Unsupported,
                Stage::Plan,
                format!("the column `{name}` nests more than {DEEPEST} levels; take it apart in the query"),
            ));
        }
        let fields: Vec<Field> =
            planned.fields().iter().map(|f| f.as_ref().clone().with_name(names::shown(f.name()))).collect();
        let schema = Arc::new(Schema::new(fields));
        let shown = Arc::clone(&schema);
        let batches = gather(stream.boxed(), planned).map(move |batch| {
            let batch = batch.map_err(|e| failures::reading(&e, limits, &tables))?;
            let rows =
                datafusion::arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::clone(&shown), batch.columns().to_vec(), &rows)
                .map_err(|e| failures::failure(&e.into(), Stage::Execute, limits))
        });
        Ok(Running { schema, batches: batches.boxed(), reads })
    }

    /// These rows.
    pub fn one(batch: RecordBatch) -> Running {
        Running { schema: batch.schema(), batches: stream::iter([Ok(batch)]).boxed(), reads: Reads::default() }
    }

    /// No rows, no columns: what a define returns.
    pub fn nothing() -> Running {
        Running { schema: Arc::new(Schema::empty()), batches: stream::empty().boxed(), reads: Reads::default() }
    }
}

fn gather(from: BoxStream<'static, Result<RecordBatch>>, schema: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
    stream::unfold((from, None, schema), |(mut from, pending, schema)| async move {
        let first = match pending {
            Some(pending) => pending,
            None => from.next().await?,
        };
        let first = match first {
            Ok(batch) if batch.num_rows() < FEW => batch,
            other => return Some((other, (from, None, schema))),
        };
        let (mut rows, mut bytes) = (first.num_rows(), first.get_array_memory_size());
        let mut parts = vec![first];
        let mut pending = None;
        while rows < ENOUGH_ROWS && bytes < ENOUGH_BYTES {
            // Only what is there already: the first rows must not wait for the last.
            match from.next().now_or_never() {
                Some(Some(Ok(batch))) if batch.num_rows() < ENOUGH_ROWS => {
                    rows += batch.num_rows();
                    bytes += batch.get_array_memory_size();
                    parts.push(batch);
                }
                Some(Some(other)) => {
                    pending = Some(other);
                    break;
                }
                Some(None) | None => break,
            }
        }
        let batch = if parts.len() == 1 {
            Ok(parts.swap_remove(0))
        } else {
            concat_batches(&schema, &parts).map_err(Into::into)
        };
        Some((batch, (from, pending, schema)))
    })
    .filter(|batch| futures::future::ready(batch.as_ref().map_or(true, |b| b.num_rows() > 0)))
    .boxed()
}
