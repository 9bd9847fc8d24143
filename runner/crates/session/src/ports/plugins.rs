//! What a query plugin brings, as the engine sees it, and what surrounds a call of one.
//!
//! `plugins/wit` tells the same to the plugin; the host is between the two. Calls block: whoever must not be blocked makes them elsewhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use firesteel_model::QueryText;

/// What a plugin says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Lower-case letters, digits and `-`.
    pub name: String,
    /// `1.2.3`.
    pub version: String,
    /// One line for people.
    pub about: String,
    /// The languages that it handles, in lower case.
    pub languages: Vec<String>,
    /// In the order of its description.
    pub functions: Vec<Function>,
    /// It decides about tables.
    pub policy: bool,
    /// It changes results.
    pub results: bool,
    /// It is told of events.
    pub events: bool,
    /// What it does outside must not be done twice.
    pub writes: bool,
}

impl About {
    /// `name version`, as messages have it.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// What kind of function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// A value a row.
    Scalar,
    /// A value a group.
    Aggregate,
    /// Rows.
    Table,
}

/// What may be assumed of a function's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Volatility {
    /// The same arguments, the same value.
    Immutable,
    /// So within a statement.
    Stable,
    /// Nothing.
    Volatile,
}

/// A function of SQL.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name, in lower case.
    pub name: String,
    /// What kind it is.
    pub kind: FunctionKind,
    /// The parameters' names and types.
    pub parameters: Vec<(String, DataType)>,
    /// The last parameter may be given any number of times, also none.
    pub variadic: bool,
    /// The type of its value; `Null` for a table function.
    pub returns: DataType,
    /// What may be assumed of its value.
    pub volatility: Volatility,
    /// Null where any argument is.
    pub strict: bool,
    /// Of an aggregate: what it keeps for each group.
    pub state: Vec<DataType>,
}

/// A statement as a handler is given it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its text.
    pub text: QueryText,
    /// Its language, in lower case.
    pub language: String,
    /// What the session has set.
    pub settings: Vec<(String, String)>,
}

/// A place in a text, line and column from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Where the part of a new text that begins with byte `at` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The byte in the new text.
    pub at: u32,
    /// The place in the old one.
    pub position: Position,
}

/// What a handler makes of a statement.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is not for this plugin.
    Pass,
    /// This text instead.
    Rewrite {
        /// The text.
        text: QueryText,
        /// Its language, in lower case.
        language: String,
        /// Where its parts come from, ascending.
        origins: Vec<Origin>,
    },
    /// The statement fails.
    Reject(Rejection),
    /// This is its result.
    Answer(RecordBatch),
}

/// Why a handler takes a statement for wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejection {
    /// For the user.
    pub message: String,
    /// Where.
    pub position: Option<Position>,
    /// What could have stood there.
    pub expected: Vec<String>,
    /// The valid word nearest to the wrong one.
    pub nearest: Option<String>,
}

/// What of a table is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Columns, and the SQL expressions shown in their place.
    pub masks: Vec<(String, String)>,
    /// The SQL predicate that shown rows meet.
    pub filter: Option<String>,
    /// Columns that are not there.
    pub hidden: Vec<String>,
}

/// What a plugin may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker serves the session from here on.
    SessionOpened,
    /// It is done with the session.
    SessionClosed,
    /// A statement has ended.
    StatementEnded {
        /// As it was submitted.
        language: String,
        /// Of its plan, if it got that far.
        kind: Option<&'static str>,
        /// The code of its failure.
        failure: Option<&'static str>,
        /// Rows of its result.
        rows: u64,
        /// Since it was taken up.
        milliseconds: u64,
    },
}

/// The levels of a plugin's log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something may.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// All of it.
    Trace,
}

/// Why a value is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepError {
    /// It may not be changed in this call.
    ReadOnly,
    /// The key or the value is too long.
    TooLarge,
    /// The plugin keeps too much.
    Full,
}

/// A call's answer is not there in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late;

/// The statement and the session around a call.
pub trait Surroundings: Send + Sync {
    /// The statement's time, in microseconds since 1970.
    fn now(&self) -> i64;
    /// The session's time zone.
    fn time_zone(&self) -> String;
    /// The session's id.
    fn session_id(&self) -> String;
    /// The data source.
    fn data_source(&self) -> String;
    /// A setting's value, or its default.
    fn setting(&self, key: &str) -> Option<String>;
    /// What random numbers are made of, the same for the same statement.
    fn seed(&self) -> u64;
    /// The columns of a table; None: there is none.
    ///
    /// # Errors
    /// It takes longer than `within`.
    fn columns(&self, name: &[String], within: Duration) -> Result<Option<SchemaRef>, Late>;
    /// The names of all tables, in parts.
    fn tables(&self) -> Vec<Vec<String>>;
    /// The names of all functions.
    fn functions(&self) -> Vec<String>;
    /// What a plugin keeps under a key.
    fn kept(&self, plugin: &str, key: &str) -> Option<Vec<u8>>;
    /// Keeps a value for a plugin, or forgets it.
    ///
    /// # Errors
    /// It may not, or keeps too much.
    fn keep(&self, plugin: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KeepError>;
    /// The keys under which a plugin keeps something, that begin so, sorted.
    fn keys(&self, plugin: &str, prefix: &str) -> Vec<String>;
    /// Takes a line for the log.
    fn log(&self, plugin: &str, level: Level, line: &str);
    /// Takes so many bytes of the statement's memory, if there are as many.
    fn take(&self, bytes: usize) -> bool;
    /// Gives them back.
    fn give(&self, bytes: usize);
    /// The statement was cancelled: what is under way may end.
    fn stopped(&self) -> bool;
}

/// Why a call of a plugin came to nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault {
    /// The plugin's name and version.
    pub plugin: String,
    /// What it was.
    pub what: Wrong,
}

