//! Statements before the engine sees them.

use crate::Table;

/// Changes or answers statements.
///
/// ```
/// use firesteel_plugin::{Handler, Statement, Verdict, Rejection};
///
/// /// `hello NAME` in a language of its own.
/// struct Hello;
///
/// impl Handler for Hello {
///     fn languages(&self) -> Vec<String> {
///         vec!["hello".into()]
///     }
///     fn handle(&self, statement: &Statement) -> Verdict {
///         match statement.text.trim() {
///             "" => Rejection::at(1, 1, "whom to greet is missing").expecting("a name").into(),
///             name => Verdict::sql(format!("SELECT 'hello {}' AS greeting", name.replace('\'', "''"))),
///         }
///     }
/// }
/// ```
pub trait Handler {
    /// The languages whose statements it is given, in lower case.
    fn languages(&self) -> Vec<String>;

    /// Handles one statement. It has one second, unless the operator says otherwise.
    fn handle(&self, statement: &Statement) -> Verdict;
}

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// At most 1 MiB.
    pub text: String,
    /// In lower case.
    pub language: String,
    /// The data source that names are looked up in first.
    pub data_source: String,
    /// What the session has set, by key.
    pub settings: Vec<(String, String)>,
}

/// What becomes of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Not for this plugin: on to the next.
    Pass,
    /// This text instead.
    Rewrite(Rewritten),
    /// It fails.
    Reject(Rejection),
    /// This is the result, without the engine.
    Answer(Table),
}

impl Verdict {
    /// This SQL instead.
    pub fn sql(text: impl Into<String>) -> Verdict {
        Verdict::Rewrite(Rewritten { text: text.into(), language: "sql".to_owned(), origins: Vec::new() })
    }
}

impl From<Rejection> for Verdict {
    fn from(rejection: Rejection) -> Verdict {
        Verdict::Reject(rejection)
    }
}

/// Another text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// Its language, such as `sql`.
    pub language: String,
    /// Where its parts come from, ascending by `at`: with it the engine's errors name places that the user wrote.
    pub origins: Vec<Origin>,
}

/// Where a part of a new text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The byte in the new text with which the part begins.
    pub at: u32,
    /// Its place in the old text.
    pub position: Position,
}

/// A place in a statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// Why a statement fails, for the user: lower case, no full stop. The host adds the place and what follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejection {
    /// At most 4,096 bytes.
    pub message: String,
    /// Where.
    pub position: Option<Position>,
    /// What could have stood there: `a comma`.
    pub expected: Vec<String>,
    /// The valid word that is nearest to the wrong one.
    pub nearest: Option<String>,
}

impl Rejection {
    /// One without a place.
    pub fn new(message: impl Into<String>) -> Rejection {
        Rejection { message: message.into(), ..Rejection::default() }
    }

    /// One with a place, both from 1.
    pub fn at(line: u32, column: u32, message: impl Into<String>) -> Rejection {
        Rejection { position: Some(Position { line, column }), ..Rejection::new(message) }
    }

    /// The same with what could have stood there.
    #[must_use]
    pub fn expecting(mut self, what: impl Into<String>) -> Rejection {
        self.expected.push(what.into());
        self
    }
}
