//! What statements may read: the operator's folders, buckets and hosts; and the one folder that they may write into. Everything else is
//! refused, here and nowhere later: every byte that DataFusion reads or writes of a file goes through a [`Fence`].

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::Result as DfResult;
use datafusion::execution::object_store::ObjectStoreRegistry;
use firesteel_model::{Code, Failure, Stage};
use futures::TryStreamExt;
use futures::stream::{BoxStream, StreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, RetryConfig,
};
use url::Url;

use crate::connect::Straight;
use crate::export;
use crate::failures;
use crate::files;
use crate::settings::{Settings, StoreAccess};

/// What may be read, and the stores made so far.
#[derive(Debug)]
pub struct Reach {
    roots: Arc<[PathBuf]>,
    export: Option<Arc<FilePath>>,
    listed: Vec<(Url, StoreAccess)>,
    made: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

impl Reach {
    /// Reads the settings.
    ///
    /// # Errors
    /// A folder that does not exist, or a URL that is none of ours: the operator's fault, found at start.
    pub fn new(settings: &Settings) -> std::result::Result<Reach, Failure> {
        let wrong = |text: String| Failure::new(Code::Internal, Stage::Accept, text);
        let real = |kind: &str, folder: &PathBuf| {
            let unread = |e| wrong(format!("the {kind} folder {} cannot be read: {e}", folder.display()));
            folder.canonicalize().map_err(unread)
        };
        let roots = settings.data.iter().map(|root| real("data", root)).collect::<std::result::Result<Vec<_>, _>>()?;
        let export = settings.export.as_ref().map(|folder| real("export", folder)).transpose()?;
        let listed = settings
            .stores
            .iter()
            .map(|access| match Url::parse(&access.url) {
                Ok(url) if matches!(url.scheme(), "s3" | "http" | "https") && url.has_host() => {
                    Ok((url, access.clone()))
                }
                _ => Err(wrong("a listed store must be s3://BUCKET or http(s)://HOST, with a path or without".into())),
            })
            .collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Reach { roots: roots.into(), export: export.map(Arc::from), listed, made: Mutex::default() })
    }

    /// The data folders, without symbolic links.
    pub fn roots(&self) -> &Arc<[PathBuf]> {
        &self.roots
    }

    /// The folder that may be written into, without symbolic links.
    pub fn export(&self) -> Option<&FilePath> {
        self.export.as_deref()
    }

    /// Where a statement's `LOCATION` points, if it may be read. A relative path starts at the first data folder.
    ///
    /// # Errors
    /// `Refused`, and what is allowed.
    pub fn location(&self, text: &str) -> std::result::Result<Url, Failure> {
        if let Ok(url) = Url::parse(text)
            && url.scheme() != "file"
        {
            return if self.listed.iter().any(|(listed, _)| below(listed, &url)) {
                Ok(url)
            } else {
                Err(self.refusal(text))
            };
        }
        let path = match Url::parse(text) {
            Ok(url) => url.to_file_path().map_err(|()| self.refusal(text))?,
            Err(_) if FilePath::new(text).is_absolute() => PathBuf::from(text),
            Err(_) => self.roots.first().ok_or_else(|| self.refusal(text))?.join(text),
        };
        match path.canonicalize() {
            Ok(real) if self.holds(&real) => {
                self.whole(&real, text)?;
                let url = if real.is_dir() { Url::from_directory_path(&real) } else { Url::from_file_path(&real) };
                url.map_err(|()| self.refusal(text))
            }
            // Whether a file outside exists is nobody's business.
            Err(_) if path.parent().and_then(|p| p.canonicalize().ok()).is_some_and(|p| self.holds(&p)) => {
                Err(Failure::new(Code::Analysis, Stage::Plan, format!("there is no file or folder `{text}`")))
            }
            _ => Err(self.refusal(text)),
        }
    }

