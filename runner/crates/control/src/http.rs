//! The APIs: OpenSearch's async query, sessions, Livy, EMR Serverless; health and metrics beside them.

mod answer;
mod async_query;
mod emr;
mod guard;
mod health;
mod livy;
mod livy_batches;
mod rows;
mod sessions;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::serve::Listener;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::plane::Plane;

pub use guard::{Guard, User};
pub use tls::acceptor;

/// The largest request, in bytes.
pub(crate) const LARGEST: usize = 20_000_000;

/// What every handler is given.
#[derive(Clone)]
pub struct Shared {
    /// The control plane.
    pub plane: Arc<Plane>,
    /// Who may ask.
    pub guard: Arc<Guard>,
    /// What is counted.
    pub registry: Arc<Registry>,
}

/// All routes.
pub fn routes(shared: Shared) -> Router {
    let guarded = Router::new()
        .merge(async_query::routes())
        .merge(sessions::routes())
        .merge(livy::routes())
        .merge(livy_batches::routes())
        .merge(emr::routes())
        .route_layer(middleware::from_fn_with_state(shared.clone(), guard::check));
    Router::new()
        .merge(guarded)
        .merge(health::routes())
        .fallback(health::unknown)
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(shared)
}

/// In how many milliseconds what is being answered may still be answered when the program is to end.
const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_secs(5);

/// Serves the APIs, over TLS if there is an acceptor, until `stop` is ready, and what is being answered then for a moment longer.
///
/// # Errors
/// The listener's.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Shared,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    match tls {
        None => answer(listener, shared, stop).await,
        Some(acceptor) => answer(tls::Secured::new(listener, acceptor)?, shared, stop).await,
    }
}

async fn answer<L: Listener<Addr = SocketAddr>>(
    listener: L,
    shared: Shared,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let stop = async move {
        stop.await;
        let _ = stopping.send(());
    };
    let serving = axum::serve(listener, routes(shared)).with_graceful_shutdown(stop);
    let late = async move {
        if stopped.await.is_ok() {
            tokio::time::sleep(LAST_ANSWERS).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        served = serving.into_future() => served,
        () = late => Ok(()),
    }
}
