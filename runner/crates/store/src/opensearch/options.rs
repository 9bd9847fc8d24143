//! How to reach an OpenSearch.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use firesteel_session::ports::StoreError;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::ambient;

/// Who we are to the store. Its `Debug` form holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Auth {
    /// Nobody.
    None,
    /// A user with a password.
    Basic {
        /// The user.
        username: String,
        /// Its password.
        password: String,
    },
    /// AWS Signature Version 4 for the service `es`.
    SigV4 {
        /// Such as `eu-central-1`.
        region: String,
        /// The access key's id.
        access_key: String,
        /// Its secret.
        secret_key: String,
        /// For temporary credentials.
        session_token: Option<String>,
    },
}

impl Auth {
    /// Signature Version 4 with the credentials of the standard variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`
    /// and `AWS_SESSION_TOKEN`, looked up by `variable`.
    ///
    /// # Errors
    /// `Refused` names the variable that is missing.
    pub fn sigv4(region: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Auth, StoreError> {
        let needed = |name: &str| {
            variable(name).filter(|v| !v.is_empty()).ok_or_else(|| {
                StoreError::Refused(format!(
                    "sigv4 needs the environment variable {name}: set it or choose another auth"
                ))
            })
        };
        if region.is_empty() {
            return Err(StoreError::Refused("sigv4 needs a region: set spark.datasource.flint.region".to_owned()));
        }
        Ok(Auth::SigV4 {
            region: region.to_owned(),
            access_key: needed("AWS_ACCESS_KEY_ID")?,
            secret_key: needed("AWS_SECRET_ACCESS_KEY")?,
            session_token: variable("AWS_SESSION_TOKEN").filter(|v| !v.is_empty()),
        })
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Auth::None => "None",
            Auth::Basic { .. } => "Basic",
            Auth::SigV4 { .. } => "SigV4",
        })
    }
}

/// How to reach an OpenSearch, and how patient to be with it.
#[derive(Clone, Debug)]
pub struct OpenSearchOptions {
    pub(super) url: Url,
    /// Who we are.
    pub auth: Auth,
    /// Certificates in PEM that are trusted besides the platform's.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take.
    pub timeout: Duration,
    /// How often a request is sent that the store was too busy for, or could not be reached for.
    pub tries: u32,
    /// How long all waits between those tries may take.
    pub patience: Duration,
    /// Where the jitter of those waits begins: differs from process to process, a test sets it.
    pub seed: u64,
}

impl OpenSearchOptions {
    /// The defaults for a URL. A user and password in it become [`Auth::Basic`] and are never shown.
    ///
    /// # Errors
    /// `Refused`: it is no `http` or `https` URL.
    pub fn new(url: &str) -> Result<OpenSearchOptions, StoreError> {
        // Not with the text itself: it may hold a password.
        let bad = || StoreError::Refused("the store's URL should be http(s)://HOST[:PORT]".to_owned());
        let mut url = Url::parse(url).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad());
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let auth = match (url.username(), url.password()) {
            ("", None) => Auth::None,
            (user, password) => {
                Auth::Basic { username: decoded(user), password: decoded(password.unwrap_or_default()) }
            }
        };
        url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| bad())?;
        url.set_query(None);
        url.set_fragment(None);
        Ok(OpenSearchOptions {
            url,
            auth,
            ca_file: None,
            timeout: Duration::from_secs(30),
            tries: 3,
            patience: Duration::from_secs(2),
            seed: ambient::random_seed(),
        })
    }

    /// The URL without user and password.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_url_is_used_and_never_shown() {
        let options = OpenSearchOptions::new("https://me:s%3Aecret@host:9200/").expect("a URL");
        let auth = Auth::Basic { username: "me".to_owned(), password: "s:ecret".to_owned() };
        assert_eq!((&options.auth, options.url()), (&auth, "https://host:9200/"));
        assert!(!format!("{options:?}").contains("ecret"));
        for bad in ["host:9200", "ftp://me:secret@host", "http://", "me:secret@host"] {
            let error = OpenSearchOptions::new(bad).expect_err(bad).to_string();
            assert_eq!(error, "the store's URL should be http(s)://HOST[:PORT]");
        }
    }

    #[test]
    fn sigv4_takes_the_standard_variables_and_names_the_one_that_is_missing() {
        let set = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "id".to_owned());
        assert_eq!(
            Auth::sigv4("eu-central-1", set).expect_err("no secret").to_string(),
            "sigv4 needs the environment variable AWS_SECRET_ACCESS_KEY: set it or choose another auth"
        );
        let set = |name: &str| (name != "AWS_SESSION_TOKEN").then(|| name.to_lowercase());
        assert_eq!(
            Auth::sigv4("eu-central-1", set),
            Ok(Auth::SigV4 {
                region: "eu-central-1".to_owned(),
                access_key: "aws_access_key_id".to_owned(),
                secret_key: "aws_secret_access_key".to_owned(),
                session_token: None,
            })
        );
    }
}
