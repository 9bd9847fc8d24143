//! One instance of a plugin, and how a call of it is made, watched and ended.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use firesteel_session::ports::plugins::{Surroundings, Wrong};
use tokio::runtime::Handle;
use wasmtime::component::{ComponentNamedList, Instance as Component, InstancePre, Lift, Lower, TypedFunc};
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use crate::bindings::exports::firesteel::plugin as wit;
use crate::clock;
use crate::guest::{Budget, Facts, Guest, Stop};
use crate::limits::{STACK, size};
use crate::wasi::Wasi;

/// How often a guest that waits for WASI is asked whether it is late.
const LOOK: Duration = Duration::from_millis(10);

/// What a component exports of the interface.
pub struct Indices {
    pub manifest: wit::manifest::GuestIndices,
    pub handler: Option<wit::handler::GuestIndices>,
    pub functions: Option<wit::functions::GuestIndices>,
    pub policy: Option<wit::policy::GuestIndices>,
    pub results: Option<wit::results::GuestIndices>,
    pub events: Option<wit::events::GuestIndices>,
}

impl Indices {
    /// What is there; the manifest must be.
    ///
    /// # Errors
    /// It is not.
    pub fn of(pre: &InstancePre<Guest>) -> wasmtime::Result<Indices> {
        Ok(Indices {
            manifest: wit::manifest::GuestIndices::new(pre)?,
            handler: wit::handler::GuestIndices::new(pre).ok(),
            functions: wit::functions::GuestIndices::new(pre).ok(),
            policy: wit::policy::GuestIndices::new(pre).ok(),
            results: wit::results::GuestIndices::new(pre).ok(),
            events: wit::events::GuestIndices::new(pre).ok(),
        })
    }
}

/// The exports of one instance.
pub struct Exports {
    pub manifest: wit::manifest::Guest,
    pub handler: Option<wit::handler::Guest>,
    pub functions: Option<wit::functions::Guest>,
    pub policy: Option<wit::policy::Guest>,
    pub results: Option<wit::results::Guest>,
    pub events: Option<wit::events::Guest>,
}

impl Exports {
    fn load(indices: &Indices, store: &mut Store<Guest>, instance: &Component) -> wasmtime::Result<Exports> {
        fn some<I, G>(index: Option<&I>, load: impl FnOnce(&I) -> wasmtime::Result<G>) -> wasmtime::Result<Option<G>> {
            index.map(load).transpose()
        }
        Ok(Exports {
            manifest: indices.manifest.load(&mut *store, instance)?,
            handler: some(indices.handler.as_ref(), |i| i.load(&mut *store, instance))?,
            functions: some(indices.functions.as_ref(), |i| i.load(&mut *store, instance))?,
            policy: some(indices.policy.as_ref(), |i| i.load(&mut *store, instance))?,
            results: some(indices.results.as_ref(), |i| i.load(&mut *store, instance))?,
            events: some(indices.events.as_ref(), |i| i.load(&mut *store, instance))?,
        })
    }
}

/// An instance, with all that it holds.
pub struct Instance {
    pub exports: Arc<Exports>,
    store: Store<Guest>,
    /// What it held when it was new, in bytes.
    pub born: usize,
    runtime: Option<Handle>,
}

impl Instance {
    /// Makes one. Its start functions run, in the time of a short call.
    pub fn new(
        engine: &Engine,
        pre: &InstancePre<Guest>,
        indices: &Indices,
        facts: &Arc<Facts>,
        wasi: Option<(Box<Wasi>, Handle)>,
        around: &Arc<dyn Surroundings>,
    ) -> Result<Instance, Broken> {
        let (wasi, runtime) = wasi.unzip();
        let mut store = Store::new(engine, Guest::new(Arc::clone(facts), wasi));
        store.limiter(|guest| &mut guest.meter);
        store.epoch_deadline_callback(|context| match context.data().due() {
            Some(wrong) => Err(Stop(wrong).into()),
            None => Ok(UpdateDeadline::Continue(1)),
        });
        store.set_epoch_deadline(1);
        store.set_hostcall_fuel(usize::try_from(facts.limits.result).unwrap_or(usize::MAX));
        store.data_mut().begin(around, Budget::Short).map_err(|wrong| Broken { wrong, trace: None })?;
        let made = match &runtime {
            None => pre.instantiate(&mut store),
            Some(runtime) => watched(runtime, Watch::of(&store, around), pre.instantiate_async(&mut store)),
        };
        let made = made.and_then(|instance| Exports::load(indices, &mut store, &instance));
        match made {
            Ok(exports) => {
                store.data_mut().end();
                let born = store.data().meter.held();
                Ok(Instance { exports: Arc::new(exports), store, born, runtime })
            }
            Err(error) => Err(broken(&error, store.data_mut())),
        }
    }

