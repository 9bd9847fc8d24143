//! The APIs over TLS, asked by the client that OpenSearch's SQL plugin has, in the plugin's order of work, and by one of another language.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Home, finish, repository};
use crate::opensearch::Source;
use crate::serve::{Served, python};

/// A certificate for this machine's own address, and its key, in the home folder.
fn certificate(home: &Home) -> (String, String) {
    let (certificate, key) = ("cert.pem", "key.pem");
    let path = |name: &str| home.path().join(name).display().to_string();
    let mut openssl = home.program("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]);
    openssl.args(["-out", &path(certificate), "-keyout", &path(key)]);
    finish(openssl, "").ok();
    (path(certificate), path(key))
}

const USERS: &str =
    r#"[{"user": "plugin", "role": "owner", "access_key_id": "AKID", "secret_access_key": "secret", "token": "t"}]"#;

#[test]
fn over_tls_a_client_that_trusts_the_certificate_is_answered_and_wrong_files_are_told() {
    let home = Home::new();
    let (certificate, key) = certificate(&home);
    let users = home.file("users.json", USERS).display().to_string();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", &key, "--tls-key", &key]);
    assert_eq!(refused.code, 2);
    let said = format!("firesteel: --tls-cert, --tls-key: `{key}` should hold a certificate as PEM");
    assert_eq!(refused.err.trim_end(), said);
    let served = Served::at(home, &["--users", &users, "--tls-cert", &certificate, "--tls-key", &key]);
    let script = r#"
import os, requests, socket
url = os.environ["URL"]
# Whoever says nothing keeps nobody waiting.
silent = socket.create_connection(url.rsplit("/", 1)[1].split(":"))
print(requests.get(url + "/healthz", verify=os.environ["CERT"]).json())
print(requests.get(url + "/sessions", verify=os.environ["CERT"], headers={"Authorization": "Bearer t"}).json())
try: requests.get(url + "/healthz")
except requests.exceptions.SSLError: print("not trusted")
"#;
    let Some(mut python) = python(served.home(), &["requests"], script) else { return };
    python.env("URL", format!("https://{}", served.address)).env("CERT", &certificate);
    let said = finish(python, "").ok();
    let expected = ["{'status': 'ok'}", "{'from': 0, 'sessions': [], 'total': 0}", "not trusted"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// The folder of the plugin's client and of the program that uses it; None, said aloud: there is no Maven or no JDK.
fn order_of_work(home: &Home) -> Option<PathBuf> {
    let (sources, out) = (repository().join("runner/tests/e2e/sql-plugin"), home.path().join("java"));
    let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(sources.join("pom.xml")).arg(format!("-DoutputDirectory={}", out.display()));
    let fetched = maven.arg("-DincludeScope=runtime").arg(goal).output().is_ok_and(|done| done.status.success());
    let mut javac = Command::new("javac");
    javac.args(["-cp", &format!("{}/*", out.display()), "-d"]).arg(&out).arg(sources.join("OrderOfWork.java"));
    if !fetched {
        assert!(std::env::var_os("CI").is_none(), "Maven does not fetch the AWS SDK");
        eprintln!("SKIPPED: needs Maven, and the AWS SDK for Java from it");
        return None;
    }
    finish(javac, "").ok();
    Some(out)
}

#[test]
fn opensearch_s_sql_plugin_s_client_runs_a_session_in_the_plugin_s_order_of_work() {
    let Some(source) = Source::new("plugin") else { return };
    let home = Home::new();
    let Some(java) = order_of_work(&home) else { return };
    let (certificate, key) = certificate(&home);
    let trust = home.path().join("trust.p12").display().to_string();
    let mut keytool = home.program("keytool");
    keytool.args(["-importcert", "-noprompt", "-alias", "firesteel", "-file", &certificate]);
    keytool.args(["-keystore", &trust, "-storetype", "PKCS12", "-storepass", "changeit"]);
    finish(keytool, "").ok();
    let users = home.file("users.json", USERS).display().to_string();
    let store = source.options();
    let mut all = vec!["--users", &users, "--tls-cert", &certificate, "--tls-key", &key];
    all.extend(store.iter().map(String::as_str));
    let served = Served::at(home, &all);
    let regions = served.home().file(
        "regions.xml",
        &format!(
            "<XML><Regions><Region><Name>us-east-1</Name><Domain>amazonaws.com</Domain><Endpoint><ServiceName>emr-serverless</ServiceName>\
             <Http>false</Http><Https>true</Https><Hostname>{}</Hostname></Endpoint></Region></Regions></XML>",
            served.address
        ),
    );
    let mut plugin = served.home().program("java");
    plugin.arg(format!("-Dcom.amazonaws.regions.RegionUtils.fileOverride={}", regions.display()));
    plugin.arg(format!("-Djavax.net.ssl.trustStore={trust}")).arg("-Djavax.net.ssl.trustStorePassword=changeit");
    plugin.args(["-cp", &format!("{0}:{0}/*", java.display()), "OrderOfWork", source.url(), &source.name]);
    let said = finish(plugin, "").ok();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], [r#"["{\"n\":3376}"]"#, r#"["{\"city\":\"Chicago\"}"]"#]);
    assert_eq!(lines[2..4], ["FAILED", "RUNNING"]);
    assert!(["CANCELLED", "SUCCESS"].contains(&lines[4]), "{said}");
    assert_eq!(lines[5..], ["ValidationException 400"]);
}
