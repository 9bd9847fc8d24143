//! Columns on their way to a guest and back. Values are copied once each way, as blocks; what a guest returns is believed in nothing.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::bindings::firesteel::plugin::types::{
    ColumnParam, ColumnResult, RunsParam, RunsResult, ValuesParam, ValuesResult,
};
use crate::ipc;

/// The type by which a guest knows this one.
pub fn known_as(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => known_as(values),
        DataType::RunEndEncoded(_, values) => known_as(values.data_type()),
        other => other.clone(),
    }
}

/// The type that stores a column's values as the interface says.
fn layout(data_type: &DataType) -> DataType {
    match known_as(data_type) {
        DataType::Date32 | DataType::Time32(_) => DataType::Int32,
        DataType::Timestamp(..) | DataType::Date64 | DataType::Time64(_) | DataType::Duration(_) => DataType::Int64,
        other => other,
    }
}

/// A column as it is stored for a guest.
///
/// # Errors
/// More than 2 GiB of text.
pub fn laid_out(array: &ArrayRef) -> Result<ArrayRef, String> {
    let layout = layout(array.data_type());
    if &layout == array.data_type() {
        return Ok(Arc::clone(array));
    }
    cast(array, &layout).map_err(|e| e.to_string())
}

/// A column for a guest, with what had to be made anew for that.
pub struct Lowered<'a> {
    values: Values<'a>,
    validity: Option<Cow<'a, [u8]>>,
}

enum Values<'a> {
    Numbers(ValuesParam<'a>),
    Bits(Cow<'a, [u8]>),
    Runs { text: bool, offsets: Cow<'a, [u32]>, bytes: &'a [u8] },
    Arrow(Vec<u8>),
}

impl<'a> Lowered<'a> {
    /// A column that is [`laid_out`].
    ///
    /// # Errors
    /// It cannot be written as Arrow IPC.
    pub fn of(array: &'a ArrayRef) -> Result<Lowered<'a>, String> {
        use ValuesParam as V;
        fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> &[T::Native] {
            array.as_primitive::<T>().values()
        }
        let values = match array.data_type() {
            DataType::Boolean => Values::Bits(bits(array.as_boolean().values())),
            DataType::Int8 => Values::Numbers(V::Int8(numbers::<Int8Type>(array))),
            DataType::Int16 => Values::Numbers(V::Int16(numbers::<Int16Type>(array))),
            DataType::Int32 => Values::Numbers(V::Int32(numbers::<Int32Type>(array))),
            DataType::Int64 => Values::Numbers(V::Int64(numbers::<Int64Type>(array))),
            DataType::UInt8 => Values::Numbers(V::Uint8(numbers::<UInt8Type>(array))),
            DataType::UInt16 => Values::Numbers(V::Uint16(numbers::<UInt16Type>(array))),
            DataType::UInt32 => Values::Numbers(V::Uint32(numbers::<UInt32Type>(array))),
            DataType::UInt64 => Values::Numbers(V::Uint64(numbers::<UInt64Type>(array))),
            DataType::Float32 => Values::Numbers(V::Float32(numbers::<Float32Type>(array))),
            DataType::Float64 => Values::Numbers(V::Float64(numbers::<Float64Type>(array))),
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                runs(true, text.offsets(), text.values())
            }
            DataType::Binary => {
                let binary = array.as_binary::<i32>();
                runs(false, binary.offsets(), binary.values())
            }
            _ => return Ok(Lowered { values: Values::Arrow(ipc::write(array)?), validity: None }),
        };
        let validity = array.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| bits(nulls.inner()));
        Ok(Lowered { values, validity })
    }

    /// As the interface has it.
    pub fn param(&'a self) -> ColumnParam<'a> {
        let values = match &self.values {
            Values::Numbers(values) => values.clone(),
            Values::Bits(bits) => ValuesParam::Boolean(bits),
            Values::Runs { text: true, offsets, bytes } => ValuesParam::Utf8(RunsParam { offsets, bytes }),
            Values::Runs { text: false, offsets, bytes } => ValuesParam::Binary(RunsParam { offsets, bytes }),
            Values::Arrow(bytes) => ValuesParam::Arrow(bytes),
        };
        ColumnParam { values, validity: self.validity.as_deref() }
    }
}

/// Bits from the first of a byte on.
fn bits(bits: &BooleanBuffer) -> Cow<'_, [u8]> {
    let bytes = bits.len().div_ceil(8);
    if bits.offset().is_multiple_of(8) {
        let from = bits.offset() / 8;
        return Cow::Borrowed(&bits.values()[from..from + bytes]);
    }
    Cow::Owned(bits.sliced().as_slice()[..bytes].to_vec())
}