    /// Refuses what is no file and no folder, and a folder that holds something that may not be read.
    ///
    /// # Errors
    /// `Refused`, with what is in the way.
    pub fn whole(&self, real: &FilePath, text: &str) -> std::result::Result<(), Failure> {
        let refused = |why: String| Err(Failure::new(Code::Refused, Stage::Plan, why));
        if real.is_dir() {
            return match files::astray(real, &self.roots) {
                Some(path) => refused(format!(
                    "`{text}` holds `{}`, which leads out of what may be read or is no file; take it out, or name a folder without it",
                    path.strip_prefix(real).unwrap_or(&path).display()
                )),
                None => Ok(()),
            };
        }
        if real.is_file() {
            return Ok(());
        }
        refused(format!("`{text}` is a pipe, a socket or a device; a table is a file or a folder"))
    }

    fn holds(&self, real: &FilePath) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// The refusal of a place, with what is allowed. Names folders as the operator gave them, no credentials.
    pub fn refusal(&self, what: &str) -> Failure {
        let mut allowed: Vec<String> = self.roots.iter().map(|r| r.display().to_string()).collect();
        allowed.extend(self.listed.iter().map(|(url, _)| url.to_string()));
        let allowed = if allowed.is_empty() { "nothing is".to_owned() } else { allowed.join(", ") };
        Failure::new(Code::Refused, Stage::Plan, format!("`{what}` is not among what may be read; allowed: {allowed}"))
    }

    fn store(&self, url: &Url) -> std::result::Result<(Arc<dyn ObjectStore>, Rule), Failure> {
        if url.scheme() == "file" {
            return Ok((Arc::new(LocalFileSystem::new()), Rule::Roots(Arc::clone(&self.roots))));
        }
        let authority = |u: &Url| (u.scheme().to_owned(), u.host_str().map(str::to_owned), u.port_or_known_default());
        let fit: Vec<&(Url, StoreAccess)> =
            self.listed.iter().filter(|(listed, _)| authority(listed) == authority(url)).collect();
        let Some((_, access)) = fit.first() else { return Err(self.refusal(url.as_str())) };
        let rule =
            Rule::Below(fit.iter().map(|(listed, _)| Path::from_url_path(listed.path()).unwrap_or_default()).collect());
        let key = format!("{}://{}", url.scheme(), &url[url::Position::BeforeHost..url::Position::AfterPort]);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match made.get(&key) {
            Some(store) => Arc::clone(store),
            None => {
                let store = make(url, access)
                    .map_err(|e| Failure::new(Code::Execution, Stage::Plan, format!("{key} cannot be used: {e}")))?;
                made.insert(key, Arc::clone(&store));
                store
            }
        };
        Ok((store, rule))
    }
}

fn below(listed: &Url, url: &Url) -> bool {
    let same = listed.scheme() == url.scheme()
        && listed.host_str() == url.host_str()
        && listed.port_or_known_default() == url.port_or_known_default();
    let (Ok(listed), Ok(path)) = (Path::from_url_path(listed.path()), Path::from_url_path(url.path())) else {
        return false;
    };
    same && url.username().is_empty() && url.password().is_none() && path.prefix_matches(&listed)
}

fn make(url: &Url, access: &StoreAccess) -> Result<Arc<dyn ObjectStore>> {
    // Somebody waits for the answer: the library's own patience is three minutes.
    let retry = RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
    if url.scheme() != "s3" {
        let base = &url[..url::Position::BeforePath];
        let straight = Straight { https_only: url.scheme() != "http" };
        return Ok(Arc::new(
            HttpBuilder::new().with_url(base).with_http_connector(straight).with_retry(retry).build()?,
        ));
    }
    let plain = access.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let mut builder = AmazonS3Builder::new()
        .with_retry(retry)
        .with_http_connector(Straight { https_only: !plain })
        .with_bucket_name(url.host_str().unwrap_or_default())
        .with_region(access.region.clone().unwrap_or_else(|| "us-east-1".into()));
    if let Some(endpoint) = &access.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(plain);
    }
    builder = match (&access.access_key_id, &access.secret_access_key) {
        (Some(id), Some(secret)) => builder.with_access_key_id(id).with_secret_access_key(&secret.0),
        _ => builder.with_skip_signature(true),
    };
    if let Some(token) = &access.session_token {
        builder = builder.with_token(&token.0);
    }
    Ok(Arc::new(builder.build()?))
}

