//! A plugin's scalar function in DataFusion.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use datafusion::arrow::compute::concat;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{self as expr, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};
use firesteel_session::ports::plugins::{Surroundings, Volatility};

use crate::plugins::carried;
use crate::plugins::overloads::Overloads;

/// The most rows that a plugin is given at once.
pub const ROWS: usize = 65_535;

/// The functions of one name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    of: Overloads,
    signature: Signature,
}

/// What may be assumed of all of them.
pub fn volatility(of: &Overloads) -> expr::Volatility {
    let all: Vec<Volatility> = of.all().map(|f| f.volatility).collect();
    if all.contains(&Volatility::Volatile) {
        expr::Volatility::Volatile
    } else if all.contains(&Volatility::Stable) {
        expr::Volatility::Stable
    } else {
        expr::Volatility::Immutable
    }
}

/// Any arguments: which ones fit, `coerce_types` says.
pub fn signature(of: &Overloads) -> Signature {
    Signature::user_defined(volatility(of))
}

impl Scalar {
    /// These.
    pub fn new(of: Overloads) -> Scalar {
        Scalar { signature: signature(&of), of }
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of.choose(types).map(|(_, types)| types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let (n, _) = self.of.choose(types)?;
        Ok(self.of.function(n).returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let (n, _) = self.of.choose(&types)?;
        let around: Arc<dyn Surroundings> = self.of.around();
        let constant = self.signature.volatility != expr::Volatility::Volatile
            && args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns: Vec<ArrayRef> = args.args.into_iter().map(|a| a.into_array(rows)).collect::<Result<_>>()?;
        let call = |columns: &[ArrayRef], rows| {
            self.of.plugin.scalar(&around, n, columns, rows).map_err(|fault| carried(&fault))
        };
        if rows <= ROWS {
            let value = call(&columns, rows)?;
            if constant {
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&value, 0)?));
            }
            return Ok(ColumnarValue::Array(value));
        }
        let mut parts = Vec::new();
        for at in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - at);
            let part: Vec<ArrayRef> = columns.iter().map(|column| column.slice(at, count)).collect();
            parts.push(call(&part, count)?);
        }
        let parts: Vec<&dyn arrow_array::Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}
