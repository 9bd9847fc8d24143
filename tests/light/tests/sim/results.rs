//! What must hold of results: only whole ones, only of the decided attempt, none of a cancelled statement, and each what its statement asks for.

use firesteel_model::{Attempt, StatementId, Version};
use firesteel_store::documents::{Field, Found, Index, Key, Order, Search};
use firesteel_store::wire::ids;
use serde_json::Value;

use crate::ledger::{Ledger, Story, is_terminal, text};
use crate::observer::Observed;

fn attempt(document: &Found, field: &str) -> Option<Attempt> {
    text(document, field).parse().ok()
}

fn statement(id: &str) -> StatementId {
    StatementId::new(id).unwrap()
}

fn state(id: String) -> Key {
    Key { index: Index::State, id }
}

fn rows(document: &Found) -> Vec<Value> {
    let rows = document.source["result"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| serde_json::from_str(row.as_str().unwrap_or_default()).unwrap_or(Value::Null)).collect()
}

/// The candidate of a statement's companion.
pub fn candidate(store: &Observed, id: &str) -> Option<Attempt> {
    attempt(&store.find(&state(ids::companion(&statement(id))))?, "candidate")
}

/// All rows of an attempt, its pages included.
fn whole(store: &Observed, id: &str, attempt: Attempt) -> Result<Vec<Value>, String> {
    let id = statement(id);
    let key = Key { index: Index::Results, id: ids::result(&id, attempt) };
    let mut all = rows(&store.find(&key).ok_or("without a staged result")?);
    let companion = store.find(&state(ids::companion(&id))).ok_or("without a companion")?;
    for n in 0..companion.source["pages"].as_u64().unwrap_or(0) {
        let page = store.find(&state(ids::page(&id, attempt, u32::try_from(n).unwrap())));
        all.extend(rows(&page.ok_or_else(|| format!("without its page {n}"))?));
    }
    Ok(all)
}

/// I3, I7, I10: a statement whose claim got `claim` was decided as `success`.
pub fn decided(
    store: &Observed,
    id: &str,
    story: &Story,
    claim: Version,
    in_force: Option<&[String]>,
) -> Result<(), String> {
    let decided = candidate(store, id).ok_or("without a candidate")?;
    // A define that is in the journal is decided by a successor as it is: its attempt is an older one.
    let kept = story.text.starts_with("set ") && decided.claim < claim;
    if decided.claim != claim && !kept {
        return Err(format!("at its claim {claim:?} with a candidate of another: {decided}"));
    }
    let guard = store.find(&state(ids::guard(&firesteel_model::QueryId::new(&story.query).unwrap())));
    if guard.is_none_or(|g| text(&g, "statementId") != id) {
        return Err("though its query id is not its own".into());
    }
    let all = whole(store, id, decided)?;
    // One whose clock stood still may run it once more, for nothing: what counts is the claimer's.
    let claimer = story.claim.as_ref().map(|(who, _)| who);
    let by_claimer = story.runs.iter().rev().find(|(_, who)| kept || Some(who) == claimer);
    let (last, _) = by_claimer.ok_or("and its claimer never ran it")?;
    if !kept && all.iter().any(|row| row["run"].as_i64() != Some(*last)) {
        return Err(format!("with rows of other runs than {last}: {all:?}"));
    }
    let word = |n| story.text.split(' ').nth(n).unwrap_or_default();
    let numbers = |n: u64| (0..n).map(Value::from).collect::<Vec<_>>();
    let (field, expected) = match word(0) {
        "rows" | "drip" => ("n", numbers(word(1).parse().unwrap_or(0))),
        "show" if in_force.is_none() => return Ok(()),
        "show" => ("entry", in_force.unwrap_or_default().iter().map(|e| Value::from(e.as_str())).collect()),
        "write" if story.effects != 1 => return Err(format!("with {} effects", story.effects)),
        "write" if story.marker.is_none() => return Err("without a marker".into()),
        "wait" | "set" | "write" => ("n", numbers(1)),
        _ => return Err("though it cannot".into()),
    };
    let found: Vec<Value> = all.iter().map(|row| row[field].clone()).collect();
    if found == expected { Ok(()) } else { Err(format!("with {found:?}, not {expected:?}")) }
}

/// As undisturbed: what may become of a statement that fails.
pub fn may_fail(story: &Story, error: &str) -> Result<(), String> {
    let code = serde_json::from_str::<Value>(error).ok().and_then(|e| e["code"].as_str().map(str::to_owned));
    let word = story.text.split(' ').next().unwrap_or_default();
    let may = match code.as_deref().unwrap_or(error) {
        "EXECUTION" => word == "fail",
        "SYNTAX" => word == "bad",
        "INTERRUPTED" => word == "write",
        "timeout" | "wait timeout" | "session ended" | "TOO_MANY_ATTEMPTS" | "WORKER_DIED" | "RUNNER_STOPPED" => true,
        // A store that takes no page for a while is told of.
        "RESULT_WRITE_FAILED" => word == "rows" || word == "drip",
        _ => false,
    };
    if may { Ok(()) } else { Err(format!("failed with {error}")) }
}

