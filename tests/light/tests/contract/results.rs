//! Stories of results: who sees them, and when.

use std::sync::atomic::Ordering;

use firesteel_model::{Attempt, Statement, StatementState};
use firesteel_session::ports::{Column, Companion, Page, ResultDocument, StageError, StoreError, Totals};
use firesteel_store::documents::{Field, Index, Order, Search};

use crate::people::{attempt, claimed, columns, failed, in_results, outcome, query, rows, running, statement, totals};
use crate::stores::Stores;

crate::stories! { Requests;
    a_result_is_seen_once_it_is_published_and_not_before
    a_read_takes_four_requests_after_the_search
    a_failure_has_its_error_and_nothing_else
    a_repeated_query_id_is_refused_and_the_first_result_stays
    only_the_latest_attempt_is_the_candidate
    staging_and_publishing_again_changes_nothing
    a_successor_publishes_what_another_staged
    a_cancelled_statement_s_result_goes
    pages_come_back_as_they_were_staged
    what_a_statement_was_told_at_its_submission_stays_when_it_is_staged
    nothing_can_be_staged_without_a_query_id
    nothing_else_in_the_result_index_can_be_found
}

async fn published(stores: &Stores, id: &str) -> Option<ResultDocument> {
    // A refresh first: what is not found is not there.
    stores.raw.refresh(Index::Results).await.unwrap();
    stores.b.result(&query(id)).await.unwrap()
}

async fn a_result_is_seen_once_it_is_published_and_not_before(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let outcome = outcome(&st, first);
    stores.a.stage(&outcome, &columns(), &rows(), totals()).await.unwrap();
    assert_eq!(published(stores, "q-st").await, None);
    stores.a.write_statement(&st.id, first.claim, &StatementState::Success).await.unwrap();
    assert_eq!(published(stores, "q-st").await, None);
    stores.a.publish(&outcome).await.unwrap();
    // Without a refresh of the reader's.
    let seen = stores.b.result(&query("q-st")).await.unwrap().unwrap();
    assert_eq!(
        seen,
        ResultDocument {
            status: "SUCCESS".to_owned(),
            error: String::new(),
            columns: columns(),
            rows: rows(),
            run_millis: 683
        }
    );
    let companion = stores.b.companion(&st.id).await.unwrap().unwrap().value;
    assert_eq!(
        companion,
        Companion {
            session: "s".to_owned(),
            attempts: 1,
            staged: vec![first],
            candidate: Some(first),
            totals: Some(totals()),
            ..Companion::default()
        }
    );
}

async fn a_read_takes_four_requests_after_the_search(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    stores.a.create_statement(&st, None).await.unwrap();
    let hit = stores.a.open_statements(&st.session, 10).await.unwrap().statements.remove(0);
    let before = stores.requests.load(Ordering::SeqCst);
    let claim = stores.a.write_statement(&st.id, hit.version, &running("job1")).await.unwrap();
    let outcome = outcome(&st, attempt(claim, 1));
    stores.a.stage(&outcome, &columns(), &rows(), totals()).await.unwrap();
    stores.a.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
    stores.a.publish(&outcome).await.unwrap();
    assert_eq!(stores.requests.load(Ordering::SeqCst) - before, 4);
}

async fn a_failure_has_its_error_and_nothing_else(stores: &Stores) {
    for (id, state, status, error) in [
        ("f", failed("it's over"), "FAILED", "it's over"),
        ("t", StatementState::Timeout { error: "timeout".to_owned() }, "TIMEOUT", "timeout"),
    ] {
        let (st, first) = claimed(stores, id).await;
        let st = Statement { state, ..st };
        for store in [&stores.a, &stores.b, &stores.a] {
            store.publish_failure(&outcome(&st, first)).await.unwrap();
        }
        let seen = stores.b.result(st.query_id.as_ref().unwrap()).await.unwrap().unwrap();
        assert_eq!((seen.status.as_str(), seen.error.as_str()), (status, error));
        assert_eq!((seen.columns, seen.rows), (vec![], vec![]));
        assert_eq!(stores.b.left_unpublished().await, Ok(vec![]));
    }
}

