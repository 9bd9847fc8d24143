//! Spark's casts between numbers and timestamps, which count seconds (Arrow's count the timestamp's own unit), and those to text.

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF, cast, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::spark_text::AsText;

/// Puts seconds in between. Runs before DataFusion adds casts of its own.
#[derive(Debug)]
pub struct SparkCasts;

impl AnalyzerRule for SparkCasts {
    fn name(&self) -> &str {
        "spark_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let changed = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr
                    .transform_up(|expr| as_text(expr, &schema).transform_data(|expr| Ok(in_seconds(expr, &schema))))?;
                Ok(if changed.transformed { changed.update_data(|expr| name.restore(expr)) } else { changed })
            })?;
            if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
        })?;
        Ok(plan.data)
    }
}

fn as_text(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) = &expr else {
        return Transformed::no(expr);
    };
    let to = field.data_type();
    if !to.is_string() || !inner.get_type(schema).is_ok_and(|from| AsText::differs(&from)) {
        return Transformed::no(expr);
    }
    let text = ScalarUDF::from(AsText::default()).call(vec![inner.as_ref().clone()]);
    Transformed::yes(if *to == DataType::Utf8 { text } else { cast(text, to.clone()) })
}

fn in_seconds(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr: inner, field }) = &expr else { return Transformed::no(expr) };
    let to = field.data_type();
    if !matches!(to, DataType::Timestamp(..)) && !to.is_integer() && !to.is_floating() {
        return Transformed::no(expr);
    }
    let Ok(from) = inner.get_type(schema) else { return Transformed::no(expr) };
    let inner = inner.as_ref().clone();
    Transformed::yes(match (&from, to) {
        (DataType::Timestamp(unit, zone), to) if to.is_integer() && *unit != TimeUnit::Second => {
            let seconds = cast(inner, DataType::Timestamp(TimeUnit::Second, zone.clone()));
            cast(cast(seconds, DataType::Int64), to.clone())
        }
        (DataType::Timestamp(_, zone), to) if to.is_floating() => {
            let micros = cast(inner, DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
            cast(cast(cast(micros, DataType::Int64), DataType::Float64) / lit(1e6), to.clone())
        }
        (from, DataType::Timestamp(unit, zone)) if from.is_integer() && *unit != TimeUnit::Second => {
            let seconds = cast(cast(inner, DataType::Int64), DataType::Timestamp(TimeUnit::Second, zone.clone()));
            cast(seconds, to.clone())
        }
        _ => return Transformed::no(expr),
    })
}
