//! A batch job's session and statement live where no other program looks.

use firesteel_model::{SessionChange, SessionState, Statement, StatementState};
use firesteel_session::ports::{Filter, Prepared};
use firesteel_store::documents::{Field, Index, Order, Search};

use crate::people::{attempt, columns, outcome, owner, query, rows, running, session, statement, totals};
use crate::stores::Stores;

crate::stories! { Batch;
    a_batch_leaves_only_its_result_where_others_look
}

async fn a_batch_leaves_only_its_result_where_others_look(stores: &Stores) {
    // The request index is nobody's business here: it is not even made.
    assert_eq!(stores.a.prepare(false).await, Ok(Prepared::Ready));
    let s = session("s");
    let made = stores.a.create_session(&s).await.unwrap();
    let own = SessionChange::Own { owner: owner("r"), job: None, application: None, excluded: vec![] };
    stores.a.write_session(&s.id, made, &own).await.unwrap();
    // Named so that its document could be taken for the session's.
    let id = "session-s";
    let st = statement(id, 1);
    let made = stores.a.create_statement(&st, None).await.unwrap();
    let open = stores.b.every_open_statement(&s.id).await.unwrap();
    assert_eq!((open.statements.len(), open.unreadable), (1, vec![]));
    assert_eq!(open.statements[0].value, st);
    let claim = stores.a.write_statement(&st.id, made, &running("job1")).await.unwrap();
    let st = Statement { state: running("job1"), ..st };
    let outcome = outcome(&st, attempt(claim, 1));
    stores.a.stage(&outcome, &columns(), &rows(), totals()).await.unwrap();
    stores.a.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
    stores.a.publish(&outcome).await.unwrap();

    assert_eq!(stores.b.result(&query("q-session-s")).await.unwrap().unwrap().rows, rows());
    assert_eq!(stores.b.session(&s.id).await.unwrap().unwrap().value.state, SessionState::Running);
    let all = Filter { limit: 10, ..Filter::default() };
    stores.raw.refresh(Index::State).await.unwrap();
    assert_eq!(stores.b.sessions(&all).await.unwrap()[0].value.id, s.id);
    assert_eq!(stores.b.statements(&all).await.unwrap()[0].value.state, StatementState::Success);
    let order = Order::Newest(Field::Submitted);
    let search = Search { index: Index::Requests, terms: vec![], or: Vec::new(), order, limit: 10 };
    assert_eq!(stores.raw.search(&search).await, Ok(vec![]));
}
