//! A host for native tests: what a plugin would be told by a runner is said here, and what it does is seen.
//!
//! ```
//! use firesteel_plugin::testing::Host;
//! use firesteel_plugin::{Field, host};
//!
//! let there = Host::new().table(&["logs"], [Field::new("id", "Int64")]).config(r#"{"limit": 3}"#).time_zone("Europe/Berlin");
//! assert_eq!(host::catalog::columns(&["logs"]).unwrap()[0].name, "id");
//! assert_eq!(host::config::get("limit").unwrap(), "3");
//! host::log::write(host::log::Level::Info, "begun");
//! assert_eq!(there.log(), ["info: begun"]);
//! ```
//!
//! It keeps to the interface, not to the limits: memory, time and sizes are the runner's, and `firesteel plugin test` has them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::plugin::Function;
use crate::{Changed, Column, Decision, Error, Event, Field, Plugin, Statement, Table, Verdict};

thread_local! {
    static CURRENT: RefCell<Rc<RefCell<Said>>> = RefCell::default();
}

/// What the host says, and what it was told.
#[derive(Debug, Default)]
struct Said {
    tables: BTreeMap<Vec<String>, Vec<Field>>,
    functions: Vec<String>,
    settings: BTreeMap<String, String>,
    config: String,
    kept: BTreeMap<String, Vec<u8>>,
    writable: bool,
    time_zone: String,
    now: i64,
    random: u64,
    log: Vec<String>,
}

fn said<R>(ask: impl FnOnce(&mut Said) -> R) -> R {
    CURRENT.with(|current| {
        let said = Rc::clone(&current.borrow());
        let mut said = said.borrow_mut();
        ask(&mut said)
    })
}

/// A host. Whatever the plugin asks on this thread, the one made last answers.
#[derive(Debug)]
pub struct Host(Rc<RefCell<Said>>);

impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

impl Host {
    /// A session with no tables, in UTC, in the second that 2024 began.
    pub fn new() -> Host {
        let said = Said {
            time_zone: "UTC".into(),
            now: 1_704_067_200_000_000,
            random: 1,
            config: "{}".into(),
            ..Said::default()
        };
        let host = Host(Rc::new(RefCell::new(said)));
        CURRENT.with(|current| *current.borrow_mut() = Rc::clone(&host.0));
        host
    }

    fn set(self, change: impl FnOnce(&mut Said)) -> Host {
        change(&mut self.0.borrow_mut());
        self
    }

    /// The same with a table, of which the name is in parts.
    #[must_use]
    pub fn table(self, name: &[&str], fields: impl IntoIterator<Item = Field>) -> Host {
        let name = name.iter().map(|part| (*part).to_owned()).collect();
        self.set(|said| drop(said.tables.insert(name, fields.into_iter().collect())))
    }

    /// The same with this configuration: a JSON object.
    #[must_use]
    pub fn config(self, json: &str) -> Host {
        self.set(|said| json.clone_into(&mut said.config))
    }

    /// The same with a setting of the session's.
    #[must_use]
    pub fn setting(self, key: &str, value: &str) -> Host {
        self.set(|said| drop(said.settings.insert(key.to_owned(), value.to_owned())))
    }

    /// The same in this time zone.
    #[must_use]
    pub fn time_zone(self, zone: &str) -> Host {
        self.set(|said| zone.clone_into(&mut said.time_zone))
    }

    /// The same at this time: microseconds since 1970, UTC.
    #[must_use]
    pub fn now(self, micros: i64) -> Host {
        self.set(|said| said.now = micros)
    }

    /// The same with a function that SQL can call.
    #[must_use]
    pub fn function(self, name: &str) -> Host {
        self.set(|said| said.functions.push(name.to_owned()))
    }

    /// What was written to the log: `info: …`.
    pub fn log(&self) -> Vec<String> {
        self.0.borrow().log.clone()
    }

    /// What the plugin keeps of the session under a key.
    pub fn kept(&self, key: &str) -> Option<Vec<u8>> {
        self.0.borrow().kept.get(key).cloned()
    }

    /// Gives a statement to the plugin's handler.
    pub fn handle(&self, plugin: &Plugin, language: &str, text: &str) -> Verdict {
        let Some(handler) = &plugin.handler else { return Verdict::Pass };
        if !handler.languages().iter().any(|l| l == language) {
            return Verdict::Pass;
        }
        let settings = self.0.borrow().settings.clone().into_iter().collect();
        let statement = Statement {
            text: text.to_owned(),
            language: language.to_owned(),
            data_source: "local".to_owned(),
            settings,
        };
        self.0.borrow_mut().writable = true;
        let verdict = handler.handle(&statement);
        self.0.borrow_mut().writable = false;
        verdict
    }

