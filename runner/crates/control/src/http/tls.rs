//! TLS in front of the APIs. Handshakes go on beside each other, so that a slow one keeps nobody waiting.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes that may go on at once; who comes then waits.
const MOST_HANDSHAKES: usize = 256;

/// What makes TLS of connections, by a certificate with those that vouch for it, and its key; both in PEM.
///
/// # Errors
/// Says which file is wrong, and what it should hold.
pub fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let no_certificate = || format!("`{}` should hold a certificate as PEM", certificates.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|e| format!("{}: {e}", no_certificate()))?;
    if chain.is_empty() {
        return Err(no_certificate());
    }
    let key_of = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| format!("`{}` should hold a private key as PEM: {e}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key_of))
        .map_err(|e| format!("`{}` and `{}` do not go together: {e}", certificates.display(), key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A listener whose connections are TLS.
pub struct Secured {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    /// Ended with the listener.
    _accepting: JoinSet<()>,
}

impl Secured {
    /// Takes the listener's connections over.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn new(listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<Secured> {
        let address = listener.local_addr()?;
        let (made, ready) = mpsc::channel(MOST_HANDSHAKES);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, acceptor, made));
        Ok(Secured { address, ready, _accepting: accepting })
    }
}

async fn accept(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    made: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let mut handshakes = JoinSet::new();
    loop {
        let (stream, from) = Listener::accept(&mut listener).await;
        while handshakes.try_join_next().is_some() {}
        if handshakes.len() >= MOST_HANDSHAKES {
            handshakes.join_next().await;
        }
        let (acceptor, made) = (acceptor.clone(), made.clone());
        handshakes.spawn(async move {
            match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => drop(made.send((stream, from)).await),
                Ok(Err(error)) => tracing::debug!(%from, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%from, "a TLS handshake took too long"),
            }
        });
    }
}

impl Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // Nobody accepts any more: the program is about to end.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
