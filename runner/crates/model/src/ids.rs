//! Names that come from outside: data, never spliced into a path or a query.

use std::fmt;

/// The most bytes an id may have: OpenSearch's own limit on `_id`.
pub const MAX_ID_BYTES: usize = 512;

/// Why a string is not an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadId {
    /// It is empty.
    Empty,
    /// It has more than [`MAX_ID_BYTES`] bytes; the number it has.
    TooLong(usize),
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadId::Empty => write!(f, "an id must not be empty"),
            BadId::TooLong(n) => write!(f, "an id has at most {MAX_ID_BYTES} bytes, this one has {n}"),
        }
    }
}

impl std::error::Error for BadId {}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes the string as it is, if it is not empty and not too long.
            ///
            /// # Errors
            /// [`BadId`] says which of the two it is.
            pub fn new(id: impl Into<String>) -> Result<Self, BadId> {
                let id = id.into();
                match id.len() {
                    0 => Err(BadId::Empty),
                    n if n > MAX_ID_BYTES => Err(BadId::TooLong(n)),
                    _ => Ok(Self(id)),
                }
            }

            /// The id as it stands in the documents.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A session's id, which is its document's `_id`.
    SessionId
);
id!(
    /// A statement's document id. The id that the user holds is the [`QueryId`].
    StatementId
);
id!(
    /// The id by which a user asks for a result.
    QueryId
);
id!(
    /// One runner process, random for each: the key of the lease.
    RunnerId
);
id!(
    /// One job, as the launcher names it. Two processes may carry the same one.
    JobId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_neither_empty_nor_longer_than_the_store_takes() {
        assert_eq!(SessionId::new(""), Err(BadId::Empty));
        assert_eq!(SessionId::new("é".repeat(257)), Err(BadId::TooLong(514)));
        assert_eq!(SessionId::new("a/b\"c\n").expect("hostile, but an id").as_str(), "a/b\"c\n");
        assert!(SessionId::new("x".repeat(512)).is_ok());
    }
}
