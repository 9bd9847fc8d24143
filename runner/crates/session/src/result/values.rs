//! The JSON form of a value, by its Arrow type, where it differs from what `arrow-json` writes.
//!
//! | Arrow | JSON |
//! |---|---|
//! | floats | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | binary | a string, base64 with padding |
//! | dates, timestamps, times, durations, intervals | a string, ISO-8601; timestamps in UTC with `Z`, those without a zone count as UTC |
//! | list | an array, its nulls kept: they hold a place |
//! | struct | an object, nulls left out, repeated names made unique |
//! | map | an object, nulls kept: their keys are data; a key that is no string is its JSON text, a repeated one is made unique |
//! | union | a string: the value, or its JSON text if it is no string |
//! | dictionary, run-end encoded | the value |

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, MapArray, StructArray, UnionArray};
use arrow_json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef, IntervalUnit, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::columns::unique;
use super::iso;

/// How results are written.
pub(super) fn options() -> EncoderOptions {
    EncoderOptions::default().with_encoder_factory(Arc::new(ResultForm))
}

/// Text as a JSON string.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string has a JSON form, and writing into memory cannot fail");
}

#[derive(Debug)]
struct ResultForm;

type Made<'a> = Result<NullableEncoder<'a>, ArrowError>;

impl EncoderFactory for ResultForm {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let made = match array.data_type() {
            DataType::Float16 => each::<Float16Type>(array, |v, out| float(v.to_f32(), v.to_f64(), out)),
            DataType::Float32 => each::<Float32Type>(array, |v, out| float(v, f64::from(v), out)),
            DataType::Float64 => each::<Float64Type>(array, |v, out| float(v, v, out)),
            DataType::Binary => bytes(array, move |i| array.as_binary::<i32>().value(i)),
            DataType::LargeBinary => bytes(array, move |i| array.as_binary::<i64>().value(i)),
            DataType::BinaryView => bytes(array, move |i| array.as_binary_view().value(i)),
            DataType::FixedSizeBinary(_) => bytes(array, move |i| array.as_fixed_size_binary().value(i)),
            DataType::Date32 => quoted::<Date32Type>(array, |v, out| iso::date(i64::from(v), out)),
            DataType::Date64 => quoted::<Date64Type>(array, |v, out| iso::date(v.div_euclid(86_400_000), out)),
            DataType::Timestamp(unit, _) => {
                let n = per_second(*unit);
                match unit {
                    TimeUnit::Second => quoted::<TimestampSecondType>(array, move |v, out| iso::timestamp(v, n, out)),
                    TimeUnit::Millisecond => {
                        quoted::<TimestampMillisecondType>(array, move |v, out| iso::timestamp(v, n, out))
                    }
                    TimeUnit::Microsecond => {
                        quoted::<TimestampMicrosecondType>(array, move |v, out| iso::timestamp(v, n, out))
                    }
                    TimeUnit::Nanosecond => {
                        quoted::<TimestampNanosecondType>(array, move |v, out| iso::timestamp(v, n, out))
                    }
                }
            }
            DataType::Time32(TimeUnit::Second) => {
                quoted::<Time32SecondType>(array, |v, out| iso::time(v.into(), 1, out))
            }
            DataType::Time32(_) => quoted::<Time32MillisecondType>(array, |v, out| iso::time(v.into(), 1_000, out)),
            DataType::Time64(TimeUnit::Microsecond) => {
                quoted::<Time64MicrosecondType>(array, |v, out| iso::time(v, 1_000_000, out))
            }
            DataType::Time64(_) => quoted::<Time64NanosecondType>(array, |v, out| iso::time(v, 1_000_000_000, out)),
            DataType::Duration(unit) => {
                let n = per_second(*unit);
                match unit {
                    TimeUnit::Second => quoted::<DurationSecondType>(array, move |v, out| iso::duration(v, n, out)),
                    TimeUnit::Millisecond => {
                        quoted::<DurationMillisecondType>(array, move |v, out| iso::duration(v, n, out))
                    }
                    TimeUnit::Microsecond => {
                        quoted::<DurationMicrosecondType>(array, move |v, out| iso::duration(v, n, out))
                    }
                    TimeUnit::Nanosecond => {
                        quoted::<DurationNanosecondType>(array, move |v, out| iso::duration(v, n, out))
                    }
                }
            }
            DataType::Interval(IntervalUnit::YearMonth) => {
                quoted::<IntervalYearMonthType>(array, |v, out| iso::interval(v, 0, 0, out))
            }
            DataType::Interval(IntervalUnit::DayTime) => quoted::<IntervalDayTimeType>(array, |v, out| {
                iso::interval(0, v.days, i128::from(v.milliseconds) * 1_000_000, out);
            }),
            DataType::Interval(IntervalUnit::MonthDayNano) => quoted::<IntervalMonthDayNanoType>(array, |v, out| {
                iso::interval(v.months, v.days, v.nanoseconds.into(), out);
            }),
            DataType::Struct(_) => object(array.as_struct(), options)?,
            DataType::Map(..) => map(field, array.as_map(), options)?,
            DataType::Union(..) => union(array.as_union(), options)?,
            DataType::Dictionary(..) => dictionary(field, array, options)?,
            _ => return Ok(None),
        };
        Ok(Some(made))
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

struct Each<F>(F);

impl<F: FnMut(usize, &mut Vec<u8>)> Encoder for Each<F> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        (self.0)(idx, out);
    }
}