/// What a call met.
#[derive(Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A limit: its name, and what the limit is and what to do.
    Limit(&'static str, String),
    /// A trap, or an answer that is none. What the plugin said of it, if anything, is in it.
    Broke(String),
    /// An error that the plugin itself tells, of a row of its batch.
    Told(String, Option<u32>),
    /// The statement's memory is used up.
    Memory(String),
    /// The statement was cancelled meanwhile.
    Stopped,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugin = &self.plugin;
        match &self.what {
            Wrong::Limit(name, detail) => write!(f, "plugin {plugin}: limit `{name}`: {detail}"),
            Wrong::Broke(why) => write!(f, "plugin {plugin} failed: {why}"),
            Wrong::Told(message, Some(row)) => write!(f, "plugin {plugin}: {message} (row {row} of its batch)"),
            Wrong::Told(message, None) => write!(f, "plugin {plugin}: {message}"),
            Wrong::Memory(detail) => write!(f, "plugin {plugin}: {detail}"),
            Wrong::Stopped => write!(f, "plugin {plugin}: the statement was stopped"),
        }
    }
}

/// A plugin may quote the statement: no log shows what it says.
impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.plugin, self.what)
    }
}

impl fmt::Debug for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::Limit(name, _) => name,
            Wrong::Broke(_) => "broke",
            Wrong::Told(..) => "told an error",
            Wrong::Memory(_) => "memory",
            Wrong::Stopped => "stopped",
        })
    }
}

impl std::error::Error for Fault {}

/// Rows for a call that aggregates.
#[derive(Clone, Copy, Debug)]
pub struct Grouped<'a> {
    /// The state of each group, by column. A group that is new is null in every column.
    pub state: &'a [ArrayRef],
    /// How many groups there are.
    pub groups: u32,
    /// Each row's group.
    pub group: &'a [u32],
    /// The arguments, or others' states, by column.
    pub columns: &'a [ArrayRef],
}

/// A part of a table function's rows, and where the next part begins.
pub type PartOfTable = (RecordBatch, Option<Vec<u8>>);

/// A plugin that is loaded. Every call may fail, and none takes longer than it may.
pub trait Plugin: Send + Sync {
    /// What it says of itself.
    fn about(&self) -> &About;

    /// Handles a statement.
    ///
    /// # Errors
    /// See [`Wrong`]; so everywhere here.
    fn handle(&self, around: &Arc<dyn Surroundings>, asked: &Asked) -> Result<Verdict, Fault>;
    /// A scalar function's values.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn scalar(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        arguments: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef, Fault>;
    /// An aggregate's new state, with rows.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn accumulate(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        rows: Grouped<'_>,
    ) -> Result<Vec<ArrayRef>, Fault>;
    /// An aggregate's new state, with other states.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn merge(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        states: Grouped<'_>,
    ) -> Result<Vec<ArrayRef>, Fault>;
    /// An aggregate's values.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn evaluate(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        state: &[ArrayRef],
        groups: u32,
    ) -> Result<ArrayRef, Fault>;
    /// The columns of a table function, whose arguments have one row each.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn plan(&self, around: &Arc<dyn Surroundings>, function: usize, arguments: &[ArrayRef])
    -> Result<SchemaRef, Fault>;
    /// A part of its rows.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn produce(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        arguments: &[ArrayRef],
        schema: &SchemaRef,
        at: Option<&[u8]>,
    ) -> Result<PartOfTable, Fault>;
    /// Decides about a table.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn decide(&self, around: &Arc<dyn Surroundings>, table: &[String], schema: &SchemaRef) -> Result<Decision, Fault>;
    /// The columns of a result after its changes; None: it is left alone.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn begin(&self, around: &Arc<dyn Surroundings>, schema: &SchemaRef) -> Result<Option<SchemaRef>, Fault>;
    /// Changes a batch of a result; and whether more rows are wanted.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn change(
        &self,
        around: &Arc<dyn Surroundings>,
        batch: &RecordBatch,
        schema: &SchemaRef,
        before: u64,
    ) -> Result<(RecordBatch, bool), Fault>;
    /// Tells of an event.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn notify(&self, around: &Arc<dyn Surroundings>, event: &Event) -> Result<(), Fault>;
}
