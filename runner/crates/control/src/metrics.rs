//! The metrics endpoint: Prometheus' text at `/metrics`.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use firesteel_session::counters::Counters;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// Prometheus' name of what `encode` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves these counters until the returned future is dropped.
pub fn metrics(listener: TcpListener, counters: &Counters) -> impl Future<Output = io::Result<()>> + Send + 'static {
    let mut registry = Registry::default();
    counters.register(&mut registry);
    let registry = Arc::new(registry);
    let routes = Router::new().route("/metrics", get(move || text(Arc::clone(&registry))));
    async move { axum::serve(listener, routes).await }
}

async fn text(registry: Arc<Registry>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinSet;

    async fn get(listener_at: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(listener_at).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn what_is_counted_can_be_scraped() {
        let counters = Counters::default();
        counters.statements.inc();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut tasks = JoinSet::new();
        tasks.spawn(metrics(listener, &counters));
        counters.statements.inc();
        let answer = get(address, "/metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: application/openmetrics-text"), "{answer}");
        assert!(answer.contains("\nfiresteel_statements_total 2\n"), "{answer}");
        assert!(get(address, "/other").await.starts_with("HTTP/1.1 404 "));
    }
}
