//! Spark's table clauses that DataFusion's planner lacks: LATERAL VIEW, generators among the columns of a SELECT, and TABLESAMPLE.
//!
//! The statement is rewritten so that a generator stands as a relation beside its input: `(input ARRAY JOIN TABLE(explode(x)))`, with
//! LEFT where an input row without elements stays. [`SparkRelations`] plans that; the input's columns keep their own names.

use arrow_schema::DataType;
use datafusion::common::{Column, DFSchema, NullHandling, Result, UnnestOptions, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions::math::expr_fn::random;
use datafusion::functions_nested::expr_fn::{array_length, make_array, map_keys, map_values, range};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator,
    LateralView, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableAliasColumnDef,
    TableFactor, TableSample, TableSampleKind, TableSampleUnit, TableWithJoins, Value,
};

/// The view that a generator among the columns of a SELECT is made of.
const GENERATED: &str = "__generated";
/// Functions that make many rows of one. The last two are what `explode` is rewritten to.
const GENERATORS: &[&str] = &[
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "inline",
    "inline_outer",
    "stack",
    "unnest",
    "unnest_outer",
];
/// Aggregates that give lists: what is made rows of then is not there before the rows are grouped.
const LISTS: &[&str] = &["collect_list", "collect_set", "array_agg"];

/// The generator that an expression calls, in lower case.
fn generator(expr: &ast::Expr) -> Option<String> {
    let ast::Expr::Function(function) = expr else { return None };
    let name = function.name.to_string().to_lowercase();
    (function.over.is_none() && GENERATORS.contains(&name.as_str())).then_some(name)
}

/// Whether a `TABLE(…)` is one that is planned here.
pub fn is_generator(expr: &ast::Expr) -> bool {
    generator(expr).is_some()
}

/// The place among the columns of a SELECT of a generator that [`select_item`] can take out.
pub fn place(select: &Select) -> Option<usize> {
    if !matches!(&select.group_by, GroupByExpr::Expressions(exprs, sets) if exprs.is_empty() && sets.is_empty()) {
        return None;
    }
    let called = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => spark_generator(e),
        SelectItem::ExprWithAliases { expr, .. } => spark_generator(expr),
        _ => false,
    };
    select.projection.iter().position(called)
}

fn spark_generator(expr: &ast::Expr) -> bool {
    generator(expr).is_some_and(|name| !name.starts_with("unnest")) && !LISTS.iter().any(|f| calls(expr, f))
}

/// Whether a call is an argument of this one.
fn calls(expr: &ast::Expr, name: &str) -> bool {
    let ast::Expr::Function(function) = expr else { return false };
    let FunctionArguments::List(list) = &function.args else { return false };
    list.args.iter().any(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
            matches!(e, ast::Expr::Function(f) if f.name.to_string().eq_ignore_ascii_case(name)) || calls(e, name)
        }
        _ => false,
    })
}

/// Makes a generator among the columns of a SELECT a view beside its FROM.
pub fn select_item(select: &mut Select, place: usize) {
    let view = Ident::new(GENERATED);
    let all = SelectItem::QualifiedWildcard(
        SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![view.clone()])),
        Default::default(),
    );
    let (expr, columns) = match std::mem::replace(&mut select.projection[place], all) {
        SelectItem::UnnamedExpr(expr) => (expr, Vec::new()),
        SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias]),
        SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases),
        other => {
            select.projection[place] = other;
            return;
        }
    };
    let from = std::mem::take(&mut select.from);
    select.from = vec![beside(from, expr, view, columns, false)];
}

/// Makes the LATERAL VIEWs of a SELECT part of its FROM.
pub fn lateral_views(select: &mut Select) {
    for view in std::mem::take(&mut select.lateral_views) {
        let LateralView { lateral_view, lateral_view_name, lateral_col_alias, outer } = view;
        let last = lateral_view_name.0.last().and_then(|part| part.as_ident()).cloned();
        let name = last.unwrap_or_else(|| Ident::new(GENERATED));
        let from = std::mem::take(&mut select.from);
        select.from = vec![beside(from, lateral_view, name, lateral_col_alias, outer)];
    }
}

fn beside(from: Vec<TableWithJoins>, expr: ast::Expr, name: Ident, columns: Vec<Ident>, outer: bool) -> TableWithJoins {
    let columns = columns.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let alias = Some(TableAlias { explicit: true, name, columns, at: None });
    let table = TableFactor::TableFunction { expr, alias };
    let mut from = from.into_iter();
    let Some(mut input) = from.next() else { return TableWithJoins { relation: table, joins: Vec::new() } };
    for TableWithJoins { relation, joins } in from {
        let relation = grouped(relation, joins);
        let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        input.joins.push(Join { relation, global: false, join_operator });
    }
    let join_operator = if outer { JoinOperator::LeftArrayJoin } else { JoinOperator::ArrayJoin };
    let joins = vec![Join { relation: table, global: false, join_operator }];
    let relation = grouped(input.relation, input.joins);
    TableWithJoins { relation: grouped(relation, joins), joins: Vec::new() }
}

