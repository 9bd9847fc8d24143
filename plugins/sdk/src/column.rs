//! Columns of values, and tables of columns.

use crate::{Error, Field};

/// Values of variable length, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// One more than there are rows, ascending, from 0: value `i` is `bytes[offsets[i] .. offsets[i + 1]]`.
    pub offsets: Vec<u32>,
    /// In a column of text each value is valid UTF-8.
    pub bytes: Vec<u8>,
}

/// Values by how they are stored; what stands where the column is null has no meaning.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the layout of its name; the interface's table says which types have it")]
pub enum Values {
    /// A bit a row, the lowest of a byte first.
    Boolean(Vec<u8>),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
    UInt16(Vec<u16>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Utf8(Runs),
    Binary(Runs),
    /// An Arrow IPC stream with one column and one batch, its nulls included.
    Arrow(Vec<u8>),
}

/// A column of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its values.
    pub values: Values,
    /// A bit a row, the lowest of a byte first; 0: null. None: no row is null, or the layout is `Arrow`.
    pub validity: Option<Vec<u8>>,
}

/// Rows, by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names and types.
    pub fields: Vec<Field>,
    /// How many rows there are.
    pub rows: usize,
    /// In the order of `fields`.
    pub columns: Vec<Column>,
}

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    /// The columns do not have the same number of rows.
    pub fn new(columns: impl IntoIterator<Item = (Field, Column)>) -> Result<Table, Error> {
        let (fields, columns): (Vec<Field>, Vec<Column>) = columns.into_iter().unzip();
        let rows = columns.iter().find_map(Column::rows).unwrap_or(0);
        match fields.iter().zip(&columns).find(|(_, c)| c.rows().is_some_and(|n| n != rows)) {
            Some((field, column)) => Err(format!(
                "the column `{}` has {} rows, the first has {rows}",
                field.name,
                column.rows().unwrap_or(0)
            )
            .into()),
            None => Ok(Table { fields, rows, columns }),
        }
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.fields.iter().position(|f| f.name == name).and_then(|n| self.columns.get(n))
    }
}

/// What can be put into a column: numbers, `bool`, `&str`, `String`, bytes.
pub trait Layout: Sized {
    /// Stores values; null is none.
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values;
}

/// What can be taken out of a column: numbers, `bool`, `&str`, bytes.
pub trait Cell<'a>: Sized {
    /// What the column has to hold.
    const HOLDS: &'static str;
    /// The value of a row, whether or not it is null. None: the column holds something else, or has no such row.
    fn cell(values: &'a Values, row: usize) -> Option<Self>;
}

/// A number that is stored as it is.
pub trait Number: Copy + Default + 'static {
    /// What the column has to hold.
    const HOLDS: &'static str;
    /// All numbers of a column. None: it holds something else.
    fn all(values: &Values) -> Option<&[Self]>;
}

macro_rules! numbers {
    ($($number:ty, $layout:ident);* $(;)?) => { $(
        impl Number for $number {
            const HOLDS: &'static str = stringify!($layout);
            fn all(values: &Values) -> Option<&[Self]> {
                match values {
                    Values::$layout(all) => Some(all),
                    _ => None,
                }
            }
        }
        impl Layout for $number {
            fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
                Values::$layout(values.map(Option::unwrap_or_default).collect())
            }
        }
        impl Cell<'_> for $number {
            const HOLDS: &'static str = stringify!($layout);
            fn cell(values: &Values, row: usize) -> Option<Self> {
                Self::all(values)?.get(row).copied()
            }
        }
    )* };
}

numbers! {
    i8, Int8; i16, Int16; i32, Int32; i64, Int64;
    u8, UInt8; u16, UInt16; u32, UInt32; u64, UInt64;
    f32, Float32; f64, Float64;
}

fn bit(bits: &[u8], row: usize) -> Option<bool> {
    bits.get(row / 8).map(|byte| byte >> (row % 8) & 1 == 1)
}

fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = Vec::new();
    for (row, set) in values.enumerate() {
        if row % 8 == 0 {
            out.push(0);
        }
        if let (true, Some(last)) = (set, out.last_mut()) {
            *last |= 1 << (row % 8);
        }
    }
    out
}

impl Layout for bool {
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
        Values::Boolean(bits(values.map(Option::unwrap_or_default)))
    }
}

impl Cell<'_> for bool {
    const HOLDS: &'static str = "Boolean";
    fn cell(values: &Values, row: usize) -> Option<Self> {
        match values {
            Values::Boolean(all) => bit(all, row),
            _ => None,
        }
    }
}

impl Runs {
    fn of<T: AsRef<[u8]>>(values: impl Iterator<Item = Option<T>>) -> Runs {
        let mut runs = Runs { offsets: vec![0], bytes: Vec::new() };
        for value in values {
            if let Some(value) = value {
                runs.bytes.extend_from_slice(value.as_ref());
            }
            // More than 4 GiB do not fit into a guest.
            runs.offsets.push(u32::try_from(runs.bytes.len()).unwrap_or(u32::MAX));
        }
        runs
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        let (from, to) = (*self.offsets.get(row)?, *self.offsets.get(row + 1)?);
        self.bytes.get(from as usize..to as usize)
    }
}

impl Layout for &str {
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
        Values::Utf8(Runs::of(values))
    }
}

impl Layout for String {
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
        Values::Utf8(Runs::of(values))
    }
}

impl Layout for &[u8] {
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
        Values::Binary(Runs::of(values))
    }
}

impl Layout for Vec<u8> {
    fn store(values: impl Iterator<Item = Option<Self>>) -> Values {
        Values::Binary(Runs::of(values))
    }
}

impl<'a> Cell<'a> for &'a str {
    const HOLDS: &'static str = "Utf8";
    fn cell(values: &'a Values, row: usize) -> Option<Self> {
        match values {
            Values::Utf8(runs) => std::str::from_utf8(runs.get(row)?).ok(),
            _ => None,
        }
    }
}

impl<'a> Cell<'a> for &'a [u8] {
    const HOLDS: &'static str = "Binary";
    fn cell(values: &'a Values, row: usize) -> Option<Self> {
        match values {
            Values::Binary(runs) => runs.get(row),
            _ => None,
        }
    }
}

impl Column {
    /// A column without nulls.
    pub fn of<T: Layout>(values: impl IntoIterator<Item = T>) -> Column {
        Column { values: T::store(values.into_iter().map(Some)), validity: None }
    }

    /// A column in which none is null.
    pub fn nullable<T: Layout>(values: impl IntoIterator<Item = Option<T>>) -> Column {
        let values: Vec<Option<T>> = values.into_iter().collect();
        let validity = values.iter().any(Option::is_none).then(|| bits(values.iter().map(Option::is_some)));
        Column { values: T::store(values.into_iter()), validity }
    }

    /// How many rows it has. None: its layout is `Boolean` or `Arrow`, which do not tell.
    pub fn rows(&self) -> Option<usize> {
        Some(match &self.values {
            Values::Boolean(_) | Values::Arrow(_) => return None,
            Values::Int8(all) => all.len(),
            Values::UInt8(all) => all.len(),
            Values::Int16(all) => all.len(),
            Values::UInt16(all) => all.len(),
            Values::Int32(all) => all.len(),
            Values::UInt32(all) => all.len(),
            Values::Int64(all) => all.len(),
            Values::UInt64(all) => all.len(),
            Values::Float32(all) => all.len(),
            Values::Float64(all) => all.len(),
            Values::Utf8(runs) | Values::Binary(runs) => runs.offsets.len().saturating_sub(1),
        })
    }

