//! A session: DataFusion with Spark's dialect and functions, the tables of the data folders, and what was defined since.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::catalog::{CatalogProviderList, SchemaProvider, TableFunction, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::config::Dialect;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, ResetVariable, ScalarUDF, SetVariable};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::Entry;

use crate::allow;
use crate::catalog::{Catalog, SCHEMA};
use crate::clauses;
use crate::command;
use crate::cooperate::CooperativeJoins;
use crate::define::Define;
use crate::dialect::{NESTING, Spellings, Text};
use crate::entry::{self, Then};
use crate::export;
use crate::failures::{self, Limits};
use crate::functions;
use crate::generate::SparkRelations;
use crate::knobs;
use crate::lost::Lost;
use crate::names;
use crate::operators::SparkOperators;
use crate::patterns::Pattern;
use crate::plugins::{self, Around, Current, Kept, Log, Of, Plugins, Policies, Routed};
use crate::query::{Reads, Running};
use crate::reach::{Counting, Reach};
use crate::settings::Settings;
use crate::spark_casts::SparkCasts;
use crate::spark_range::SparkRange;
use crate::spark_text::{AsText, InitCap};
use crate::tables::Tables;

/// An open session.
pub struct Session {
    pub(crate) ctx: SessionContext,
    pub(crate) catalog: Catalog,
    pub(crate) reach: Arc<Reach>,
    pub(crate) limits: Limits,
    pub(crate) lost: Lost,
    memory_pool: usize,
    spill: Option<PathBuf>,
    spill_limit: u64,
    defaults: Vec<(&'static str, Option<String>)>,
    plugins: Plugins,
    of: Arc<Of>,
    current: Current,
}

/// A statement that is to be planned.
#[derive(Debug, Default)]
pub struct Given {
    /// Its id, and its session's.
    pub statement: String,
    /// Its session's id.
    pub session: String,
    /// Its language.
    pub lang: String,
    /// Its text.
    pub text: firesteel_model::QueryText,
    /// Set when it is to stop.
    pub stop: Arc<AtomicBool>,
    /// The plugins on demand, by language, that it may need.
    pub plugins: Vec<(String, serde_json::Value)>,
}

/// A planned statement.
pub struct Planned {
    /// What it does.
    pub kind: Kind,
    /// Of a define: what the journal is to hold.
    pub entry: Option<Entry>,
    work: Work,
    around: Option<Arc<Around>>,
}

enum Work {
    Query(Box<LogicalPlan>),
    Define(Box<Define>),
}

impl Session {
    /// Opens a session that spills into `spill`, if anywhere.
    ///
    /// # Errors
    /// A data folder or a store of the settings cannot be used.
    pub fn open(settings: &Settings, spill: Option<PathBuf>, plugins: Plugins, log: Log) -> Result<Session, Failure> {
        let limits = Limits { memory_pool: settings.memory_pool, spill: settings.spill_limit };
        let inner = |e| failures::failure(&e, Stage::Accept, limits);
        let reach = Arc::new(Reach::new(settings)?);
        let registry = Counting { reach: Arc::clone(&reach), bytes: Arc::default() };
        let runtime = RuntimeEnvBuilder::new()
            .with_object_store_registry(Arc::new(registry))
            // A file that appears is seen by the next statement.
            .with_object_list_cache_limit(0)
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .build_arc()
            .map_err(inner)?;
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(&settings.catalog, SCHEMA)
            .with_target_partitions(settings.query_threads());
        let options = config.options_mut();
        options.sql_parser.dialect = Dialect::Spark;
        // `Text::spelled` does it, as Spark does.
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.parse_float_as_decimal = true;
        // The first rows of an ordered subquery are what people ask for; Spark gives them.
        options.sql_parser.enable_subquery_sort_elimination = false;
        options.sql_parser.default_null_ordering = "nulls_min".into();
        options.sql_parser.recursion_limit =
            datafusion::common::config::ConfigNonZeroUsize::try_new(NESTING).map_err(inner)?;
        options.optimizer.expand_views_at_output = true;
        options.explain.analyze_level = datafusion::common::format::MetricType::Summary;
        let reader =
            SessionStateBuilder::new().with_config(config.clone()).with_runtime_env(Arc::clone(&runtime)).build();
        let catalog = Catalog {
            name: settings.catalog.clone(),
            tables: Arc::new(Tables::new(Arc::clone(reach.roots()), reader)),
        };
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_catalog_list(Arc::new(catalog.clone()))
            .with_default_features()
            .with_relation_planners(vec![Arc::new(SparkRelations)])
            .with_physical_optimizer_rule(Arc::new(CooperativeJoins));
        let mut analysis: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(SparkCasts)];
        analysis.extend(Analyzer::new().rules);
        builder = builder.with_analyzer_rules(analysis);
        builder.scalar_functions().get_or_insert_default().extend(datafusion_spark::all_default_scalar_functions());
        builder.scalar_functions().get_or_insert_default().extend([
            Arc::new(ScalarUDF::from(Pattern::default())),
            Arc::new(ScalarUDF::from(AsText::default())),
            Arc::new(ScalarUDF::from(InitCap::default())),
        ]);
        builder
            .aggregate_functions()
            .get_or_insert_default()
            // Its `avg` ignores FILTER in groups, and makes doubles of decimals; DataFusion's does as Spark does.
            .extend(datafusion_spark::all_default_aggregate_functions().into_iter().filter(|f| f.name() != "avg"));
        builder.window_functions().get_or_insert_default().extend(datafusion_spark::all_default_window_functions());
        let planners = builder.expr_planners().get_or_insert_default();
        planners.insert(0, Arc::new(datafusion_spark::planner::SparkFunctionPlanner));
        planners.insert(0, Arc::new(SparkOperators));
        if let Some(range) = builder.table_functions().get_or_insert_default().remove("range") {
            let range = TableFunction::new("range".into(), Arc::new(SparkRange(range)));
            builder.table_functions().get_or_insert_default().insert("range".into(), Arc::new(range));
        }
        let mut state = builder.build();
        let of = Arc::new(Of {
            source: settings.catalog.clone(),
            tables: Arc::downgrade(&catalog.tables),
            asks: OnceLock::new(),
            kept: Mutex::default(),
            log,
        });
        let current = Current::new(Around::new(&of, "", "", 0, Arc::default()));
        plugins.register(&mut state, &current)?;
        if let Some(policies) = Policies::of(&plugins, &current, &settings.catalog) {
            catalog.tables.guard(policies);
        }
        let ctx = SessionContext::new_with_state(state);
        functions::install(&ctx).map_err(inner)?;
        let weak = ctx.state_weak_ref();
        let _ = of.asks.set(Box::new(move || weak.upgrade().map(|state| state.read().clone())));
        let values = ctx.copied_config().options().entries();
        let defaults = knobs::keys()
            .map(|key| (key, values.iter().find(|e| e.key == key).and_then(|e| e.value.clone())))
            .collect();
        Ok(Session {
            ctx,
            catalog,
            reach,
            limits,
            lost: Lost::default(),
            memory_pool: usize::try_from(settings.memory_pool).unwrap_or(usize::MAX),
            spill,
            spill_limit: settings.spill_limit,
            defaults,
            plugins,
            of,
            current,
        })
    }