fn grouped(relation: TableFactor, joins: Vec<Join>) -> TableFactor {
    if joins.is_empty() {
        return relation;
    }
    TableFactor::NestedJoin { table_with_joins: Box::new(TableWithJoins { relation, joins }), alias: None }
}

/// Plans generators beside their input, and samples.
#[derive(Debug)]
pub struct SparkRelations;

impl RelationPlanner for SparkRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match relation {
            TableFactor::NestedJoin { table_with_joins, alias: None }
                if matches!(
                    table_with_joins.joins.as_slice(),
                    [Join {
                        relation: TableFactor::TableFunction { .. },
                        join_operator: JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin,
                        ..
                    }]
                ) =>
            {
                let TableWithJoins { relation, mut joins } = *table_with_joins;
                let input = context.plan(relation)?;
                match joins.pop() {
                    Some(Join { relation: TableFactor::TableFunction { expr, alias }, join_operator: how, .. }) => {
                        generated(input, expr, alias, how == JoinOperator::LeftArrayJoin, context)
                    }
                    _ => plan_err!("a generator beside its input is missing"),
                }
            }
            TableFactor::TableFunction { expr, alias } if is_generator(&expr) => {
                let input = LogicalPlanBuilder::empty(true).build()?;
                generated(input, expr, alias, false, context)
            }
            mut table => {
                let sample = match &mut table {
                    TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => sample.take(),
                    _ => None,
                };
                match sample {
                    Some(sample) => sampled(context.plan(table)?, sample),
                    None => Ok(RelationPlanning::Original(Box::new(table))),
                }
            }
        }
    }
}

fn planned(plan: LogicalPlan) -> Result<RelationPlanning> {
    Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
}

/// A share of the rows, or the first of them, as Spark has it.
fn sampled(input: LogicalPlan, sample: TableSampleKind) -> Result<RelationPlanning> {
    let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
    let TableSample { quantity, bucket, .. } = *sample;
    let number = |value: &Value| match value {
        Value::Number(n, _) => n.to_string().parse::<f64>().ok(),
        _ => None,
    };
    let share = match (quantity, bucket) {
        (Some(quantity), None) => {
            let value = match &quantity.value {
                ast::Expr::Value(value) => number(&value.value),
                _ => None,
            };
            match (value, quantity.unit) {
                (Some(rows), Some(TableSampleUnit::Rows)) if rows.fract() == 0.0 && rows >= 0.0 => {
                    return planned(LogicalPlanBuilder::from(input).limit(0, Some(rows as usize))?.build()?);
                }
                (Some(percent), Some(TableSampleUnit::Percent)) => percent / 100.0,
                _ => return plan_err!("TABLESAMPLE takes (n PERCENT), (n ROWS) or (BUCKET x OUT OF y)"),
            }
        }
        (None, Some(bucket)) => match (number(&bucket.bucket.value), number(&bucket.total.value)) {
            (Some(of), Some(total)) if total > 0.0 => of / total,
            _ => return plan_err!("TABLESAMPLE takes (BUCKET x OUT OF y), with y above 0"),
        },
        _ => return plan_err!("TABLESAMPLE takes (n PERCENT), (n ROWS) or (BUCKET x OUT OF y)"),
    };
    if !(0.0..=1.0).contains(&share) {
        return plan_err!("TABLESAMPLE takes a share of 0 to 100 percent");
    }
    planned(LogicalPlanBuilder::from(input).filter(random().lt(lit(share)))?.build()?)
}

/// One list for each column that a generator makes, and how its elements become the column.
struct Lists {
    lists: Vec<Expr>,
    /// The columns' names, each with the list that it comes from and the field of its elements.
    columns: Vec<(String, usize, Option<String>, Option<DataType>)>,
}