async fn a_repeated_query_id_is_refused_and_the_first_result_stays(stores: &Stores) {
    let (one, first) = claimed(stores, "one").await;
    stores.a.stage(&outcome(&one, first), &columns(), &rows(), totals()).await.unwrap();
    stores.a.publish(&outcome(&one, first)).await.unwrap();
    let before = published(stores, "q-one").await;

    let (other, second) = claimed(stores, "other").await;
    let other = Statement { query_id: one.query_id.clone(), ..other };
    let staged = stores.b.stage(&outcome(&other, second), &columns(), &[], totals()).await;
    assert_eq!(staged, Err(StageError::DuplicateQueryId));
    let other = Statement { state: failed("duplicate"), ..other };
    stores.b.publish_failure(&outcome(&other, second)).await.unwrap();
    assert_eq!(published(stores, "q-one").await, before);
    assert_eq!(in_results(stores).await.len(), 1, "neither a staged nor a failed one is left");
}

async fn only_the_latest_attempt_is_the_candidate(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let again = Attempt { n: 2, ..first };
    let adopted = stores.b.write_statement(&st.id, first.claim, &running("job2")).await.unwrap();
    let later = attempt(adopted, 1);
    assert!(later > again && again > first);

    let totals = |rows| Totals { rows, ..totals() };
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals(1)).await.unwrap();
    stores.b.stage(&outcome(&st, later), &columns(), &rows(), totals(3)).await.unwrap();
    let staged = stores.a.stage(&outcome(&st, again), &columns(), &rows(), totals(2)).await;
    assert_eq!(staged, Err(StageError::Superseded));
    let companion = stores.a.companion(&st.id).await.unwrap().unwrap().value;
    assert_eq!((companion.candidate, companion.totals, companion.published), (Some(later), Some(totals(3)), false));
    assert_eq!(in_results(stores).await.len(), 2, "what lost was taken back");
    // The first can't be published any more, by anyone who did not decide for it; that nobody can, since its claim is gone.
    assert_eq!(stores.b.publish(&outcome(&st, first)).await, Err(StoreError::Conflict));
    stores.b.publish(&outcome(&st, later)).await.unwrap();
    assert!(published(stores, "q-st").await.is_some());
}

async fn staging_and_publishing_again_changes_nothing(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let outcome = outcome(&st, first);
    for store in [&stores.a, &stores.a, &stores.b] {
        store.stage(&outcome, &columns(), &rows(), totals()).await.unwrap();
    }
    let staged = stores.a.companion(&st.id).await.unwrap().unwrap();
    for store in [&stores.a, &stores.a, &stores.b] {
        store.publish(&outcome).await.unwrap();
    }
    // The companion hears of it with a later request.
    for store in [&stores.a, &stores.b] {
        assert_eq!(store.left_unpublished().await, Ok(vec![]));
    }
    let there = stores.a.companion(&st.id).await.unwrap().unwrap();
    assert_eq!(there.value, Companion { published: true, ..staged.value });
    assert_eq!(in_results(stores).await.len(), 1);
}

async fn a_successor_publishes_what_another_staged(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await.unwrap();
    stores.a.write_statement(&st.id, first.claim, &StatementState::Success).await.unwrap();
    stores.b.publish(&outcome(&st, first)).await.unwrap();
    assert_eq!(stores.b.result(&query("q-st")).await.unwrap().unwrap().rows, rows());
    // The first one comes back and does not know.
    stores.a.publish(&outcome(&st, first)).await.unwrap();
}

async fn a_cancelled_statement_s_result_goes(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let outcome = outcome(&st, first);
    let pages: Vec<Page> = (0..40).map(|n| Page { rows: vec![format!("{{\"n\":{n}}}")] }).collect();
    stores.a.stage_pages(&outcome, 0, &pages).await.unwrap();
    stores.a.stage(&outcome, &columns(), &rows(), Totals { pages: 40, ..totals() }).await.unwrap();
    assert_eq!(stores.b.page(&st.id, first, 39).await.unwrap().rows, ["{\"n\":39}"]);
    stores.b.write_statement(&st.id, first.claim, &StatementState::Cancelled).await.unwrap();
    let decided = stores.a.write_statement(&st.id, first.claim, &StatementState::Success).await;
    assert_eq!(decided, Err(StoreError::Conflict));
    stores.a.discard(&outcome).await.unwrap();
    stores.a.discard(&outcome).await.unwrap();
    assert_eq!(published(stores, "q-st").await, None);
    assert_eq!(in_results(stores).await.len(), 0);
    for n in 0..40 {
        assert!(matches!(stores.b.page(&st.id, first, n).await, Err(StoreError::Corrupt(_))), "{n}");
    }
}

