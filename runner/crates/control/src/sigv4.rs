//! AWS's signature, version 4: of a request that somebody else has signed, and of our own.

use axum::http::{HeaderMap, Method, Uri};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// How far a request's time may be from ours, in milliseconds: AWS's own 15 minutes.
const SKEW: u64 = 15 * 60_000;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What a signed request says of its signature.
#[derive(Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    /// Whose key.
    pub key: &'a str,
    scope: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
}

impl<'a> Signed<'a> {
    /// Reads an `Authorization` header. None: it is none of AWS's.
    #[must_use]
    pub fn read(authorization: &'a str) -> Option<Signed<'a>> {
        let parts = authorization.strip_prefix(ALGORITHM)?.split(',').map(str::trim);
        let (mut credential, mut headers, mut signature) = (None, None, None);
        for part in parts {
            match part.split_once('=')? {
                ("Credential", value) => credential = Some(value),
                ("SignedHeaders", value) => headers = Some(value.split(';').collect()),
                ("Signature", value) => signature = Some(value),
                _ => {}
            }
        }
        let (key, scope) = credential?.split_once('/')?;
        Some(Signed { key, scope, headers: headers?, signature: signature? })
    }

    /// Whether whoever signed it had this secret, and did so about `now`, in epoch milliseconds.
    #[must_use]
    pub fn is_by(&self, secret: &str, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8], now: u64) -> bool {
        let Some(date) = headers.get("x-amz-date").and_then(|date| date.to_str().ok()) else { return false };
        let now_or_so = millis(date).is_some_and(|millis| millis.abs_diff(now) <= SKEW);
        if !now_or_so || !self.headers.contains(&"host") || !self.headers.contains(&"x-amz-date") {
            return false;
        }
        let Some(ours) = self.of(secret, method, uri, headers, body, date) else { return false };
        let differ = ours.bytes().zip(self.signature.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
        differ == 0 && ours.len() == self.signature.len()
    }

    /// The signature that a request by this secret has. None: it has not what it should be signed with.
    fn of(
        &self,
        secret: &str,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &[u8],
        date: &str,
    ) -> Option<String> {
        let mut scope = self.scope.split('/');
        let (day, region, service, end) = (scope.next()?, scope.next()?, scope.next()?, scope.next()?);
        if end != "aws4_request" || !date.starts_with(day) {
            return None;
        }
        let mut canonical =
            format!("{method}\n{}\n{}\n", encoded_path(uri.path()), sorted_query(uri.query().unwrap_or_default()));
        for name in &self.headers {
            let values: Vec<String> =
                headers.get_all(*name).iter().filter_map(|value| value.to_str().ok()).map(plain).collect();
            if values.is_empty() {
                return None;
            }
            canonical.push_str(&format!("{name}:{}\n", values.join(",")));
        }
        canonical.push_str(&format!("\n{}\n{}", self.headers.join(";"), hex(&Sha256::digest(body))));
        let to_sign = format!("{ALGORITHM}\n{date}\n{}\n{}", self.scope, hex(&Sha256::digest(canonical.as_bytes())));
        let key = [day, region, service, end]
            .iter()
            .try_fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part.as_bytes()))?;
        Some(hex(&mac(&key, to_sign.as_bytes())?))
    }
}

/// A key of AWS's.
#[derive(Clone)]
pub struct Key {
    /// Its public part.
    pub id: String,
    /// Its secret part.
    pub secret: String,
    /// Of a key that is lent for a while.
    pub token: Option<String>,
}