    /// Calls a scalar function with columns of as many rows as the first has.
    ///
    /// # Errors
    /// The function's, or there is none of that name.
    pub fn scalar(&self, plugin: &Plugin, name: &str, arguments: &[Column]) -> Result<Column, Error> {
        let found = plugin.functions.iter().find_map(|f| match f {
            Function::Scalar(f) if f.signature().name == name => Some(f),
            _ => None,
        });
        let Some(function) = found else { return Err(format!("there is no scalar function `{name}`").into()) };
        let rows = arguments.iter().find_map(Column::rows).unwrap_or(1);
        function.call(arguments, rows)
    }

    /// Calls an aggregate function over batches, each with the group of its rows: every batch is taken in by itself, and then merged.
    ///
    /// # Errors
    /// The function's, or there is none of that name.
    pub fn aggregate(&self, plugin: &Plugin, name: &str, batches: &[(Vec<u32>, Vec<Column>)]) -> Result<Column, Error> {
        let found = plugin.functions.iter().find_map(|f| match f {
            Function::Aggregate(f) if f.signature().name == name => Some(f),
            _ => None,
        });
        let Some(function) = found else { return Err(format!("there is no aggregate function `{name}`").into()) };
        let groups = batches.iter().flat_map(|(group, _)| group).max().map_or(1, |g| *g as usize + 1);
        let signature = function.signature();
        let new = || signature.state.iter().map(|t| nulls(t, groups)).collect::<Result<Vec<Column>, Error>>();
        let mut state = new()?;
        let each: Vec<u32> = (0..groups as u32).collect();
        for (group, arguments) in batches {
            let part = function.accumulate(new()?, groups, group, arguments, group.len())?;
            state = function.merge(state, groups, &each, &part, groups)?;
        }
        function.evaluate(&state, groups)
    }

    /// All rows of a table function.
    ///
    /// # Errors
    /// The function's, or there is none of that name.
    pub fn rows(&self, plugin: &Plugin, name: &str, arguments: &[Column]) -> Result<Vec<Table>, Error> {
        let found = plugin.functions.iter().find_map(|f| match f {
            Function::Table(f) if f.signature().name == name => Some(f),
            _ => None,
        });
        let Some(function) = found else { return Err(format!("there is no table function `{name}`").into()) };
        let fields = function.plan(arguments)?;
        let (mut pages, mut at) = (Vec::new(), None);
        loop {
            let page = function.produce(arguments, at.as_deref())?;
            if page.rows.fields != fields {
                return Err("the rows have other columns than were planned".into());
            }
            pages.push(page.rows);
            at = page.next;
            if at.is_none() {
                return Ok(pages);
            }
        }
    }

    /// Asks the policy about a table that this host has.
    ///
    /// # Errors
    /// The policy's, or there is no policy or no such table.
    pub fn decide(&self, plugin: &Plugin, name: &[&str]) -> Result<Decision, String> {
        let name: Vec<String> = name.iter().map(|part| (*part).to_owned()).collect();
        let fields = self.0.borrow().tables.get(&name).cloned().ok_or("there is no such table")?;
        plugin.policy.as_ref().ok_or("the plugin has no policy")?.decide(&name, &fields)
    }

    /// Sends a result through the hook, batch by batch.
    ///
    /// # Errors
    /// The hook's, or a batch has other columns than were told.
    pub fn results(&self, plugin: &Plugin, batches: Vec<Table>) -> Result<Vec<Table>, Error> {
        let Some(hook) = &plugin.results else { return Ok(batches) };
        let fields = batches.first().map(|b| b.fields.clone()).unwrap_or_default();
        let Some(fields) = hook.begin(&fields)? else { return Ok(batches) };
        let (mut out, mut before) = (Vec::new(), 0);
        for batch in batches {
            let rows = batch.rows as u64;
            let Changed { rows: changed, last } = hook.change(batch, before)?;
            if changed.fields != fields {
                return Err("the rows have other columns than were told when the result began".into());
            }
            out.push(changed);
            before += rows;
            if last {
                break;
            }
        }
        Ok(out)
    }

    /// Tells the plugin of an event.
    pub fn notify(&self, plugin: &Plugin, event: &Event) {
        if let Some(events) = &plugin.events {
            events.notify(event);
        }
    }
}

