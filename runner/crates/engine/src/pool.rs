//! The workers of one runner: at most so many alive, one of them started ahead, each given to one session for its life.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use firesteel_model::{Code, Failure, Stage};
use firesteel_session::ports::EngineError;
use futures::FutureExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::process::{Peer, Process};
use crate::settings::{PluginSet, Settings};
use crate::spill;
use crate::workers::Workers;

/// Brings the plugin of a language, ready for a worker, or says why it cannot. It may take its time.
pub type Bring = Arc<dyn Fn(&str) -> Result<serde_json::Value, String> + Send + Sync>;

/// Worker processes for any number of sessions. Needs no runtime to be made and starts none of its own; the first worker starts
/// with the first statement, or with [`Pool::warm`].
pub struct Pool {
    settings: RwLock<Arc<Settings>>,
    on_demand: Option<Bring>,
    next: AtomicU64,
    /// One for each worker that may be alive. A worker has it until it is reaped.
    permits: Arc<Semaphore>,
    /// Started, and not yet anybody's.
    spare: Mutex<Option<Process>>,
    alive: Mutex<Vec<Peer>>,
    /// Some worker has nothing more to do.
    idle: Arc<Notify>,
    /// How many wait for a worker to be retired.
    waiting: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool with these settings. Removes what dead runners left in the spill folder; starts nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Arc<Pool> {
        Pool::with_plugins(settings, None)
    }

    /// The same, with whoever brings the plugins of the languages on demand.
    #[must_use]
    pub fn with_plugins(mut settings: Settings, on_demand: Option<Bring>) -> Arc<Pool> {
        // A worker's working folder is another.
        for path in settings.data.iter_mut().chain(&mut settings.spill_dir).chain(&mut settings.executable) {
            *path = std::path::absolute(&*path).unwrap_or_default();
        }
        spill::sweep(&settings);
        Arc::new(Pool {
            permits: Arc::new(Semaphore::new(settings.most_workers())),
            settings: RwLock::new(Arc::new(settings)),
            on_demand,
            next: AtomicU64::new(1),
            spare: Mutex::default(),
            alive: Mutex::default(),
            idle: Arc::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// An engine for one session.
    #[must_use]
    pub fn session(self: &Arc<Self>) -> Workers {
        Workers::of(Arc::clone(self))
    }

    /// Makes sure that a worker can have a folder to spill into.
    ///
    /// # Errors
    /// It can't; the message names the folder.
    pub fn try_spill(&self) -> std::io::Result<()> {
        spill::create(&self.settings()).map(|folder| spill::remove(&folder))
    }

    /// Starts a worker ahead of the next statement, if there is none and there may be one more.
    ///
    /// # Errors
    /// It could not be started.
    pub fn warm(&self) -> Result<(), EngineError> {
        let mut spare = lock(&self.spare);
        if spare.as_ref().is_some_and(Process::is_alive) {
            return Ok(());
        }
        // A dead one gives its permit back when it is reaped, which need not be waited for.
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            *spare = Some(self.spawn(permit)?);
        }
        Ok(())
    }

    /// Ends the worker that was started ahead.
    pub async fn close(&self) {
        let spare = lock(&self.spare).take();
        if let Some(spare) = spare {
            spare.end("the runner leaves").await;
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Workers have these plugins from now on: one that has others is ended after its statement, and another takes its place.
    pub fn replace_plugins(&self, plugins: PluginSet) {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        if settings.plugins == plugins {
            return;
        }
        *settings = Arc::new(Settings { plugins, ..Settings::clone(&settings) });
        drop(settings);
        let spare = lock(&self.spare).take();
        drop(spare);
    }

    /// The plugins on demand that a statement in this language may need: none, if it is SQL and no handler can make something else of it.
    pub(crate) async fn brought(&self, lang: &str) -> Result<Vec<(String, serde_json::Value)>, Failure> {
        let (settings, lang) = (self.settings(), lang.to_lowercase());
        let Some(bring) = self.on_demand.clone().filter(|_| lang != "sql" || !settings.plugins.plugins.is_empty())
        else {
            return Ok(Vec::new());
        };
        let mut brought = Vec::new();
        for language in &settings.plugins.on_demand {
            let (bring, of) = (Arc::clone(&bring), language.clone());
            match tokio::task::spawn_blocking(move || bring(&of)).await {
                Ok(Ok(plugin)) => brought.push((language.clone(), plugin)),
                Ok(Err(why)) if *language == lang => return Err(Failure::new(Code::Plugin, Stage::Accept, why)),
                // Whatever needs it all the same is told that it is not there.
                Ok(Err(why)) => tracing::warn!(language, why, "a plugin of this program cannot be used"),
                Err(_) => tracing::error!(language, "bringing a plugin of this program failed"),
            }
        }
        Ok(brought)
    }

    /// A number that no other statement of these workers has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A worker that is nobody's yet. Where no more may be alive, the one that had nothing to do for longest is ended for it; while
    /// all are busy, it waits, and who waited longer comes first.
    pub(crate) async fn take(&self) -> Result<Process, EngineError> {
        let spare = lock(&self.spare).take();
        if let Some(spare) = spare.filter(|spare| spare.is_alive() && spare.has(&self.settings().plugins)) {
            return Ok(spare);
        }
        let mut permit = pin!(Arc::clone(&self.permits).acquire_owned());
        let mut free = permit.as_mut().now_or_never();
        let _waiting = free.is_none().then(|| Waiting::new(&self.waiting));
        while free.is_none() {
            let mut idle = pin!(self.idle.notified());
            // From here on nothing that becomes idle is missed.
            idle.as_mut().enable();
            self.retire_one();
            tokio::select! {
                biased;
                permit = &mut permit => free = Some(permit),
                () = idle => {}
            }
        }
        match free {
            Some(Ok(permit)) => self.spawn(permit),
            // Nobody closes it.
            _ => Err(EngineError::Died("there are no more workers".into())),
        }
    }

    /// Ends the worker that had nothing to do for longest, unless enough are ending already for all who wait.
    fn retire_one(&self) {
        let mut alive = lock(&self.alive);
        alive.retain(|peer| !peer.is_gone());
        let ending = alive.iter().filter(|peer| peer.is_ending()).count();
        if ending < self.waiting.load(Ordering::SeqCst)
            && let Some((_, longest)) =
                alive.iter().filter_map(|peer| Some((peer.idle_since()?, peer))).min_by_key(|p| p.0)
        {
            longest.retire();
        }
    }

    fn spawn(&self, permit: OwnedSemaphorePermit) -> Result<Process, EngineError> {
        let process = Process::spawn(&self.settings(), permit, Arc::clone(&self.idle)).map_err(|e| {
            EngineError::Failed(
                Failure::new(Code::Internal, Stage::Accept, format!("a worker could not be started: {e}")).retryable(),
            )
        })?;
        let mut alive = lock(&self.alive);
        alive.retain(|peer| !peer.is_gone());
        alive.push(process.peer());
        Ok(process)
    }
}

/// Counts one who waits, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(number: &'a AtomicUsize) -> Waiting<'a> {
        number.fetch_add(1, Ordering::SeqCst);
        Waiting(number)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
