//! Which part of a table a session may see.

use crate::Field;

/// Decides about tables.
pub trait TablePolicy {
    /// What is shown of a table, asked whenever a statement reads it.
    ///
    /// # Errors
    /// The statement fails: nothing is shown.
    fn decide(&self, name: &[String], fields: &[Field]) -> Result<Decision, String>;
}

/// What is shown. With nothing in it: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Columns that show something else.
    pub masks: Vec<Mask>,
    /// An SQL predicate over the table's columns, without subqueries: rows for which it is not true are not there.
    pub filter: Option<String>,
    /// Columns that are not there.
    pub hidden: Vec<String>,
}

/// What a column shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The column.
    pub column: String,
    /// An SQL expression over the table's columns, without subqueries, of the column's type.
    pub expression: String,
}
