//! Makes joins give way: without it, a query that was told to stop goes on inside a join for many seconds.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};

/// Puts DataFusion's `CooperativeExec` above each join that may produce for long from what it has already read.
#[derive(Debug)]
pub struct CooperativeJoins;

impl PhysicalOptimizerRule for CooperativeJoins {
    fn name(&self) -> &str {
        "cooperative_joins"
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let joins = plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>() || plan.is::<HashJoinExec>();
            Ok(if joins { Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _) } else { Transformed::no(plan) })
        })
        .map(|t| t.data)
    }

    fn schema_check(&self) -> bool {
        true
    }
}