fn generated(
    input: LogicalPlan,
    call: ast::Expr,
    alias: Option<TableAlias>,
    outer: bool,
    context: &mut dyn RelationPlannerContext,
) -> Result<RelationPlanning> {
    let Some(name) = generator(&call) else {
        return plan_err!("`{call}` makes no rows; LATERAL VIEW takes {}", GENERATORS[..7].join(", "));
    };
    let outer = outer || name.ends_with("_outer");
    let args = arguments(call, input.schema(), context)?;
    let Lists { lists, mut columns } = lists(&name, args, input.schema())?;
    let given: Vec<String> =
        alias.iter().flat_map(|a| &a.columns).map(|c| context.normalize_ident(c.name.clone())).collect();
    if !given.is_empty() {
        if given.len() != columns.len() {
            return plan_err!("{name} makes {} columns here, not {}", columns.len(), given.len());
        }
        columns.iter_mut().zip(given).for_each(|(column, given)| column.0 = given);
    }
    let view = alias.map_or_else(|| GENERATED.to_owned(), |a| context.normalize_ident(a.name));
    let own: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let hidden = |n: usize| format!("{GENERATED}\u{1}{view}\u{1}{n}");
    let mut inside = own.clone();
    for (n, list) in lists.iter().enumerate() {
        inside.push(list.clone().alias(hidden(n)));
    }
    let unnested = (0..lists.len()).map(|n| Column::from_name(hidden(n))).collect();
    let mut outside = own;
    for (name, list, field, data_type) in columns {
        let element = Expr::Column(Column::from_name(hidden(list)));
        let value = match field {
            Some(field) => get_field(element, field),
            None => element,
        };
        let value = data_type.map_or_else(|| value.clone(), |data_type| cast(value.clone(), data_type));
        outside.push(value.alias_qualified(Some(view.as_str()), name));
    }
    let null_handling = if outer { NullHandling::PreserveAndExpandEmpty } else { NullHandling::Drop };
    let options = UnnestOptions { null_handling, ..UnnestOptions::default() };
    let plan = LogicalPlanBuilder::from(input)
        .project(inside)?
        .unnest_columns_with_options(unnested, options)?
        .project(outside)?
        .build()?;
    planned(plan)
}

fn arguments(call: ast::Expr, schema: &DFSchema, context: &mut dyn RelationPlannerContext) -> Result<Vec<Expr>> {
    let ast::Expr::Function(ast::Function { args: FunctionArguments::List(list), .. }) = call else {
        return Ok(Vec::new());
    };
    let each = list.args.into_iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => context.sql_to_expr(expr, schema),
        other => plan_err!("`{other}` is no argument of a generator"),
    });
    each.collect()
}

fn is_list(data_type: &DataType) -> bool {
    element(data_type).is_some()
}

fn element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::FixedSizeList(f, _)
        | DataType::ListView(f)
        | DataType::LargeListView(f) => Some(f.data_type()),
        _ => None,
    }
}

fn lists(name: &str, mut args: Vec<Expr>, schema: &DFSchema) -> Result<Lists> {
    let plain = |name: &str, list: usize| (name.to_owned(), list, None, None);
    let plain_name = name.trim_end_matches("_outer");
    if plain_name == "stack" {
        return stacked(args);
    }
    let (Some(arg), true) = (args.pop(), args.is_empty()) else {
        return plan_err!("{name} takes one argument");
    };
    let data_type = arg.get_type(schema)?;
    let map = matches!(data_type, DataType::Map(..));
    match plain_name {
        "inline" => {
            let Some(DataType::Struct(fields)) = element(&data_type) else {
                return plan_err!("{name} takes an array of structs, not {data_type}");
            };
            let columns = fields.iter().map(|f| (f.name().clone(), 0, Some(f.name().clone()), None)).collect();
            Ok(Lists { lists: vec![arg], columns })
        }
        "explode" | "unnest" if map => Ok(Lists {
            lists: vec![map_keys(arg.clone()), map_values(arg)],
            columns: vec![plain("key", 0), plain("value", 1)],
        }),
        "explode" | "unnest" if is_list(&data_type) => Ok(Lists { lists: vec![arg], columns: vec![plain("col", 0)] }),
        "posexplode" if map || is_list(&data_type) => {
            let (lists, names): (_, &[&str]) = if map {
                (vec![map_keys(arg.clone()), map_values(arg)], &["key", "value"])
            } else {
                (vec![arg], &["col"])
            };
            let places = range(lit(0_i64), cast(array_length(lists[0].clone()), DataType::Int64), lit(1_i64));
            let mut columns = vec![("pos".to_owned(), 0, None, Some(DataType::Int32))];
            columns.extend(names.iter().enumerate().map(|(n, name)| plain(name, n + 1)));
            Ok(Lists { lists: std::iter::once(places).chain(lists).collect(), columns })
        }
        _ => plan_err!("{} takes an array or a map, not {data_type}", plain_name.replace("unnest", "explode")),
    }
}

/// `stack(n, a, b, …)`: the values in n rows.
fn stacked(args: Vec<Expr>) -> Result<Lists> {
    let rows = match args.first() {
        Some(Expr::Literal(value, _)) => value.to_string().parse::<usize>().ok().filter(|n| *n > 0),
        _ => None,
    };
    let (Some(rows), values @ [_, ..]) = (rows, args.get(1..).unwrap_or_default()) else {
        return plan_err!("stack takes a number of rows, above 0, and values");
    };
    let width = values.len().div_ceil(rows);
    let null = || lit(datafusion::common::ScalarValue::Null);
    let list = |column: usize| {
        make_array((0..rows).map(|row| values.get(row * width + column).cloned().unwrap_or_else(null)).collect())
    };
    Ok(Lists {
        lists: (0..width).map(list).collect(),
        columns: (0..width).map(|n| (format!("col{n}"), n, None, None)).collect(),
    })
}
