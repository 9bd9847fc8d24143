//! What our client makes of a server that refuses, is busy, or falls silent. The server answers from a script.

use std::time::Duration;

use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_store::documents::{Index, Key, Op};
use firesteel_store::{Auth, Documents, OpenSearch, OpenSearchOptions, Settings};
use serde_json::json;

use crate::http::Step::{self, Answer, HangUp};
use crate::http::serve;

const FOUND: &str = r#"{"docs":[{"found":true,"_id":"x","_seq_no":4,"_primary_term":2,"_source":{}}]}"#;
const MADE: &str = r#"{"errors":false,"items":[{"create":{"_id":"x","status":201,"_seq_no":4,"_primary_term":2}}]}"#;
const AT: Version = Version { term: 2, seq_no: 4 };

fn key() -> Key {
    Key { index: Index::Requests, id: "x".to_owned() }
}

/// A client of `url` that tries three times within `patience` milliseconds.
fn client(url: &str, patience: u64) -> OpenSearch {
    let mut options = OpenSearchOptions::new(url).unwrap();
    options.patience = Duration::from_millis(patience);
    options.timeout = Duration::from_secs(20);
    options.seed = 1;
    OpenSearch::new(options, Settings::default()).unwrap()
}

async fn read(client: &OpenSearch) -> Result<Version, StoreError> {
    client.get(&[key()], true).await.map(|found| found[0].as_ref().unwrap().version)
}

async fn write(client: &OpenSearch) -> Result<Version, StoreError> {
    let op = Op::Create { key: key(), body: "{}".to_owned() };
    client.bulk(vec![op], false).await?.remove(0)
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    static BUSY: &[Step] = &[Answer(429, "", ""), Answer(503, "", "no shard yet"), Answer(200, "", FOUND)];
    let (url, seen) = serve(BUSY);
    assert_eq!(read(&client(&url, 2_000)).await, Ok(AT));
    assert_eq!(seen.lock().unwrap().len(), 3);

    static BUSY_WITH_WRITES: &[Step] = &[Answer(502, "", ""), Answer(200, "", MADE)];
    let (url, seen) = serve(BUSY_WITH_WRITES);
    assert_eq!(write(&client(&url, 2_000)).await, Ok(AT));
    let seen = seen.lock().unwrap();
    let body = |n: usize| seen[n].split("\r\n\r\n").nth(1).unwrap().to_owned();
    let lines: Vec<serde_json::Value> = body(0).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [json!({ "create": { "_index": "flint_ql_sessions", "_id": "x" } }), json!({})]);
    assert_eq!(body(0), body(1));
    assert!(seen[0].starts_with("POST /_bulk?refresh=false "), "{}", seen[0]);
}

#[tokio::test]
async fn a_server_that_stays_busy_is_asked_three_times() {
    static BUSY: &[Step] = &[Answer(429, "", ""), Answer(429, "", ""), Answer(429, "", "")];
    let (url, seen) = serve(BUSY);
    let client = client(&url, 2_000);
    let told = StoreError::Unavailable("OpenSearch answered 429 (no reason given)".to_owned());
    assert_eq!(write(&client).await, Err(told));
    assert_eq!((seen.lock().unwrap().len(), client.requests()), (3, 3));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "that it waited is what is tested")]
async fn the_wait_that_a_server_asks_for_is_waited_or_the_caller_is_told_at_once() {
    static LATER: &[Step] = &[Answer(429, "Retry-After: 3600\r\n", "")];
    let (url, seen) = serve(LATER);
    assert!(matches!(write(&client(&url, 2_000)).await, Err(StoreError::Unavailable(_))));
    assert_eq!(seen.lock().unwrap().len(), 1);

    static SOON: &[Step] = &[Answer(503, "Retry-After: 1\r\n", ""), Answer(200, "", MADE)];
    let (url, _) = serve(SOON);
    let began = std::time::Instant::now();
    assert_eq!(write(&client(&url, 2_000)).await, Ok(AT));
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_sent_again() {
    static LOST: &[Step] = &[HangUp];
    let (url, seen) = serve(LOST);
    assert!(matches!(write(&client(&url, 2_000)).await, Err(StoreError::Unknown(_))));
    assert_eq!(seen.lock().unwrap().len(), 1);
    // A read is: it changes nothing.
    static LOST_READ: &[Step] = &[HangUp, Answer(200, "", FOUND)];
    let (url, _) = serve(LOST_READ);
    assert_eq!(read(&client(&url, 2_000)).await, Ok(AT));
    // A proxy that gave up waiting does not know either.
    static GATEWAY: &[Step] = &[Answer(504, "", "")];
    let (url, _) = serve(GATEWAY);
    assert!(matches!(write(&client(&url, 2_000)).await, Err(StoreError::Unknown(_))));
}

#[tokio::test]
async fn a_server_that_is_not_there_has_done_nothing() {
    // Nobody listens on port 1.
    let client = client("http://127.0.0.1:1", 2_000);
    for outcome in [write(&client).await, read(&client).await] {
        let Err(StoreError::Unavailable(told)) = outcome else { panic!("{outcome:?}") };
        assert!(told.to_lowercase().contains("refused"), "{told}");
    }
    assert_eq!(client.requests(), 6);
}

#[tokio::test]
async fn each_document_of_a_bulk_has_an_outcome_of_its_own() {
    static ITEMS: &[Step] = &[Answer(
        200,
        "",
        r#"{"errors":true,"items":[
            {"create":{"status":201,"_seq_no":4,"_primary_term":2}},
            {"create":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"secret"}}},
            {"update":{"status":404,"error":{"type":"document_missing_exception"}}},
            {"create":{"status":429,"error":{"type":"rejected_execution_exception"}}},
            {"create":{"status":400,"error":{"type":"mapper_parsing_exception","reason":"secret"}}},
            {"create":{"status":500,"error":{"type":"io_exception"}}},
            {"create":{}}]}"#,
    )];
    let (url, _) = serve(ITEMS);
    let op = || Op::Create { key: key(), body: "{}".to_owned() };
    let ops = (0..7).map(|_| op()).collect();
    let outcomes = client(&url, 2_000).bulk(ops, true).await.unwrap();
    let told = |text: &str| text.to_owned();
    assert_eq!(
        outcomes,
        [
            Ok(AT),
            Err(StoreError::Conflict),
            Err(StoreError::Conflict),
            Err(StoreError::Unavailable(told("OpenSearch answered 429 (rejected_execution_exception)"))),
            Err(StoreError::Refused(told(
                "OpenSearch answered 400 (mapper_parsing_exception); compare the index's mapping with ours"
            ))),
            Err(StoreError::Unknown(told("OpenSearch answered 500 (io_exception)"))),
            Err(StoreError::Unknown(told("OpenSearch did not say what became of a document"))),
        ]
    );
}

