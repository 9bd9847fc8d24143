//! What a plugin is made of.

use crate::{AggregateFunction, Events, Handler, ResultHook, ScalarFunction, TableFunction, TablePolicy};

/// A plugin: its name, and what it can do.
#[derive(Default)]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) about: String,
    pub(crate) asks: Requests,
    pub(crate) handler: Option<Box<dyn Handler>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) policy: Option<Box<dyn TablePolicy>>,
    pub(crate) results: Option<Box<dyn ResultHook>>,
    pub(crate) events: Option<Box<dyn Events>>,
    pub(crate) refused: Option<String>,
}

pub(crate) enum Function {
    Scalar(Box<dyn ScalarFunction>),
    Aggregate(Box<dyn AggregateFunction>),
    Table(Box<dyn TableFunction>),
}

/// What a plugin asks for. Only the operator grants: asking for more refuses the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Hosts to talk HTTP with: `api.example.org`, `api.example.org:8443`.
    pub http: Vec<String>,
    /// Folders, by the name that the plugin sees.
    pub directories: Vec<(String, Access)>,
    /// What it does out there must not be done twice.
    pub writes: bool,
}

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files are read.
    Read,
    /// Files are written too.
    Write,
}

impl Plugin {
    /// A plugin that does nothing yet. The name has lower-case letters, digits and `-`; the version is as `1.2.3`; `about` is one line.
    pub fn new(name: impl Into<String>, version: impl Into<String>, about: impl Into<String>) -> Plugin {
        Plugin { name: name.into(), version: version.into(), about: about.into(), ..Plugin::default() }
    }

    /// Its name and version, as messages have it.
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// What it is, for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// What it asks for.
    pub fn requests(&self) -> &Requests {
        &self.asks
    }

    /// Why it refuses to be loaded, if it does.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The same with a handler of statements.
    #[must_use]
    pub fn handler(self, handler: impl Handler + 'static) -> Plugin {
        Plugin { handler: Some(Box::new(handler)), ..self }
    }

    /// The same with one function of a row more.
    #[must_use]
    pub fn scalar(mut self, function: impl ScalarFunction + 'static) -> Plugin {
        self.functions.push(Function::Scalar(Box::new(function)));
        self
    }

    /// The same with one function of many rows more.
    #[must_use]
    pub fn aggregate(mut self, function: impl AggregateFunction + 'static) -> Plugin {
        self.functions.push(Function::Aggregate(Box::new(function)));
        self
    }

    /// The same with one function more that is a table.
    #[must_use]
    pub fn table(mut self, function: impl TableFunction + 'static) -> Plugin {
        self.functions.push(Function::Table(Box::new(function)));
        self
    }

    /// The same with a policy of tables.
    #[must_use]
    pub fn policy(self, policy: impl TablePolicy + 'static) -> Plugin {
        Plugin { policy: Some(Box::new(policy)), ..self }
    }

    /// The same with a hook of results.
    #[must_use]
    pub fn results(self, hook: impl ResultHook + 'static) -> Plugin {
        Plugin { results: Some(Box::new(hook)), ..self }
    }

    /// The same, told of events.
    #[must_use]
    pub fn events(self, events: impl Events + 'static) -> Plugin {
        Plugin { events: Some(Box::new(events)), ..self }
    }

    /// The same with what it asks for.
    #[must_use]
    pub fn asks(self, asks: Requests) -> Plugin {
        Plugin { asks, ..self }
    }

    /// A plugin that refuses to be loaded, because its configuration is wrong: the message says what and how to mend it.
    #[must_use]
    pub fn refuse(self, message: impl Into<String>) -> Plugin {
        Plugin { refused: Some(message.into()), ..self }
    }
}
