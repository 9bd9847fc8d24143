//! One JSON text a row.

use std::fmt;

use arrow_array::{RecordBatch, new_empty_array};
use arrow_json::writer::{EncoderOptions, make_encoder};
use arrow_schema::{ArrowError, SchemaRef};
use firesteel_model::{Code, Failure, Stage};

use super::columns::{spark_type, unique};
use super::values;
use crate::ports::Column;

/// Turns batches of one schema into rows. Nulls are left out, column names are unique, an apostrophe is written `\u0027`: a reader
/// that takes every apostrophe for a quotation mark reads what was meant.
pub struct Encoder {
    columns: Vec<Column>,
    keys: Vec<Vec<u8>>,
    options: EncoderOptions,
    row: Vec<u8>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder for batches of this schema.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` names the first column whose type has no JSON form.
    pub fn new(schema: &SchemaRef) -> Result<Encoder, Failure> {
        let options = values::options();
        for field in schema.fields() {
            let none = new_empty_array(field.data_type());
            make_encoder(field, none.as_ref(), &options).map_err(|_: ArrowError| {
                let message = format!(
                    "column `{}` has the type {}, which a result cannot hold; cast it",
                    field.name(),
                    field.data_type()
                );
                Failure::new(Code::Unsupported, Stage::Result, message)
            })?;
        }
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let columns: Vec<Column> = unique(&names)
            .into_iter()
            .zip(schema.fields())
            .map(|(name, field)| {
                let label = (name != *field.name()).then(|| field.name().clone());
                Column { name, data_type: spark_type(field.data_type()), label }
            })
            .collect();
        let keys = columns.iter().map(|column| key(&column.name)).collect();
        Ok(Encoder { columns, keys, options, row: Vec::new() })
    }

    /// The columns as the result document's `schema` has them.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Hands each row of the batch to `sink`, in order.
    ///
    /// # Errors
    /// `INTERNAL` if the batch is not of the encoder's schema.
    pub fn encode(&mut self, batch: &RecordBatch, sink: &mut dyn FnMut(String)) -> Result<(), Failure> {
        if batch.num_columns() != self.keys.len() {
            let message = format!("a batch has {} columns, its schema {}", batch.num_columns(), self.keys.len());
            return Err(Failure::new(Code::Internal, Stage::Result, message));
        }
        let schema = batch.schema();
        let mut members = Vec::with_capacity(self.keys.len());
        for ((key, field), array) in self.keys.iter().zip(schema.fields()).zip(batch.columns()) {
            let values = make_encoder(field, array.as_ref(), &self.options)
                .map_err(|e| Failure::new(Code::Internal, Stage::Result, format!("a batch cannot be written: {e}")))?;
            members.push((key, values));
        }
        let row = &mut self.row;
        for i in 0..batch.num_rows() {
            row.clear();
            row.push(b'{');
            for (key, values) in members.iter_mut().filter(|(_, values)| !values.is_null(i)) {
                if row.len() > 1 {
                    row.push(b',');
                }
                row.extend_from_slice(key);
                values.encode(i, row);
            }
            row.push(b'}');
            sink(without_apostrophes(row));
        }
        Ok(())
    }
}

/// A member's name and its colon.
fn key(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 3);
    values::string(name, &mut key);
    key.push(b':');
    key
}

/// In JSON an apostrophe stands only inside of strings, so it may be replaced wherever it is.
fn without_apostrophes(row: &[u8]) -> String {
    let row = std::str::from_utf8(row).expect("every encoder writes UTF-8");
    if row.as_bytes().contains(&b'\'') { row.replace('\'', "\\u0027") } else { row.to_owned() }
}

#[cfg(test)]
mod tests;
