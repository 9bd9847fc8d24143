//! A plugin that is loaded: what it says of itself, checked, and its calls.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use firesteel_model::QueryText;
use firesteel_session::ports::plugins::{
    About, Asked, Decision, Event, Fault, Grouped, Level, Origin, PartOfTable, Plugin, Position, Rejection,
    Surroundings, Verdict, Wrong,
};
use wasmtime::component::InstancePre;

use crate::bindings::exports::firesteel::plugin as wit;
use crate::bindings::firesteel::plugin::types::{ColumnResult, Error, TableParam};
use crate::columns::{raise, strict};
use crate::grants::Grants;
use crate::guest::{Budget, Facts, Guest};
use crate::instance::{Broken, Exports, Indices, Instance};
use crate::machine::Machine;
use crate::tables::{self, Columns};
use crate::wasi::Wasi;

/// Instances that are kept for the next call.
const KEPT: usize = 8;
/// One that has grown by more than this since it was made is not kept, in bytes.
const GROWN: usize = 16 << 20;
/// The longest text of a statement, in bytes.
const TEXT: usize = 1 << 20;
/// The longest message of a plugin, in bytes.
const MESSAGE: usize = 4096;
/// The longest place in a table function's rows, in bytes.
const PLACE: usize = 65_536;

/// A loaded plugin.
pub struct Loaded {
    pub(crate) machine: Arc<Machine>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) grants: Grants,
    pub(crate) about: About,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) indices: Indices,
    /// It wants WASI.
    pub(crate) wasi: bool,
    pub(crate) idle: Mutex<Vec<Instance>>,
}

impl Loaded {
    /// Makes calls in an instance that nobody else uses meanwhile.
    pub(crate) fn call<R>(
        &self,
        around: &Arc<dyn Surroundings>,
        work: impl FnOnce(&mut Instance, &Exports) -> Result<R, Broken>,
    ) -> Result<R, Fault> {
        let _watching = self.machine.watch();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = match idle {
            Some(instance) => instance,
            None => self.instance(around)?,
        };
        let exports = Arc::clone(&instance.exports);
        match work(&mut instance, &exports) {
            Ok(answer) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < KEPT && instance.held() <= instance.born + GROWN {
                    idle.push(instance);
                }
                Ok(answer)
            }
            Err(broken) => Err(self.broken(around, broken)),
        }
    }

    fn instance(&self, around: &Arc<dyn Surroundings>) -> Result<Instance, Fault> {
        let wasi = match self.wasi {
            true => {
                let wasi = Wasi::new(&self.grants, around).map_err(|e| self.fault(Wrong::Broke(e)))?;
                Some((Box::new(wasi), self.machine.runtime().map_err(|e| self.fault(Wrong::Broke(e)))?))
            }
            false => None,
        };
        Instance::new(self.machine.engine(), &self.pre, &self.indices, &self.facts, wasi, around)
            .map_err(|broken| self.broken(around, broken))
    }

    fn broken(&self, around: &Arc<dyn Surroundings>, broken: Broken) -> Fault {
        if let Some(trace) = broken.trace {
            let lines: Vec<&str> = trace.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
            let mut trace = lines.join(" | ");
            if let Some((end, _)) = trace.char_indices().nth(MESSAGE) {
                trace.truncate(end);
            }
            around.log(&self.facts.name, Level::Error, &trace);
        }
        self.fault(broken.wrong)
    }

    pub(crate) fn fault(&self, what: Wrong) -> Fault {
        Fault { plugin: self.facts.label.clone(), what }
    }

    fn told(&self, error: Error) -> Fault {
        self.fault(Wrong::Told(shortened(error.message), error.row))
    }

    fn columns(&self, columns: &[ArrayRef]) -> Result<Columns, Fault> {
        Columns::new(columns).map_err(|wrong| self.fault(wrong))
    }

    fn value(&self, column: ColumnResult, data_type: &DataType, rows: usize) -> Result<ArrayRef, Fault> {
        raise(column, data_type, rows, self.facts.limits.nesting).map_err(|why| self.fault(Wrong::Broke(why)))
    }

    fn state(&self, function: usize, columns: Vec<ColumnResult>, groups: u32) -> Result<Vec<ArrayRef>, Fault> {
        let types = &self.about.functions[function].state;
        if columns.len() != types.len() {
            let why = format!("a state has {} columns, declared were {}", columns.len(), types.len());
            return Err(self.fault(Wrong::Broke(why)));
        }
        let columns = columns.into_iter().zip(types);
        columns.map(|(column, data_type)| self.value(column, data_type, groups as usize)).collect()
    }

    /// Both ways in which an aggregate's state goes on.
    fn fold(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        rows: Grouped<'_>,
        merges: bool,
    ) -> Result<Vec<ArrayRef>, Fault> {
        let (state, columns) = (self.columns(rows.state)?, self.columns(rows.columns)?);
        let (state, columns) = (
            state.lowered().map_err(|wrong| self.fault(wrong))?,
            columns.lowered().map_err(|wrong| self.fault(wrong))?,
        );
        let (state, columns) = (tables::params(&state), tables::params(&columns));
        let count = u32::try_from(rows.group.len()).unwrap_or(u32::MAX);
        let parameters = (number(function), state.as_slice(), rows.groups, rows.group, columns.as_slice(), count);
        let (done,) = self.call(around, |instance, exports| {
            let functions = there(&exports.functions)?;
            match merges {
                false => instance.call(around, Budget::Statement, &functions.func_accumulate(), parameters),
                true => instance.call(around, Budget::Statement, &functions.func_merge(), parameters),
            }
        })?;
        self.state(function, done.map_err(|e| self.told(e))?, rows.groups)
    }

    fn text(&self, text: &str) -> Result<(), Fault> {
        if text.len() > TEXT {
            let detail = format!("a statement has {} bytes, at most 1 MiB is handled", text.len());
            return Err(self.fault(Wrong::Limit("text", detail)));
        }
        Ok(())
    }
}

