//! WASI for guests whose language needs it: nothing is there, but what is granted.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use firesteel_session::ports::plugins::Surroundings;
use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{FsPerms, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::grants::{Grants, Mode};
use crate::guest::{Guest, Lines, random};

/// What an instance has of WASI.
pub struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    lines: Lines,
    moment: Moment,
}

impl Wasi {
    /// Nothing but the granted folders. No clock but the statement's time, no random numbers but the statement's, no environment, no sockets.
    ///
    /// # Errors
    /// A granted folder cannot be opened.
    pub fn new(grants: &Grants, around: &Arc<dyn Surroundings>) -> Result<Wasi, String> {
        let lines = Lines::default();
        let moment = Moment::default();
        moment.set(around);
        let mut seed = around.seed();
        let numbers = |seed: &mut u64| -> Vec<u8> { (0..512).flat_map(|_| random(seed).to_le_bytes()).collect() };
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdout(lines.clone())
            .stderr(lines.clone())
            .secure_random(Deterministic::new(numbers(&mut seed)))
            .insecure_random(Deterministic::new(numbers(&mut seed)))
            .insecure_random_seed(u128::from(random(&mut seed)))
            .wall_clock(moment.clone())
            .monotonic_clock(moment.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        for (name, directory) in &grants.directories {
            let mode = match directory.mode {
                Mode::Read => FsPerms::ReadOnly,
                Mode::Write => FsPerms::ReadWrite,
            };
            builder
                .preopened_dir(&directory.path, name, mode)
                .map_err(|e| format!("the granted folder `{name}` ({}): {e}", directory.path.display()))?;
        }
        Ok(Wasi { ctx: builder.build(), table: ResourceTable::new(), lines, moment })
    }

    /// A call of this statement begins.
    pub fn begin(&mut self, around: &Arc<dyn Surroundings>) {
        self.moment.set(around);
    }

    /// What was written since it was last asked for.
    pub fn lines(&self) -> Vec<String> {
        self.lines.take()
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.as_mut().expect("only guests with WASI are linked with it");
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

/// The statement's time, as a clock that stands still; the monotonic one goes on by a microsecond when it is looked at.
#[derive(Clone, Default)]
struct Moment {
    since_1970: Arc<Mutex<Duration>>,
    looks: Arc<AtomicU64>,
}

impl Moment {
    fn set(&self, around: &Arc<dyn Surroundings>) {
        let micros = u64::try_from(around.now()).unwrap_or(0);
        *self.since_1970.lock().unwrap_or_else(PoisonError::into_inner) = Duration::from_micros(micros);
    }
}

impl HostWallClock for Moment {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        *self.since_1970.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostMonotonicClock for Moment {
    fn resolution(&self) -> u64 {
        1_000
    }

    fn now(&self) -> u64 {
        self.looks.fetch_add(1_000, Ordering::Relaxed)
    }
}

impl IsTerminal for Lines {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Lines {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Lines {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.write(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
