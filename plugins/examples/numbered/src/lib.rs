//! A result hook: every result gets a first column with the number of the row, unless it has one of that name.

use firesteel_plugin::{Changed, Column, Error, Field, Plugin, ResultHook, Table, schema};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("numbered", env!("CARGO_PKG_VERSION"), "numbers the rows of results").results(Numbered)
}

struct Numbered;

fn number() -> Field {
    Field { nullable: false, ..Field::new("row_number", schema::INT64) }
}

impl ResultHook for Numbered {
    fn begin(&self, fields: &[Field]) -> Result<Option<Vec<Field>>, Error> {
        if fields.is_empty() || fields.iter().any(|f| f.name.eq_ignore_ascii_case("row_number")) {
            return Ok(None);
        }
        Ok(Some([number()].into_iter().chain(fields.iter().cloned()).collect()))
    }

    fn change(&self, mut rows: Table, before: u64) -> Result<Changed, Error> {
        let first = i64::try_from(before).map_err(|_| "there are more rows than can be numbered")?;
        rows.fields.insert(0, number());
        rows.columns.insert(0, Column::of((1..=rows.rows as i64).map(|n| first + n)));
        Ok(Changed { rows, last: false })
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn numbers_go_on_from_batch_to_batch() {
        let batch = || Table::new([(Field::new("a", "Utf8"), Column::of(["x", "y"]))]).unwrap();
        let changed = Host::new().results(&plugin(), vec![batch(), batch()]).unwrap();
        assert_eq!(changed[1].column("row_number").unwrap(), &Column::of([3_i64, 4]));
        let again = Host::new().results(&plugin(), changed.clone()).unwrap();
        assert_eq!(again, changed);
    }
}