/// Runs from offset 0 on.
fn runs<'a>(text: bool, offsets: &'a OffsetBuffer<i32>, bytes: &'a [u8]) -> Values<'a> {
    let from = *offsets.first().expect("there is one offset more than there are rows") as usize;
    let to = *offsets.last().expect("there is one offset more than there are rows") as usize;
    let offsets = if from == 0 {
        Cow::Borrowed(offsets.inner().inner().typed_data::<u32>())
    } else {
        // Offsets are never negative.
        offsets.iter().map(|offset| (*offset as usize - from) as u32).collect::<Vec<_>>().into()
    };
    Values::Runs { text, offsets, bytes: &bytes[from..to] }
}

/// What a guest returned, as a column of this type and length.
///
/// # Errors
/// It is of another type or length, or not what it should be; the text says what was expected.
pub fn raise(column: ColumnResult, data_type: &DataType, rows: usize, nesting: u32) -> Result<ArrayRef, String> {
    use ValuesResult as V;
    let expected = layout(data_type);
    let nulls = match column.validity {
        Some(_) if matches!(column.values, V::Arrow(_)) => {
            return Err("a column in layout `arrow` has its nulls inside, and no validity".into());
        }
        Some(bytes) => Some(NullBuffer::new(bitmap("validity", bytes, rows)?)),
        None => None,
    };
    let array: ArrayRef = match (column.values, &expected) {
        (V::Boolean(bytes), DataType::Boolean) => Arc::new(BooleanArray::new(bitmap("values", bytes, rows)?, nulls)),
        (V::Int8(values), DataType::Int8) => numbers::<Int8Type>(values, nulls, rows)?,
        (V::Int16(values), DataType::Int16) => numbers::<Int16Type>(values, nulls, rows)?,
        (V::Int32(values), DataType::Int32) => numbers::<Int32Type>(values, nulls, rows)?,
        (V::Int64(values), DataType::Int64) => numbers::<Int64Type>(values, nulls, rows)?,
        (V::Uint8(values), DataType::UInt8) => numbers::<UInt8Type>(values, nulls, rows)?,
        (V::Uint16(values), DataType::UInt16) => numbers::<UInt16Type>(values, nulls, rows)?,
        (V::Uint32(values), DataType::UInt32) => numbers::<UInt32Type>(values, nulls, rows)?,
        (V::Uint64(values), DataType::UInt64) => numbers::<UInt64Type>(values, nulls, rows)?,
        (V::Float32(values), DataType::Float32) => numbers::<Float32Type>(values, nulls, rows)?,
        (V::Float64(values), DataType::Float64) => numbers::<Float64Type>(values, nulls, rows)?,
        (V::Utf8(runs), DataType::Utf8) => {
            let (offsets, bytes) = checked(runs, rows)?;
            let text = StringArray::try_new(offsets, bytes, nulls);
            Arc::new(text.map_err(|_| "a column of text is not valid UTF-8".to_owned())?)
        }
        (V::Binary(runs), DataType::Binary) => {
            let (offsets, bytes) = checked(runs, rows)?;
            Arc::new(BinaryArray::try_new(offsets, bytes, nulls).map_err(|e| e.to_string())?)
        }
        (V::Arrow(bytes), _) => {
            let array = ipc::read(bytes, rows, nesting)?;
            if known_as(array.data_type()) != known_as(data_type) {
                return Err(format!("a column is of type {}, declared was {data_type}", array.data_type()));
            }
            return cast(&array, data_type).map_err(|e| e.to_string());
        }
        (values, _) => {
            return Err(format!("a column is in layout `{}`, declared was {data_type}", name(&values)));
        }
    };
    if array.data_type() == data_type {
        return Ok(array);
    }
    cast(&array, data_type).map_err(|e| e.to_string())
}

