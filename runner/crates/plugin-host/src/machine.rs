//! The machine that runs plugins: one in a process, with a ticker that interrupts calls that take too long.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{MOST_MEMORY, STACK};

/// How often a call is asked whether it is late.
const TICK: Duration = Duration::from_millis(5);
/// The ticker rests after so many ticks without a call.
const REST: u32 = 200;
/// How many instances can be at work at once.
const INSTANCES: u32 = 128;

/// Runs plugins.
pub struct Machine {
    engine: Engine,
    ticker: Arc<Ticker>,
    /// For guests with WASI: their timers, files and sockets.
    runtime: OnceLock<Runtime>,
}

impl Machine {
    /// The one of this process, made when it is first needed.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn shared() -> Result<Arc<Machine>, String> {
        static SHARED: Mutex<Option<Arc<Machine>>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*shared {
            Some(machine) => Ok(Arc::clone(machine)),
            None => Ok(Arc::clone(shared.insert(Machine::new()?))),
        }
    }

    /// A machine with its ticker.
    ///
    /// # Errors
    /// The address space that it reserves is not to be had, or no thread.
    pub fn new() -> Result<Arc<Machine>, String> {
        let engine = Engine::new(&config(true)).map_err(|e| format!("plugins cannot run here: {e}"))?;
        let ticker = Arc::new(Ticker::default());
        let (ticking, weak) = (Arc::clone(&ticker), engine.weak());
        let thread = thread::Builder::new()
            .name("plugin-ticker".into())
            .spawn(move || ticking.tick(&weak))
            .map_err(|e| format!("plugins cannot run here: {e}"))?;
        let _ = ticker.thread.set(thread.thread().clone());
        Ok(Arc::new(Machine { engine, ticker, runtime: OnceLock::new() }))
    }

    /// The engine that everything belongs to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Calls are asked whether they are late for as long as this lives.
    pub fn watch(&self) -> Watching<'_> {
        if self.ticker.calls.fetch_add(1, Ordering::SeqCst) == 0
            && self.ticker.resting.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.ticker.thread.get()
        {
            thread.unpark();
        }
        Watching(&self.ticker)
    }

    /// Where the timers, files and sockets of guests with WASI are served.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn runtime(&self) -> Result<Handle, String> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.handle().clone());
        }
        let made = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("plugin-io")
            .enable_all()
            .build()
            .map_err(|e| format!("plugins with WASI cannot run here: {e}"))?;
        Ok(self.runtime.get_or_init(|| made).handle().clone())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.ticker.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.ticker.thread.get() {
            thread.unpark();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What code is compiled for, and what runs it. `pooled`: it runs here; else it is only compiled.
pub fn config(pooled: bool) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).max_wasm_stack(STACK).async_stack_size(2 * STACK);
    if pooled {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(INSTANCES)
            .max_component_instance_size(4 << 20)
            .total_core_instances(8 * INSTANCES)
            .max_core_instances_per_component(64)
            .max_core_instance_size(4 << 20)
            .total_memories(INSTANCES)
            .max_memories_per_component(8)
            .max_memory_size(usize::try_from(MOST_MEMORY).unwrap_or(usize::MAX))
            .total_tables(4 * INSTANCES)
            .max_tables_per_component(32)
            .table_elements(100_000)
            .total_stacks(INSTANCES)
            .max_unused_warm_slots(8);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// What keeps calls watched.
pub struct Watching<'a>(&'a Ticker);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Ticker {
    calls: AtomicUsize,
    resting: AtomicBool,
    over: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Ticker {
    /// Ticks while there are calls, and a little longer: to wake a thread costs more than most calls.
    fn tick(&self, engine: &wasmtime::EngineWeak) {
        let mut idle = 0;
        while !self.over.load(Ordering::SeqCst) {
            idle = if self.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            if idle > REST {
                self.resting.store(true, Ordering::SeqCst);
                // A call that began before it was known that this rests has not woken it.
                if self.calls.load(Ordering::SeqCst) == 0 {
                    thread::park();
                }
                self.resting.store(false, Ordering::SeqCst);
                idle = 0;
                continue;
            }
            thread::sleep(TICK);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    }
}
