//! Arrow's IPC stream. Spark's plain names do not say what is inside of arrays, structs and maps: those are their JSON text.

use std::io::{self, Write};
use std::sync::Arc;

use super::row;
use crate::ports::Column;
use arrow_ipc::writer::StreamWriter;
use arrow_json::ReaderBuilder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Rows of a result document as an Arrow IPC stream.
pub struct Stream<W: Write> {
    writer: StreamWriter<W>,
    schema: SchemaRef,
}

impl<W: Write> Stream<W> {
    /// Begins a stream with these columns.
    ///
    /// # Errors
    /// The output's.
    pub fn begin(out: W, columns: &[Column]) -> io::Result<Stream<W>> {
        let fields: Vec<Field> = columns.iter().map(|c| Field::new(&c.name, arrow_type(&c.data_type), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Stream { writer: StreamWriter::try_new(out, &schema).map_err(failed)?, schema })
    }

    /// Writes rows as they stand in the document.
    ///
    /// # Errors
    /// `InvalidData`: they are no rows of these columns; the output's.
    pub fn rows(&mut self, rows: &[String]) -> io::Result<()> {
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.schema)).build_decoder().map_err(failed)?;
        let mut text = Vec::new();
        for chunk in rows.chunks(1024) {
            text.clear();
            for row in chunk {
                prepared(&self.schema, &row::standard(row), &mut text)?;
            }
            let mut rest = text.as_slice();
            while !rest.is_empty() {
                let taken = decoder.decode(rest).map_err(failed)?;
                rest = &rest[taken..];
                if let Some(batch) = decoder.flush().map_err(failed)? {
                    self.writer.write(&batch).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the stream. The output.
    ///
    /// # Errors
    /// The output's.
    pub fn end(mut self) -> io::Result<W> {
        self.writer.finish().map_err(failed)?;
        self.writer.flush().map_err(failed)?;
        self.writer.into_inner().map_err(failed)
    }
}

/// The row as the decoder wants it: binary in hexadecimal, nested values as strings.
fn prepared(schema: &Schema, row: &str, out: &mut Vec<u8>) -> io::Result<()> {
    out.push(b'{');
    let mut first = true;
    for (name, json) in row::members(row)? {
        let Ok(field) = schema.field_with_name(&name) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, &name)?;
        out.push(b':');
        match field.data_type() {
            DataType::Binary => {
                let bytes = BASE64_STANDARD
                    .decode(row::text(json))
                    .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                out.push(b'"');
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                out.push(b'"');
            }
            DataType::Utf8 if !json.starts_with('"') => serde_json::to_writer(&mut *out, json)?,
            _ => out.extend_from_slice(json.as_bytes()),
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, format!("the result has no Arrow form: {error}")),
    }
}

fn arrow_type(spark: &str) -> DataType {
    match spark {
        "boolean" => DataType::Boolean,
        "byte" => DataType::Int8,
        "short" => DataType::Int16,
        "integer" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        other => decimal(other).unwrap_or(DataType::Utf8),
    }
}

fn decimal(spark: &str) -> Option<DataType> {
    let (precision, scale) = spark.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    Some(if precision <= 38 { DataType::Decimal128(precision, scale) } else { DataType::Decimal256(precision, scale) })
}