    /// Whether a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.as_ref().is_some_and(|bits| bit(bits, row) == Some(false))
    }

    /// The value of a row; None: null.
    ///
    /// # Errors
    /// The column holds another type, or has no such row.
    pub fn get<'a, T: Cell<'a>>(&'a self, row: usize) -> Result<Option<T>, Error> {
        if self.is_null(row) {
            return Ok(None);
        }
        T::cell(&self.values, row).map(Some).ok_or_else(|| Error::in_row(row, self.holds(T::HOLDS)))
    }

    /// All values in their order.
    ///
    /// # Errors
    /// The column holds another type, or has fewer rows.
    pub fn iter<'a, T: Cell<'a> + 'a>(&'a self, rows: usize) -> Result<impl Iterator<Item = Option<T>> + 'a, Error> {
        if rows > 0 && T::cell(&self.values, rows - 1).is_none() {
            return Err(self.holds(T::HOLDS).into());
        }
        Ok((0..rows).map(|row| if self.is_null(row) { None } else { T::cell(&self.values, row) }))
    }

    /// All numbers, those of rows that are null included: the fastest way.
    ///
    /// # Errors
    /// The column holds another type.
    pub fn numbers<T: Number>(&self) -> Result<&[T], Error> {
        T::all(&self.values).ok_or_else(|| self.holds(T::HOLDS).into())
    }

    /// All texts, those of rows that are null included: checked once, not for each row.
    ///
    /// # Errors
    /// The column holds another type.
    pub fn texts(&self) -> Result<Texts<'_>, Error> {
        match &self.values {
            Values::Utf8(runs) => {
                let text =
                    std::str::from_utf8(&runs.bytes).map_err(|_| Error::from("a column of text is not UTF-8"))?;
                Ok(Texts { text, offsets: &runs.offsets })
            }
            _ => Err(self.holds("Utf8").into()),
        }
    }

    fn holds(&self, wanted: &str) -> String {
        let there = match &self.values {
            Values::Boolean(_) => "Boolean",
            Values::Int8(_) => "Int8",
            Values::Int16(_) => "Int16",
            Values::Int32(_) => "Int32",
            Values::Int64(_) => "Int64",
            Values::UInt8(_) => "UInt8",
            Values::UInt16(_) => "UInt16",
            Values::UInt32(_) => "UInt32",
            Values::UInt64(_) => "UInt64",
            Values::Float32(_) => "Float32",
            Values::Float64(_) => "Float64",
            Values::Utf8(_) => "Utf8",
            Values::Binary(_) => "Binary",
            Values::Arrow(_) => "an Arrow stream",
        };
        format!("expected a column of {wanted}, it is one of {there}; declare the type that is read")
    }
}

/// The texts of a column.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    text: &'a str,
    offsets: &'a [u32],
}

impl<'a> Texts<'a> {
    /// The text of a row; empty if there is none.
    pub fn get(&self, row: usize) -> &'a str {
        let place = |n: usize| self.offsets.get(n).copied().unwrap_or(0) as usize;
        self.text.get(place(row)..place(row + 1)).unwrap_or_default()
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        (0..self.offsets.len().saturating_sub(1)).map(move |row| self.get(row))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn columns_give_what_was_put_in() {
        let texts = Column::nullable([Some("a"), None, Some("é")]);
        assert_eq!(texts.iter::<&str>(3).unwrap().collect::<Vec<_>>(), [Some("a"), None, Some("é")]);
        assert_eq!(texts.texts().unwrap().iter().collect::<Vec<_>>(), ["a", "", "é"]);
        let bools = Column::of((0..10).map(|n| n % 3 == 0));
        assert_eq!((bools.get::<bool>(9).unwrap(), bools.get::<bool>(8).unwrap()), (Some(true), Some(false)));
        let numbers = Column::nullable([Some(1_i64), None]);
        assert_eq!(numbers.numbers::<i64>().unwrap(), [1, 0]);
        assert_eq!(numbers.rows(), Some(2));
    }

    #[test]
    fn another_type_is_told() {
        let error = Column::of([1.5_f64]).numbers::<i64>().unwrap_err();
        assert_eq!(error.message, "expected a column of Int64, it is one of Float64; declare the type that is read");
        let table = Table::new([
            (Field::new("a", "Int64"), Column::of([1_i64])),
            (Field::new("b", "Int64"), Column::of([1_i64, 2])),
        ]);
        assert_eq!(table.unwrap_err().message, "the column `b` has 2 rows, the first has 1");
    }
}
