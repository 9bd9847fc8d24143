//! The APIs' OpenAPI documents. A test holds them against the routes and their answers.

/// Each document's name, and its text.
pub const DOCUMENTS: [(&str, &str); 4] = [
    ("async-query", include_str!("../openapi/async-query.json")),
    ("sessions", include_str!("../openapi/sessions.json")),
    ("livy", include_str!("../openapi/livy.json")),
    ("emr-serverless", include_str!("../openapi/emr-serverless.json")),
];
