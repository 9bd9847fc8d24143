//! An aggregate function: `geometric_mean(x)` of numbers above zero.

use firesteel_plugin::{AggregateFunction, Column, Error, Plugin, Signature, schema};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("geomean", env!("CARGO_PKG_VERSION"), "the geometric mean").aggregate(GeometricMean)
}

/// Keeps for each group the sum of the logarithms and how many there are.
struct GeometricMean;

type State = (Vec<f64>, Vec<i64>);

/// A new group's state is null: it has seen nothing.
fn read(state: &[Column], groups: usize) -> Result<State, Error> {
    let sums = state[0].iter::<f64>(groups)?.map(Option::unwrap_or_default).collect();
    let counts = state[1].iter::<i64>(groups)?.map(Option::unwrap_or_default).collect();
    Ok((sums, counts))
}

fn written((sums, counts): State) -> Vec<Column> {
    vec![Column::of(sums), Column::of(counts)]
}

impl AggregateFunction for GeometricMean {
    fn signature(&self) -> Signature {
        let signature = Signature::new("geometric_mean").takes("x", schema::FLOAT64).returns(schema::FLOAT64).strict();
        signature.keeps(schema::FLOAT64).keeps(schema::INT64)
    }

    fn accumulate(
        &self,
        state: Vec<Column>,
        groups: usize,
        group: &[u32],
        arguments: &[Column],
        rows: usize,
    ) -> Result<Vec<Column>, Error> {
        let (mut sums, mut counts) = read(&state, groups)?;
        for (row, (x, group)) in arguments[0].iter::<f64>(rows)?.zip(group).enumerate() {
            let Some(x) = x else { continue };
            if x <= 0.0 {
                return Err(Error::in_row(row, format!("the geometric mean takes numbers above 0, not {x}")));
            }
            sums[*group as usize] += x.ln();
            counts[*group as usize] += 1;
        }
        Ok(written((sums, counts)))
    }

    fn merge(
        &self,
        state: Vec<Column>,
        groups: usize,
        group: &[u32],
        others: &[Column],
        rows: usize,
    ) -> Result<Vec<Column>, Error> {
        let (mut sums, mut counts) = read(&state, groups)?;
        let (more, many) = read(others, rows)?;
        for ((sum, count), group) in more.into_iter().zip(many).zip(group) {
            sums[*group as usize] += sum;
            counts[*group as usize] += count;
        }
        Ok(written((sums, counts)))
    }

    fn evaluate(&self, state: &[Column], groups: usize) -> Result<Column, Error> {
        let (sums, counts) = read(state, groups)?;
        let mean = |(sum, count): (f64, i64)| (count > 0).then(|| (sum / count as f64).exp());
        Ok(Column::nullable(sums.into_iter().zip(counts).map(mean)))
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn parts_of_the_data_make_one_mean() {
        let batches = [
            (vec![0, 1, 0], vec![Column::nullable([Some(2.0), Some(5.0), None])]),
            (vec![0, 2], vec![Column::nullable([Some(8.0), None])]),
        ];
        let means = Host::new().aggregate(&plugin(), "geometric_mean", &batches).unwrap();
        let means: Vec<Option<f64>> = means.iter::<f64>(3).unwrap().collect();
        assert_eq!(means[2], None);
        assert!((means[0].unwrap() - 4.0).abs() < 1e-9 && (means[1].unwrap() - 5.0).abs() < 1e-9, "{means:?}");
    }

    #[test]
    fn what_has_no_logarithm_is_told() {
        let batches = [(vec![0, 0], vec![Column::of([1.0, -1.0])])];
        let error = Host::new().aggregate(&plugin(), "geometric_mean", &batches).unwrap_err();
        assert_eq!((error.row, error.message.as_str()), (Some(1), "the geometric mean takes numbers above 0, not -1"));
    }
}
