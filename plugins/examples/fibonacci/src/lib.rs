//! A table function: `SELECT * FROM fibonacci(90)`, the numbers up to the given one, in parts of fifty rows.

use firesteel_plugin::{Column, Error, Field, Page, Plugin, Signature, Table, TableFunction, schema};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("fibonacci", env!("CARGO_PKG_VERSION"), "Fibonacci's numbers").table(Fibonacci)
}

struct Fibonacci;

/// The largest number that fits into 64 bits is the 92nd.
const LAST: i64 = 92;
const PART: i64 = 50;

fn upto(arguments: &[Column]) -> Result<i64, Error> {
    match arguments[0].get::<i64>(0)? {
        Some(n @ 0..=LAST) => Ok(n),
        Some(n) => Err(format!("fibonacci takes 0 to {LAST}, not {n}").into()),
        None => Err("fibonacci takes a number, not null".into()),
    }
}

impl TableFunction for Fibonacci {
    fn signature(&self) -> Signature {
        Signature::new("fibonacci").takes("upto", schema::INT64)
    }

    fn plan(&self, arguments: &[Column]) -> Result<Vec<Field>, Error> {
        upto(arguments)?;
        Ok(vec![Field::new("n", schema::INT64), Field::new("value", schema::INT64)])
    }

    fn produce(&self, arguments: &[Column], at: Option<&[u8]>) -> Result<Page, Error> {
        let last = upto(arguments)?;
        // Where a part begins is in the plugin's own words: here the number as it is in memory.
        let first = match at {
            None => 0,
            Some(bytes) => {
                i64::from_le_bytes(bytes.try_into().map_err(|_| Error::from("the place of the part is none"))?)
            }
        };
        let end = last.min(first.saturating_add(PART - 1));
        let numbers: Vec<i64> = (first..=end).collect();
        let values: Vec<i64> =
            numbers.iter().map(|n| (0..*n).fold((0, 1), |(a, b): (i64, i64), _| (b, a.saturating_add(b))).0).collect();
        let rows = Table::new(self.plan(arguments)?.into_iter().zip([Column::of(numbers), Column::of(values)]))?;
        Ok(Page { rows, next: (end < last).then(|| (end + 1).to_le_bytes().to_vec()) })
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn the_parts_follow_each_other() {
        let pages = Host::new().rows(&plugin(), "fibonacci", &[Column::of([60_i64])]).unwrap();
        assert_eq!(pages.iter().map(|p| p.rows).collect::<Vec<_>>(), [50, 11]);
        assert_eq!(pages[1].column("value").unwrap().get::<i64>(10).unwrap(), Some(1_548_008_755_920));
        let error = Host::new().rows(&plugin(), "fibonacci", &[Column::of([93_i64])]).unwrap_err();
        assert_eq!(error.message, "fibonacci takes 0 to 92, not 93");
    }
}
