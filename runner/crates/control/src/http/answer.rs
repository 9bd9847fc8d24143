//! Answers and refusals as JSON, in OpenSearch's form, and requests read from it.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;

/// JSON with this status.
pub fn json(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json; charset=UTF-8")], body.to_string()).into_response()
}

/// The headers that a refusal has beside its body.
pub fn with_headers(mut response: Response, refusal: &Refusal) -> Response {
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    };
    if let Some(seconds) = refusal.retry_after() {
        put(header::RETRY_AFTER, seconds.to_string());
    }
    if matches!(refusal, Refusal::Unauthenticated(_)) {
        put(header::WWW_AUTHENTICATE, "Basic realm=\"firesteel\", Bearer".to_owned());
    }
    response
}

/// A refusal in OpenSearch's form.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (kind, reason) = match &self {
            Refusal::Invalid(_) | Refusal::Conflict(_) => ("IllegalArgumentException", "Invalid Request"),
            Refusal::NoDataSource { .. } => ("DataSourceNotFoundException", "Invalid Request"),
            Refusal::Unauthenticated(_) => ("security_exception", "Unauthorized"),
            Refusal::Forbidden(_) => ("security_exception", "Forbidden"),
            Refusal::NotFound { .. } => ("ResourceNotFoundException", "Not Found"),
            Refusal::Limit { .. } => ("ConcurrencyLimitExceededException", "Too Many Requests"),
            Refusal::NoStore(_) | Refusal::NotLaunched(_) | Refusal::Broken(_) => {
                ("IllegalStateException", "There was internal problem at backend")
            }
        };
        let mut error = json!({ "type": kind, "reason": reason, "details": self.to_string() });
        if let Refusal::Limit { which, value, limit, .. } = &self {
            error["limit"] = json!({ "name": which, "value": value, "limit": limit });
        }
        let status = self.status();
        with_headers(json(status, &json!({ "error": error, "status": status })), &self)
    }
}

/// The fields of a request's body, none of which may be unknown.
pub struct Body(Map<String, Value>);

impl Body {
    /// Reads a body: a JSON object with no other fields than these. An empty body is an empty object.
    pub fn read(bytes: &[u8], known: &[&str]) -> Result<Body, Refusal> {
        let body = Body::read_any(bytes)?;
        if let Some(field) = body.0.keys().find(|field| !known.contains(&field.as_str())) {
            let field: String = field.chars().take(80).collect();
            return Err(Refusal::Invalid(format!(
                "unknown field `{}`; there are {}",
                field.escape_debug(),
                known.join(", ")
            )));
        }
        Ok(body)
    }

    /// Reads a body whose other fields mean nothing here.
    pub fn read_any(bytes: &[u8]) -> Result<Body, Refusal> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Body(Map::new()));
        }
        // The parser's message quotes nothing but its place.
        let bad = |e: serde_json::Error| {
            Refusal::Invalid(format!("the body should be a JSON object (line {}, column {})", e.line(), e.column()))
        };
        serde_json::from_slice(bytes).map(Body).map_err(bad)
    }

    /// A field that is no null.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub fn text(&self, field: &str) -> Result<Option<String>, Refusal> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::Invalid(format!("{field}: it should be text"))),
        }
    }

    /// A text that must be there.
    pub fn needed(&self, field: &str) -> Result<String, Refusal> {
        self.text(field)?.ok_or_else(|| Refusal::Invalid(format!("{field}: it is missing; give a text")))
    }

    /// A whole number, if it is there.
    pub fn number(&self, field: &str) -> Result<Option<u64>, Refusal> {
        match self.get(field) {
            None => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| Refusal::Invalid(format!("{field}: it should be a whole number, not negative"))),
        }
    }
}