    /// The settings that may be set, as they are at the start.
    pub(crate) fn defaults(&self) -> &[(&'static str, Option<String>)] {
        &self.defaults
    }

    /// Sets a setting, or gives it back DataFusion's own value.
    pub(crate) async fn set(&self, key: &str, value: Option<&str>) -> datafusion::common::Result<()> {
        let variable = key.to_owned();
        let statement = match value {
            Some(value) => {
                datafusion::logical_expr::Statement::SetVariable(SetVariable { variable, value: value.to_owned() })
            }
            None => datafusion::logical_expr::Statement::ResetVariable(ResetVariable { variable }),
        };
        self.ctx.execute_logical_plan(LogicalPlan::Statement(statement)).await?;
        if key.starts_with("datafusion.execution.parquet.") {
            self.catalog.tables.configure(self.ctx.copied_config());
        }
        Ok(())
    }

    /// DataFusion's own context, to run a query without the loop.
    pub fn context(&self) -> &SessionContext {
        &self.ctx
    }

    /// Applies what a journal holds. What no longer applies is left out: the statement that needs it gets the reason.
    pub async fn replay(&self, entry: &str) {
        Box::pin(entry::replay(self, entry)).await;
    }

    fn around(&self, given: &Given) -> Arc<Around> {
        let now =
            self.ctx.state().execution_props().query_execution_start_time.map_or(0, |time| time.timestamp_micros());
        let around = Around::new(&self.of, &given.session, &given.statement, now, Arc::clone(&given.stop));
        self.current.set(&around);
        around
    }

    /// What the handlers make of a statement, which is not run.
    ///
    /// # Errors
    /// As [`Plugins::route`].
    pub async fn route(&self, given: &Given) -> Result<Routed, Failure> {
        let around = self.around(given);
        self.plugins.route(&around, &given.lang, &given.text.0, &given.plugins).await
    }

    /// Plans a statement; nothing has happened yet.
    ///
    /// # Errors
    /// Whatever is wrong with the statement.
    pub async fn plan(&self, given: &Given) -> Result<Planned, Failure> {
        let around = self.around(given);
        let mut planned = match self.plugins.route(&around, &given.lang, &given.text.0, &given.plugins).await? {
            Routed::Sql(text) => self.plan_again(&text.0, None).await?,
            Routed::Rows(batch) => self.rows(batch)?,
        };
        if planned.kind != Kind::Write
            && let Some(kept) = around.kept_after()
        {
            planned.entry = Some(entry::keeping(planned.entry.take(), &kept));
            planned.kind = Kind::Define;
        }
        if around.writes() || self.plugins.iter().any(|p| p.about().writes && p.about().results) {
            planned.kind = if planned.kind == Kind::Read { Kind::Write } else { planned.kind };
        }
        planned.around = Some(around);
        Ok(planned)
    }

    /// Plugins keep this from now on.
    pub(crate) fn keep(&self, kept: Kept) {
        *self.of.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = kept;
    }

    /// The same for a statement that a journal holds, with what it found then.
    pub(crate) async fn plan_again(&self, raw: &str, then: Option<&Then>) -> Result<Planned, Failure> {
        let text = Text::read(raw, self.limits)?;
        if let Some(command) = command::read(&text, raw)? {
            return crate::show::plan(self, command, raw).await;
        }
        if let Some(define) = functions::define(self, &text, then.is_some())? {
            return Ok(self.define(define, raw));
        }
        let typed = text.parse(self.limits).map_err(|failure| allow::instead(failure, &text))?;
        if let (Statement::CopyTo(_), Some(folder)) = (&typed, self.reach.export())
            && let Statement::CopyTo(copy) = self.spelled(&text).await?
        {
            self.lost.allows_queries()?;
            let plan = export::plan(self, copy, folder).await?;
            return Ok(Planned { kind: Kind::Write, entry: None, work: Work::Query(Box::new(plan)), around: None });
        }
        allow::statement(&typed)?;
        if let Some(define) = Define::of(self, &text, &typed, then).await? {
            return Ok(self.define(define, raw));
        }
        let plan = self.query(&text).await?;
        Ok(Planned::read(plan))
    }

    pub(crate) fn define(&self, define: Define, raw: &str) -> Planned {
        let entry = Some(entry::write(raw, &define));
        Planned { kind: Kind::Define, entry, work: Work::Define(Box::new(define)), around: None }
    }

    /// The plan of a statement that reads, with Spark's names.
    pub(crate) async fn query(&self, text: &Text) -> Result<LogicalPlan, Failure> {
        self.lost.allows_queries()?;
        let mut statement = self.spelled(text).await?;
        names::name(&mut statement);
        let plan = self.to_plan(statement).await?;
        let plan = match plan {
            // Its plan was looked at when it was prepared; what it is made of now is looked at again.
            LogicalPlan::Statement(datafusion::logical_expr::Statement::Execute(execute)) => {
                self.lost.has_prepared(&execute.name)?;
                let execute = LogicalPlan::Statement(datafusion::logical_expr::Statement::Execute(execute));
                self.ctx.execute_logical_plan(execute).await.map_err(|e| self.failed(&e))?.into_unoptimized_plan()
            }
            plan => plan,
        };
        allow::plan(&plan, self.limits)?;
        Ok(plan)
    }

    /// The statement again, its names in the spelling of the tables that it names.
    pub(crate) async fn spelled(&self, text: &Text) -> Result<Statement, Failure> {
        let state = self.ctx.state();
        // The names of queries inside the statement are told from tables when all are spelled alike.
        let mut known = Spellings::default();
        let alike = text.spelled(&known).parse(self.limits)?;
        for name in state.resolve_table_references(&alike).map_err(|e| self.failed(&e))? {
            if let Some(table) = self.table(&state, &name).await? {
                table.schema().fields().iter().for_each(|f| known.add(f));
            }
        }
        text.spelled(&known).parse(self.limits)
    }

    pub(crate) async fn to_plan(&self, statement: Statement) -> Result<LogicalPlan, Failure> {
        let state = self.ctx.state();
        clauses::refuse(&statement, &|name| state.scalar_functions().contains_key(name))?;
        state.statement_to_plan(statement).await.map_err(|e| self.failed(&e))
    }

    /// The table of a name. None: a function, or a part of the information schema.
    ///
    /// # Errors
    /// There is no such table, or it may not be read.
    async fn table(
        &self,
        state: &SessionState,
        name: &TableReference,
    ) -> Result<Option<Arc<dyn TableProvider>>, Failure> {
        let table = name.table();
        if table.contains(['/', '\\']) {
            return Err(self.reach.refusal(table));
        }
        if name.schema().is_none() && state.table_functions().contains_key(&table.to_lowercase()) {
            return Ok(None);
        }
        if name.schema().is_some_and(|s| s.eq_ignore_ascii_case("information_schema")) {
            return Ok(None);
        }
        if let Some(catalog) = name.catalog()
            && self.catalog.catalog(catalog).is_none()
        {
            return Err(Failure::new(
                Code::Analysis,
                Stage::Plan,
                failures::no_such("catalog", catalog, &self.catalog.catalog_names()),
            ));
        }
        if let Some(schema) = name.schema()
            && !schema.eq_ignore_ascii_case(SCHEMA)
        {
            return Err(Failure::new(
                Code::Analysis,
                Stage::Plan,
                failures::no_such("database", schema, &[SCHEMA.to_owned()]),
            ));
        }
        match self.catalog.tables.needed(table).await.map_err(|e| self.failed(&e))? {
            Some(found) => Ok(Some(found)),
            None => Err(Failure::new(
                Code::Analysis,
                Stage::Plan,
                failures::no_such("table", table, &self.catalog.tables.table_names()),
            )),
        }
    }

    pub(crate) fn failed(&self, e: &datafusion::common::DataFusionError) -> Failure {
        failures::failure(e, Stage::Plan, self.limits)
    }

    /// Runs a planned statement.
    ///
    /// # Errors
    /// It could not begin.
    pub async fn run(&self, planned: Planned) -> Result<Running, Failure> {
        let around = planned.around.unwrap_or_else(|| self.current.get());
        self.current.set(&around);
        let running = match planned.work {
            Work::Query(plan) => self.start(*plan, &around).await?,
            Work::Define(define) => define.apply(self).await?,
        };
        if let Some(kept) = around.kept_after() {
            self.keep(kept);
        }
        plugins::hooked(&self.plugins, &around, running).await
    }

    async fn start(&self, plan: LogicalPlan, around: &Arc<Around>) -> Result<Running, Failure> {
        let state = self.ctx.state();
        let physical = state.create_physical_plan(&plan).await.map_err(|e| self.failed(&e))?;
        let bytes = Arc::new(AtomicU64::new(0));
        let runtime = self.runtime(&state, &bytes).map_err(|e| self.failed(&e))?;
        around.remember(MemoryConsumer::new("plugins").register(&runtime.memory_pool));
        let task = Arc::new(TaskContext::from(&state).with_runtime(runtime));
        let reads = Reads { plan: Some(Arc::clone(&physical)), bytes };
        let stream = execute_stream(physical, task).map_err(|e| failures::failure(&e, Stage::Execute, self.limits))?;
        let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let running = Running::new(stream, reads, tables(&plan), self.limits)?;
        Ok(if explains { crate::show::with_plugins(running, around.touches()) } else { running })
    }

    /// Each statement has a pool, a share of the spill folder and a count of its own.
    fn runtime(&self, state: &SessionState, bytes: &Arc<AtomicU64>) -> datafusion::common::Result<Arc<RuntimeEnv>> {
        let mut runtime = RuntimeEnv::clone(state.runtime_env());
        runtime.memory_pool = Arc::new(FairSpillPool::new(self.memory_pool));
        let mode = self.spill.clone().map_or(DiskManagerMode::Disabled, |dir| DiskManagerMode::Directories(vec![dir]));
        let disk =
            DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(self.spill_limit).build()?;
        runtime.disk_manager = Arc::new(disk);
        runtime.object_store_registry = Arc::new(Counting { reach: Arc::clone(&self.reach), bytes: Arc::clone(bytes) });
        Ok(Arc::new(runtime))
    }

    /// A plan that returns these rows.
    pub(crate) fn rows(&self, batch: arrow_array::RecordBatch) -> Result<Planned, Failure> {
        let frame: DataFrame = self.ctx.read_batch(batch).map_err(|e| self.failed(&e))?;
        Ok(Planned::read(frame.into_unoptimized_plan()))
    }
}

impl Planned {
    pub(crate) fn read(plan: LogicalPlan) -> Planned {
        Planned { kind: Kind::Read, entry: None, work: Work::Query(Box::new(plan)), around: None }
    }
}

/// The tables that a plan reads.
fn tables(plan: &LogicalPlan) -> Vec<String> {
    let mut names = std::collections::BTreeSet::new();
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.insert(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    names.into_iter().collect()
}

/// The parts of a name, without quotes.
pub(crate) fn parts(name: &ast::ObjectName) -> Vec<String> {
    name.0.iter().map(|part| part.as_ident().map_or_else(|| part.to_string(), |i| i.value.clone())).collect()
}
