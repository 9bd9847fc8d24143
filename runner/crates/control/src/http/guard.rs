//! Who asks: by a bearer token, or by name and password; and how often they may.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use firesteel_model::Millis;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{LARGEST, Shared, emr, livy};
use crate::access::{Caller, Role};
use crate::refusal::Refusal;
use crate::sigv4::Signed;

/// Somebody who may ask, as the operator's file has them.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Their name.
    pub user: String,
    /// `owner`, `viewer` or `admin`.
    pub role: String,
    /// For `Authorization: Bearer`.
    #[serde(default)]
    pub token: Option<String>,
    /// For `Authorization: Basic`, with the name.
    #[serde(default)]
    pub password: Option<String>,
    /// For requests that AWS's clients sign, with the secret.
    #[serde(default)]
    pub access_key_id: Option<String>,
    /// The secret that they are signed with.
    #[serde(default)]
    pub secret_access_key: Option<String>,
}

/// What a web page cannot add to a request to another site.
const REQUESTED_BY: &str = "x-requested-by";

struct Known {
    caller: Caller,
    token: Option<[u8; 32]>,
    password: Option<[u8; 32]>,
    key: Option<(String, String)>,
}

/// How many requests somebody may still send.
#[derive(Clone, Copy)]
struct Bucket {
    left: u64,
    filled: Millis,
}

/// Who may ask, and how often.
#[derive(Default)]
pub struct Guard {
    /// Nobody: anybody may, as an admin.
    known: Vec<Known>,
    /// Requests a second and caller; 0: any number.
    rate: u64,
    /// Whether changes through Livy's API need the header that its own protection wants.
    header: bool,
    buckets: Mutex<HashMap<String, Bucket>>,
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares digests in a time that does not hang on where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl Guard {
    /// Lets these users ask, each `rate` times a second at most; 0: as often as they like. With no users, anybody may ask.
    ///
    /// # Errors
    /// A user has no name, an unknown role, or nothing to be known by.
    pub fn new(users: &[User], rate: u64) -> Result<Guard, String> {
        let mut known = Vec::new();
        for (n, user) in users.iter().enumerate() {
            let called = format!("user {} of the file", n + 1);
            let role = Role::parse(&user.role)
                .ok_or_else(|| format!("{called}: role should be one of owner, viewer, admin"))?;
            if user.user.is_empty() {
                return Err(format!("{called}: it has no name"));
            }
            if user.token.is_none() && user.password.is_none() && user.access_key_id.is_none() {
                return Err(format!("{called}: it needs a token, a password or an access_key_id"));
            }
            known.push(Known {
                caller: Caller { user: user.user.clone(), role },
                token: user.token.as_deref().map(digest),
                password: user.password.as_deref().map(digest),
                key: user.access_key_id.clone().zip(user.secret_access_key.clone()),
            });
        }
        Ok(Guard { known, rate, ..Guard::default() })
    }

    /// Wants `X-Requested-By` of whoever changes something through Livy's API, as Livy does where its protection is on.
    #[must_use]
    pub fn wanting_header(self, header: bool) -> Guard {
        Guard { header, ..self }
    }

    /// That no web page has a browser send this: one cannot add the header to a request to another site, and a browser adds `Origin`.
    fn no_page(&self, request: &Request) -> Result<(), Refusal> {
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !changes || request.headers().contains_key(REQUESTED_BY) {
            return Ok(());
        }
        if self.header && livy::is_path(request.uri().path()) {
            return Err(Refusal::Invalid("Missing Required Header for CSRF protection: X-Requested-By".to_owned()));
        }
        if request.headers().contains_key(header::ORIGIN) {
            let said = "a web page sent this; if that is meant, have it send the header X-Requested-By, too";
            return Err(Refusal::Forbidden(said.to_owned()));
        }
        Ok(())
    }

    /// Whether anybody has to say who they are.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.known.is_empty()
    }

