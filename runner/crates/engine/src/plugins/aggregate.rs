//! A plugin's aggregate function in DataFusion.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature};

use crate::plugins::function::signature;
use crate::plugins::groups::Groups;
use crate::plugins::overloads::Overloads;

/// The functions of one name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    of: Overloads,
    signature: Signature,
}

impl Aggregate {
    /// These.
    pub fn new(of: Overloads) -> Aggregate {
        Aggregate { signature: signature(&of), of }
    }

    fn groups(&self, args: &AccumulatorArgs<'_>) -> Result<Groups> {
        if args.is_distinct {
            return plan_err!(
                "`{}` cannot be DISTINCT: it is a plugin's; take the distinct rows in a subquery",
                self.of.name
            );
        }
        let types: Vec<DataType> = args.expr_fields.iter().map(|f| f.data_type().clone()).collect();
        let (n, _) = self.of.choose(&types)?;
        Ok(Groups::new(self.of.clone(), n))
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of.choose(types).map(|(_, types)| types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let (n, _) = self.of.choose(types)?;
        Ok(self.of.function(n).returns.clone())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let types: Vec<DataType> = args.input_fields.iter().map(|f| f.data_type().clone()).collect();
        let (n, _) = self.of.choose(&types)?;
        let state = self.of.function(n).state.iter().enumerate();
        Ok(state.map(|(i, t)| Arc::new(Field::new(format!("{}[{i}]", args.name), t.clone(), true))).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One(self.groups(&args)?)))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Many(self.groups(&args)?)))
    }
}

/// An aggregate without groups.
struct One(Groups);

impl fmt::Debug for One {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("One")
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |v| v.len());
        self.0.take(values, &vec![0; rows], None, 1, false)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // Without a row there is one group nonetheless.
        self.0.take(&[], &[], None, 1, false)?;
        ScalarValue::try_from_array(&self.0.evaluate(1)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.take(&[], &[], None, 1, false)?;
        self.0.state(1)?.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |v| v.len());
        self.0.take(states, &vec![0; rows], None, 1, true)
    }
}

/// One with groups.
struct Many(Groups);

fn count(emit: EmitTo, groups: &Groups) -> usize {
    match emit {
        EmitTo::All => groups.len(),
        EmitTo::First(n) => n,
    }
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        wanted: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.0.take(values, groups, wanted, total, false)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.0.evaluate(count(emit, &self.0))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(count(emit, &self.0))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.0.take(states, groups, None, total, true)
    }

    fn convert_to_state(&self, values: &[ArrayRef], wanted: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |v| v.len());
        let mut each = self.0.anew();
        each.take(values, &(0..rows).collect::<Vec<_>>(), wanted, rows, false)?;
        each.state(rows)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
