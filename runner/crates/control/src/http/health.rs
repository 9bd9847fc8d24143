//! Whether this replica lives, whether it can do its work, and what it counts.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use serde_json::json;

use super::{Shared, answer};

/// Prometheus' name of what `encode` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/healthz", get(|| async { answer::json(200, &json!({ "status": "ok" })) }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

async fn ready(State(shared): State<Shared>) -> Response {
    match shared.plane.admission.in_use().await {
        Ok((sessions, statements)) => {
            answer::json(200, &json!({ "status": "ok", "sessions": sessions, "statements": statements }))
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &shared.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub async fn unknown() -> Response {
    let error = json!({ "type": "ResourceNotFoundException", "reason": "Not Found", "details": "no such path" });
    answer::json(404, &json!({ "error": error, "status": 404 }))
}
