//! HTTP by hand: a client that shares nothing with ours, and a server that answers from a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// One request to `http://HOST:PORT`; the status and the JSON of the answer.
pub fn ask(url: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let host = url.strip_prefix("http://").expect("OPENSEARCH_URL begins with http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let kind = if path.contains("_bulk") { "application/x-ndjson" } else { "application/json" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// What a scripted server does with one request.
#[derive(Clone, Copy)]
pub enum Step {
    /// Answers with this status, these header lines and this body.
    Answer(u16, &'static str, &'static str),
    /// Reads the request and closes the connection.
    HangUp,
}

/// Serves `steps`, one a request, then stops listening. The URL, and the bodies that it was sent.
pub fn serve(steps: &'static [Step]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    std::thread::spawn(move || {
        for step in steps {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                head.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            requests.lock().unwrap().push(head + &String::from_utf8(body).unwrap());
            if let Step::Answer(status, headers, body) = step {
                let head = format!(
                    "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        }
    });
    (url, seen)
}
