//! `firesteel run`: the long-running job.

use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use firesteel_engine::Workers;
use firesteel_model::runner::Identity;
use firesteel_model::{
    JobId, QueryId, QueryText, RunnerId, Session, SessionId, Statement, StatementId, StatementState,
};
use firesteel_session::clock::SystemClock;
use firesteel_session::counters::Counters;
use firesteel_session::ports::{Clock, Store, StoreError};
use firesteel_store::Scope;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::ambient;
use crate::client;
use crate::conf::{Configuration, JobType};
use crate::engine;
use crate::problem::Problem;
use crate::serving;
use crate::stores::{DATA_SOURCE, Place};

const SESSION_CLASS: &str = "org.apache.spark.sql.FlintREPL";
const BATCH_CLASS: &str = "org.apache.spark.sql.FlintJob";

/// Adds what the launch contract gives beside the settings: the class and the positional arguments.
///
/// # Errors
/// They are none of the contract's.
pub fn launch(matches: &ArgMatches, settings: &mut Configuration) -> Result<bool, Problem> {
    let class = matches.get_one::<String>("class");
    let implied = match class.map(String::as_str) {
        None => None,
        Some(SESSION_CLASS) => Some(JobType::Interactive),
        Some(BATCH_CLASS) => Some(JobType::Batch),
        Some(other) => {
            let other: String = other.chars().take(80).collect();
            return Err(Problem::usage_with(
                format!("--class: `{other}` is not known"),
                format!("{SESSION_CLASS} or {BATCH_CLASS}"),
            ));
        }
    };
    settings.job_type = settings.job_type.or(implied);
    let positional: Vec<&String> = matches.get_many("positional").into_iter().flatten().collect();
    match positional.as_slice() {
        [] => {}
        [index] => settings.result_index = Some((*index).clone()),
        [query, index] => {
            settings.query = Some((*query).clone());
            settings.result_index = Some((*index).clone());
        }
        more => {
            let message = format!("{} arguments, but at most two: [QUERY] RESULT_INDEX", more.len());
            return Err(Problem::usage_with(message, "settings go into --conf KEY=VALUE"));
        }
    }
    Ok(class.is_some())
}

/// Serves until the runner is to leave.
///
/// # Errors
/// All of [`Problem`]'s but a statement's.
pub async fn run(settings: &mut Configuration, by_class: bool) -> Result<ExitCode, Problem> {
    if !settings.ignored.is_empty() {
        tracing::debug!(keys = ?settings.ignored, "settings of Spark's that mean nothing here");
    }
    let job = ambient::launcher("SERVERLESS_EMR_JOB_ID");
    let place = Place::of(settings, by_class || job.is_some());
    settings.policy.poll_busy = place.poll_busy(settings);
    let batch = settings.job_type == Some(JobType::Batch);
    if !settings.sessions.is_empty() && (batch || settings.session.is_some()) {
        let one = if batch { "--type batch" } else { "--session" };
        return Err(Problem::usage_with(
            format!("{one} is one session, --sessions is many"),
            "give only one of the two",
        ));
    }
    let scope = if batch { Scope::Batch } else { Scope::Requests };
    let store = place.open(settings, scope, true)?;
    let heart = place.open(settings, scope, true)?;
    let mut me = identity(job, settings, &place, &*store, batch).await?;
    if let Some(id) = &me.batch {
        begin_batch(id, &me, settings, &*store).await?;
    }
    me.excluded = excluded(settings)?;
    let mut tasks = JoinSet::new();
    let counters = Counters::default();
    if let Some(address) = &settings.metrics_addr {
        let refused = |e| Problem::usage(format!("--metrics-addr: {address} cannot be listened on: {e}"));
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        tracing::info!(address = %listener.local_addr()?, "metrics are at /metrics");
        let serving = firesteel_control::metrics(listener, &counters);
        tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "metrics are no longer served");
            }
        });
    }
    settings.engine.catalog.clone_from(&me.data_source);
    let workers = engine::start(settings, &mut tasks)?;
    let stop = serving::on_signals(&mut tasks)?;
    tracing::info!(session = me.session.as_str(), store = %place, "started");
    let session = me.session.to_string();
    let exit = if settings.sessions.is_empty() {
        let engine = Arc::new(Workers::alone(workers));
        serving::serve(me, settings, store, heart, engine, counters, stop).await?
    } else {
        serving::serve_many(me, settings, store, heart, workers, counters, stop).await?
    };
    if exit.code == 0 {
        tracing::info!(code = exit.code, why = exit.why, "leaving");
    } else {
        tracing::error!(code = exit.code, why = exit.why, session, store = %place, "leaving");
    }
    Ok(ExitCode::from(exit.code))
}

async fn identity(
    job: Option<String>,
    settings: &Configuration,
    place: &Place,
    store: &dyn Store,
    batch: bool,
) -> Result<Identity, Problem> {
    let application = ambient::launcher("SERVERLESS_EMR_VIRTUAL_CLUSTER_ID");
    let of_environment = |variable: &'static str, bad| Problem::usage(format!("{variable}: {bad}"));
    let job = job.map(JobId::new).transpose().map_err(|bad| of_environment("SERVERLESS_EMR_JOB_ID", bad))?;
    let runner = RunnerId::new(ambient::unique()).map_err(|bad| Problem::Other(bad.to_string()))?;
    let mut batch_statement = None;
    let session = match &settings.session {
        _ if batch => {
            let query = settings.query_id.clone().unwrap_or_else(ambient::unique);
            let of_job = job.as_ref().map_or_else(|| runner.as_str(), JobId::as_str);
            let name = format!("{}/{of_job}/{query}", application.as_deref().unwrap_or_default());
            batch_statement =
                Some(StatementId::new(name.clone()).map_err(|bad| Problem::usage(format!("--query-id: {bad}")))?);
            SessionId::new(name).map_err(|bad| Problem::usage(format!("--query-id: {bad}")))?
        }
        Some(name) => client::session_id(name)?,
        // What the log calls all of them.
        None if let [pattern, ..] = &settings.sessions[..] => client::session_id(pattern.as_str())?,
        None if matches!(place, Place::Sqlite(_)) => client::default_session(store).await?,
        None => {
            return Err(Problem::usage_with(
                "which session? none is named",
                "--session ID or --conf spark.flint.job.sessionId=ID",
            ));
        }
    };
    let data_source = settings.data_source.clone().unwrap_or_else(|| DATA_SOURCE.to_owned());
    Ok(Identity { runner, job, application, session, data_source, excluded: Vec::new(), batch: batch_statement })
}

