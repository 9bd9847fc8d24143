//! Files on the network are read from the hosts that the operator listed, and from no other.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firesteel_engine::StoreAccess;

use crate::bench::Bench;

/// A server of one file; counts its requests.
fn serve(content: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            let mut range = None;
            for line in lines.by_ref().map_while(Result::ok).take_while(|l| !l.is_empty()) {
                if let Some(r) = line.to_lowercase().strip_prefix("range: bytes=") {
                    let (from, to) = r.split_once('-').unwrap();
                    range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap_or(usize::MAX)));
                }
            }
            count.fetch_add(1, Ordering::SeqCst);
            let (status, from, to) = match range {
                Some((from, to)) => ("206 Partial Content", from, content.len().min(to.saturating_add(1))),
                None => ("200 OK", 0, content.len()),
            };
            let ranged = range
                .map(|_| format!("content-range: bytes {from}-{}/{}\r\n", to - 1, content.len()))
                .unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nlast-modified: Mon, 01 Jan 2024 00:00:00 GMT\r\netag: \"1\"\r\n{ranged}connection: close\r\n\r\n",
                to - from
            );
            stream.write_all(head.as_bytes()).unwrap();
            if !first.starts_with("HEAD") {
                stream.write_all(&content.as_bytes()[from..to]).unwrap();
            }
        }
    });
    (url, asked)
}

fn access(url: &str) -> StoreAccess {
    serde_json::from_value(serde_json::json!({ "url": url })).unwrap()
}

#[tokio::test]
async fn a_listed_host_is_read_and_another_is_not_even_asked() {
    let (listed, asked) = serve("a,b\n1,x\n2,y\n");
    let (other, never) = serve("a\n1\n");
    let bench = Bench::with(|s| s.stores = vec![access(&format!("{listed}/open"))]);
    let external = |url: &str| {
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{url}' OPTIONS ('format.has_header' 'true')")
    };
    for url in [
        format!("{other}/open/x.csv"),
        format!("{listed}/closed/x.csv"),
        format!("{listed}/open/../closed/x.csv"),
        listed.replace("http:", "https:") + "/open/x.csv",
    ] {
        let message = bench.fails(&external(&url)).await;
        assert!(message.starts_with("NOT_ALLOWED "), "{url}: {message}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    bench.ok(&external(&format!("{listed}/open/x.csv"))).await;
    assert_eq!(bench.ok("SELECT sum(a) AS s FROM t").await, "s: Int64\n3\n");
    assert!(asked.load(Ordering::SeqCst) > 0);
    assert_eq!(never.load(Ordering::SeqCst), 0);
}

/// A server that sends every request elsewhere.
fn redirect(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let _ = lines.map_while(Result::ok).take_while(|l| !l.is_empty()).count();
            let head =
                format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    url
}

#[tokio::test]
async fn a_listed_host_cannot_send_a_statement_to_another() {
    let (other, never) = serve("a\n1\n");
    let listed = redirect(format!("{other}/x.csv"));
    let bench = Bench::with(|s| s.stores = vec![access(&listed)]);
    bench.ok(&format!("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{listed}/x.csv'")).await;
    let message = bench.fails("SELECT * FROM t").await;
    assert!(message.contains("302"), "{message}");
    assert_eq!(never.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_host_that_is_away_fails_the_statement() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let bench = Bench::with(|s| s.stores = vec![access(&url)]);
    let message = bench.fails(&format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{url}/x.csv'")).await;
    assert!(message.starts_with("EXECUTION "), "{message}");
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n");
}
