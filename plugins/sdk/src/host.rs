//! What the runner gives. There is nothing else: no clock, file, network or environment, unless the operator grants it.
//!
//! In native tests it is the [`testing::Host`](crate::testing::Host) that was made last on the thread.

#[cfg(target_family = "wasm")]
use crate::guest::bindings::firesteel::plugin as given;
#[cfg(not(target_family = "wasm"))]
use crate::testing::given;

/// Lines for the runner's log, which travel far: say no text of a statement and none of its values.
pub mod log {
    use super::given;

    /// How much a line matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Level {
        /// Something failed.
        Error,
        /// Something may fail.
        Warn,
        /// Something happened.
        Info,
        /// For whoever looks for a fault.
        Debug,
        /// For whoever looks very closely.
        Trace,
    }

    /// Writes a line. It is cut at 4,096 bytes; of more than 100 lines a call the rest is counted, not written.
    pub fn write(level: Level, message: &str) {
        let level = match level {
            Level::Error => given::log::Level::Error,
            Level::Warn => given::log::Level::Warn,
            Level::Info => given::log::Level::Info,
            Level::Debug => given::log::Level::Debug,
            Level::Trace => given::log::Level::Trace,
        };
        given::log::write(level, message);
    }
}

/// The tables that the session's statements can name.
pub mod catalog {
    use super::given;
    use crate::Field;

    #[allow(clippy::useless_conversion, reason = "natively the types are the same")]
    /// The columns of a table or view, of which the name is in parts, without quotes. None: there is none of that name.
    pub fn columns(name: &[&str]) -> Option<Vec<Field>> {
        let name: Vec<String> = name.iter().map(|part| (*part).to_owned()).collect();
        given::catalog::columns(&name).map(|fields| fields.into_iter().map(Into::into).collect())
    }

    /// The names of the session's tables and views, in parts, sorted. At most 10,000.
    pub fn tables() -> Vec<Vec<String>> {
        given::catalog::tables()
    }

    /// The names of the functions that SQL can call, sorted.
    pub fn functions() -> Vec<String> {
        given::catalog::functions()
    }
}

/// What the plugin remembers of this session; whoever takes the session over has it.
pub mod session {
    use super::given;

    /// Why a value is not kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Refusal {
        /// Only a [`Handler`](crate::Handler) may change something.
        ReadOnly,
        /// A key has at most 255 bytes, a value at most 65,536.
        TooLarge,
        /// All of a plugin's keys and values in a session have at most 1 MiB.
        Full,
    }

    /// The value of a key.
    pub fn get(key: &str) -> Option<Vec<u8>> {
        given::session::get(key)
    }

    /// Keeps a value, or forgets it: from here on, and for good if the statement succeeds.
    ///
    /// # Errors
    /// Why it is not kept.
    pub fn set(key: &str, value: Option<&[u8]>) -> Result<(), Refusal> {
        given::session::set(key, value.map(<[u8]>::to_vec).as_deref()).map_err(|refusal| match refusal {
            given::session::Refusal::ReadOnly => Refusal::ReadOnly,
            given::session::Refusal::TooLarge => Refusal::TooLarge,
            given::session::Refusal::Full => Refusal::Full,
        })
    }

    /// The keys that begin so, sorted.
    pub fn keys(prefix: &str) -> Vec<String> {
        given::session::keys(prefix)
    }
}

/// What the operator configured for this plugin.
pub mod config {
    use super::given;

    /// One setting: a string as it is, every other value as JSON. None: not configured.
    pub fn get(key: &str) -> Option<String> {
        given::config::get(key)
    }

    /// All of it, as a JSON object. `{}`: nothing was configured.
    pub fn json() -> String {
        given::config::json()
    }
}

/// Random numbers, the same ones when the same statement is run again. Not for secrets.
pub mod random {
    use super::given;

    /// 64 random bits.
    pub fn next() -> u64 {
        given::random::next()
    }
}

/// The statement at work.
pub mod statement {
    use super::given;

    /// The statement's time, the same at each call: microseconds since 1970, UTC.
    pub fn now() -> i64 {
        given::statement::now()
    }

    /// The session's time zone: `UTC`, `Europe/Berlin`, `+02:00`.
    pub fn time_zone() -> String {
        given::statement::time_zone()
    }

    /// The session's id.
    pub fn session_id() -> String {
        given::statement::session_id()
    }

    /// The data source that names are looked up in first.
    pub fn data_source() -> String {
        given::statement::data_source()
    }

    /// A setting as `SET` has it: its value, or its default. None: there is no such setting.
    pub fn setting(key: &str) -> Option<String> {
        given::statement::setting(key)
    }
}