fn numbers<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef, String> {
    length("values", values.len(), rows)?;
    Ok(Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls)))
}

fn length(what: &str, found: usize, expected: usize) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("a column has {found} {what}, expected were {expected}")) }
}

fn bitmap(what: &str, bytes: Vec<u8>, rows: usize) -> Result<BooleanBuffer, String> {
    length(&format!("bytes of {what}"), bytes.len(), rows.div_ceil(8))?;
    Ok(BooleanBuffer::new(Buffer::from_vec(bytes), 0, rows))
}

/// Offsets that stay inside of the bytes.
fn checked(runs: RunsResult, rows: usize) -> Result<(OffsetBuffer<i32>, Buffer), String> {
    let RunsResult { offsets, bytes } = runs;
    length("offsets", offsets.len(), rows + 1)?;
    let fits = i32::try_from(bytes.len()).is_ok() && offsets.last().is_some_and(|last| *last as usize == bytes.len());
    if !fits || offsets[0] != 0 || !offsets.is_sorted() {
        return Err("the offsets of a column do not ascend from 0 to the length of its bytes".into());
    }
    let offsets = ScalarBuffer::<i32>::new(Buffer::from_vec(offsets), 0, rows + 1);
    Ok((OffsetBuffer::new(offsets), Buffer::from_vec(bytes)))
}

fn name(values: &ValuesResult) -> &'static str {
    match values {
        ValuesResult::Boolean(_) => "boolean",
        ValuesResult::Int8(_) => "int8",
        ValuesResult::Int16(_) => "int16",
        ValuesResult::Int32(_) => "int32",
        ValuesResult::Int64(_) => "int64",
        ValuesResult::Uint8(_) => "uint8",
        ValuesResult::Uint16(_) => "uint16",
        ValuesResult::Uint32(_) => "uint32",
        ValuesResult::Uint64(_) => "uint64",
        ValuesResult::Float32(_) => "float32",
        ValuesResult::Float64(_) => "float64",
        ValuesResult::Utf8(_) => "utf8",
        ValuesResult::Binary(_) => "binary",
        ValuesResult::Arrow(_) => "arrow",
    }
}

