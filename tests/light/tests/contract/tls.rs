//! An OpenSearch behind TLS whose certificate the platform does not know.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use firesteel_session::ports::StoreError;
use firesteel_store::documents::{Index, Key};
use firesteel_store::{Documents, OpenSearch, OpenSearchOptions, Settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const FOUND: &str = r#"{"docs":[{"found":true,"_id":"x","_seq_no":4,"_primary_term":2,"_source":{}}]}"#;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `name` that ends with the given year, signed by `authority`; its server answers until the test ends.
fn serve(authority: &Authority, name: &str, until: i32) -> u16 {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(until, 12, 31));
    let certificate = params.signed_by(&key, authority).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, socket.unwrap());
            // A client that does not trust us leaves before it asks.
            if matches!(stream.read(&mut [0; 16_384]), Ok(1..)) {
                let length = FOUND.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{FOUND}").unwrap();
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        }
    });
    port
}

/// What a client that trusts the certificates of `file` makes of it.
async fn ask(host: &str, port: u16, file: &Path) -> Result<(), String> {
    let mut options = OpenSearchOptions::new(&format!("https://{host}:{port}")).unwrap();
    options.ca_file = Some(file.to_owned());
    let client = OpenSearch::new(options, Settings::default()).unwrap();
    let key = Key { index: Index::Requests, id: "x".to_owned() };
    match client.get(&[key], true).await {
        Ok(found) => {
            assert!(found[0].is_some());
            Ok(())
        }
        Err(StoreError::Refused(told)) => Err(told.replace(&port.to_string(), "PORT")),
        Err(other) => panic!("it is no use to try again: {other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_ca_s_file_or_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (authority("ours"), authority("another"));
    let written = |name: &str, authority: &Authority| {
        let file = folder.path().join(name);
        std::fs::write(&file, authority.pem()).unwrap();
        file
    };
    let (file, wrong) = (written("ours.pem", &ours), written("another.pem", &others));
    let good = serve(&ours, "localhost", 2999);
    assert_eq!(ask("localhost", good, &file).await, Ok(()));

    let told = |host: &str, why: &str| Err(format!("the certificate of https://{host}:PORT is not trusted: {why}"));
    assert_eq!(
        ask("localhost", good, &wrong).await,
        told("localhost", "UnknownIssuer; name the file of the CA that signed it with --ca-file")
    );
    assert_eq!(
        ask("127.0.0.1", good, &file).await,
        told(
            "127.0.0.1",
            "certificate not valid for name \"127.0.0.1\"; certificate is only valid for DnsName(\"localhost\"); use the name that it was made for, or have it made for this one"
        )
    );
    let expired = serve(&ours, "localhost", 2001);
    let outdated = ask("localhost", expired, &file).await.unwrap_err();
    assert!(
        outdated.starts_with("the certificate of https://localhost:PORT is not trusted: certificate expired")
            && outdated.ends_with("; have the server's certificate renewed, and look at both clocks"),
        "{outdated}"
    );

    let none = folder.path().join("none.pem");
    assert_eq!(
        ask("localhost", good, &none).await,
        Err(format!("CA file `{}`: No such file or directory (os error 2)", none.display()))
    );
    std::fs::write(&none, "no certificate").unwrap();
    assert_eq!(
        ask("localhost", good, &none).await,
        Err(format!("CA file `{}`: should hold certificates in PEM", none.display()))
    );
}
