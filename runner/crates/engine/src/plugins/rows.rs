//! A plugin's table function in DataFusion: its columns are told when it is planned, its rows come page by page.

use std::fmt;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use firesteel_session::ports::plugins::Surroundings;
use futures::stream;

use crate::plugins::carried;
use crate::plugins::overloads::Overloads;

/// The functions of one name.
#[derive(Debug)]
pub struct Rows(Overloads);

impl Rows {
    /// These.
    pub fn new(of: Overloads) -> Rows {
        Rows(of)
    }
}

impl TableFunctionImpl for Rows {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let mut columns = Vec::new();
        for (n, expr) in args.exprs().iter().enumerate() {
            let Expr::Literal(value, _) = expr else {
                return plan_err!("`{}` takes constants, and its argument {} is none", self.0.name, n + 1);
            };
            columns.push(value.to_array()?);
        }
        let types: Vec<DataType> = columns.iter().map(|c| c.data_type().clone()).collect();
        let (function, types) = self.0.choose(&types)?;
        let arguments: Vec<ArrayRef> =
            columns.iter().zip(&types).map(|(c, t)| cast(c, t)).collect::<std::result::Result<_, _>>()?;
        let around: Arc<dyn Surroundings> = self.0.around();
        // A short call, on a thread that plans.
        let schema = tokio::task::block_in_place(|| self.0.plugin.plan(&around, function, &arguments))
            .map_err(|fault| carried(&fault))?;
        let part = Part { of: self.0.clone(), function, arguments, schema: Arc::clone(&schema) };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(part)])?))
    }
}

/// The rows of one call.
struct Part {
    of: Overloads,
    function: usize,
    arguments: Vec<ArrayRef>,
    schema: SchemaRef,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.of)
    }
}

/// Where the next page begins.
enum Next {
    First,
    At(Vec<u8>),
    Over,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (of, function, arguments) = (self.of.clone(), self.function, self.arguments.clone());
        let schema = Arc::clone(&self.schema);
        let around: Arc<dyn Surroundings> = of.around();
        let pages = stream::unfold(Next::First, move |next| {
            let at = match &next {
                Next::First => None,
                Next::At(at) => Some(at.as_slice()),
                Next::Over => return futures::future::ready(None),
            };
            let page = of.plugin.produce(&around, function, &arguments, &schema, at);
            futures::future::ready(Some(match page {
                Ok((batch, next)) => (Ok(batch), next.map_or(Next::Over, Next::At)),
                Err(fault) => (Err(carried(&fault)), Next::Over),
            }))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), pages))
    }
}
