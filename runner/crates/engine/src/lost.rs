//! What a journal's replay could not do again, with the reason, until it is made anew or given up.
//!
//! Views and tables are not here: their names are told by [`Tables`](crate::tables::Tables).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firesteel_model::{Code, Failure, Stage};

/// What was lost, each with its reason.
#[derive(Debug, Default)]
pub struct Lost(Mutex<Things>);

#[derive(Debug, Default)]
struct Things {
    settings: BTreeMap<String, String>,
    prepared: BTreeMap<String, String>,
    /// An entry whose effect nobody knows.
    entry: Option<String>,
}

fn failed(text: String) -> Failure {
    Failure::new(Code::Analysis, Stage::Plan, text)
}

impl Lost {
    fn lock(&self) -> MutexGuard<'_, Things> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A setting could not be set.
    pub fn setting(&self, key: &str, why: String) {
        self.lock().settings.insert(key.to_owned(), why);
    }

    /// A prepared statement could not be made.
    pub fn prepared(&self, name: &str, why: String) {
        self.lock().prepared.insert(name.to_lowercase(), why);
    }

    /// An entry could not be read.
    pub fn entry(&self, why: String) {
        self.lock().entry.get_or_insert(why);
    }

    /// A setting has a value again. Whether it was lost.
    pub fn settled(&self, key: &str) -> bool {
        self.lock().settings.remove(key).is_some()
    }

    /// A prepared statement was made again or given up. Whether it was lost.
    pub fn forgotten(&self, name: &str) -> bool {
        self.lock().prepared.remove(&name.to_lowercase()).is_some()
    }

    /// The settings that were lost.
    pub fn settings(&self) -> Vec<String> {
        self.lock().settings.keys().cloned().collect()
    }

    /// Whether a setting is as it was left.
    ///
    /// # Errors
    /// It is not; the message says why, and what to do.
    pub fn has_setting(&self, key: &str) -> Result<(), Failure> {
        match self.lock().settings.get(key) {
            Some(why) => Err(setting(key, why)),
            None => Ok(()),
        }
    }

    /// Whether a prepared statement can be told from one that never was.
    ///
    /// # Errors
    /// It was lost; the message says why, and what to do.
    pub fn has_prepared(&self, name: &str) -> Result<(), Failure> {
        match self.lock().prepared.get(&name.to_lowercase()) {
            Some(why) => Err(failed(format!(
                "the prepared statement `{name}` could not be made again from the session's journal: {why}; PREPARE it anew"
            ))),
            None => Ok(()),
        }
    }

    /// Whether a query means what it meant when the journal was written. Any setting may change what a query means.
    ///
    /// # Errors
    /// It may not; the message says why, and what to do.
    pub fn allows_queries(&self) -> Result<(), Failure> {
        let things = self.lock();
        if let Some(why) = &things.entry {
            return Err(failed(format!(
                "the session's journal holds an entry that this program cannot read: {why}; \
                 let the version that wrote it serve the session, or begin another session"
            )));
        }
        match things.settings.first_key_value() {
            Some((key, why)) => Err(setting(key, why)),
            None => Ok(()),
        }
    }
}

fn setting(key: &str, why: &str) -> Failure {
    failed(format!(
        "the setting `{key}` could not be set again from the session's journal: {why}; SET it anew, or RESET {key}"
    ))
}