/// What was checked to be exported when the plugin was loaded.
fn there<G>(interface: &Option<G>) -> Result<&G, Broken> {
    interface
        .as_ref()
        .ok_or_else(|| Broken { wrong: Wrong::Broke("it does not export what was asked of it".into()), trace: None })
}

fn number(function: usize) -> u32 {
    u32::try_from(function).unwrap_or(u32::MAX)
}

/// A message of a plugin's, which may be anything.
pub(crate) fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
        message.truncate(end);
    }
    message.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

impl Plugin for Loaded {
    fn about(&self) -> &About {
        &self.about
    }

    fn handle(&self, around: &Arc<dyn Surroundings>, asked: &Asked) -> Result<Verdict, Fault> {
        self.text(&asked.text.0)?;
        let settings: Vec<(&str, &str)> = asked.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let data_source = around.data_source();
        let statement = wit::handler::Statement {
            text: &asked.text.0,
            language: &asked.language,
            data_source: &data_source,
            settings: &settings,
        };
        let (verdict,) = self.call(around, |instance, exports| {
            instance.call(around, Budget::Handler, &there(&exports.handler)?.func_handle(), (statement,))
        })?;
        let position = |p: wit::handler::Position| Position { line: p.line, column: p.column };
        Ok(match verdict {
            wit::handler::Verdict::Pass => Verdict::Pass,
            wit::handler::Verdict::Rewrite(new) => {
                self.text(&new.text)?;
                let origins = new.origins.into_iter().map(|o| Origin { at: o.at, position: position(o.position) });
                Verdict::Rewrite {
                    text: QueryText(new.text),
                    language: new.language.to_lowercase(),
                    origins: origins.collect(),
                }
            }
            wit::handler::Verdict::Reject(no) => Verdict::Reject(Rejection {
                message: shortened(no.message),
                position: no.position.map(position),
                expected: no.expected.into_iter().take(100).map(shortened).collect(),
                nearest: no.nearest.map(shortened),
            }),
            wit::handler::Verdict::Answer(table) => {
                let batch = tables::batch(table, None, &self.facts.limits).map_err(|wrong| self.fault(wrong))?;
                Verdict::Answer(batch)
            }
        })
    }