    /// Who asks.
    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        if self.is_open() {
            return Ok(Caller::anybody());
        }
        let said = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (scheme, rest) = said.split_once(' ').unwrap_or((said, ""));
        let found = if scheme.eq_ignore_ascii_case("bearer") {
            let token = digest(rest.trim());
            self.known.iter().find(|known| known.token.as_ref().is_some_and(|its| same(its, &token)))
        } else if scheme.eq_ignore_ascii_case("basic") {
            let decoded = BASE64_STANDARD.decode(rest.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            decoded.as_deref().and_then(|text| text.split_once(':')).and_then(|(name, password)| {
                let password = digest(password);
                let is = |known: &&Known| {
                    known.caller.user == name && known.password.as_ref().is_some_and(|its| same(its, &password))
                };
                self.known.iter().find(is)
            })
        } else {
            None
        };
        found.map(|known| known.caller.clone()).ok_or_else(|| {
            Refusal::Unauthenticated(
                "say who you are: Authorization: Bearer TOKEN, or Basic with a password".to_owned(),
            )
        })
    }

    /// Takes one of the requests that the caller may send.
    fn take(&self, who: &str, now: Millis) -> Result<(), Refusal> {
        if self.rate == 0 {
            return Ok(());
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > 10_000 {
            buckets.retain(|_, bucket| now.since(bucket.filled) < 1_000);
        }
        let bucket = buckets.entry(who.to_owned()).or_insert(Bucket { left: self.rate, filled: now });
        if now.since(bucket.filled) >= 1_000 {
            *bucket = Bucket { left: self.rate, filled: now };
        }
        if bucket.left == 0 {
            let (value, limit) =
                (u32::try_from(self.rate).unwrap_or(u32::MAX), u32::try_from(self.rate).unwrap_or(u32::MAX));
            return Err(Refusal::Limit { which: "requests a second".to_owned(), value, limit, retry_after: 1 });
        }
        bucket.left -= 1;
        Ok(())
    }
}

/// A request that AWS's clients signed: whose it is, and the request again.
async fn signed(shared: &Shared, request: Request, now: u64) -> Result<(Caller, Request), Refusal> {
    let refused = || Refusal::Unauthenticated("the signature is by no key that is known here".to_owned());
    let (parts, body) = request.into_parts();
    let too_large = |_| Refusal::Invalid(format!("a request has at most {LARGEST} bytes"));
    let body = axum::body::to_bytes(body, LARGEST).await.map_err(too_large)?;
    let said = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signature = Signed::read(said).ok_or_else(refused)?;
    let by = |known: &&Known| {
        known.key.as_ref().is_some_and(|(id, secret)| {
            id == signature.key && signature.is_by(secret, &parts.method, &parts.uri, &parts.headers, &body, now)
        })
    };
    let caller = shared.guard.known.iter().find(by).map(|known| known.caller.clone()).ok_or_else(refused)?;
    Ok((caller, Request::from_parts(parts, body.into())))
}

async fn known(shared: &Shared, request: Request) -> Result<(Caller, Request), Refusal> {
    let said = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if shared.guard.is_open() || !said.is_some_and(|said| said.starts_with("AWS4-HMAC-SHA256")) {
        return Ok((shared.guard.caller(request.headers())?, request));
    }
    let now = shared.plane.store.time().await?;
    signed(shared, request, now).await
}

/// Lets a request through whose sender is known, and tells the handler who it is.
pub async fn check(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    // Each API's clients read refusals in its own form.
    let refused: fn(Refusal) -> Response = match request.uri().path() {
        path if path.starts_with(emr::ROOT) => |refusal| emr::failed(&refusal),
        path if livy::is_path(path) => |refusal| livy::failed(&refusal),
        _ => Refusal::into_response,
    };
    if let Err(refusal) = shared.guard.no_page(&request) {
        return refused(refusal);
    }
    let (caller, mut request) = match known(&shared, request).await {
        Ok(known) => known,
        Err(refusal) => return refused(refusal),
    };
    if let Err(refusal) = shared.guard.take(&caller.user, shared.plane.clock.now()) {
        return refused(refusal);
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(user: &str, role: &str, token: Option<&str>, password: Option<&str>) -> User {
        let (token, password) = (token.map(str::to_owned), password.map(str::to_owned));
        let (user, role) = (user.to_owned(), role.to_owned());
        User { user, role, token, password, access_key_id: None, secret_access_key: None }
    }

    fn headers(authorization: &str) -> HeaderMap {
        [(header::AUTHORIZATION, authorization.parse().expect("a header"))].into_iter().collect()
    }

    #[test]
    fn a_caller_is_known_by_a_token_or_by_name_and_password_and_by_nothing_else() {
        let users = [user("ann", "owner", Some("t1"), None), user("bob", "viewer", None, Some("p:2"))];
        let guard = Guard::new(&users, 0).expect("users");
        let who = |said: &str| guard.caller(&headers(said)).map(|caller| (caller.user, caller.role)).ok();
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert_eq!(who("Bearer t1"), Some(("ann".to_owned(), Role::Owner)));
        assert_eq!(who(&basic("bob:p:2")), Some(("bob".to_owned(), Role::Viewer)));
        for said in ["Bearer t2", "Bearer ", "Basic x", "", "t1", &basic("ann:t1"), &basic("bob:"), &basic("bob:p")] {
            assert_eq!(who(said), None, "{said}");
        }
        assert_eq!(Guard::default().caller(&HeaderMap::new()), Ok(Caller::anybody()));
    }

    #[test]
    fn a_page_s_request_changes_nothing_and_livy_s_header_is_wanted_where_that_is_set() {
        let open = Guard::default();
        let strict = Guard::default().wanting_header(true);
        let told = |guard: &Guard, method: &str, path: &str, headers: &[&str]| {
            let request = Request::builder().method(method).uri(path);
            let request = headers.iter().fold(request, |request, name| request.header(*name, "x"));
            guard.no_page(&request.body(axum::body::Body::empty()).expect("a request")).map_err(|e| e.status())
        };
        assert_eq!(told(&open, "POST", "/sessions", &[]), Ok(()));
        assert_eq!(told(&open, "POST", "/_plugins/_async_query", &["origin"]), Err(403));
        assert_eq!(told(&open, "POST", "/_plugins/_async_query", &["origin", "x-requested-by"]), Ok(()));
        assert_eq!(told(&strict, "POST", "/sessions", &[]), Err(400));
        assert_eq!(told(&strict, "DELETE", "/batches/1", &[]), Err(400));
        assert_eq!(told(&strict, "POST", "/sessions", &["x-requested-by"]), Ok(()));
        assert_eq!(told(&strict, "GET", "/sessions", &["origin"]), Ok(()));
        assert_eq!(told(&strict, "POST", "/_plugins/_async_query", &[]), Ok(()));
    }

    #[test]
    fn a_user_without_anything_to_be_known_by_is_a_mistake() {
        let told = |users: &[User]| Guard::new(users, 0).err();
        assert_eq!(
            told(&[user("a", "owner", None, None)]).as_deref(),
            Some("user 1 of the file: it needs a token, a password or an access_key_id")
        );
        assert_eq!(
            told(&[user("a", "king", Some("t"), None)]).as_deref(),
            Some("user 1 of the file: role should be one of owner, viewer, admin")
        );
    }

    #[test]
    fn nobody_sends_more_requests_in_a_second_than_they_may() {
        let guard = Guard::new(&[], 2).expect("no users");
        let taken = |who: &str, at: u64| guard.take(who, Millis(at)).is_ok();
        assert_eq!([taken("a", 0), taken("a", 1), taken("a", 2), taken("b", 2)], [true, true, false, true]);
        assert!(taken("a", 1_000));
    }
}
