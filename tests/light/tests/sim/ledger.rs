//! What happened, write by write, and what must not have: the invariants I1 to I10.
//!
//! The ledger believes nothing that a process says. It knows the true time, every document before and after every write,
//! and when an engine began, so each rule is checked at the moment at which it could be broken. [`crate::results`] has those about results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use firesteel_model::{Attempt, Version};
use firesteel_store::documents::{Found, Index, Key};
use serde_json::Value;
use tokio::time::Instant;

use crate::observer::Observed;
use crate::results;

/// How long a statement may be there before a younger one that is claimed instead has overtaken it, in milliseconds: a search may be
/// stale, its hits are worked off for a while, and a request may come late.
const SEEN_BY_ALL: u64 = 5_000;
/// How often a statement is executed at the most.
const MOST_RUNS: usize = 3;

/// What all the world wrote. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    origin: Instant,
    book: Arc<Mutex<Book>>,
}

/// What is known of everything.
#[derive(Default)]
pub struct Book {
    pub wrong: Vec<String>,
    pub counts: BTreeMap<&'static str, u64>,
    pub statements: BTreeMap<String, Story>,
    pub sessions: BTreeMap<String, Held>,
    pub processes: BTreeMap<String, Facts>,
    /// What was written, line by line, if somebody is to read it.
    pub story: Option<Vec<String>>,
    runs: i64,
    digest: u64,
}

/// A statement, from its beginning.
#[derive(Clone, Debug)]
pub struct Story {
    pub text: String,
    pub session: String,
    pub query: String,
    pub key: Key,
    pub submitted: u64,
    pub born: u64,
    /// Who claimed it, and the version that the claim got.
    pub claim: Option<(String, Version)>,
    /// The runs, each with its number and who began it.
    pub runs: Vec<(i64, String)>,
    pub released: usize,
    pub effects: u32,
    pub marker: Option<String>,
    /// How it ended, its error, and by whom.
    pub end: Option<(String, String, String)>,
}

/// A session, and who has it.
#[derive(Clone, Debug, Default)]
pub struct Held {
    pub owner: Option<String>,
    lease: u64,
    renewed: u64,
    pub ended: bool,
    /// Its document was removed once: what is made under its name later is another.
    pub deleted: bool,
    /// Who opened the journal's last epoch, and how many records it has.
    epoch: (Option<String>, usize),
    /// The entries of the defines that ended as `success`, oldest first.
    pub in_force: Vec<String>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The session it is to serve; with a star: the sessions.
    pub session: String,
    pub alive: bool,
    /// Its clock missed some time: what it believes of its lease may be wrong, what it writes may not.
    pub misled: bool,
    /// It was told to stop.
    pub stopping: bool,
    /// When it last searched each session to the end.
    pub searched: BTreeMap<String, u64>,
}

impl Book {
    fn facts(&self, by: &str) -> Option<&Facts> {
        self.processes.get(by)
    }

    /// It is a runner whose clock runs.
    pub fn is_sound(&self, by: &str) -> bool {
        self.facts(by).is_some_and(|f| !f.misled)
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn owner(&self, session: &str) -> Option<&str> {
        self.sessions.get(session)?.owner.as_deref()
    }
}

pub fn text<'a>(document: &'a Found, field: &str) -> &'a str {
    document.source[field].as_str().unwrap_or_default()
}

pub fn is_terminal(state: &str) -> bool {
    !matches!(state, "waiting" | "running")
}

impl Ledger {
    pub fn new(origin: Instant) -> Ledger {
        Ledger { origin, book: Arc::default() }
    }

    pub fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap()
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    pub fn count(&self, what: &'static str) {
        self.book().count(what);
    }

    /// A process searched a session to the end.
    pub fn searched(&self, by: &str, session: &str) {
        let (now, mut book) = (self.now(), self.book());
        if let Some(facts) = book.processes.get_mut(by) {
            facts.searched.insert(session.to_owned(), now);
        }
    }

    /// Something happened that must not.
    pub fn wrong(&self, what: String) {
        let at = self.now();
        self.book().wrong.push(format!("{what}, at {at} ms"));
    }

    /// A number that two plays of one seed have in common.
    pub fn digest(&self) -> u64 {
        self.book().digest
    }

