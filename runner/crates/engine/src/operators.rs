//! Spark's meaning of operators where DataFusion has another: `/` never divides as integers do, dividing by zero is null,
//! and an array's first element has the index 0.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, GetFieldAccess, Operator, cast, lit, when};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans `/`, `%`, `DIV` and `[ ]`.
#[derive(Debug)]
pub struct SparkOperators;

fn or_null_if_zero(expr: Expr) -> Expr {
    if let Expr::Literal(value, _) = &expr
        && !value.is_null()
        && ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero != *value)
    {
        return expr;
    }
    datafusion::functions::expr_fn::nullif(expr, lit(0))
}

fn binary(left: Expr, op: Operator, right: Expr) -> PlannerResult<RawBinaryExpr> {
    PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
}

impl ExprPlanner for SparkOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        // First of all: to ask for the type of each part of a long OR would take for ever.
        if !matches!(expr.op, BinaryOperator::Divide | BinaryOperator::Modulo | BinaryOperator::MyIntegerDivide) {
            return Ok(PlannerResult::Original(expr));
        }
        let types = (expr.left.get_type(schema), expr.right.get_type(schema));
        let (Ok(left), Ok(right)) = types else { return Ok(PlannerResult::Original(expr)) };
        if !(left.is_numeric() || left.is_null()) || !(right.is_numeric() || right.is_null()) {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(match expr.op {
            BinaryOperator::Divide if left.is_decimal() || right.is_decimal() => {
                binary(expr.left, Operator::Divide, or_null_if_zero(expr.right))
            }
            BinaryOperator::Divide => binary(
                cast(expr.left, DataType::Float64),
                Operator::Divide,
                cast(or_null_if_zero(expr.right), DataType::Float64),
            ),
            BinaryOperator::Modulo => binary(expr.left, Operator::Modulo, or_null_if_zero(expr.right)),
            BinaryOperator::MyIntegerDivide => binary(
                cast(expr.left, DataType::Int64),
                Operator::Divide,
                or_null_if_zero(cast(expr.right, DataType::Int64)),
            ),
            _ => PlannerResult::Original(expr),
        })
    }
    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let GetFieldAccess::ListIndex { key } = &expr.field_access else { return Ok(PlannerResult::Original(expr)) };
        let list = matches!(
            expr.expr.get_type(schema),
            Ok(DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(..)
                | DataType::ListView(_)
                | DataType::LargeListView(_))
        );
        if !list {
            return Ok(PlannerResult::Original(expr));
        }
        let key = cast(key.as_ref().clone(), DataType::Int64);
        // There is nothing before the first element; DataFusion would count from the end.
        let place = when(key.clone().gt_eq(lit(0_i64)), key + lit(1_i64)).end()?;
        Ok(PlannerResult::Planned(datafusion::functions_nested::expr_fn::array_element(expr.expr, place)))
    }
}
