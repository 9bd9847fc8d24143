//! The boundary: what the interface has, as this crate has it, and the reverse.

use std::marker::PhantomData;

use crate::plugin::Function;
use crate::{Access, Column, Error, Event, Field, Plugin, Runs, Statement, Table, Values, Verdict, Volatility};

#[allow(missing_docs, clippy::all, reason = "made by wit-bindgen")]
#[allow(unsafe_code, reason = "made by wit-bindgen")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit/0.1.0",
        world: "plugin",
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        runtime_path: "wit_bindgen::rt",
    });
}

use bindings::exports::firesteel::plugin::{events, functions, handler, manifest, policy, results};
use bindings::firesteel::plugin::types as t;

/// Where the plugin comes from: one for each instance.
pub trait Source {
    /// Asks it something.
    fn with<R>(ask: impl FnOnce(&Plugin) -> R) -> R;
}

/// What is exported.
pub struct Exported<S>(PhantomData<S>);

fn missing(what: &str) -> String {
    format!("the plugin has no {what}, though it was called as if it had")
}

impl From<t::Field> for Field {
    fn from(f: t::Field) -> Field {
        Field { name: f.name, data_type: f.data_type, nullable: f.nullable }
    }
}

impl From<Field> for t::Field {
    fn from(f: Field) -> t::Field {
        t::Field { name: f.name, data_type: f.data_type, nullable: f.nullable }
    }
}

impl From<Error> for t::Error {
    fn from(e: Error) -> t::Error {
        t::Error { message: e.message, row: e.row }
    }
}

macro_rules! layouts {
    ($($theirs:ident $ours:ident),*) => {
        impl From<t::Column> for Column {
            fn from(c: t::Column) -> Column {
                let runs = |r: t::Runs| Runs { offsets: r.offsets, bytes: r.bytes };
                let values = match c.values {
                    $(t::Values::$theirs(v) => Values::$ours(v),)*
                    t::Values::Utf8(r) => Values::Utf8(runs(r)),
                    t::Values::Binary(r) => Values::Binary(runs(r)),
                };
                Column { values, validity: c.validity }
            }
        }
        impl From<Column> for t::Column {
            fn from(c: Column) -> t::Column {
                let runs = |r: Runs| t::Runs { offsets: r.offsets, bytes: r.bytes };
                let values = match c.values {
                    $(Values::$ours(v) => t::Values::$theirs(v),)*
                    Values::Utf8(r) => t::Values::Utf8(runs(r)),
                    Values::Binary(r) => t::Values::Binary(runs(r)),
                };
                t::Column { values, validity: c.validity }
            }
        }
    };
}
layouts!(
    Boolean Boolean, Int8 Int8, Int16 Int16, Int32 Int32, Int64 Int64, Uint8 UInt8, Uint16 UInt16, Uint32 UInt32, Uint64 UInt64,
    Float32 Float32, Float64 Float64, Arrow Arrow
);

impl From<t::Table> for Table {
    fn from(table: t::Table) -> Table {
        Table { fields: all(table.fields), rows: table.rows as usize, columns: all(table.columns) }
    }
}

impl From<Table> for t::Table {
    fn from(table: Table) -> t::Table {
        t::Table { fields: all(table.fields), rows: count(table.rows), columns: all(table.columns) }
    }
}