async fn pages_come_back_as_they_were_staged(stores: &Stores) {
    let (st, first) = claimed(stores, "a/\"b\"").await;
    let outcome = outcome(&st, first);
    let row = format!("{{\"a\":\"{}\"}}", "\u{1F525}".repeat(250_000));
    let pages: Vec<Page> = (0..10).map(|n| Page { rows: vec![row.clone(), format!("{{\"n\":{n}}}")] }).collect();
    stores.a.stage_pages(&outcome, 0, &pages[..3]).await.unwrap();
    // More than one request holds, some of them for the second time.
    stores.a.stage_pages(&outcome, 0, &pages).await.unwrap();
    for (n, page) in (0..).zip(&pages) {
        assert!(stores.b.page(&st.id, first, n).await.unwrap() == *page, "{n}");
    }
    let other = Attempt { n: 2, ..first };
    assert!(matches!(stores.b.page(&st.id, other, 0).await, Err(StoreError::Corrupt(_))));
}

async fn what_a_statement_was_told_at_its_submission_stays_when_it_is_staged(stores: &Stores) {
    stores.a.prepare(true).await.unwrap();
    let st = statement("st", 1);
    let told =
        Companion { session: "s".to_owned(), timeout: Some(9), user: Some("me".to_owned()), ..Companion::default() };
    let made = stores.b.create_statement(&st, Some(&told)).await.unwrap();
    let first = attempt(stores.a.write_statement(&st.id, made, &running("job1")).await.unwrap(), 1);
    let column = |name: &str, label: Option<&str>| Column {
        name: name.to_owned(),
        data_type: "long".to_owned(),
        label: label.map(str::to_owned),
    };
    let columns = [column("", None), column("_1", Some(""))];
    stores.a.stage(&outcome(&st, first), &columns, &rows(), totals()).await.unwrap();
    stores.a.publish(&outcome(&st, first)).await.unwrap();
    let there = stores.b.companion(&st.id).await.unwrap().unwrap().value;
    let (staged, labels) = (vec![first], vec![String::new(); 2]);
    assert_eq!(there, Companion { staged, candidate: Some(first), totals: Some(totals()), labels, ..told });
    let read = stores.b.result(&query("q-st")).await.unwrap().unwrap().columns;
    assert_eq!(read, [column("", None), column("_1", None)], "what a column is called is no other program's business");
}

async fn nothing_can_be_staged_without_a_query_id(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let st = Statement { query_id: None, ..st };
    let staged = stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await;
    assert!(matches!(staged, Err(StageError::Store(StoreError::Refused(_)))), "{staged:?}");
    assert_eq!(in_results(stores).await.len(), 0);
}

async fn nothing_else_in_the_result_index_can_be_found(stores: &Stores) {
    let (st, first) = claimed(stores, "st").await;
    let pages = [Page { rows: rows() }];
    stores.a.stage_pages(&outcome(&st, first), 0, &pages).await.unwrap();
    stores.a.stage(&outcome(&st, first), &columns(), &rows(), totals()).await.unwrap();
    let (lost, second) = claimed(stores, "lost").await;
    stores.a.stage(&outcome(&lost, second), &columns(), &rows(), totals()).await.unwrap();
    stores.a.publish(&outcome(&st, first)).await.unwrap();
    stores.raw.refresh(Index::Results).await.unwrap();
    let search = Search {
        index: Index::Results,
        terms: vec![(Field::Session, vec!["s".to_owned()])],
        or: Vec::new(),
        order: Order::Newest(Field::Updated),
        limit: 100,
    };
    let found = stores.raw.search(&search).await.unwrap();
    let visible: Vec<&str> = found
        .iter()
        .filter(|f| f.source.get("queryId").is_some() || f.source.get("jobRunId").is_some())
        .map(|f| f.id.as_str())
        .collect();
    assert_eq!((found.len(), visible.len()), (2, 1), "{visible:?}");
}