    /// Something happened that is worth a line of the story.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let (now, mut book) = (self.now(), self.book());
        if let Some(story) = &mut book.story {
            story.push(format!("{now:>6} {}", line()));
        }
    }

    fn digest_of(&self, by: &str, key: &Key, version: Option<Version>) {
        let mut book = self.book();
        let (mut hash, now) = (book.digest, self.now());
        let numbers = [now, version.map_or(0, |v| v.seq_no)];
        for byte in by.bytes().chain(key.id.bytes()).chain(numbers.into_iter().flat_map(u64::to_le_bytes)) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        book.digest = hash;
    }

    /// A write was refused, as its version was old.
    pub fn fenced(&self, by: &str) {
        let mut book = self.book();
        book.count("conflicts");
        if let Some(facts) = book.facts(by).cloned()
            && !facts.session.ends_with('*')
            && book.owner(&facts.session) != Some(by)
        {
            book.count("fenced writes");
        }
    }

    /// An engine begins a statement; the number of the run.
    pub fn began(&self, by: &str, statement: &str) -> i64 {
        let mut wrong = Vec::new();
        let mut book = self.book();
        book.runs += 1;
        let (run, sound) = (book.runs, book.is_sound(by));
        let Some(mut story) = book.statements.get(statement).cloned() else { return run };
        let session = book.sessions.get(&story.session).cloned().unwrap_or_default();
        story.runs.push((run, by.to_owned()));
        if let Some(told) = &mut book.story {
            told.push(format!("{:>6} {by} runs {statement}: run {run}", self.now()));
        }
        if story.runs.len() > 1 {
            book.count("re-runs");
        }
        if story.text.starts_with("write") && story.runs.len() > 1 {
            wrong.push(format!("I3: {statement} (`{}`) writes and is executed again, by {by}", story.text));
        }
        if story.runs.len() > MOST_RUNS + story.released {
            wrong.push(format!("{statement} (`{}`) is executed {} times", story.text, story.runs.len()));
        }
        if sound && !session.deleted && session.owner.as_deref() != Some(by) {
            wrong.push(format!("{by} begins {statement}, though the session is {:?}'s", session.owner));
        }
        book.statements.insert(statement.to_owned(), story);
        drop(book);
        wrong.into_iter().for_each(|w| self.wrong(w));
        run
    }

    /// A statement reached the world outside.
    pub fn effect(&self, statement: &str) {
        if let Some(story) = self.book().statements.get_mut(statement) {
            story.effects += 1;
        }
    }

    /// A document was written, or removed.
    pub fn wrote(&self, store: &Observed, key: &Key, before: Option<&Found>, after: Option<&Found>) {
        let by = store.by();
        self.digest_of(by, key, after.map(|a| a.version));
        let Some(either) = after.or(before) else { return };
        self.tell(|| written(by, key, before, after));
        let wrong = match (text(either, "type"), text(either, "kind")) {
            ("statement", _) => self.statement(store, by, key, before, after),
            ("session", _) => self.session(by, before, after),
            _ if key.index == Index::Results => results::result(self, store, by, key, before, after),
            (_, "companion") => results::companion(self, by, before, after),
            (_, "page" | "fence") => results::page(self, store, by, before, after),
            (_, "write") => self.marker(by, before, after),
            (_, "journal") => self.record(by, key, before, after),
            _ => Vec::new(),
        };
        wrong.into_iter().for_each(|w| self.wrong(format!("{w} (by {by})")));
    }

    fn statement(
        &self,
        store: &Observed,
        by: &str,
        key: &Key,
        before: Option<&Found>,
        after: Option<&Found>,
    ) -> Vec<String> {
        let now = self.now();
        let Some(after) = after else { return vec![format!("a statement was deleted: {}", key.id)] };
        let id = text(after, "statementId").to_owned();
        let Some(before) = before else {
            let story = Story {
                text: text(after, "query").to_owned(),
                session: text(after, "sessionId").to_owned(),
                query: text(after, "queryId").to_owned(),
                key: key.clone(),
                submitted: after.source["submitTime"].as_u64().unwrap_or(0),
                born: now,
                claim: None,
                runs: Vec::new(),
                released: 0,
                effects: 0,
                marker: None,
                end: None,
            };
            self.book().statements.insert(id, story);
            return Vec::new();
        };
        let (from, to) = (text(before, "state"), text(after, "state"));
        let mut book = self.book();
        let Some(mut story) = book.statements.get(&id).cloned() else { return vec![format!("{id} was never made")] };
        let mut wrong = Vec::new();
        let claimer = story.claim.as_ref().map(|(who, _)| who.clone());
        match (from, to) {
            _ if is_terminal(from) => wrong.push(format!("I1: {id} changed from {from} to {to}")),
            ("waiting" | "running", "running") => {
                let owner = book.owner(&story.session).map(str::to_owned);
                if from == "running" {
                    let mine = claimer.as_deref() == Some(by);
                    book.count(if mine { "claims confirmed" } else { "adoptions" });
                    if book.is_sound(by) && !mine && claimer == owner {
                        wrong.push(format!("I4: {id} was adopted from the session's owner {owner:?}"));
                    }
                } else if owner.as_deref() != Some(by) {
                    book.count("claims by one that lost its session");
                }
                let older = book.statements.iter().find(|(other, s)| {
                    s.session == story.session
                        && s.end.is_none()
                        && (s.submitted, other.as_str()) < (story.submitted, id.as_str())
                        && s.born + SEEN_BY_ALL < now
                });
                // What a predecessor had begun goes on first, even if something was submitted meanwhile by an older clock.
                if let Some((other, _)) = older.filter(|_| book.is_sound(by) && from == "waiting") {
                    wrong.push(format!("{id} overtook {other}"));
                }
                story.claim = Some((by.to_owned(), after.version));
            }
            ("running", "waiting") if claimer.as_deref() == Some(by) => {
                book.count("releases");
                story.released += 1;
            }
            ("running", "success") => {
                if claimer.as_deref() != Some(by) {
                    wrong.push(format!("I4: {id} was decided by another than {claimer:?}, who claimed it"));
                }
                let session = book.sessions.entry(story.session.clone()).or_default();
                let in_force = (!session.deleted).then_some(session.in_force.as_slice());
                if let Err(why) = results::decided(store, &id, &story, before.version, in_force) {
                    wrong.push(format!("{id} (`{}`) succeeded {why}", story.text));
                }
                if let Some(entry) = story.text.strip_prefix("set ") {
                    session.in_force.push(entry.to_owned());
                }
            }
            (_, "failed" | "timeout") => {
                let error = text(after, "error");
                if error == "session ended" && !book.sessions.get(&story.session).is_some_and(|s| s.ended || s.deleted)
                {
                    wrong.push(format!("{id} failed with `session ended` in one that has not"));
                }
                if error.contains("INTERRUPTED") {
                    book.count("interrupted");
                    if story.marker.is_none() {
                        wrong.push(format!("{id} is interrupted without a marker"));
                    }
                }
                let over = book.sessions.get(&story.session).is_some_and(|s| s.ended || s.deleted);
                if from == "running" && book.is_sound(by) && claimer.as_deref() != Some(by) && !over {
                    wrong.push(format!("I4: {id} was failed by another than {claimer:?}, who claimed it"));
                }
                if let Err(why) = results::may_fail(&story, error) {
                    wrong.push(format!("{id} (`{}`) {why}", story.text));
                }
            }
            (_, "cancelled") if !book.processes.contains_key(by) => book.count("cancelled"),
            _ => wrong.push(format!("I2: {id} went from {from} to {to}")),
        }
        if is_terminal(to) {
            story.end = Some((to.to_owned(), text(after, "error").to_owned(), by.to_owned()));
        }
        book.statements.insert(id, story);
        wrong
    }

    fn marker(&self, by: &str, before: Option<&Found>, after: Option<&Found>) -> Vec<String> {
        let mut book = self.book();
        let (Some(after), None) = (after, before) else { return vec!["a marker was changed or removed".into()] };
        let id = text(after, "statementId");
        let Some(story) = book.statements.get_mut(id) else { return vec![format!("a marker of {id}, which is not")] };
        story.marker = Some(by.to_owned());
        let attempt: Option<Attempt> = text(after, "attempt").parse().ok();
        if text(after, "runnerId") != by || attempt.is_none() {
            return vec![format!("the marker of {id} does not say who made it")];
        }
        Vec::new()
    }

    fn record(&self, by: &str, key: &Key, before: Option<&Found>, after: Option<&Found>) -> Vec<String> {
        let mut book = self.book();
        let (Some(after), None) = (after, before) else { return vec![format!("`{}` was changed or removed", key.id)] };
        let held = book.sessions.entry(text(after, "sessionId").to_owned()).or_default();
        let mut wrong = Vec::new();
        if key.id.rsplit_once('/').and_then(|(_, n)| n.parse().ok()) != Some(held.epoch.1) {
            wrong.push(format!("`{}` is not the record after {} others", key.id, held.epoch.1));
        }
        held.epoch.1 += 1;
        let what = text(after, "record").to_owned();
        if what == "epoch" {
            held.epoch.0 = Some(by.to_owned());
        } else if held.epoch.0.as_deref() != Some(by) {
            wrong.push(format!("I4: `{}` was appended after the epoch of {:?}", key.id, held.epoch.0));
        }
        match what.as_str() {
            "epoch" => book.count("replays"),
            "void" => book.count("voided defines"),
            _ => {}
        }
        wrong
    }

    fn session(&self, by: &str, before: Option<&Found>, after: Option<&Found>) -> Vec<String> {
        let now = self.now();
        let mut book = self.book();
        let Some(either) = after.or(before) else { return Vec::new() };
        let id = text(either, "sessionId").to_owned();
        let mut held = book.sessions.get(&id).cloned().unwrap_or_default();
        let Some(after) = after else {
            held.deleted = true;
            held.owner = None;
            book.sessions.insert(id, held);
            return Vec::new();
        };
        let runs = book.processes.contains_key(by);
        let mut wrong = Vec::new();
        let owner = Some(text(after, "runnerId")).filter(|o| !o.is_empty()).map(str::to_owned);
        let (state, lease) = (text(after, "state"), after.source["leaseMillis"].as_u64().unwrap_or(0));
        if let Some(before) = before {
            let from = text(before, "state");
            if matches!(from, "dead" | "fail") {
                wrong.push(format!("I5: {id} was {from} and was written again, as {state}"));
            }
            if owner != held.owner {
                if book.facts(by).is_some_and(|f| f.session.ends_with('*')) {
                    book.count("sessions taken by a process of many");
                }
                let silent = now - held.renewed;
                if held.owner.is_some() && held.lease > 0 {
                    if book.is_sound(by) && silent < held.lease {
                        wrong.push(format!(
                            "{id} was taken from {:?} after {silent} ms of a lease of {} ms",
                            held.owner, held.lease
                        ));
                    }
                    book.count("takeovers");
                    if held.owner.as_ref().and_then(|o| book.facts(o)).is_some_and(|f| f.alive) {
                        book.count("lost leases");
                    }
                } else if held.owner.is_some() {
                    book.count("handovers");
                }
            } else if runs {
                if owner.as_deref() != Some(by) {
                    wrong.push(format!("I9: {id} of {owner:?} was written"));
                }
                let changed = changed(&before.source, &after.source);
                let beats = state == from && lease == held.lease;
                let takes_again = changed.contains("jobStartTime");
                if beats && !takes_again && !changed.is_subset(&BTreeSet::from(["lastUpdateTime".to_owned()])) {
                    wrong.push(format!("I9: a heartbeat of {id} changed {changed:?}"));
                }
            }
            if state == "dead" && from != "dead" && runs && book.facts(by).is_some_and(|f| !f.stopping) {
                let searched = book.facts(by).and_then(|f| f.searched.get(&id).copied()).unwrap_or(0);
                let left =
                    book.statements.iter().find(|(_, s)| s.session == id && s.end.is_none() && s.born < searched);
                if let Some((left, _)) = left {
                    wrong.push(format!("{id} was ended as idle, with {left} in it"));
                }
                book.count("idle sessions ended");
            }
        }
        let renews = before.is_none_or(|b| changed(&b.source, &after.source).contains("lastUpdateTime"));
        let renewed = if renews { now } else { held.renewed };
        held = Held { owner, lease, renewed, ended: matches!(state, "dead" | "fail"), ..held };
        book.sessions.insert(id, held);
        wrong
    }
}

/// A line for a write.
fn written(by: &str, key: &Key, before: Option<&Found>, after: Option<&Found>) -> String {
    let empty = Value::Null;
    let (was, is) = (before.map_or(&empty, |b| &b.source), after.map_or(&empty, |a| &a.source));
    let mut fields: Vec<String> = changed(was, is).into_iter().map(|name| format!("{name}={}", is[&name])).collect();
    if before.is_none() {
        let shown = ["query", "submitTime", "runnerId", "result", "pages", "attempt", "entry"];
        fields.retain(|f| shown.iter().any(|name| f.starts_with(name)));
    }
    let what = if after.is_none() {
        "removes"
    } else if before.is_none() {
        "makes"
    } else {
        "changes"
    };
    let version = after.or(before).map_or(0, |d| d.version.seq_no);
    format!("{by} {what} {} [{version}] {}", key.id, fields.join(" "))
}

/// The names of the fields that differ.
fn changed(before: &Value, after: &Value) -> BTreeSet<String> {
    let empty = serde_json::Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    before.keys().chain(after.keys()).filter(|k| before.get(*k) != after.get(*k)).cloned().collect()
}
