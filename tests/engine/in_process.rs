//! The engine without a process of its own gives the same answers.

use std::sync::Arc;

use firesteel_engine::{InProcess, Settings};
use firesteel_session::journal::Journal;
use firesteel_session::ports::Engine;

use crate::bench::{collect, error, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_plans_runs_journals_and_stops() {
    let engine = InProcess::new(Settings { catalog: "mys3".into(), ..Settings::default() }).unwrap();
    let mut journal = Journal::default();
    let plan = engine.plan(&journal, &request("sql", "CREATE VIEW v AS SELECT 1 AS a")).await.unwrap();
    let entry = plan.entry().unwrap();
    collect(plan.run().await.unwrap()).await.unwrap();
    journal.append(entry);
    let select = async |engine: &InProcess, journal: &Journal| -> Result<String, String> {
        let plan = engine.plan(journal, &request("sql", "SELECT a FROM v")).await.map_err(|e| error(&e))?;
        collect(plan.run().await.map_err(|e| error(&e))?).await.map_err(|e| error(&e))
    };
    assert_eq!(select(&engine, &journal).await, Ok("a: Int64\n1\n".into()));
    assert_eq!(
        select(&engine, &Journal::default()).await,
        Err("ANALYSIS there is no table `v`, and no other".into()),
        "another journal, another session"
    );
    assert_eq!(select(&engine, &journal).await, Ok("a: Int64\n1\n".into()));

    let plan =
        engine.plan(&journal, &request("sql", "SELECT value FROM generate_series(1, 90000000000)")).await.unwrap();
    drop(plan.run().await.unwrap());
    let plan = engine.plan(&journal, &request("sql", "SELECT CAST('x' AS INT) FROM v")).await.unwrap();
    let failed = match plan.run().await {
        Ok(output) => collect(output).await.unwrap_err(),
        Err(e) => e,
    };
    assert!(error(&failed).starts_with("EXECUTION "), "{}", error(&failed));

    let session = engine.session().unwrap();
    let direct = Arc::clone(&session);
    let rows =
        engine.handle().spawn(async move { direct.context().sql("SELECT 1").await.unwrap().collect().await.unwrap() });
    assert_eq!(rows.await.unwrap()[0].num_rows(), 1);
}
