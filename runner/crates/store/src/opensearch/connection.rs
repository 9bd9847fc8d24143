//! Sends requests, and sends them again when that helps and does no harm.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_credential_types::Credentials as AwsCredentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::region::Region;
use bytes::Bytes;
use firesteel_session::ports::StoreError;
use opensearch::auth::Credentials;
use opensearch::cert::{Certificate, CertificateValidation};
use opensearch::http::Method;
use opensearch::http::headers::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use opensearch::http::transport::{SingleNodeConnectionPool, Transport, TransportBuilder};
use tokio::sync::OnceCell;

use super::answer::{Answer, is_worth_another_try, no_answer};
use super::options::{Auth, OpenSearchOptions};

/// The first wait between tries, in milliseconds; each next one is twice as long.
const FIRST_WAIT: u64 = 50;

/// One request. Its path is made of names that were checked, never of ids.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub path: String,
    pub query: Vec<(&'static str, &'static str)>,
    pub body: Bytes,
    /// It may change something: an answer that is lost leaves that unknown.
    pub writes: bool,
}

/// A connection that is made at the first request.
pub struct Connection {
    options: OpenSearchOptions,
    transport: OnceCell<Transport>,
    requests: AtomicU64,
    random: Mutex<u64>,
}

impl fmt::Debug for Connection {
    /// Without the transport, whose own form shows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.options).finish()
    }
}

impl Connection {
    pub fn new(options: OpenSearchOptions) -> Connection {
        let random = Mutex::new(options.seed);
        Connection { options, transport: OnceCell::new(), requests: AtomicU64::new(0), random }
    }

    /// How many requests were sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The answer, whatever its status.
    pub async fn send(&self, request: &Request) -> Result<Answer, StoreError> {
        let transport = self.transport.get_or_try_init(|| async { self.connect() }).await?;
        let (mut tries, mut waited) = (1, Duration::ZERO);
        loop {
            let (outcome, again, after) = match self.once(transport, request).await {
                Ok(answer) => {
                    let again = is_worth_another_try(answer.status, request.writes);
                    let after = answer.retry_after;
                    (Ok(answer), again, after)
                }
                Err(error) => {
                    let (told, unsent) = no_answer(&error, self.options.url(), request.writes);
                    // A read that got no answer in time has waited long enough.
                    (Err(told), unsent || (!request.writes && !error.is_timeout()), None)
                }
            };
            let wait = self.wait(tries).max(after.unwrap_or_default());
            if !again || tries >= self.options.tries || waited + wait > self.options.patience {
                return outcome;
            }
            tokio::time::sleep(wait).await;
            tries += 1;
            waited += wait;
        }
    }

    async fn once(&self, transport: &Transport, request: &Request) -> Result<Answer, opensearch::Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut headers = HeaderMap::new();
        if request.path == "/_bulk" {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        }
        let body = Some(request.body.clone()).filter(|b| !b.is_empty());
        let query = Some(&request.query).filter(|q| !q.is_empty());
        let timeout = Some(self.options.timeout);
        let response = transport.send(request.method, &request.path, headers, query, body, timeout).await?;
        let status = response.status_code().as_u16();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
        Ok(Answer { status, retry_after: seconds.map(Duration::from_secs), body: response.bytes().await? })
    }

    /// Half of the wait is certain, half is chance: many clients that failed at once don't come back at once.
    fn wait(&self, tries: u32) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        // SplitMix64.
        *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let half = (FIRST_WAIT << tries.min(10)) / 4;
        Duration::from_millis(half + (z ^ (z >> 31)) % half)
    }

    fn connect(&self) -> Result<Transport, StoreError> {
        let mut builder = TransportBuilder::new(SingleNodeConnectionPool::new(self.options.url.clone()));
        let validation = match &self.options.ca_file {
            // Nothing is validated over http, and the platform's roots take 50 ms to load.
            _ if self.options.url.scheme() == "http" => CertificateValidation::None,
            None => CertificateValidation::Default,
            Some(file) => {
                let named = |why: String| StoreError::Refused(format!("CA file `{}`: {why}", file.display()));
                let pem = std::fs::read(file).map_err(|e| named(e.to_string()))?;
                let none = |_| named("should hold certificates in PEM".to_owned());
                CertificateValidation::Full(Certificate::from_pem(&pem).map_err(none)?)
            }
        };
        builder = builder.cert_validation(validation);
        match &self.options.auth {
            Auth::None => {}
            Auth::Basic { username, password } => {
                builder = builder.auth(Credentials::Basic(username.clone(), password.clone()));
            }
            Auth::SigV4 { region, access_key, secret_key, session_token } => {
                let keys = AwsCredentials::new(access_key, secret_key, session_token.clone(), None, "environment");
                let region = Region::new(region.clone());
                builder = builder
                    .auth(Credentials::AwsSigV4(SharedCredentialsProvider::new(keys), region))
                    .service_name("es");
            }
        }
        builder.build().map_err(|e| StoreError::Refused(format!("no connection can be set up: {e}")))
    }
}
