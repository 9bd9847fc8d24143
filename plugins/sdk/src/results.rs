//! Results before they are stored.

use crate::{Error, Field, Table};

/// Sees or changes results, batch by batch. Not a place for secrecy: that is what a [`TablePolicy`](crate::TablePolicy) is for.
pub trait ResultHook {
    /// A result with these columns begins: the columns that it has after [`change`](ResultHook::change). None: it is left alone.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn begin(&self, fields: &[Field]) -> Result<Option<Vec<Field>>, Error>;

    /// Changes a batch, before which the result had `before` rows.
    ///
    /// # Errors
    /// The statement fails with the message.
    fn change(&self, rows: Table, before: u64) -> Result<Changed, Error>;
}

/// A batch as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// With the columns that `begin` told.
    pub rows: Table,
    /// No more rows are wanted.
    pub last: bool,
}
