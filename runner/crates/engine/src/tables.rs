//! The schema of a session: the files of the data folders, and above them the views and tables that it defined.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionConfig;
use firesteel_model::{Code, Failure, Stage};
use url::Url;

use crate::failures;
use crate::files::{self, Format, Found};
use crate::plugins::Policies;

/// Lines of a CSV or JSON file that its column types are taken from.
const INFERENCE_LINES: usize = 10_000;

type Stamp = (PathBuf, SystemTime, u64);

/// What a session defined under a name.
#[derive(Clone, Debug)]
pub enum Defined {
    /// A view or an external table.
    Table(Arc<dyn TableProvider>),
    /// It was replayed and could not be made again; whoever needs it gets the reason.
    Broken(String),
}

/// The schema provider.
#[derive(Debug)]
pub struct Tables {
    roots: Arc<[PathBuf]>,
    /// Only reads schemas: it knows no tables, so nothing holds itself.
    reader: RwLock<SessionState>,
    defined: RwLock<BTreeMap<String, (String, Defined)>>,
    inferred: Mutex<HashMap<Stamp, Arc<dyn TableProvider>>>,
    policies: OnceLock<Policies>,
}

impl Tables {
    /// A schema over these folders, whose files are opened by `reader`.
    pub fn new(roots: Arc<[PathBuf]>, reader: SessionState) -> Tables {
        Tables {
            roots,
            reader: RwLock::new(reader),
            defined: RwLock::default(),
            inferred: Mutex::default(),
            policies: OnceLock::new(),
        }
    }

    /// Shows tables as these policies let them be seen, from now on.
    pub fn guard(&self, policies: Policies) {
        let _ = self.policies.set(policies);
    }

    /// Opens files from now on as these settings have it.
    pub fn configure(&self, config: SessionConfig) {
        *self.reader.write().unwrap_or_else(PoisonError::into_inner).config_mut() = config;
        self.inferred.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Every table of the folders.
    pub fn files(&self) -> Vec<Found> {
        files::scan(&self.roots)
    }

    /// The file behind a name.
    pub fn file(&self, name: &str) -> Option<Found> {
        let mut files = self.files();
        let at = files
            .iter()
            .position(|f| f.name == name)
            .or_else(|| files.iter().position(|f| f.name.to_lowercase() == name.to_lowercase()))?;
        Some(files.swap_remove(at))
    }

    /// What the session defined under a name.
    pub fn defined(&self, name: &str) -> Option<Defined> {
        self.defined.read().unwrap_or_else(PoisonError::into_inner).get(&name.to_lowercase()).map(|(_, d)| d.clone())
    }

    /// The names that the session defined.
    pub fn defined_names(&self) -> Vec<String> {
        self.defined.read().unwrap_or_else(PoisonError::into_inner).values().map(|(name, _)| name.clone()).collect()
    }

    /// Defines a name, in place of what it meant before.
    pub fn define(&self, name: &str, what: Defined) {
        self.defined
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_lowercase(), (name.to_owned(), what));
    }

    /// Takes a definition back.
    pub fn undefine(&self, name: &str) -> bool {
        self.defined.write().unwrap_or_else(PoisonError::into_inner).remove(&name.to_lowercase()).is_some()
    }

    /// The table of a name that a statement reads.
    ///
    /// # Errors
    /// It could not be made again, or not be opened.
    pub async fn needed(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(Defined::Broken(why)) = self.defined(name) {
            let text =
                format!("`{name}` could not be made again from the session's journal: {why}; make it anew, or DROP it");
            return Err(failures::carry(Failure::new(Code::Analysis, Stage::Plan, text)));
        }
        self.table(name).await
    }

    /// Refuses a table that reads the files of another that a policy decides about: a policy goes by the name and the columns of a table,
    /// and who reads its files by another name, or with columns of his own, would get around it.
    async fn governed(&self, policies: &Policies, name: &str, table: &Arc<dyn TableProvider>) -> Result<()> {
        let Some(listing) = table.downcast_ref::<ListingTable>() else { return Ok(()) };
        let own = self.defined(name).is_none();
        let urls = listing.table_paths().iter().map(AsRef::<Url>::as_ref);
        let places: Vec<PathBuf> =
            urls.filter(|url| url.scheme() == "file").filter_map(|url| url.to_file_path().ok()).collect();
        for found in self.files() {
            let meets = places.iter().any(|place| place.starts_with(&found.path) || found.path.starts_with(place));
            if !meets || (own && found.name == name) {
                continue;
            }
            let plain = self.open(&found).await?;
            if !Arc::ptr_eq(&policies.shown(&found.name, Arc::clone(&plain)).await?, &plain) {
                let text = format!(
                    "`{name}` reads files of the table `{}`, which a plugin's policy decides about; read `{}` itself",
                    found.name, found.name
                );
                return Err(failures::carry(Failure::new(Code::Refused, Stage::Plan, text)));
            }
        }
        Ok(())
    }

