//! Functions of SQL.

use crate::{Column, Error, Field, Table};

/// What may be assumed of a function's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volatility {
    /// The same arguments always give the same value.
    #[default]
    Immutable,
    /// The same within a statement.
    Stable,
    /// Another at each call.
    Volatile,
}

/// A function's name, what it takes and what it gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Lower-case letters, digits and `_`, beginning with a letter, at most 63.
    pub name: String,
    /// Names and types.
    pub parameters: Vec<(String, String)>,
    /// The last parameter may be given any number of times.
    pub variadic: bool,
    /// The type of the value; nothing for a table function.
    pub returns: String,
    /// What may be assumed of the value.
    pub volatility: Volatility,
    /// Null where any argument is null; the host sees to it.
    pub strict: bool,
    /// Of an aggregate: what it keeps for each group, as columns.
    pub state: Vec<String>,
}

impl Signature {
    /// A function of this name that takes nothing.
    pub fn new(name: impl Into<String>) -> Signature {
        Signature { name: name.into(), ..Signature::default() }
    }

    /// The same with one parameter more.
    #[must_use]
    pub fn takes(mut self, name: impl Into<String>, data_type: impl Into<String>) -> Signature {
        self.parameters.push((name.into(), data_type.into()));
        self
    }

    /// The last parameter may be given any number of times.
    #[must_use]
    pub fn variadic(self) -> Signature {
        Signature { variadic: true, ..self }
    }

    /// The type of the value.
    #[must_use]
    pub fn returns(self, data_type: impl Into<String>) -> Signature {
        Signature { returns: data_type.into(), ..self }
    }

    /// What may be assumed of the value.
    #[must_use]
    pub fn volatility(self, volatility: Volatility) -> Signature {
        Signature { volatility, ..self }
    }

    /// Null where any argument is null: the function need not look.
    #[must_use]
    pub fn strict(self) -> Signature {
        Signature { strict: true, ..self }
    }

    /// Of an aggregate: one more column that it keeps for each group.
    #[must_use]
    pub fn keeps(mut self, data_type: impl Into<String>) -> Signature {
        self.state.push(data_type.into());
        self
    }
}

/// A function of one row, called for a batch of them.
pub trait ScalarFunction {
    /// Its name and types.
    fn signature(&self) -> Signature;

    /// The values of a batch, as many as `rows`.
    ///
    /// # Errors
    /// The statement fails with the message, and the row if it says one.
    fn call(&self, arguments: &[Column], rows: usize) -> Result<Column, Error>;
}

/// A function of many rows. It keeps nothing between calls: the state of the groups is given, and the new state returned.
pub trait AggregateFunction {
    /// Its name and types, and what it [keeps](Signature::keeps).
    fn signature(&self) -> Signature;

    /// Takes rows in. `state` has a row for each of `groups`, a new one's null; `group` tells for each of `rows` rows the one it belongs to.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn accumulate(
        &self,
        state: Vec<Column>,
        groups: usize,
        group: &[u32],
        arguments: &[Column],
        rows: usize,
    ) -> Result<Vec<Column>, Error>;

    /// The same with states of other parts of the data, of which one that is null saw no row.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn merge(
        &self,
        state: Vec<Column>,
        groups: usize,
        group: &[u32],
        others: &[Column],
        rows: usize,
    ) -> Result<Vec<Column>, Error>;

    /// The values of the groups.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn evaluate(&self, state: &[Column], groups: usize) -> Result<Column, Error>;
}

/// A function that is a table.
pub trait TableFunction {
    /// Its name and parameters.
    fn signature(&self) -> Signature;

    /// The columns of its rows. The arguments are constants: columns with one row.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn plan(&self, arguments: &[Column]) -> Result<Vec<Field>, Error>;

    /// A part of the rows: the first, or the one that begins at `at`.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn produce(&self, arguments: &[Column], at: Option<&[u8]>) -> Result<Page, Error>;
}

/// A part of a table function's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// With the columns that `plan` told. May be empty.
    pub rows: Table,
    /// Where the next part begins, in the plugin's own words. None: this was the last.
    pub next: Option<Vec<u8>>,
}
