//! Spark's table function `range`: DataFusion's, with the column named `id`.

use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlanBuilder, col};

/// The function under its name in Spark.
#[derive(Debug)]
pub struct SparkRange(pub Arc<TableFunction>);

impl TableFunctionImpl for SparkRange {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let inner = self.0.function().call_with_args(args)?;
        let plan = LogicalPlanBuilder::scan("range", provider_as_source(inner), None)?
            .project([col("value").alias("id")])?
            .build()?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}
