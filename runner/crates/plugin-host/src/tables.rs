//! Tables and their fields on the way to a guest and back.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use firesteel_session::ports::plugins::Wrong;

use crate::bindings::firesteel::plugin::types::{ColumnParam, FieldParam, FieldResult, TableResult};
use crate::columns::{Lowered, known_as, laid_out, raise};
use crate::ipc;
use crate::limits::Limits;

/// A schema's columns as a guest knows them.
pub fn fields_to_guest(schema: &Schema) -> Vec<FieldResult> {
    schema
        .fields()
        .iter()
        .map(|field| FieldResult {
            name: field.name().clone(),
            data_type: known_as(field.data_type()).to_string(),
            nullable: field.is_nullable(),
        })
        .collect()
}

/// The same where they are lent.
pub fn lend(fields: &[FieldResult]) -> Vec<FieldParam<'_>> {
    fields
        .iter()
        .map(|field| FieldParam { name: &field.name, data_type: &field.data_type, nullable: field.nullable })
        .collect()
}

/// A type as a guest writes it.
///
/// # Errors
/// There is none of that name, or it nests too deep.
pub fn data_type(text: &str, limits: &Limits) -> Result<DataType, Wrong> {
    // What takes types apart goes into itself.
    if text.len() > 10_000 || text.matches('(').count() > 200 {
        return Err(Wrong::Limit("nesting", "the name of a type is too long".into()));
    }
    let found = DataType::from_str(text)
        .map_err(|_| Wrong::Broke(format!("`{}` is no Arrow type", text.chars().take(100).collect::<String>())))?;
    nests(&found, limits)?;
    Ok(known_as(&found))
}

fn nests(data_type: &DataType, limits: &Limits) -> Result<(), Wrong> {
    ipc::check_nesting(data_type, limits.nesting)
        .map_err(|_| Wrong::Limit("nesting", format!("a type nests more than {} levels", limits.nesting)))
}

/// The columns that a guest told.
///
/// # Errors
/// There are too many, a name is too long, or a type is none.
pub fn schema(fields: &[FieldResult], limits: &Limits) -> Result<SchemaRef, Wrong> {
    if fields.len() > limits.columns as usize {
        let detail = format!("a table has {} columns, the limit is {}", fields.len(), limits.columns);
        return Err(Wrong::Limit("columns", detail));
    }
    let fields = fields.iter().map(|field| {
        if field.name.chars().count() > limits.name as usize {
            let detail = format!("the name of a column is longer than {} characters", limits.name);
            return Err(Wrong::Limit("name", detail));
        }
        Ok(Field::new(&field.name, data_type(&field.data_type, limits)?, field.nullable))
    });
    Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>, _>>()?)))
}

/// A table that a guest returned. `expected`: it must have these columns.
///
/// # Errors
/// It is beyond a limit, has other columns, or is not what it says.
pub fn batch(table: TableResult, expected: Option<&SchemaRef>, limits: &Limits) -> Result<RecordBatch, Wrong> {
    let told = schema(&table.fields, limits)?;
    let schema = match expected {
        None => told,
        Some(expected) => {
            let same = expected.fields().len() == told.fields().len()
                && expected
                    .fields()
                    .iter()
                    .zip(told.fields())
                    .all(|(a, b)| a.name() == b.name() && known_as(a.data_type()) == *b.data_type());
            if !same {
                return Err(Wrong::Broke("the columns of its rows are not those that it told".into()));
            }
            Arc::clone(expected)
        }
    };
    if table.columns.len() != schema.fields().len() {
        return Err(Wrong::Broke(format!(
            "a table has {} columns and the names of {}",
            table.columns.len(),
            schema.fields().len()
        )));
    }
    let rows = table.rows as usize;
    let columns = table
        .columns
        .into_iter()
        .zip(schema.fields())
        .map(|(column, field)| raise(column, field.data_type(), rows, limits.nesting))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Wrong::Broke)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map_err(|e| Wrong::Broke(format!("a table is not what it says: {e}")))
}

/// Columns in the layouts that guests know, ready to be lent to one.
pub struct Columns(Vec<ArrayRef>);

impl Columns {
    /// Of these columns.
    ///
    /// # Errors
    /// A column is too large.
    pub fn new(columns: &[ArrayRef]) -> Result<Columns, Wrong> {
        let columns = columns.iter().map(laid_out).collect::<Result<Vec<_>, _>>();
        columns.map(Columns).map_err(|e| Wrong::Broke(format!("a column cannot be given to it: {e}")))
    }

    /// Lends them.
    ///
    /// # Errors
    /// A column cannot be given to any guest.
    pub fn lowered(&self) -> Result<Vec<Lowered<'_>>, Wrong> {
        let columns = self.0.iter().map(Lowered::of).collect::<Result<Vec<_>, _>>();
        columns.map_err(|e| Wrong::Broke(format!("a column cannot be given to it: {e}")))
    }
}

/// As the interface has them.
pub fn params<'a>(lowered: &'a [Lowered<'a>]) -> Vec<ColumnParam<'a>> {
    lowered.iter().map(Lowered::param).collect()
}