/// The headers of a request, signed for a region's service at a time in epoch milliseconds. None: one of them is no header.
#[must_use]
pub fn sign(
    key: &Key,
    (region, service): (&str, &str),
    (method, uri): (&Method, &Uri),
    mut headers: HeaderMap,
    body: &[u8],
    now: u64,
) -> Option<HeaderMap> {
    let date = stamp(now);
    headers.insert("x-amz-date", date.parse().ok()?);
    if let Some(token) = &key.token {
        headers.insert("x-amz-security-token", token.parse().ok()?);
    }
    let mut names: Vec<String> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort_unstable();
    let scope = format!("{}/{region}/{service}/aws4_request", &date[..8]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let signed = Signed { key: &key.id, scope: &scope, headers: names.clone(), signature: "" };
    let signature = signed.of(&key.secret, method, uri, &headers, body, &date)?;
    let said =
        format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={}, Signature={signature}", key.id, names.join(";"));
    headers.insert("authorization", said.parse().ok()?);
    Some(headers)
}

/// Epoch milliseconds as `20261130T235959Z`.
fn stamp(millis: u64) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(0);
    // The proleptic Gregorian calendar, its years beginning in March.
    let (days, of_day) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

fn mac(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A header's value without spaces around it, and none twice in it.
fn plain(value: &str) -> String {
    value.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The path as it was sent, encoded once more, as all services but S3 want it.
fn encoded_path(path: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The parameters in the order of their names, then of their values; each has a value, if only an empty one.
fn sorted_query(query: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// `20261130T235959Z` in epoch milliseconds.
fn millis(date: &str) -> Option<u64> {
    let digits = |range: std::ops::Range<usize>| date.get(range)?.parse::<i64>().ok();
    if date.len() != 16 || date.get(8..9)? != "T" || !date.ends_with('Z') {
        return None;
    }
    let (year, month, day) = (digits(0..4)?, digits(4..6)?, digits(6..8)?);
    // Days since 1970 of the proleptic Gregorian calendar, its years beginning in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + digits(9..11)? * 3_600 + digits(11..13)? * 60 + digits(13..15)?;
    u64::try_from(seconds * 1_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of AWS's documentation ("Create a signed AWS API request": ListUsers).
    #[test]
    fn the_worked_example_of_the_documentation_is_by_its_secret_and_by_no_other() {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        let signed = Signed::read(authorization).expect("AWS's");
        assert_eq!(signed.key, "AKIDEXAMPLE");
        let uri: Uri = "/?Version=2010-05-08&Action=ListUsers".parse().expect("a URI");
        let headers: HeaderMap = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse::<axum::http::HeaderName>().expect("a name"), value.parse().expect("a value")))
        .collect();
        let now = 1_440_938_160_000;
        let by = |secret: &str, body: &[u8], now| signed.is_by(secret, &Method::GET, &uri, &headers, body, now);
        assert!(by(secret, b"", now));
        assert!(by(secret, b"", now + SKEW) && !by(secret, b"", now + SKEW + 1));
        assert!(!by("another", b"", now) && !by(secret, b"changed", now));
        assert_eq!(Signed::read("Bearer x"), None);
        assert_eq!(Signed::read("AWS4-HMAC-SHA256 Credential=a"), None);
    }

    #[test]
    fn what_is_signed_here_is_by_its_key() {
        let key = Key { id: "AKID".to_owned(), secret: "secret".to_owned(), token: Some("token".to_owned()) };
        let uri: Uri = "/applications/a/jobruns?maxResults=50&nextToken=a%2Bb".parse().expect("a path");
        let headers: HeaderMap = [(axum::http::header::HOST, "h:1".parse().expect("a value"))].into_iter().collect();
        let now = 1_709_251_199_000;
        let signed = sign(&key, ("r", "emr-serverless"), (&Method::GET, &uri), headers, b"", now).expect("signed");
        let said = signed["authorization"].to_str().expect("text");
        let by = |secret: &str| Signed::read(said).expect("AWS's").is_by(secret, &Method::GET, &uri, &signed, b"", now);
        assert!(by("secret") && !by("other"));
    }

    #[test]
    fn a_date_is_read_in_leap_years_too() {
        for (date, read) in [
            ("19700101T000000Z", Some(0)),
            ("20150830T123600Z", Some(1_440_938_160_000)),
            ("20240229T235959Z", Some(1_709_251_199_000)),
            ("2024-02-29", None),
        ] {
            assert_eq!(millis(date), read, "{date}");
            if let Some(read) = read {
                assert_eq!(stamp(read), date);
            }
        }
    }
}