/// The registry of one statement: it counts the bytes that the statement asks for.
#[derive(Debug)]
pub struct Counting {
    /// What may be read.
    pub reach: Arc<Reach>,
    /// Bytes asked for so far.
    pub bytes: Arc<AtomicU64>,
}

impl ObjectStoreRegistry for Counting {
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> DfResult<Arc<dyn ObjectStore>> {
        let (inner, rule) = self.reach.store(url).map_err(failures::carry)?;
        Ok(Arc::new(Fence { inner, rule, reach: Arc::clone(&self.reach), bytes: Arc::clone(&self.bytes) }))
    }
}

#[derive(Clone, Debug)]
enum Rule {
    /// Files whose real path is below one of these.
    Roots(Arc<[PathBuf]>),
    /// Objects below one of these.
    Below(Vec<Path>),
}

impl Rule {
    fn allows(&self, location: &Path) -> bool {
        match self {
            Rule::Below(prefixes) => prefixes.iter().any(|p| location.prefix_matches(p)),
            Rule::Roots(roots) => LocalFileSystem::new()
                .path_to_filesystem(location)
                .ok()
                .and_then(|path| path.canonicalize().ok())
                .is_some_and(|real| roots.iter().any(|root| real.starts_with(root))),
        }
    }
}

/// A store that reads what its rule allows, and writes nothing but files of an export.
#[derive(Debug)]
struct Fence {
    inner: Arc<dyn ObjectStore>,
    rule: Rule,
    reach: Arc<Reach>,
    bytes: Arc<AtomicU64>,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Fence {
    fn check(&self, location: &Path) -> Result<()> {
        if self.rule.allows(location) {
            return Ok(());
        }
        if let (Rule::Roots(roots), Ok(path)) = (&self.rule, LocalFileSystem::new().path_to_filesystem(location))
            && !path.exists()
            && roots.iter().any(|root| path.starts_with(root))
        {
            return Err(object_store::Error::NotFound { path: location.to_string(), source: "it was removed".into() });
        }
        Err(object_store::Error::PermissionDenied {
            path: location.to_string(),
            source: Box::new(failures::Carried(self.reach.refusal(location.as_ref()))),
        })
    }

    fn check_export(&self, location: &Path) -> Result<()> {
        if let (Rule::Roots(_), Some(root)) = (&self.rule, self.reach.export())
            && LocalFileSystem::new().path_to_filesystem(location).is_ok_and(|path| export::holds(root, &path))
        {
            return Ok(());
        }
        Fence::read_only()
    }

    fn read_only<T>() -> Result<T> {
        Err(object_store::Error::NotSupported { source: "files are only read here".into() })
    }
}

#[async_trait]
impl ObjectStore for Fence {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.check_export(location)?;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check_export(location)?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check(location)?;
        let head = options.head;
        let result = self.inner.get_opts(location, options).await?;
        if !head {
            self.bytes.fetch_add(result.range.end - result.range.start, Ordering::Relaxed);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(location)?;
        self.bytes.fetch_add(ranges.iter().map(|r| r.end - r.start).sum(), Ordering::Relaxed);
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        futures::stream::once(async { Fence::read_only() }).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let rule = self.rule.clone();
        // Listing starts inside: a folder outside would be walked before it is filtered.
        if let Some(prefix) = prefix
            && let Err(e) = self.check(prefix)
        {
            return futures::stream::once(async { Err(e) }).boxed();
        }
        self.inner.list(prefix).try_filter(move |meta| futures::future::ready(rule.allows(&meta.location))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        if let Some(prefix) = prefix {
            self.check(prefix)?;
        }
        let mut result = self.inner.list_with_delimiter(prefix).await?;
        result.objects.retain(|meta| self.rule.allows(&meta.location));
        Ok(result)
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Fence::read_only()
    }
}