/// The same values, null where any of these is null.
pub fn strict(array: ArrayRef, arguments: &[ArrayRef]) -> ArrayRef {
    if array.data_type() == &DataType::Null {
        return new_null_array(&DataType::Null, array.len());
    }
    let nulls = arguments
        .iter()
        .fold(None, |nulls, argument| NullBuffer::union(nulls.as_ref(), argument.logical_nulls().as_ref()));
    let data = array.into_data().into_builder().nulls(nulls);
    match data.build() {
        Ok(data) => arrow_array::make_array(data),
        Err(error) => unreachable!("the arguments have as many rows as the values: {error}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use arrow_array::{
        Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int64Array, ListArray, StringViewArray,
        TimestampMicrosecondArray,
    };

    use super::*;

    /// What a guest does that returns what it was given.
    fn echo(column: &ColumnParam<'_>) -> ColumnResult {
        use ValuesParam as P;
        use ValuesResult as R;
        let runs = |r: &RunsParam<'_>| RunsResult { offsets: r.offsets.to_vec(), bytes: r.bytes.to_vec() };
        let values = match &column.values {
            P::Boolean(v) => R::Boolean(v.to_vec()),
            P::Int32(v) => R::Int32(v.to_vec()),
            P::Int64(v) => R::Int64(v.to_vec()),
            P::Float64(v) => R::Float64(v.to_vec()),
            P::Utf8(r) => R::Utf8(runs(r)),
            P::Binary(r) => R::Binary(runs(r)),
            P::Arrow(v) => R::Arrow(v.to_vec()),
            _ => panic!("not used here"),
        };
        ColumnResult { values, validity: column.validity.map(<[u8]>::to_vec) }
    }

    fn there_and_back(array: ArrayRef) {
        for (offset, rows) in [(0, array.len()), (1, array.len() - 1), (3, 2), (2, 0)] {
            let part = array.slice(offset, rows);
            let stored = laid_out(&part).unwrap();
            let lowered = Lowered::of(&stored).unwrap();
            let back = raise(echo(&lowered.param()), part.data_type(), rows, 8).unwrap();
            assert_eq!(&back, &part, "{} from {offset}", array.data_type());
        }
    }

    #[test]
    fn every_column_comes_back_as_it_went_whatever_part_of_it_goes() {
        there_and_back(Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4), None])));
        there_and_back(Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, 3.5, 4.5])));
        there_and_back(Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true)])));
        there_and_back(Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("été"), Some("z")])));
        there_and_back(Arc::new(StringViewArray::from(vec![Some("a"), None, Some("longer than twelve"), None, None])));
        there_and_back(Arc::new(BinaryArray::from(vec![&b"a"[..], b"", b"\xff", b"bc", b"d"])));
        there_and_back(Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000), Some(0), Some(1)])));
        there_and_back(Arc::new(TimestampMicrosecondArray::from(vec![-1, 0, 1, 2, 3]).with_timezone("UTC")));
        there_and_back(Arc::new(
            Decimal128Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)])
                .with_precision_and_scale(10, 2)
                .unwrap(),
        ));
        let lists = vec![Some(vec![Some(1)]), None, Some(vec![]), Some(vec![None, Some(2)]), Some(vec![Some(3)])];
        there_and_back(Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)));
        let words: DictionaryArray<Int32Type> = ["a", "b", "a", "a", "c"].into_iter().collect();
        let stored = laid_out(&(Arc::new(words) as ArrayRef)).unwrap();
        assert_eq!(&stored, &(Arc::new(StringArray::from(vec!["a", "b", "a", "a", "c"])) as ArrayRef));
    }

    #[test]
    fn what_is_not_what_it_should_be_is_an_error_and_never_a_panic() {
        let refused = |values, validity, data_type: DataType| {
            raise(ColumnResult { values, validity }, &data_type, 3, 8).unwrap_err()
        };
        let runs = |offsets: &[u32], bytes: &[u8]| RunsResult { offsets: offsets.to_vec(), bytes: bytes.to_vec() };
        let text =
            |offsets: &[u32], bytes: &[u8]| refused(ValuesResult::Utf8(runs(offsets, bytes)), None, DataType::Utf8);
        assert_eq!(
            refused(ValuesResult::Int64(vec![1, 2]), None, DataType::Int64),
            "a column has 2 values, expected were 3"
        );
        assert_eq!(
            refused(ValuesResult::Int64(vec![1, 2, 3]), Some(vec![]), DataType::Int64),
            "a column has 0 bytes of validity, expected were 1"
        );
        assert_eq!(
            refused(ValuesResult::Int32(vec![1, 2, 3]), None, DataType::Int64),
            "a column is in layout `int32`, declared was Int64"
        );
        let offsets = "the offsets of a column do not ascend from 0 to the length of its bytes";
        assert_eq!(text(&[0, 2, 1, 3], b"abc"), offsets);
        assert_eq!(text(&[0, 1, 2, 4], b"abc"), offsets);
        assert_eq!(text(&[1, 1, 2, 3], b"abc"), offsets);
        assert_eq!(text(&[0, 1, 2], b"ab"), "a column has 3 offsets, expected were 4");
        assert_eq!(text(&[0, 1, 2, 3], b"ab\xff"), "a column of text is not valid UTF-8");
        assert_eq!(text(&[0, 2, 3, 4], "aéb".as_bytes()), "a column of text is not valid UTF-8");
    }

    #[test]
    fn a_strict_function_is_null_where_an_argument_is() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("y"), None]));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, None]));
        assert_eq!(&strict(values, &[a, b]), &expected);
    }
}
