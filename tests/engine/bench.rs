//! A session as the loop drives it: plan, run, journal; and looks at the process that does it.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use expect_test::Expect;
use firesteel_engine::{Bring, PluginSet, Pool, Settings, Workers};
use firesteel_model::{Kind, QueryText, StatementId};
use firesteel_plugin_host::bundled::OnDemand;
use firesteel_plugin_host::shelf::Ready;
use firesteel_session::journal::Journal;
use firesteel_session::ports::{Engine, EngineError, Output, Plan, Request};
use futures::StreamExt;
use tempfile::TempDir;

/// Longer than anything takes on a busy machine; reached only by a fault.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bench {
    pub engine: Workers,
    pub journal: Mutex<Journal>,
    pub dir: TempDir,
}

pub fn request(lang: &str, text: &str) -> Request {
    Request {
        statement: StatementId::new("s").unwrap(),
        session: "session".into(),
        lang: lang.into(),
        text: QueryText(text.into()),
    }
}

impl Bench {
    /// An empty data folder.
    pub fn new() -> Bench {
        Bench::with(|_| {})
    }

    /// The same, with other settings.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Bench {
        Bench::made(change, None)
    }

    /// The same, with plugins that are there without a folder.
    pub fn on_demand(own: OnDemand, change: impl FnOnce(&mut Settings)) -> Bench {
        let (on_demand, reads) = (own.languages(&Ready::default()), vec![own.folder().unwrap()]);
        let bring: Bring = Arc::new(move |language| own.plugin(language, Path::new(env!("CARGO_BIN_EXE_firesteel"))));
        let set = PluginSet { on_demand, reads, ..PluginSet::default() };
        let change = |settings: &mut Settings| {
            settings.plugins = set;
            change(settings);
        };
        Bench::made(change, Some(bring))
    }

    fn made(change: impl FnOnce(&mut Settings), bring: Option<Bring>) -> Bench {
        let dir = TempDir::new().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut settings = Settings {
            catalog: "mys3".into(),
            data: vec![data],
            executable: Some(env!("CARGO_BIN_EXE_firesteel").into()),
            spill_dir: Some(dir.path().join("spill")),
            threads: Some(2),
            spare: false,
            ..Settings::default()
        };
        change(&mut settings);
        Bench { engine: Workers::alone(Pool::with_plugins(settings, bring)), journal: Mutex::default(), dir }
    }

    /// Puts a file into the data folder.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Bench {
        let path = self.data().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    pub async fn plan(&self, text: &str) -> Result<Box<dyn Plan>, EngineError> {
        self.plan_in("sql", text).await
    }

    async fn plan_in(&self, lang: &str, text: &str) -> Result<Box<dyn Plan>, EngineError> {
        let journal = self.journal.lock().unwrap().clone();
        tokio::time::timeout(PATIENCE, self.engine.plan(&journal, &request(lang, text))).await.expect("planned in time")
    }

    pub async fn begin(&self, text: &str) -> Result<Output, EngineError> {
        self.plan(text).await?.run().await
    }

    /// Runs a statement to its end, and journals what it defines.
    pub async fn run(&self, text: &str) -> Result<String, EngineError> {
        self.run_in("sql", text).await
    }

    /// The same in another language.
    pub async fn run_in(&self, lang: &str, text: &str) -> Result<String, EngineError> {
        let plan = self.plan_in(lang, text).await?;
        let entry = plan.entry();
        let define = plan.kind() == Kind::Define;
        let output = plan.run().await?;
        let table = tokio::time::timeout(PATIENCE, collect(output)).await.expect("run in time")?;
        if define {
            self.journal.lock().unwrap().append(entry.expect("a define has an entry"));
        }
        Ok(table)
    }

    pub async fn ok(&self, text: &str) -> String {
        match self.run(text).await {
            Ok(table) => table,
            Err(e) => panic!("{text}: {}", error(&e)),
        }
    }

    pub async fn fails(&self, text: &str) -> String {
        match self.run(text).await {
            Ok(table) => panic!("{text} gave\n{table}"),
            Err(e) => error(&e).replace(&self.dir.path().canonicalize().unwrap().display().to_string(), "DIR"),
        }
    }

    pub async fn check(&self, text: &str, expected: Expect) {
        expected.assert_eq(&self.ok(text).await);
    }

    pub async fn pid(&self) -> u32 {
        self.engine.worker_pid().await.expect("a worker is assigned")
    }
}

pub fn error(e: &EngineError) -> String {
    match e {
        EngineError::Failed(failure) => format!("{} {}", failure.code.as_str(), failure.message),
        EngineError::Died(why) => format!("died: {why}"),
    }
}

/// The columns and the rows of a result, as text.
pub async fn collect(mut output: Output) -> Result<String, EngineError> {
    let columns: Vec<String> =
        output.schema.fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
    let mut text = columns.join(" | ") + "\n";
    while let Some(batch) = output.batches.next().await {
        rows(&mut text, &batch?);
    }
    Ok(text)
}

fn rows(text: &mut String, batch: &RecordBatch) {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    for row in 0..batch.num_rows() {
        let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
        writeln!(text, "{}", cells.join(" | ")).unwrap();
    }
}

/// Whether a process exists, and is no zombie.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Whether the process is in the table at all, zombie or not.
pub fn listed(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The processor time that a process has used, in hundredths of a second.
pub fn used(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    [11, 12].iter().filter_map(|n| fields.get(*n)?.parse::<u64>().ok()).sum()
}

/// Whether each thread that runs queries waits for something to do.
pub fn rests(pid: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        !stat.contains("(query)") || !stat.contains(") R ")
    })
}

/// Waits until something is so.
pub async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let so = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, so).await.unwrap_or_else(|_| panic!("{what}, not within {PATIENCE:?}"));
}