    async fn open(&self, found: &Found) -> Result<Arc<dyn TableProvider>> {
        if found.folder
            && let Some(path) = files::astray(&found.path, &self.roots)
        {
            return Err(failures::carry(Failure::new(
                Code::Refused,
                Stage::Plan,
                format!(
                    "the folder `{}` holds `{}`, which leads out of what may be read or is no file; take it out",
                    found.name,
                    path.strip_prefix(&found.path).unwrap_or(&path).display()
                ),
            )));
        }
        let about = std::fs::metadata(&found.path)?;
        let stamp = (found.path.clone(), about.modified()?, about.len());
        if !found.folder
            && let Some(table) = self.inferred.lock().unwrap_or_else(PoisonError::into_inner).get(&stamp)
        {
            return Ok(Arc::clone(table));
        }
        let url = if found.folder { Url::from_directory_path(&found.path) } else { Url::from_file_path(&found.path) };
        let url = url.map_err(|()| DataFusionError::Execution("a path that is no URL".into()))?;
        if let Some(column) = files::twice(found) {
            let name = &found.name;
            let text = format!(
                "the first line of the file of `{name}` has the column `{column}` twice; give one of them another name"
            );
            return Err(failures::carry(Failure::new(Code::Execution, Stage::Plan, text)));
        }
        let array = found.format == Format::Json && files::is_array(&found.path);
        let reader = self.reader.read().unwrap_or_else(PoisonError::into_inner).clone();
        let table = listing(&reader, url, found, array).await.map_err(|e| unreadable(&e, found))?;
        let mut inferred = self.inferred.lock().unwrap_or_else(PoisonError::into_inner);
        inferred.retain(|(path, _, _), _| *path != found.path);
        inferred.insert(stamp, Arc::clone(&table));
        Ok(table)
    }
}

/// An error that names the file.
fn unreadable(error: &DataFusionError, found: &Found) -> DataFusionError {
    let limits = failures::Limits { memory_pool: 0, spill: 0 };
    let failure = failures::failure(error, Stage::Plan, limits);
    if !matches!(failure.code, Code::Execution | Code::Analysis | Code::Internal) {
        return failures::carry(failure);
    }
    let file = found.path.file_name().map_or_else(|| found.name.clone(), |n| n.to_string_lossy().into_owned());
    failures::carry(Failure::new(Code::Execution, Stage::Plan, failures::damaged(&file, &failure.message)))
}

async fn listing(state: &SessionState, url: Url, found: &Found, array: bool) -> Result<Arc<dyn TableProvider>> {
    let format: Arc<dyn FileFormat> = match found.format {
        Format::Csv => Arc::new(CsvFormat::default().with_has_header(true).with_schema_infer_max_rec(INFERENCE_LINES)),
        Format::Tsv => Arc::new(
            CsvFormat::default().with_has_header(true).with_delimiter(b'\t').with_schema_infer_max_rec(INFERENCE_LINES),
        ),
        Format::Json => {
            Arc::new(JsonFormat::default().with_newline_delimited(!array).with_schema_infer_max_rec(INFERENCE_LINES))
        }
        Format::Parquet => Arc::new(ParquetFormat::default().with_options(state.default_table_options().parquet)),
        Format::Arrow => Arc::new(ArrowFormat),
    };
    let options = ListingOptions::new(format).with_file_extension(if found.folder { ".parquet" } else { "" });
    // Not `parse`: a file's name may hold what a glob means.
    let url = ListingTableUrl::try_new(url, None)?;
    let config = ListingTableConfig::new(url).with_listing_options(options).infer_schema(state).await?;
    Ok(Arc::new(ListingTable::try_new(config)?))
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.defined_names();
        let hidden: Vec<String> = names.iter().map(|n| n.to_lowercase()).collect();
        names.extend(self.files().into_iter().map(|f| f.name).filter(|n| !hidden.contains(&n.to_lowercase())));
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let (name, table) = match self.defined(name) {
            Some(Defined::Table(table)) => (name.to_owned(), table),
            // Who asks for all tables gets the others; `needed` has the reason.
            Some(Defined::Broken(_)) => return Ok(None),
            None => match self.file(name) {
                Some(found) => (found.name.clone(), self.open(&found).await?),
                None => return Ok(None),
            },
        };
        // A view is made of tables that are shown as policies have it.
        match self.policies.get().filter(|_| table.table_type() != TableType::View) {
            Some(policies) => {
                self.governed(policies, &name, &table).await?;
                policies.shown(&name, table).await.map(Some)
            }
            None => Ok(Some(table)),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.defined(name).is_some() || self.file(name).is_some()
    }
}