fn nulls(data_type: &str, rows: usize) -> Result<Column, Error> {
    Ok(match data_type {
        "Boolean" => Column::nullable(vec![None::<bool>; rows]),
        "Int32" | "Date32" => Column::nullable(vec![None::<i32>; rows]),
        "Int64" => Column::nullable(vec![None::<i64>; rows]),
        "UInt64" => Column::nullable(vec![None::<u64>; rows]),
        "Float64" => Column::nullable(vec![None::<f64>; rows]),
        "Utf8" => Column::nullable(vec![None::<&str>; rows]),
        "Binary" => Column::nullable(vec![None::<&[u8]>; rows]),
        other if other.starts_with("Timestamp") => Column::nullable(vec![None::<i64>; rows]),
        other => return Err(format!("this test host makes no state of {other}; the runner does").into()),
    })
}

/// The shape of the bindings.
pub(crate) mod given {
    pub mod log {
        #[derive(Debug)]
        pub enum Level {
            Error,
            Warn,
            Info,
            Debug,
            Trace,
        }
        pub fn write(level: Level, message: &str) {
            super::super::said(|said| said.log.push(format!("{}: {message}", format!("{level:?}").to_lowercase())));
        }
    }

    pub mod catalog {
        use crate::Field;
        pub fn columns(name: &[String]) -> Option<Vec<Field>> {
            super::super::said(|said| said.tables.get(name).cloned())
        }
        pub fn tables() -> Vec<Vec<String>> {
            super::super::said(|said| said.tables.keys().cloned().collect())
        }
        pub fn functions() -> Vec<String> {
            super::super::said(|said| said.functions.clone())
        }
    }

    pub mod session {
        pub enum Refusal {
            ReadOnly,
            TooLarge,
            Full,
        }
        pub fn get(key: &str) -> Option<Vec<u8>> {
            super::super::said(|said| said.kept.get(key).cloned())
        }
        pub fn set(key: &str, value: Option<&[u8]>) -> Result<(), Refusal> {
            super::super::said(|said| {
                if !said.writable {
                    return Err(Refusal::ReadOnly);
                }
                if key.len() > 255 || value.is_some_and(|v| v.len() > 65_536) {
                    return Err(Refusal::TooLarge);
                }
                let rest: usize = said.kept.iter().filter(|(k, _)| *k != key).map(|(k, v)| k.len() + v.len()).sum();
                match value {
                    Some(value) if rest + key.len() + value.len() > 1 << 20 => return Err(Refusal::Full),
                    Some(value) => drop(said.kept.insert(key.to_owned(), value.to_vec())),
                    None => drop(said.kept.remove(key)),
                }
                Ok(())
            })
        }
        pub fn keys(prefix: &str) -> Vec<String> {
            super::super::said(|said| said.kept.keys().filter(|k| k.starts_with(prefix)).cloned().collect())
        }
    }

    pub mod config {
        pub fn get(key: &str) -> Option<String> {
            super::super::said(|said| super::super::member(&said.config, key))
        }
        pub fn json() -> String {
            super::super::said(|said| said.config.clone())
        }
    }

    pub mod random {
        pub fn next() -> u64 {
            super::super::said(|said| {
                // A step of xorshift: the same numbers in each test.
                said.random ^= said.random << 13;
                said.random ^= said.random >> 7;
                said.random ^= said.random << 17;
                said.random
            })
        }
    }

    pub mod statement {
        pub fn now() -> i64 {
            super::super::said(|said| said.now)
        }
        pub fn time_zone() -> String {
            super::super::said(|said| said.time_zone.clone())
        }
        pub fn session_id() -> String {
            "test".to_owned()
        }
        pub fn data_source() -> String {
            "local".to_owned()
        }
        pub fn setting(key: &str) -> Option<String> {
            super::super::said(|said| said.settings.get(key).cloned())
        }
    }
}

/// A member of a JSON object: a string without its quotes (and without its escapes undone), everything else as it stands.
fn member(json: &str, key: &str) -> Option<String> {
    let inner = json.trim().strip_prefix('{')?.strip_suffix('}')?;
    for part in split(inner) {
        let (name, value) = part.split_once(':')?;
        if name.trim().trim_matches('"') == key {
            let value = value.trim();
            let text = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
            return Some(text.unwrap_or(value).to_owned());
        }
    }
    None
}

/// The parts between commas that are in no brackets and no quotes.
fn split(json: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from, mut out, mut escaped) = (0, false, 0, Vec::new(), false);
    for (n, c) in json.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                out.push(&json[from..n]);
                from = n + 1;
            }
            _ => {}
        }
    }
    if !json[from..].trim().is_empty() {
        out.push(&json[from..]);
    }
    out
}
