//! Scalar functions: `edit_distance(a, b)`, how many letters have to change, and `multiply_add_one(a, b)`, which is `a * b + 1`.

use firesteel_plugin::{Column, Error, Plugin, ScalarFunction, Signature, schema};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("distance", env!("CARGO_PKG_VERSION"), "how far texts and numbers are apart")
        .scalar(EditDistance)
        .scalar(MultiplyAddOne)
}

struct EditDistance;

impl ScalarFunction for EditDistance {
    fn signature(&self) -> Signature {
        Signature::new("edit_distance")
            .takes("a", schema::UTF8)
            .takes("b", schema::UTF8)
            .returns(schema::INT64)
            .strict()
    }

    fn call(&self, arguments: &[Column], rows: usize) -> Result<Column, Error> {
        let (a, b) = (arguments[0].texts()?, arguments[1].texts()?);
        // One buffer for the whole batch.
        let (mut row, mut letters) = (Vec::new(), Vec::new());
        Ok(Column::of((0..rows).map(|n| edit_distance(a.get(n), b.get(n), &mut row, &mut letters))))
    }
}

fn edit_distance(a: &str, b: &str, row: &mut Vec<usize>, letters: &mut Vec<char>) -> i64 {
    letters.clear();
    letters.extend(b.chars());
    row.clear();
    row.extend(0..=letters.len());
    for (i, x) in a.chars().enumerate() {
        let mut before = i;
        row[0] = i + 1;
        for (j, y) in letters.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[letters.len()] as i64
}

struct MultiplyAddOne;

impl ScalarFunction for MultiplyAddOne {
    fn signature(&self) -> Signature {
        Signature::new("multiply_add_one")
            .takes("a", schema::INT64)
            .takes("b", schema::INT64)
            .returns(schema::INT64)
            .strict()
    }

    fn call(&self, arguments: &[Column], rows: usize) -> Result<Column, Error> {
        let (a, b) = (arguments[0].numbers::<i64>()?, arguments[1].numbers::<i64>()?);
        let mut out = Vec::with_capacity(rows);
        for (row, (a, b)) in a.iter().zip(b).enumerate() {
            let value = a.checked_mul(*b).and_then(|p| p.checked_add(1));
            // What stands in a row that is null is not asked for, but may be anything.
            let null = arguments.iter().any(|c| c.is_null(row));
            match value {
                Some(value) => out.push(value),
                None if null => out.push(0),
                None => return Err(Error::in_row(row, format!("{a} * {b} + 1 is too large for 64 bits"))),
            }
        }
        Ok(Column::of(out))
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn distances_are_counted_in_letters() {
        let a = Column::of(["kitten", "", "flaw", "ü"]);
        let b = Column::of(["sitting", "abc", "lawn", "u"]);
        assert_eq!(Host::new().scalar(&plugin(), "edit_distance", &[a, b]).unwrap(), Column::of([3_i64, 3, 2, 1]));
    }

    #[test]
    fn what_is_too_large_names_its_row() {
        let call = |a: [i64; 2], b: [i64; 2]| {
            Host::new().scalar(&plugin(), "multiply_add_one", &[Column::of(a), Column::of(b)])
        };
        assert_eq!(call([2, -3], [5, 4]).unwrap(), Column::of([11_i64, -11]));
        let error = call([1, i64::MAX], [1, 2]).unwrap_err();
        assert_eq!(
            (error.row, error.message.as_str()),
            (Some(1), "9223372036854775807 * 2 + 1 is too large for 64 bits")
        );
    }
}
