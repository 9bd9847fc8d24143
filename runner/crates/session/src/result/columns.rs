//! The columns of a result document: unique names, Spark's words for the types.

use std::collections::{HashMap, HashSet};

use arrow_schema::DataType;

/// The names with each repeated one made unique: `a`, `a` becomes `a`, `a_1`. A name that stands in the list is never taken
/// for another, so the first `a_1` stays `a_1`. Empty names are names.
pub(super) fn unique(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|&n| n.to_owned()).collect();
    let mut seen: HashMap<&str, u64> = HashMap::new();
    let mut free = |name: &str, count: &mut u64| {
        loop {
            *count += 1;
            let candidate = format!("{name}_{count}");
            if taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    };
    names
        .iter()
        .map(|&name| match seen.get_mut(name) {
            Some(count) => free(name, count),
            None => {
                seen.insert(name, 0);
                name.to_owned()
            }
        })
        .collect()
}

/// Spark's name of a type. An unsigned type gets the next larger signed one; what Spark has no plain name for is a string.
pub(super) fn spark_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "byte",
        DataType::Int16 | DataType::UInt8 => "short",
        DataType::Int32 | DataType::UInt16 => "integer",
        DataType::Int64 | DataType::UInt32 => "long",
        DataType::UInt64 => "decimal(20,0)",
        DataType::Float16 | DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            return decimal(*p, *s);
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Timestamp(..) => "timestamp",
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "array",
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Dictionary(_, value) => return spark_type(value),
        DataType::RunEndEncoded(_, value) => return spark_type(value.data_type()),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Null
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(..) => "string",
    };
    name.to_owned()
}

/// Spark has no negative scale: the digits that it stands for belong to the precision.
fn decimal(precision: u8, scale: i8) -> String {
    let (precision, scale) = (i16::from(precision), i16::from(scale));
    if scale < 0 { format!("decimal({},0)", precision - scale) } else { format!("decimal({precision},{scale})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_become_unique_and_no_name_is_taken_from_another() {
        for (names, expected) in [
            (vec!["a", "b"], vec!["a", "b"]),
            (vec!["a", "a", "a"], vec!["a", "a_1", "a_2"]),
            (vec!["a", "a", "a_1"], vec!["a", "a_2", "a_1"]),
            (vec!["a_1", "a", "a", "a_1"], vec!["a_1", "a", "a_2", "a_1_1"]),
            (vec!["", "", "A", "a"], vec!["", "_1", "A", "a"]),
        ] {
            assert_eq!(unique(&names), expected);
        }
    }

    #[test]
    fn ten_thousand_equal_names_take_no_time() {
        let names = vec!["count(*)"; 10_000];
        let unique = unique(&names);
        assert_eq!(unique.last().map(String::as_str), Some("count(*)_9999"));
        assert_eq!(unique.iter().collect::<HashSet<_>>().len(), 10_000);
    }
}
