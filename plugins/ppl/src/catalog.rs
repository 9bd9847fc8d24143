//! What is known of the tables, and of the session.

/// A type, as far as the translation depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Number,
    /// True or false.
    Boolean,
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// A date and time as a clock on the wall shows it.
    Timestamp,
    /// A point in time.
    Instant,
    /// A length of time.
    Interval,
    /// Fields inside a field.
    Struct(Vec<Field>),
    /// Several values.
    List(Box<Type>),
    /// Nothing but null.
    Null,
    /// Not known here; the engine knows.
    Unknown,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name as the table has it.
    pub name: String,
    /// Its type.
    pub data_type: Type,
}

impl Field {
    /// A column.
    pub fn new(name: impl Into<String>, data_type: Type) -> Field {
        Field { name: name.into(), data_type }
    }
}

/// The tables that the session sees.
pub trait Catalog {
    /// The columns of a table, of which the name may have parts. None: there is none of that name.
    fn columns(&self, table: &[&str]) -> Option<Vec<Field>>;
    /// The names of all tables, in parts.
    fn tables(&self) -> Vec<Vec<String>>;
}

/// What the meaning of a text depends on besides the tables.
#[derive(Clone, Debug)]
pub struct Session {
    /// `UTC`, `Europe/Berlin`, `+02:00`.
    pub time_zone: String,
}

impl Default for Session {
    fn default() -> Session {
        Session { time_zone: "UTC".to_owned() }
    }
}

impl Type {
    /// What it is called in a message.
    pub fn called(&self) -> &'static str {
        match self {
            Type::Text => "text",
            Type::Integer | Type::Number => "a number",
            Type::Boolean => "true or false",
            Type::Date => "a date",
            Type::Time => "a time of day",
            Type::Timestamp | Type::Instant => "a timestamp",
            Type::Interval => "an interval",
            Type::Struct(_) => "an object",
            Type::List(_) => "an array",
            Type::Null => "null",
            Type::Unknown => "of a type that is not known here",
        }
    }

    /// A whole number or one with a fraction.
    pub fn is_number(&self) -> bool {
        matches!(self, Type::Integer | Type::Number)
    }

    /// Has a date in it.
    pub fn is_dated(&self) -> bool {
        matches!(self, Type::Date | Type::Timestamp | Type::Instant)
    }

    /// The type of a value that may be of either.
    #[must_use]
    pub fn or(&self, other: &Type) -> Type {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Type::Null, t) | (t, Type::Null) => t.clone(),
            (a, b) if a.is_number() && b.is_number() => Type::Number,
            _ => Type::Unknown,
        }
    }
}
