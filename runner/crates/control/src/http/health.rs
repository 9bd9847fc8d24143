//! Whether this replica lives, whether it can do its work, what it counts, and what may be asked.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use serde_json::json;

use super::{Shared, answer};
use crate::openapi::DOCUMENTS;

/// Prometheus' name of what `encode` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/healthz", get(|| async { answer::json(200, &json!({ "status": "ok" })) }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi", get(|| async { answer::json(200, &json!(DOCUMENTS.map(|(name, _)| name))) }))
        .route("/openapi/{name}", get(document))
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

/// An API's OpenAPI document, by its name, which may end in `.json`.
async fn document(Path(name): Path<String>) -> Response {
    let name = name.trim_end_matches(".json");
    match DOCUMENTS.iter().find(|(its, _)| *its == name) {
        Some((_, text)) => ([(header::CONTENT_TYPE, "application/json; charset=UTF-8")], *text).into_response(),
        None => unknown().await,
    }
}

pub async fn unknown() -> Response {
    let error = json!({ "type": "ResourceNotFoundException", "reason": "Not Found", "details": "no such path" });
    answer::json(404, &json!({ "error": error, "status": 404 }))
}
