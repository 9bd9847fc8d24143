//! The HTTP client of remote files. It follows no redirect: a listed host must not send a statement to one that is not.

use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector};
use reqwest::redirect::Policy;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long one request may take, its answer's body included.
const REQUEST: Duration = Duration::from_secs(60);

/// Makes clients that ask the host that they are told to ask, and no other: no redirect, no proxy of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Straight {
    /// Only HTTPS.
    pub https_only: bool,
}

impl HttpConnector for Straight {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .https_only(self.https_only)
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .build()
            .map_err(|error| object_store::Error::Generic { store: "http", source: Box::new(error) })?;
        Ok(HttpClient::new(client))
    }
}