fn all<A: Into<B>, B>(from: Vec<A>) -> Vec<B> {
    from.into_iter().map(Into::into).collect()
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

impl<S: Source> manifest::Guest for Exported<S> {
    fn describe() -> Result<manifest::Description, String> {
        S::with(|plugin| {
            if let Some(message) = &plugin.refused {
                return Err(message.clone());
            }
            let hooks = [
                (plugin.policy.is_some(), manifest::Hooks::POLICY),
                (plugin.results.is_some(), manifest::Hooks::RESULTS),
                (plugin.events.is_some(), manifest::Hooks::EVENTS),
            ];
            let hooks =
                hooks.into_iter().filter(|(has, _)| *has).fold(manifest::Hooks::empty(), |all, (_, hook)| all | hook);
            let asks = &plugin.asks;
            Ok(manifest::Description {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                about: plugin.about.clone(),
                languages: plugin.handler.as_ref().map(|h| h.languages()).unwrap_or_default(),
                hooks,
                functions: plugin.functions.iter().map(function).collect(),
                asks: manifest::Requests {
                    http: asks.http.clone(),
                    directories: asks
                        .directories
                        .iter()
                        .map(|(name, access)| manifest::Directory {
                            name: name.clone(),
                            mode: if *access == Access::Write { manifest::Mode::Write } else { manifest::Mode::Read },
                        })
                        .collect(),
                    writes: asks.writes,
                },
            })
        })
    }
}

fn function(function: &Function) -> manifest::Function {
    let (kind, signature) = match function {
        Function::Scalar(f) => (manifest::Kind::Scalar, f.signature()),
        Function::Aggregate(f) => (manifest::Kind::Aggregate, f.signature()),
        Function::Table(f) => (manifest::Kind::Table, f.signature()),
    };
    manifest::Function {
        name: signature.name,
        kind,
        parameters: signature
            .parameters
            .into_iter()
            .map(|(name, data_type)| manifest::Parameter { name, data_type })
            .collect(),
        variadic: signature.variadic,
        returns: signature.returns,
        volatility: match signature.volatility {
            Volatility::Immutable => manifest::Volatility::Immutable,
            Volatility::Stable => manifest::Volatility::Stable,
            Volatility::Volatile => manifest::Volatility::Volatile,
        },
        strict: signature.strict,
        state: signature.state,
    }
}

impl<S: Source> handler::Guest for Exported<S> {
    fn handle(statement: handler::Statement) -> handler::Verdict {
        let statement = Statement {
            text: statement.text,
            language: statement.language,
            data_source: statement.data_source,
            settings: statement.settings,
        };
        let position = |p: crate::Position| t::Position { line: p.line, column: p.column };
        match S::with(|plugin| plugin.handler.as_ref().map_or(Verdict::Pass, |h| h.handle(&statement))) {
            Verdict::Pass => handler::Verdict::Pass,
            Verdict::Answer(table) => handler::Verdict::Answer(table.into()),
            Verdict::Rewrite(new) => handler::Verdict::Rewrite(handler::Rewritten {
                text: new.text,
                language: new.language,
                origins: new
                    .origins
                    .into_iter()
                    .map(|o| handler::Origin { at: o.at, position: position(o.position) })
                    .collect(),
            }),
            Verdict::Reject(why) => handler::Verdict::Reject(handler::Rejection {
                message: why.message,
                position: why.position.map(position),
                expected: why.expected,
                nearest: why.nearest,
            }),
        }
    }
}

fn with<S: Source, R>(n: u32, ask: impl FnOnce(&Function) -> Option<Result<R, Error>>) -> Result<R, t::Error> {
    S::with(|plugin| plugin.functions.get(n as usize).and_then(ask))
        .unwrap_or_else(|| Err(missing("function of that number and kind").into()))
        .map_err(Into::into)
}

fn scalar(f: &Function) -> Option<&dyn crate::ScalarFunction> {
    if let Function::Scalar(f) = f { Some(f.as_ref()) } else { None }
}

fn aggregate(f: &Function) -> Option<&dyn crate::AggregateFunction> {
    if let Function::Aggregate(f) = f { Some(f.as_ref()) } else { None }
}

fn table(f: &Function) -> Option<&dyn crate::TableFunction> {
    if let Function::Table(f) = f { Some(f.as_ref()) } else { None }
}

impl<S: Source> functions::Guest for Exported<S> {
    fn scalar(n: u32, arguments: Vec<t::Column>, rows: u32) -> Result<t::Column, t::Error> {
        let arguments: Vec<Column> = all(arguments);
        with::<S, _>(n, |f| Some(scalar(f)?.call(&arguments, rows as usize))).map(Into::into)
    }
    fn accumulate(
        n: u32,
        state: Vec<t::Column>,
        groups: u32,
        group: Vec<u32>,
        arguments: Vec<t::Column>,
        rows: u32,
    ) -> Result<Vec<t::Column>, t::Error> {
        let arguments: Vec<Column> = all(arguments);
        with::<S, _>(n, |f| {
            Some(aggregate(f)?.accumulate(all(state), groups as usize, &group, &arguments, rows as usize))
        })
        .map(all)
    }
    fn merge(
        n: u32,
        state: Vec<t::Column>,
        groups: u32,
        group: Vec<u32>,
        others: Vec<t::Column>,
        rows: u32,
    ) -> Result<Vec<t::Column>, t::Error> {
        let others: Vec<Column> = all(others);
        with::<S, _>(n, |f| Some(aggregate(f)?.merge(all(state), groups as usize, &group, &others, rows as usize)))
            .map(all)
    }
    fn evaluate(n: u32, state: Vec<t::Column>, groups: u32) -> Result<t::Column, t::Error> {
        let state: Vec<Column> = all(state);
        with::<S, _>(n, |f| Some(aggregate(f)?.evaluate(&state, groups as usize))).map(Into::into)
    }
    fn plan(n: u32, arguments: Vec<t::Column>) -> Result<Vec<t::Field>, t::Error> {
        let arguments: Vec<Column> = all(arguments);
        with::<S, _>(n, |f| Some(table(f)?.plan(&arguments))).map(all)
    }
    fn produce(n: u32, arguments: Vec<t::Column>, at: Option<Vec<u8>>) -> Result<functions::Page, t::Error> {
        let arguments: Vec<Column> = all(arguments);
        with::<S, _>(n, |f| Some(table(f)?.produce(&arguments, at.as_deref())))
            .map(|page| functions::Page { rows: page.rows.into(), next: page.next })
    }
}

impl<S: Source> policy::Guest for Exported<S> {
    fn decide(table: policy::Table) -> Result<policy::Decision, String> {
        let fields: Vec<Field> = all(table.fields);
        let decision = S::with(|plugin| match &plugin.policy {
            Some(policy) => policy.decide(&table.name, &fields),
            None => Err(missing("policy")),
        })?;
        Ok(policy::Decision {
            masks: decision
                .masks
                .into_iter()
                .map(|m| policy::Mask { column: m.column, expression: m.expression })
                .collect(),
            filter: decision.filter,
            hidden: decision.hidden,
        })
    }
}

impl<S: Source> results::Guest for Exported<S> {
    fn begin(fields: Vec<t::Field>) -> Result<Option<Vec<t::Field>>, t::Error> {
        let fields: Vec<Field> = all(fields);
        let begun = S::with(|plugin| plugin.results.as_ref().map_or(Ok(None), |hook| hook.begin(&fields)))?;
        Ok(begun.map(all))
    }
    fn change(rows: t::Table, before: u64) -> Result<results::Changed, t::Error> {
        let changed = S::with(|plugin| match &plugin.results {
            Some(hook) => hook.change(rows.into(), before),
            None => Err(missing("hook of results").into()),
        })?;
        Ok(results::Changed { rows: changed.rows.into(), last: changed.last })
    }
}

impl<S: Source> events::Guest for Exported<S> {
    fn notify(event: events::Event) {
        let event = match event {
            events::Event::SessionOpened => Event::SessionOpened,
            events::Event::SessionClosed => Event::SessionClosed,
            events::Event::StatementEnded(e) => Event::StatementEnded(crate::Ended {
                language: e.language,
                kind: e.kind,
                failure: e.failure,
                rows: e.rows,
                milliseconds: e.milliseconds,
            }),
        };
        S::with(|plugin| {
            if let Some(events) = &plugin.events {
                events.notify(&event);
            }
        });
    }
}
