//! Table policies: a table that a policy decides about is found in the catalog only behind what it decided, so that no way of naming it
//! leads around it.
//!
//! Masks and filters are evaluated below everything that the statement does with the table's rows, behind a node that lets no predicate
//! of the statement through: what a statement computes, it computes of what it may see.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, plan_err};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType, cast, ident};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use firesteel_model::{Code, Failure, Stage};
use firesteel_session::ports::plugins::Decision;

use crate::catalog::SCHEMA;
use crate::failures;
use crate::plugins::{Current, Plugins, call};

/// The policies of a session.
#[derive(Clone)]
pub struct Policies {
    plugins: Plugins,
    current: Current,
    source: String,
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policies")
    }
}

impl Policies {
    /// Those of these plugins; None if none has one.
    pub fn of(plugins: &Plugins, current: &Current, source: &str) -> Option<Policies> {
        plugins.iter().any(|plugin| plugin.about().policy).then(|| Policies {
            plugins: plugins.clone(),
            current: current.clone(),
            source: source.to_owned(),
        })
    }

    /// A table as it may be seen.
    ///
    /// # Errors
    /// A policy fails, or decides what cannot be done: nothing is shown then.
    pub async fn shown(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
        let around = self.current.get();
        let mut shown = table;
        for plugin in self.plugins.iter().filter(|plugin| plugin.about().policy) {
            let label = plugin.about().label();
            let decision = match around.decision(&label, name) {
                Some(decision) => decision,
                None => {
                    let parts = vec![self.source.clone(), SCHEMA.to_owned(), name.to_owned()];
                    let (called, schema) = (Arc::clone(plugin), shown.schema());
                    let decided = call(&around, plugin, move |around| called.decide(around, &parts, &schema)).await;
                    let decision = Arc::new(decided.map_err(failures::carry)?);
                    around.decide(&label, name, &decision);
                    decision
                }
            };
            if *decision == Decision::default() {
                continue;
            }
            around.touched(plugin.about(), &format!("policy for {name}"));
            shown = Arc::new(Shown::new(label, name, shown, &decision)?);
        }
        Ok(shown)
    }
}

/// A table behind a policy.
#[derive(Debug)]
struct Shown {
    /// The policy's name and version.
    label: String,
    inner: Arc<dyn TableProvider>,
    schema: SchemaRef,
    /// Of each shown column: its name in the table, and what is shown in its place.
    columns: Vec<(String, Option<String>)>,
    filter: Option<String>,
}

fn wrong(label: &str, why: &str) -> DataFusionError {
    failures::carry(Failure::new(Code::Plugin, Stage::Plan, format!("plugin {label}: {why}")))
}

impl Shown {
    fn new(label: String, table: &str, inner: Arc<dyn TableProvider>, decision: &Decision) -> Result<Shown> {
        let schema = inner.schema();
        let named = decision.masks.iter().map(|(column, _)| column).chain(&decision.hidden);
        for column in named {
            if schema.column_with_name(column).is_none() {
                return Err(wrong(&label, &format!("its policy names the column `{column}`, which `{table}` has not")));
            }
        }
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for field in schema.fields().iter().filter(|f| !decision.hidden.contains(f.name())) {
            let mask = decision.masks.iter().find(|(column, _)| column == field.name()).map(|(_, expr)| expr.clone());
            fields.push(match mask {
                // A mask may be null where the column never is.
                Some(_) => Arc::new(Field::new(field.name(), field.data_type().clone(), true)),
                None => Arc::clone(field),
            });
            columns.push((field.name().clone(), mask));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Shown { label, inner, schema, columns, filter: decision.filter.clone() })
    }

    /// An expression of the policy over the table's own columns.
    fn expression(&self, state: &SessionState, text: &str, schema: &DFSchema) -> Result<Expr> {
        let expr = state.create_logical_expr(text, schema).map_err(|e| {
            let why = failures::failure(&e, Stage::Plan, failures::Limits { memory_pool: 0, spill: 0 }).message;
            wrong(&self.label, &format!("an expression of its policy is none: {why}"))
        })?;
        let mut plain = true;
        expr.apply(|e| {
            let inner = matches!(
                e,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::AggregateFunction(_)
                    | Expr::WindowFunction(_)
            );
            plain &= !inner;
            Ok(if inner { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !plain {
            return Err(wrong(&self.label, "an expression of its policy has a subquery, an aggregate or a window"));
        }
        Ok(expr)
    }
}

#[async_trait]
impl TableProvider for Shown {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return plan_err!("a table with a policy is read outside of a session");
        };
        let own = self.inner.schema();
        let all = DFSchema::try_from(Arc::clone(&own))?;
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let mut shown: Vec<(Expr, String, DataType)> = Vec::new();
        for at in wanted {
            let (name, mask) = &self.columns[at];
            let data_type = self.schema.field(at).data_type().clone();
            let expr = match mask {
                Some(text) => cast(self.expression(state, text, &all)?, data_type.clone()),
                None => ident(name.as_str()),
            };
            shown.push((expr, name.clone(), data_type));
        }
        let filter = self.filter.as_ref().map(|text| self.expression(state, text, &all)).transpose()?;
        let mut read = BTreeSet::new();
        for expr in shown.iter().map(|(e, ..)| e).chain(&filter) {
            for column in expr.column_refs() {
                read.insert(own.index_of(&column.name)?);
            }
        }
        let read: Vec<usize> = read.into_iter().collect();
        let limit = limit.filter(|_| filter.is_none());
        let mut plan = self.inner.scan(session, Some(&read), &[], limit).await?;
        let narrow = DFSchema::try_from(own.project(&read)?)?;
        let physical = |expr: Expr| -> Result<Arc<dyn PhysicalExpr>> { state.create_physical_expr(expr, &narrow) };
        if let Some(filter) = filter {
            plan = Arc::new(FilterExec::try_new(physical(filter)?, plan)?);
        }
        let shown: Vec<(Arc<dyn PhysicalExpr>, String)> =
            shown.into_iter().map(|(expr, name, _)| Ok((physical(expr)?, name))).collect::<Result<_>>()?;
        plan = Arc::new(ProjectionExec::try_new(shown, plan)?);
        Ok(Arc::new(PolicyExec::new(self.label.clone(), plan)))
    }
}

/// Lets rows through, and no predicate, limit or projection of what is above.
#[derive(Debug)]
struct PolicyExec {
    label: String,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PolicyExec {
    fn new(label: String, input: Arc<dyn ExecutionPlan>) -> PolicyExec {
        PolicyExec { label, properties: Arc::clone(input.properties()), input }
    }
}

impl DisplayAs for PolicyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyExec: {}", self.label)
    }
}

impl ExecutionPlan for PolicyExec {
    fn name(&self) -> &str {
        "PolicyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(PolicyExec::new(self.label.clone(), input))),
            _ => plan_err!("a policy has one input"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
