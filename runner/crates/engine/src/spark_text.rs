//! Texts as Spark has them: of timestamps and floating-point numbers, and words with a capital at their beginning.

use std::fmt::{Debug, LowerExp};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// `CAST(… AS STRING)`, which no statement calls by its name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct AsText(Signature);

impl Default for AsText {
    fn default() -> AsText {
        AsText(Signature::any(1, Volatility::Immutable))
    }
}

impl AsText {
    /// Whether Spark's text of such a value is another than Arrow's.
    pub fn differs(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Timestamp(_, None) | DataType::Float32 | DataType::Float64)
    }
}

impl ScalarUDFImpl for AsText {
    fn name(&self) -> &str {
        "as_text"
    }
    fn signature(&self) -> &Signature {
        &self.0
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(|args| text(&args[0]), vec![])(&args.args)
    }
}

fn text(values: &dyn Array) -> Result<ArrayRef> {
    let texts: StringArray = match values.data_type() {
        DataType::Float32 => {
            values.as_primitive::<Float32Type>().iter().map(|v| v.map(|v| number(v, f64::from(v)))).collect()
        }
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().map(|v| v.map(|v| number(v, v))).collect(),
        _ => {
            let iso = cast(values, &DataType::Utf8)?;
            iso.as_string::<i32>().iter().map(|t| t.map(time)).collect()
        }
    };
    Ok(Arc::new(texts))
}

/// As Java has it: an exponent from ten millions up and below a thousandth, and always a digit behind the point.
fn number<T: Debug + LowerExp>(value: T, double: f64) -> String {
    if double.is_infinite() {
        return if double > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if double == 0.0 || double.is_nan() || (1e-3..1e7).contains(&double.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// A space in the middle, and no zeros at the end of a fraction.
fn time(iso: &str) -> String {
    let text = iso.replacen('T', " ", 1);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `initcap`: only a space ends a word.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct InitCap(Signature);

impl Default for InitCap {
    fn default() -> InitCap {
        InitCap(Signature::string(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for InitCap {
    fn name(&self) -> &str {
        "initcap"
    }
    fn signature(&self) -> &Signature {
        &self.0
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let capitals = |args: &[ArrayRef]| {
            let texts = cast(&args[0], &DataType::Utf8)?;
            let texts: StringArray = texts.as_string::<i32>().iter().map(|t| t.map(init_cap)).collect();
            Ok(Arc::new(texts) as ArrayRef)
        };
        make_scalar_function(capitals, vec![])(&args.args)
    }
}

fn init_cap(text: &str) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if begins {
            out.extend(c.to_uppercase())
        } else {
            out.extend(c.to_lowercase())
        }
        begins = c == ' ';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (9_999_999.5, "9999999.5"),
            (1e7, "1.0E7"),
            (-1.5e300, "-1.5E300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number(value, value), text);
        }
        assert_eq!(number(0.1f32, f64::from(0.1f32)), "0.1");
    }
}