/// A result document was written.
pub fn result(
    ledger: &Ledger,
    store: &Observed,
    by: &str,
    key: &Key,
    before: Option<&Found>,
    after: Option<&Found>,
) -> Vec<String> {
    let visible = |d: &Found| !text(d, "queryId").is_empty();
    let mut wrong = Vec::new();
    let mut book = ledger.book();
    let named =
        key.id.strip_prefix("failure-").or_else(|| key.id.strip_prefix("result-")?.rsplit_once('/').map(|(id, _)| id));
    let Some((id, story)) = named.and_then(|id| Some((id.to_owned(), book.statements.get(id)?.clone()))) else {
        return vec![format!("`{}` is nobody's result", key.id)];
    };
    let attempt: Option<Attempt> = key.id.rsplit_once('/').and_then(|(_, a)| a.parse().ok());
    let ended = story.end.as_ref().map(|(state, ..)| state.as_str());
    match (before, after) {
        (Some(before), _) if visible(before) && after.is_none_or(|a| a.source != before.source) => {
            wrong.push(format!("I7: the visible result of {id} was changed or removed"));
        }
        (before, Some(after)) if visible(after) && before.is_none_or(|b| !visible(b)) => {
            match (ended, attempt) {
                (Some("success"), Some(attempt)) if candidate(store, &id) == Some(attempt) => {}
                (Some("failed" | "timeout"), None) => {
                    let error = story.end.as_ref().map(|(_, error, _)| error.as_str());
                    if error != Some(text(after, "error")) {
                        wrong.push(format!("I7: the result of {id} has another error than it: {error:?}"));
                    }
                }
                _ => wrong.push(format!("I7: a result of {id}, which is {ended:?}, was made visible")),
            }
            if text(after, "queryId") != story.query {
                wrong.push(format!("I7: the result of {id} has another query id"));
            }
            if story.end.as_ref().is_some_and(|(.., decider)| decider != by) {
                book.count("published by another");
            }
        }
        (Some(_), None) => wrong.extend(removed(store, by, &id, &story, attempt)),
        _ => {}
    }
    wrong
}

/// A staged part of an attempt was removed: never of what is decided or still running in other hands.
fn removed(store: &Observed, by: &str, id: &str, story: &Story, attempt: Option<Attempt>) -> Option<String> {
    let ended = story.end.as_ref().map(|(state, ..)| state.as_str());
    if ended == Some("success") && attempt.is_some() && candidate(store, id) == attempt {
        return Some(format!("I7: a part of the decided result of {id} was removed"));
    }
    let (claimer, claim) = story.claim.as_ref()?;
    (ended.is_none() && attempt.map(|a| a.claim) == Some(*claim) && claimer != by)
        .then(|| format!("I4: a part of the running attempt of {id} was removed, which is {claimer}'s"))
}

/// A page was written, or the fence that is left in its place.
pub fn page(ledger: &Ledger, store: &Observed, by: &str, before: Option<&Found>, after: Option<&Found>) -> Vec<String> {
    let Some(either) = before.or(after) else { return Vec::new() };
    let id = text(either, "statementId");
    let Some(story) = ledger.book().statements.get(id).cloned() else {
        return vec![format!("a page of {id}, which is not")];
    };
    match (before.map(|b| text(b, "kind")), after.map(|a| text(a, "kind"))) {
        (None, _) | (Some("fence"), Some("fence")) => Vec::new(),
        (Some("page"), Some("fence")) => {
            removed(store, by, id, &story, attempt(either, "attempt")).into_iter().collect()
        }
        _ => vec![format!("a page of {id} was changed")],
    }
}

fn every(store: &Observed, index: Index, terms: Vec<(Field, Vec<String>)>) -> Vec<Found> {
    store.search(&Search { index, terms, or: Vec::new(), order: Order::Newest(Field::Updated), limit: usize::MAX })
}

/// What is left to be done, once all is over and swept: nothing staged remains, and all that ended is published.
pub fn left(ledger: &Ledger, store: &Observed) -> Vec<String> {
    let of = |kind: &str| vec![(Field::Kind, vec![kind.to_owned()])];
    let documents = every(store, Index::Results, Vec::new());
    let (pages, companions) = (every(store, Index::State, of("page")), every(store, Index::State, of("companion")));
    let mut left = Vec::new();
    let visible = |d: &Found| !text(d, "queryId").is_empty();
    left.extend(documents.iter().filter(|d| !visible(d)).map(|d| format!("`{}` is still staged", d.id)));
    for page in pages {
        let id = text(&page, "statementId");
        let succeeded = ledger.book().statements.get(id).and_then(|s| s.end.as_ref()).is_some_and(|e| e.0 == "success");
        if !succeeded || candidate(store, id) != attempt(&page, "attempt") {
            left.push(format!("`{}` is nobody's page", page.id));
        }
    }
    left.extend(companions.iter().filter(|c| text(c, "state") != "published").map(|c| format!("`{}` is open", c.id)));
    let book = ledger.book();
    for (id, story) in &book.statements {
        let Some((state, _, decider)) = &story.end else { continue };
        let found = documents.iter().filter(|d| visible(d) && text(d, "queryId") == story.query).count();
        // What was never a runner's is told by whoever decided it.
        let none = state == "cancelled" || (!book.processes.contains_key(decider) && found == 0);
        if found != usize::from(!none) {
            left.push(format!("{id} ended as {state} and has {found} results"));
        }
    }
    left
}

/// A companion was written.
pub fn companion(ledger: &Ledger, _by: &str, before: Option<&Found>, after: Option<&Found>) -> Vec<String> {
    let Some(after) = after else { return Vec::new() };
    let id = text(after, "statementId");
    let mut wrong = Vec::new();
    let ended = ledger.book().statements.get(id).and_then(|s| s.end.clone());
    let (was, is) = (before.and_then(|b| attempt(b, "candidate")), attempt(after, "candidate"));
    if was > is {
        wrong.push(format!("I7: the candidate of {id} went down from {was:?} to {is:?}"));
    }
    if was != is && ended.as_ref().is_some_and(|(state, ..)| state == "success") {
        wrong.push(format!("I7: the candidate of {id} changed after it was decided"));
    }
    if before.is_some() && text(after, "state") == "published" && !ended.is_some_and(|(state, ..)| is_terminal(&state))
    {
        wrong.push(format!("I7: {id} is published and has not ended"));
    }
    wrong
}