fn excluded(settings: &Configuration) -> Result<Vec<JobId>, Problem> {
    settings
        .exclude_jobs
        .iter()
        .map(|id| JobId::new(id).map_err(|bad| Problem::usage(format!("--exclude-jobs: {bad}"))))
        .collect()
}

/// Makes the batch's statement and the session that holds its lease, both in the state index. A second process of the same job
/// finds them and goes by the lease.
async fn begin_batch(
    id: &StatementId,
    me: &Identity,
    settings: &Configuration,
    store: &dyn Store,
) -> Result<(), Problem> {
    let Some(query) = settings.query.clone() else {
        return Err(Problem::usage_with(
            "a batch job needs a statement",
            "--query SQL or --conf spark.flint.job.query=…",
        ));
    };
    let query_id = id.as_str().rsplit('/').next().unwrap_or_default();
    let query_id = settings.query_id.as_deref().unwrap_or(query_id);
    let query_id = QueryId::new(query_id).map_err(|bad| Problem::usage(format!("--query-id: {bad}")))?;
    let clock = SystemClock;
    let began = clock.now();
    loop {
        let done = make_batch(id, me, &query, &query_id, store).await;
        let now = clock.now();
        match done {
            Err(StoreError::Unavailable(_) | StoreError::Unknown(_))
                if now.since(began) < settings.policy.unreachable =>
            {
                clock.sleep_until(now.plus(settings.policy.retry_max.min(1_000))).await;
            }
            done => return Ok(done?),
        }
    }
}

async fn make_batch(
    id: &StatementId,
    me: &Identity,
    query: &str,
    query_id: &QueryId,
    store: &dyn Store,
) -> Result<(), StoreError> {
    store.prepare(true).await?;
    let now = store.time().await?;
    let statement = Statement {
        id: id.clone(),
        session: me.session.clone(),
        query_id: Some(query_id.clone()),
        lang: "sql".to_owned(),
        query: QueryText(query.to_owned()),
        data_source: me.data_source.clone(),
        submit_time: now,
        state: StatementState::Waiting,
    };
    let session = Session {
        application: me.application.clone().unwrap_or_default(),
        job: me.job.clone(),
        last_update: now,
        ..Session::new(me.session.clone(), me.data_source.clone())
    };
    for made in [store.create_statement(&statement, None).await, store.create_session(&session).await] {
        match made {
            Ok(_) | Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    fn launched(line: &[&str]) -> Result<Configuration, Problem> {
        let line = std::iter::once("firesteel").chain(line.iter().copied()).map(str::to_owned).collect();
        let matches = arguments::parse(line, false).expect("the grammar's");
        let (_, matches) = matches.subcommand().expect("run");
        let mut settings = arguments::of_job(matches)?;
        launch(matches, &mut settings)?;
        Ok(settings)
    }

    #[test]
    fn none_one_or_two_positional_arguments() {
        assert_eq!(launched(&["run"]).expect("none").result_index, None);
        assert_eq!(launched(&["run", "index"]).expect("one").result_index.as_deref(), Some("index"));
        let two = launched(&["--class", BATCH_CLASS, "SELECT 1", "index"]).expect("two");
        assert_eq!((two.query.as_deref(), two.result_index.as_deref()), (Some("SELECT 1"), Some("index")));
        assert_eq!(two.job_type, Some(JobType::Batch));
        let problem = launched(&["run", "a", "b", "c"]).expect_err("three");
        assert_eq!(problem.to_string(), "3 arguments, but at most two: [QUERY] RESULT_INDEX");
    }

    #[test]
    fn the_class_decides_the_type_unless_it_is_set() {
        assert_eq!(launched(&["--class", SESSION_CLASS]).expect("known").job_type, Some(JobType::Interactive));
        let set = ["--class", BATCH_CLASS, "--conf", "spark.flint.job.type=interactive"];
        assert_eq!(launched(&set).expect("known").job_type, Some(JobType::Interactive));
        assert_eq!(
            launched(&["--class", "org.Other"]).expect_err("unknown").to_string(),
            "--class: `org.Other` is not known"
        );
    }

    #[test]
    fn a_control_planes_whole_string_is_one_argument() {
        let text = format!(
            r#" --class {BATCH_CLASS} --jars x.jar --conf spark.flint.job.query="SELECT \"a\"" --conf spark.flint.job.queryId=q1 --conf spark.flint.datasource.name=mys3 --conf spark.datasource.flint.host=h"#
        );
        let settings = launched(&[&text, "query_execution_result_mys3"]).expect("the contract's");
        assert_eq!(settings.query.as_deref(), Some("SELECT \"a\""));
        assert_eq!(settings.query_id.as_deref(), Some("q1"));
        assert_eq!(settings.data_source.as_deref(), Some("mys3"));
        assert_eq!(Place::of(&settings, true), Place::OpenSearch("http://h:9200".to_owned()));
    }
}