    fn scalar(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        arguments: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef, Fault> {
        let columns = self.columns(arguments)?;
        let lowered = columns.lowered().map_err(|wrong| self.fault(wrong))?;
        let parameters = tables::params(&lowered);
        let count = u32::try_from(rows).unwrap_or(u32::MAX);
        let (done,) = self.call(around, |instance, exports| {
            instance.call(
                around,
                Budget::Statement,
                &there(&exports.functions)?.func_scalar(),
                (number(function), parameters.as_slice(), count),
            )
        })?;
        let about = &self.about.functions[function];
        let mut column = done.map_err(|e| self.told(e))?;
        if about.strict {
            column.validity = None;
        }
        let value = self.value(column, &about.returns, rows)?;
        Ok(if about.strict { strict(value, arguments) } else { value })
    }

    fn accumulate(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        rows: Grouped<'_>,
    ) -> Result<Vec<ArrayRef>, Fault> {
        self.fold(around, function, rows, false)
    }

    fn merge(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        states: Grouped<'_>,
    ) -> Result<Vec<ArrayRef>, Fault> {
        self.fold(around, function, states, true)
    }

    fn evaluate(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        state: &[ArrayRef],
        groups: u32,
    ) -> Result<ArrayRef, Fault> {
        let state = self.columns(state)?;
        let lowered = state.lowered().map_err(|wrong| self.fault(wrong))?;
        let parameters = tables::params(&lowered);
        let (done,) = self.call(around, |instance, exports| {
            instance.call(
                around,
                Budget::Statement,
                &there(&exports.functions)?.func_evaluate(),
                (number(function), parameters.as_slice(), groups),
            )
        })?;
        let column = done.map_err(|e| self.told(e))?;
        self.value(column, &self.about.functions[function].returns, groups as usize)
    }

    fn plan(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        arguments: &[ArrayRef],
    ) -> Result<SchemaRef, Fault> {
        let columns = self.columns(arguments)?;
        let lowered = columns.lowered().map_err(|wrong| self.fault(wrong))?;
        let parameters = tables::params(&lowered);
        let (done,) = self.call(around, |instance, exports| {
            instance.call(
                around,
                Budget::Short,
                &there(&exports.functions)?.func_plan(),
                (number(function), parameters.as_slice()),
            )
        })?;
        tables::schema(&done.map_err(|e| self.told(e))?, &self.facts.limits).map_err(|wrong| self.fault(wrong))
    }

    fn produce(
        &self,
        around: &Arc<dyn Surroundings>,
        function: usize,
        arguments: &[ArrayRef],
        schema: &SchemaRef,
        at: Option<&[u8]>,
    ) -> Result<PartOfTable, Fault> {
        let columns = self.columns(arguments)?;
        let lowered = columns.lowered().map_err(|wrong| self.fault(wrong))?;
        let parameters = tables::params(&lowered);
        let (done,) = self.call(around, |instance, exports| {
            instance.call(
                around,
                Budget::Statement,
                &there(&exports.functions)?.func_produce(),
                (number(function), parameters.as_slice(), at),
            )
        })?;
        let page = done.map_err(|e| self.told(e))?;
        if page.next.as_ref().is_some_and(|next| next.len() > PLACE) {
            let detail = format!("the place of the next rows has more than {PLACE} bytes");
            return Err(self.fault(Wrong::Limit("place", detail)));
        }
        let batch = tables::batch(page.rows, Some(schema), &self.facts.limits).map_err(|wrong| self.fault(wrong))?;
        Ok((batch, page.next))
    }

    fn decide(&self, around: &Arc<dyn Surroundings>, table: &[String], schema: &SchemaRef) -> Result<Decision, Fault> {
        let name: Vec<&str> = table.iter().map(String::as_str).collect();
        let fields = tables::fields_to_guest(schema);
        let table = wit::policy::Table { name: &name, fields: &tables::lend(&fields) };
        let (done,) = self.call(around, |instance, exports| {
            instance.call(around, Budget::Short, &there(&exports.policy)?.func_decide(), (table,))
        })?;
        let decision = done.map_err(|message| self.fault(Wrong::Told(shortened(message), None)))?;
        Ok(Decision {
            masks: decision.masks.into_iter().map(|mask| (mask.column, mask.expression)).collect(),
            filter: decision.filter,
            hidden: decision.hidden,
        })
    }

    fn begin(&self, around: &Arc<dyn Surroundings>, schema: &SchemaRef) -> Result<Option<SchemaRef>, Fault> {
        let fields = tables::fields_to_guest(schema);
        let lent = tables::lend(&fields);
        let (done,) = self.call(around, |instance, exports| {
            instance.call(around, Budget::Short, &there(&exports.results)?.func_begin(), (lent.as_slice(),))
        })?;
        let told = done.map_err(|e| self.told(e))?;
        told.map(|fields| tables::schema(&fields, &self.facts.limits)).transpose().map_err(|wrong| self.fault(wrong))
    }

    fn change(
        &self,
        around: &Arc<dyn Surroundings>,
        batch: &RecordBatch,
        schema: &SchemaRef,
        before: u64,
    ) -> Result<(RecordBatch, bool), Fault> {
        let fields = tables::fields_to_guest(&batch.schema());
        let columns = self.columns(batch.columns())?;
        let lowered = columns.lowered().map_err(|wrong| self.fault(wrong))?;
        let table = TableParam {
            fields: &tables::lend(&fields),
            rows: u32::try_from(batch.num_rows()).unwrap_or(u32::MAX),
            columns: &tables::params(&lowered),
        };
        let (done,) = self.call(around, |instance, exports| {
            instance.call(around, Budget::Statement, &there(&exports.results)?.func_change(), (table, before))
        })?;
        let changed = done.map_err(|e| self.told(e))?;
        let rows = tables::batch(changed.rows, Some(schema), &self.facts.limits).map_err(|wrong| self.fault(wrong))?;
        Ok((rows, changed.last))
    }

    fn notify(&self, around: &Arc<dyn Surroundings>, event: &Event) -> Result<(), Fault> {
        let event = match event {
            Event::SessionOpened => wit::events::Event::SessionOpened,
            Event::SessionClosed => wit::events::Event::SessionClosed,
            Event::StatementEnded { language, kind, failure, rows, milliseconds } => {
                wit::events::Event::StatementEnded(wit::events::Ended {
                    language,
                    kind: *kind,
                    failure: *failure,
                    rows: *rows,
                    milliseconds: *milliseconds,
                })
            }
        };
        self.call(around, |instance, exports| {
            instance.call(around, Budget::Short, &there(&exports.events)?.func_notify(), (event,))
        })
    }
}