    /// What it holds, in bytes.
    pub fn held(&self) -> usize {
        self.store.data().meter.held()
    }

    /// Calls a function. After an error the instance is good for nothing.
    pub fn call<P, R>(
        &mut self,
        around: &Arc<dyn Surroundings>,
        budget: Budget,
        function: &TypedFunc<P, R>,
        parameters: P,
    ) -> Result<R, Broken>
    where
        P: ComponentNamedList + Lower + Send + Sync,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        self.store.data_mut().begin(around, budget).map_err(|wrong| Broken { wrong, trace: None })?;
        let done = match &self.runtime {
            None => function.call(&mut self.store, parameters),
            Some(runtime) => {
                let watch = Watch::of(&self.store, around);
                watched(runtime, watch, function.call_async(&mut self.store, parameters))
            }
        };
        match done {
            Ok(answer) => {
                self.store.data_mut().end();
                Ok(answer)
            }
            Err(error) => Err(broken(&error, self.store.data_mut())),
        }
    }
}

/// A call that came to nothing.
pub struct Broken {
    pub wrong: Wrong,
    /// For the log: where it was.
    pub trace: Option<String>,
}

/// What an error was, seen from outside.
fn broken(error: &wasmtime::Error, guest: &mut Guest) -> Broken {
    let refused = guest.meter.refused();
    let words = guest.end();
    if let Some(Stop(wrong)) = error.downcast_ref::<Stop>() {
        return Broken { wrong: wrong.clone(), trace: None };
    }
    let trap = error.downcast_ref::<Trap>();
    let wrong = match (refused, trap) {
        (Some(refused), _) => refused,
        (None, Some(Trap::StackOverflow)) => {
            Wrong::Limit("stack", format!("it called itself too deeply, a stack has {}", size(STACK as u64)))
        }
        (None, _) => {
            let why = trap.map_or_else(|| error.root_cause().to_string(), |trap| trap.to_string());
            if why.contains("fuel allocated for hostcalls") {
                Wrong::Limit(
                    "result",
                    format!(
                        "it hands over more than {} at once; the operator may raise `limits.result`",
                        size(guest.facts.limits.result)
                    ),
                )
            } else {
                let why = why.strip_prefix("wasm trap: ").unwrap_or(&why);
                Wrong::Broke(words.map_or_else(|| why.to_owned(), |words| format!("{words} ({why})")))
            }
        }
    };
    // The guest's frames; ours tell its author nothing.
    let trace = format!("{error:?}");
    let trace = trace.split("Stack backtrace:").next().unwrap_or_default().to_owned();
    Broken { wrong, trace: Some(trace) }
}

/// When a guest with WASI must come back, even from a wait.
struct Watch {
    until: Option<std::time::Instant>,
    late: Wrong,
    around: Arc<dyn Surroundings>,
}

impl Watch {
    fn of(store: &Store<Guest>, around: &Arc<dyn Surroundings>) -> Watch {
        let guest = store.data();
        Watch { until: guest.until(), late: guest.late(), around: Arc::clone(around) }
    }

    fn due(&self) -> Option<Wrong> {
        if self.around.stopped() {
            return Some(Wrong::Stopped);
        }
        self.until.filter(|until| clock::now() >= *until).map(|_| self.late.clone())
    }
}

/// Runs a guest that may wait, on this very thread, but not longer than it may.
fn watched<R>(runtime: &Handle, watch: Watch, work: impl Future<Output = wasmtime::Result<R>>) -> wasmtime::Result<R> {
    // Timers and sockets are served there; the work itself stays here.
    let _inside = runtime.enter();
    on_this_thread(async move {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = tokio::time::timeout(LOOK, &mut work).await {
                return done;
            }
            if let Some(wrong) = watch.due() {
                return Err(Stop(wrong).into());
            }
        }
    })
}

/// Waits for a future where a runtime may be at work already, which does not let another one begin.
fn on_this_thread<R>(work: impl Future<Output = R>) -> R {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work: Pin<&mut _> = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
