//! A column as an Arrow IPC stream, for every type that the interface has no layout for.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};

/// What begins each message.
const BEGINNING: [u8; 4] = [0xff; 4];

/// A column as a stream of one batch.
///
/// # Errors
/// Its type has no place in Arrow IPC.
pub fn write(array: &ArrayRef) -> Result<Vec<u8>, String> {
    let field = Field::new("", array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)]).map_err(|e| e.to_string())?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(|e| e.to_string())?;
    writer.write(&batch).and_then(|()| writer.finish()).map_err(|e| e.to_string())?;
    writer.into_inner().map_err(|e| e.to_string())
}

/// The column of such a stream, which is nobody's word but a guest's.
///
/// # Errors
/// It is not a stream of one batch with one column and so many rows.
pub fn read(bytes: Vec<u8>, rows: usize, nesting: u32) -> Result<ArrayRef, String> {
    let bad = |why: &dyn std::fmt::Display| format!("a column in layout `arrow` is no Arrow IPC stream: {why}");
    plain(&bytes).map_err(|why| bad(&why))?;
    // The library takes some things for granted that a stranger's message need not have.
    let decoded = std::panic::catch_unwind(|| decode(bytes)).unwrap_or_else(|_| Err("a message lacks a part".into()));
    let batch = decoded.map_err(|why| bad(&why))?;
    if batch.num_columns() != 1 || batch.num_rows() != rows {
        return Err(format!(
            "a column in layout `arrow` has {} columns and {} rows, expected were 1 and {rows}",
            batch.num_columns(),
            batch.num_rows()
        ));
    }
    let array = Arc::clone(batch.column(0));
    check_nesting(array.data_type(), nesting)?;
    Ok(array)
}

fn decode(bytes: Vec<u8>) -> Result<RecordBatch, String> {
    let mut decoder = StreamDecoder::new();
    let mut buffer = Buffer::from_vec(bytes);
    let mut found: Option<RecordBatch> = None;
    while !buffer.is_empty() {
        match decoder.decode(&mut buffer).map_err(|e| e.to_string())? {
            Some(_) if found.is_some() => return Err("it has more than one batch".into()),
            Some(batch) => found = Some(batch),
            None => {}
        }
    }
    found.ok_or_else(|| "it has no batch".into())
}

/// That a type does not nest too deep.
///
/// # Errors
/// It does.
pub fn check_nesting(data_type: &DataType, most: u32) -> Result<(), String> {
    if depth(data_type) > most {
        return Err(format!("limit `nesting`: a type nests more than {most} levels"));
    }
    Ok(())
}

fn depth(data_type: &DataType) -> u32 {
    match data_type {
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::LargeListView(f)
        | DataType::FixedSizeList(f, _)
        | DataType::Map(f, _) => 1 + depth(f.data_type()),
        DataType::Struct(fields) => 1 + fields.iter().map(|f| depth(f.data_type())).max().unwrap_or(0),
        DataType::Union(fields, _) => 1 + fields.iter().map(|(_, f)| depth(f.data_type())).max().unwrap_or(0),
        DataType::Dictionary(_, value) => depth(value),
        DataType::RunEndEncoded(_, values) => depth(values.data_type()),
        _ => 0,
    }
}

/// Looks at the messages before anything is made of them: none may be longer than what is there, and none compressed, because what
/// it would become nobody knows.
fn plain(bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (beginning, after) = rest.split_at_checked(4).ok_or("it ends in the middle")?;
        let (length, after) = match beginning == BEGINNING {
            true => after.split_at_checked(4).ok_or("it ends in the middle")?,
            false => (beginning, after),
        };
        let length = u32::from_le_bytes(length.try_into().map_err(|_| "it ends in the middle")?) as usize;
        if length == 0 {
            return if after.is_empty() { Ok(()) } else { Err("something follows its end".into()) };
        }
        let (head, after) = after.split_at_checked(length).ok_or("it ends in the middle")?;
        let message = arrow_ipc::root_as_message(head).map_err(|_| "a message cannot be read")?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| "a message is too long")?;
        let compressed = message.header_as_record_batch().is_some_and(|batch| batch.compression().is_some())
            || message
                .header_as_dictionary_batch()
                .is_some_and(|words| words.data().is_some_and(|batch| batch.compression().is_some()));
        if compressed {
            return Err("it is compressed".into());
        }
        rest = after.get(body..).ok_or("it ends in the middle")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn a_stream_that_lies_is_an_error_wherever_it_is_cut_or_changed() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let whole = write(&array).unwrap();
        assert_eq!(&read(whole.clone(), 3, 8).unwrap(), &array);
        assert_eq!(
            read(whole.clone(), 4, 8).unwrap_err(),
            "a column in layout `arrow` has 1 columns and 3 rows, expected were 1 and 4"
        );
        for cut in 0..whole.len() - 8 {
            assert!(read(whole[..cut].to_vec(), 3, 8).is_err(), "cut at {cut}");
        }
        // Whatever byte is changed: no panic, and nothing but the values may differ.
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(read) = read(changed, 3, 8) {
                    assert_eq!(read.len(), 3);
                }
            }
        }
    }

    #[test]
    fn a_type_nests_only_so_deep() {
        let mut data_type = DataType::Int64;
        for _ in 0..8 {
            data_type = DataType::List(Arc::new(Field::new_list_field(data_type, true)));
        }
        assert_eq!(check_nesting(&data_type, 8), Ok(()));
        let deeper = DataType::List(Arc::new(Field::new_list_field(data_type, true)));
        assert_eq!(check_nesting(&deeper, 8), Err("limit `nesting`: a type nests more than 8 levels".into()));
    }
}
