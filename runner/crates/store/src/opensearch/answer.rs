//! What an answer of OpenSearch, or its absence, means for the caller.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use firesteel_session::ports::StoreError;
use serde_json::Value;

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
    pub retry_after: Option<Duration>,
}

/// The type of error in a body, if it is one: OpenSearch's `reason` quotes documents, so it is told to nobody.
pub fn error_type(body: &Value) -> &str {
    let error = &body["error"];
    let kind = error["root_cause"][0]["type"].as_str().or_else(|| error["type"].as_str()).unwrap_or("no reason given");
    if kind.len() <= 100 && kind.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == ' ') {
        kind
    } else {
        "an unknown error"
    }
}

/// What a status that is no success says, of a whole request or of one item of a bulk.
pub fn refusal(status: u16, kind: &str, writes: bool) -> StoreError {
    let told = format!("OpenSearch answered {status} ({kind})");
    match status {
        409 => StoreError::Conflict,
        429 | 502 | 503 => StoreError::Unavailable(told),
        408 | 500 | 504 if writes => StoreError::Unknown(told),
        408 | 500 | 504 => StoreError::Unavailable(told),
        401 => StoreError::Refused(format!("{told}; check the user and password or the AWS credentials")),
        403 => StoreError::Refused(format!(
            "{told}; this user may not do that: grant it the indices, or free the disk if they are blocked"
        )),
        413 => {
            StoreError::Refused(format!("{told}; lower the limits on a result's size or raise http.max_content_length"))
        }
        400 => StoreError::Refused(format!("{told}; compare the index's mapping with ours")),
        _ => StoreError::Refused(told),
    }
}

/// Whether sending a request again may help, and may do no harm.
pub fn is_worth_another_try(status: u16, writes: bool) -> bool {
    matches!(status, 429 | 502 | 503) || (status == 504 && !writes)
}

/// What no answer at all of the server at `url` means. True: the request was never sent, and may be sent again.
pub fn no_answer(error: &opensearch::Error, url: &str, writes: bool) -> (StoreError, bool) {
    let mut source = error.source();
    let (mut unsent, mut cause) = (false, None);
    while let Some(error) = source {
        unsent |= error.downcast_ref::<reqwest::Error>().is_some_and(|e| e.is_connect() || e.is_builder());
        // The innermost says what happened; the outer ones repeat the URL.
        cause = Some(error.to_string());
        source = error.source();
    }
    let cause = match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false => cause.unwrap_or_else(|| error.to_string()),
    };
    let url = url.trim_end_matches('/');
    if let Some(why) = cause.strip_prefix("invalid peer certificate: ") {
        return (StoreError::Refused(certificate(url, why)), false);
    }
    let cause = format!("{url}: {cause}");
    match unsent || !writes {
        true => (StoreError::Unavailable(cause), unsent),
        false => (StoreError::Unknown(cause), unsent),
    }
}

/// What to do about a certificate that is not trusted.
fn certificate(url: &str, why: &str) -> String {
    let remedy = if why.contains("UnknownIssuer") || why.contains("BadSignature") {
        "name the file of the CA that signed it with --ca-file"
    } else if why.contains("not valid for name") || why.contains("NotValidForName") {
        "use the name that it was made for, or have it made for this one"
    } else if why.contains("expired") || why.contains("Expired") {
        "have the server's certificate renewed, and look at both clocks"
    } else {
        "have it made anew, or name the file of its CA with --ca-file"
    };
    format!("the certificate of {url} is not trusted: {why}; {remedy}")
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body of a success.
    pub fn read(&self, writes: bool) -> Result<Value, StoreError> {
        let body = serde_json::from_slice::<Value>(&self.body);
        if !self.is_success() {
            return Err(refusal(self.status, error_type(&body.unwrap_or_default()), writes));
        }
        body.map_err(|_| {
            let told = "what answered is not OpenSearch: its answer is no JSON".to_owned();
            if writes { StoreError::Unknown(told) } else { StoreError::Corrupt(told) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_says_whether_a_write_may_have_happened() {
        let word = |status, writes| match refusal(status, "x", writes) {
            StoreError::Conflict => "conflict",
            StoreError::Unavailable(_) => "unavailable",
            StoreError::Unknown(_) => "unknown",
            StoreError::Refused(_) => "refused",
            StoreError::Corrupt(_) => "corrupt",
        };
        for (status, write, read) in [
            (409, "conflict", "conflict"),
            (429, "unavailable", "unavailable"),
            (500, "unknown", "unavailable"),
            (502, "unavailable", "unavailable"),
            (503, "unavailable", "unavailable"),
            (504, "unknown", "unavailable"),
            (400, "refused", "refused"),
            (401, "refused", "refused"),
            (403, "refused", "refused"),
            (413, "refused", "refused"),
            (301, "refused", "refused"),
        ] {
            assert_eq!((word(status, true), word(status, false)), (write, read), "{status}");
        }
    }

    #[test]
    fn an_error_s_reason_is_told_to_nobody() {
        let body =
            json!({ "error": { "type": "mapper_parsing_exception", "reason": "Preview of field's value: 'secret'" } });
        assert_eq!(error_type(&body), "mapper_parsing_exception");
        assert_eq!(error_type(&json!({ "error": "SELECT secret" })), "no reason given");
        assert_eq!(error_type(&json!({ "error": { "type": "SELECT 'secret'" } })), "an unknown error");
    }
}
