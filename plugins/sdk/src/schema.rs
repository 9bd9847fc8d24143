//! Names of Arrow's data types, as the interface writes them, and named columns.

/// Whole numbers of 64 bits.
pub const INT64: &str = "Int64";
/// Whole numbers of 32 bits.
pub const INT32: &str = "Int32";
/// Numbers with a fraction.
pub const FLOAT64: &str = "Float64";
/// True or false.
pub const BOOLEAN: &str = "Boolean";
/// Text.
pub const UTF8: &str = "Utf8";
/// Bytes.
pub const BINARY: &str = "Binary";
/// Days since 1970.
pub const DATE32: &str = "Date32";
/// Microseconds since 1970, of a clock on the wall.
pub const TIMESTAMP: &str = "Timestamp(µs)";

/// A column's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// At most 255 characters.
    pub name: String,
    /// `Int64`, `List(Utf8)`, `Struct("a": Int64)`: as Arrow's Rust library writes it.
    pub data_type: String,
    /// Whether it may hold null.
    pub nullable: bool,
}

impl Field {
    /// A column that may hold null.
    pub fn new(name: impl Into<String>, data_type: impl Into<String>) -> Field {
        Field { name: name.into(), data_type: data_type.into(), nullable: true }
    }
}