#[tokio::test]
async fn a_search_that_did_not_see_everything_is_no_answer() {
    static PARTS: &[Step] = &[
        Answer(200, "", r#"{"timed_out":true,"_shards":{"total":1,"successful":1,"failed":0},"hits":{"hits":[]}}"#),
        Answer(200, "", r#"{"timed_out":false,"_shards":{"total":2,"successful":1,"failed":1},"hits":{"hits":[]}}"#),
        Answer(200, "", r#"{"timed_out":false,"_shards":{"total":2,"successful":1,"failed":0},"hits":{"hits":[]}}"#),
        Answer(200, "", r#"{"_shards":{"total":2,"successful":1,"failed":1}}"#),
    ];
    let (url, seen) = serve(PARTS);
    let client = client(&url, 2_000);
    let search = firesteel_store::documents::Search {
        index: Index::Requests,
        terms: vec![],
        or: Vec::new(),
        order: firesteel_store::documents::Order::Newest(firesteel_store::documents::Field::Submitted),
        limit: 10,
    };
    for _ in 0..3 {
        assert!(matches!(client.search(&search).await, Err(StoreError::Unavailable(_))));
    }
    assert!(matches!(client.refresh(Index::Requests).await, Err(StoreError::Unavailable(_))));
    let seen = seen.lock().unwrap();
    assert!(
        seen[0].starts_with("POST /flint_ql_sessions/_search?preference=_primary&allow_partial_search_results=false "),
        "{}",
        seen[0]
    );
}

#[tokio::test]
async fn what_answers_and_is_no_opensearch_is_named() {
    static PAGE: &[Step] = &[Answer(200, "", "<html>welcome</html>"), Answer(200, "", "<html>welcome</html>")];
    let (url, _) = serve(PAGE);
    let client = client(&url, 2_000);
    assert!(matches!(read(&client).await, Err(StoreError::Corrupt(_))));
    assert!(matches!(write(&client).await, Err(StoreError::Unknown(_))));
}

#[test]
fn a_name_that_could_mean_more_than_one_index_is_refused() {
    for name in ["a,b", "a*", "../x", "_all", "", "A", "a b", "a?x", "a#", "-a", "..", "a%2f"] {
        let settings = Settings { result_index: name.to_owned(), ..Settings::default() };
        let options = OpenSearchOptions::new("http://localhost").unwrap();
        assert!(matches!(OpenSearch::new(options, settings), Err(StoreError::Refused(_))), "{name}");
    }
}

#[tokio::test]
async fn a_password_goes_to_the_server_and_nowhere_else() {
    static REFUSED: &[Step] = &[Answer(401, "", "Unauthorized")];
    let (url, seen) = serve(REFUSED);
    let client = client(&url.replace("//", "//me:se%20cret@"), 2_000);
    let error = read(&client).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "OpenSearch answered 401 (no reason given); check the user and password or the AWS credentials"
    );
    // `me:se cret` in base64.
    assert!(
        seen.lock().unwrap()[0]
            .to_lowercase()
            .contains("authorization: basic bwu6c2ugy3jldA==".to_lowercase().as_str())
    );
    assert!(!format!("{client:?}").contains("cret"));
}

#[tokio::test]
async fn a_request_is_signed_for_aws() {
    static TAKEN: &[Step] = &[Answer(200, "", FOUND)];
    let (url, seen) = serve(TAKEN);
    let mut options = OpenSearchOptions::new(&url).unwrap();
    let variable = |name: &str| Some(format!("{name}-value"));
    options.auth = Auth::sigv4("eu-central-1", variable).unwrap();
    let client = OpenSearch::new(options, Settings::default()).unwrap();
    assert_eq!(read(&client).await, Ok(AT));
    let request = seen.lock().unwrap()[0].to_lowercase();
    for part in [
        "authorization: aws4-hmac-sha256 credential=aws_access_key_id-value/",
        "/eu-central-1/es/aws4_request",
        "x-amz-security-token: aws_session_token-value",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    assert!(!request.contains("secret_access_key"));
}

#[tokio::test]
async fn a_ca_file_is_named_when_it_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (file, why) in [(empty, "should hold certificates in PEM"), (folder.path().join("none.pem"), "No such file")] {
        let mut options = OpenSearchOptions::new("https://127.0.0.1:1").unwrap();
        options.ca_file = Some(file.clone());
        let client = OpenSearch::new(options, Settings::default()).unwrap();
        let Err(StoreError::Refused(told)) = read(&client).await else { panic!("{}", file.display()) };
        assert!(told.starts_with(&format!("CA file `{}`: {why}", file.display())), "{told}");
    }
}