fn encoder<'a>(array: &'a dyn Array, write: impl FnMut(usize, &mut Vec<u8>) + 'a) -> NullableEncoder<'a> {
    NullableEncoder::new(Box::new(Each(write)), array.logical_nulls())
}

fn each<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    write: impl Fn(T::Native, &mut Vec<u8>) + 'a,
) -> NullableEncoder<'a> {
    let values = array.as_primitive::<T>();
    encoder(array, move |i, out| write(values.value(i), out))
}

fn quoted<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    write: impl Fn(T::Native, &mut Vec<u8>) + 'a,
) -> NullableEncoder<'a> {
    each::<T>(array, move |v, out| {
        out.push(b'"');
        write(v, out);
        out.push(b'"');
    })
}

fn bytes<'a>(array: &'a dyn Array, value: impl Fn(usize) -> &'a [u8] + 'a) -> NullableEncoder<'a> {
    encoder(array, move |i, out| {
        let text = BASE64_STANDARD.encode(value(i));
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    })
}

/// `shortest` is the value in its own width: its debug form has the fewest digits that read back as it.
fn float(shortest: impl std::fmt::Debug, value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        write!(out, "{shortest:?}").expect("writing into memory cannot fail");
    } else {
        let name: &[u8] = match value {
            v if v.is_nan() => b"\"NaN\"",
            v if v > 0.0 => b"\"Infinity\"",
            _ => b"\"-Infinity\"",
        };
        out.extend_from_slice(name);
    }
}

fn object<'a>(array: &'a StructArray, options: &'a EncoderOptions) -> Made<'a> {
    let names: Vec<&str> = array.fields().iter().map(|f| f.name().as_str()).collect();
    let mut members = Vec::with_capacity(names.len());
    for ((name, field), column) in unique(&names).iter().zip(array.fields()).zip(array.columns()) {
        let mut key = Vec::new();
        string(name, &mut key);
        key.push(b':');
        members.push((key, make_encoder(field, column.as_ref(), options)?));
    }
    Ok(encoder(array, move |i, out| {
        out.push(b'{');
        let mut first = true;
        for (key, value) in members.iter_mut().filter(|(_, value)| !value.is_null(i)) {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(key);
            value.encode(i, out);
        }
        out.push(b'}');
    }))
}

fn map<'a>(field: &'a FieldRef, array: &'a MapArray, options: &'a EncoderOptions) -> Made<'a> {
    let mut keys = make_encoder(field, array.keys().as_ref(), options)?;
    let mut values = make_encoder(field, array.values().as_ref(), options)?;
    let offsets = array.value_offsets();
    Ok(encoder(array, move |i, out| {
        let entries = offsets[i] as usize..offsets[i + 1] as usize;
        let texts: Vec<String> = entries.clone().map(|entry| as_string(&mut keys, entry)).collect();
        // Only the inside of the JSON string is compared and prolonged, so that it stays one.
        let inner: Vec<&str> = texts.iter().map(|text| &text[1..text.len() - 1]).collect();
        out.push(b'{');
        for (n, (entry, key)) in entries.zip(unique(&inner)).enumerate() {
            if n > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            if values.is_null(entry) {
                out.extend_from_slice(b"null");
            } else {
                values.encode(entry, out);
            }
        }
        out.push(b'}');
    }))
}

/// The value as a JSON string: itself, or its JSON text.
fn as_string(values: &mut NullableEncoder<'_>, i: usize) -> String {
    let mut json = Vec::new();
    if values.is_null(i) {
        json.extend_from_slice(b"null");
    } else {
        values.encode(i, &mut json);
    }
    let json = String::from_utf8(json).expect("every encoder writes UTF-8");
    if json.starts_with('"') {
        return json;
    }
    let mut quoted = Vec::new();
    string(&json, &mut quoted);
    String::from_utf8(quoted).expect("JSON of a string is UTF-8")
}

fn union<'a>(array: &'a UnionArray, options: &'a EncoderOptions) -> Made<'a> {
    let DataType::Union(fields, _) = array.data_type() else { unreachable!("a union array has a union type") };
    let mut members = Vec::new();
    for (id, field) in fields.iter() {
        members.push((id, make_encoder(field, array.child(id).as_ref(), options)?));
    }
    Ok(encoder(array, move |i, out| {
        let id = array.type_id(i);
        let (_, values) =
            members.iter_mut().find(|(member, _)| *member == id).expect("a union's ids are those of its type");
        out.extend_from_slice(as_string(values, array.value_offset(i)).as_bytes());
    }))
}

fn dictionary<'a>(field: &'a FieldRef, array: &'a dyn Array, options: &'a EncoderOptions) -> Made<'a> {
    let dictionary = array.as_any_dictionary();
    let mut values = make_encoder(field, dictionary.values().as_ref(), options)?;
    // Without values there are no keys either: all is null.
    let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
    Ok(encoder(array, move |i, out| values.encode(keys[i], out)))
}
