//! Faults planted between the store and a process, each the absence of one rule: the simulation must find every one of them.
//!
//! A planted process does what one without that rule would do. Nothing in the product knows of it: what it wrote is changed on its way, or what it
//! reads.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_store::documents::{Field, Found, Index, Key, Op, Search};
use serde_json::{Value, json};

use crate::observer::Observed;

/// A rule that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A claim is written whatever the statement's version is.
    BlindClaim,
    /// A heartbeat is written whatever the session's version is.
    BlindHeartbeat,
    /// A heartbeat writes the state, too.
    RevivingHeartbeat,
    /// A claim whose answer is lost is taken for one that was refused, and the statement for another's.
    LostReplyAsConflict,
    /// A claim whose answer is lost is taken for done if the statement names this job.
    ClaimByJob,
    /// An adoption that changes no field changes no version either.
    NoopAdoption,
    /// Executions are not counted.
    Uncounted,
    /// A statement that writes has no marker.
    NoMarker,
    /// Results are published before their statement is decided.
    PublishFirst,
    /// The oldest statement is not among the hits.
    Overtaking,
    /// A complete search that lacks shards is believed.
    PartialSearch,
    /// The lease never runs out: a heartbeat is taken for done while the store is away, or another has the session.
    EternalLease,
    /// A batch job heeds no lease.
    TwoBatches,
    /// A session is taken at once, silent or not.
    NoSilence,
    /// What the session is made of is not read before its statements are settled and served.
    NoReplay,
    /// A record that the journal refuses, as another owner has opened an epoch, is made behind that.
    AppendAfterEpoch,
    /// A define that was cancelled stays in the journal.
    KeptDefine,
    /// A sweep takes a running statement for one that has ended.
    SweptRunning,
    /// Nothing is swept.
    NoSweep,
    /// Pages of another's attempt are removed, and nothing takes the place of the one that is on its way.
    NoFence,
    /// What is staged and not named by its companion is not looked for.
    UnnamedStaged,
}

/// The fault of one process, if it has one.
#[derive(Clone)]
pub struct Planted {
    fault: Option<Fault>,
    job: Option<String>,
    given_up: Arc<Mutex<BTreeSet<String>>>,
    complete: Arc<Mutex<bool>>,
    /// The next reading is a sweep's.
    sweeping: Arc<Mutex<bool>>,
}

/// What an update writes.
fn fields(op: &Op) -> Value {
    match op {
        Op::Update { fields, .. } => serde_json::from_str(fields).unwrap_or_default(),
        _ => Value::Null,
    }
}

fn is_claim(op: &Op) -> bool {
    fields(op)["state"] == "running" && fields(op).get("runnerId").is_none()
}

fn is_heartbeat(op: &Op) -> bool {
    fields(op).as_object().is_some_and(|f| f.len() == 1 && f.contains_key("lastUpdateTime"))
}

fn is_kind(key: &Key, kind: &str) -> bool {
    key.index == Index::State && key.id.starts_with(kind)
}

impl Planted {
    pub fn new(fault: Option<Fault>, job: Option<&str>) -> Planted {
        Planted {
            fault,
            job: job.map(str::to_owned),
            given_up: Arc::default(),
            complete: Arc::default(),
            sweeping: Arc::default(),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Writes at the store, or does something else.
    pub fn write(&self, store: &Observed, op: Op) -> Result<Version, StoreError> {
        let there = store.find(op.key());
        let none = Version { term: 1, seq_no: 0 };
        match (self.fault, op, there) {
            (Some(Fault::BlindClaim), Op::Update { key, fields, at }, Some(there)) => {
                let op = Op::Update { key, at, fields };
                store.write(if is_claim(&op) { moved(op, there.version) } else { op })
            }
            (Some(Fault::BlindHeartbeat), op, Some(there)) if is_heartbeat(&op) => {
                store.write(moved(op, there.version))
            }
            (Some(Fault::RevivingHeartbeat), op, Some(there)) if is_heartbeat(&op) => {
                let mut fields = fields(&op);
                fields["state"] = json!("running");
                let key = op.key().clone();
                store.write(Op::Update { key, at: there.version, fields: fields.to_string() })
            }
            (Some(Fault::NoopAdoption), Op::Update { key, at, fields: text }, Some(there))
                if is_claim(&Op::Update { key: key.clone(), at, fields: text.clone() })
                    && there.version == at
                    && there.source["state"] == "running" =>
            {
                let fields: Value = serde_json::from_str(&text).unwrap_or_default();
                let same = fields.as_object().is_some_and(|f| f.iter().all(|(k, v)| there.source[k] == *v));
                if same { Ok(at) } else { store.write(Op::Update { key, at, fields: text }) }
            }
            (Some(Fault::Uncounted), Op::Update { key, at, fields: text }, _) if is_kind(&key, "companion-") => {
                let mut fields: Value = serde_json::from_str(&text).unwrap_or_default();
                if fields["attempts"].as_u64().is_some_and(|n| n > 1) {
                    fields["attempts"] = json!(1);
                }
                store.write(Op::Update { key, at, fields: fields.to_string() })
            }
            (Some(Fault::Uncounted), Op::Create { key, body }, _) if is_kind(&key, "companion-") => {
                let mut body: Value = serde_json::from_str(&body).unwrap_or_default();
                body["attempts"] = json!(1);
                store.write(Op::Create { key, body: body.to_string() })
            }
            (Some(Fault::NoFence), Op::Create { body, .. }, None) if body.contains(r#""kind":"fence""#) => Ok(none),
            (Some(Fault::NoFence), Op::Update { key, at, .. }, _) if is_kind(&key, "page-") => {
                store.write(Op::Delete { key, at })
            }
            (Some(Fault::NoMarker), Op::Create { key, .. }, _) if is_kind(&key, "write-") => Ok(none),
            (Some(Fault::PublishFirst), Op::Create { key, body }, _)
                if key.index == Index::Results && key.id.starts_with("result-") =>
            {
                let id = key.id["result-".len()..].rsplit_once('/').map_or("", |(id, _)| id);
                let mut body: Value = serde_json::from_str(&body).unwrap_or_default();
                body["queryId"] = json!(format!("q-{id}"));
                body["jobRunId"] = json!("");
                store.write(Op::Create { key, body: body.to_string() })
            }
            (Some(Fault::AppendAfterEpoch), Op::Create { mut key, body }, Some(_)) if is_kind(&key, "journal-") => {
                let (session, n) =
                    key.id.rsplit_once('/').map(|(s, n)| (s.to_owned(), n.parse().unwrap_or(0))).unwrap();
                let free = (n..).map(|n: u64| Key { id: format!("{session}/{n}"), ..key.clone() });
                key = free.into_iter().find(|key| store.find(key).is_none()).unwrap();
                store.write(Op::Create { key, body })
            }
            (Some(Fault::KeptDefine), Op::Create { key, body }, None)
                if is_kind(&key, "journal-") && body.contains(r#""record":"void""#) =>
            {
                // A record that takes nothing out, so that the next one has its number.
                let body = body.replace(r#""attempt":""#, r#""attempt":"9"#);
                store.write(Op::Create { key, body })
            }
            (_, op, _) => store.write(op),
        }
    }

    /// What the process makes of the answer.
    pub fn answer(
        &self,
        store: &Observed,
        asked: &[Op],
        answer: Result<Vec<Result<Version, StoreError>>, StoreError>,
    ) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        let [op] = asked else { return answer };
        let lost = matches!(answer, Err(StoreError::Unknown(_)));
        match self.fault {
            Some(Fault::LostReplyAsConflict) if lost && is_claim(op) => {
                self.given_up.lock().unwrap().insert(op.key().id.clone());
                Ok(vec![Err(StoreError::Conflict)])
            }
            Some(Fault::ClaimByJob) if lost && is_claim(op) => match store.find(op.key()) {
                Some(there)
                    if there.source["state"] == "running" && there.source["jobId"].as_str() == self.job.as_deref() =>
                {
                    Ok(vec![Ok(there.version)])
                }
                _ => answer,
            },
            Some(Fault::EternalLease) if is_heartbeat(op) && !matches!(&answer, Ok(all) if all[0].is_ok()) => {
                let Op::Update { at, .. } = op else { return answer };
                Ok(vec![Ok(*at)])
            }
            _ => answer,
        }
    }

    /// What the process reads.
    pub fn read(&self, store: &Observed, mut found: Vec<Option<Found>>) -> Vec<Option<Found>> {
        let swept = std::mem::take(&mut *self.sweeping.lock().unwrap());
        for document in found.iter_mut().flatten() {
            let source = &mut document.source;
            let anothers = source["type"] == "session" && source["runnerId"].as_str().is_some_and(|r| r != store.by());
            match self.fault {
                Some(Fault::LostReplyAsConflict) if self.given_up.lock().unwrap().contains(&document.id) => {
                    source["state"] = json!("cancelled");
                }
                Some(Fault::TwoBatches) if anothers && source["kind"] == "batch" => source["leaseMillis"] = json!(0),
                Some(Fault::NoReplay) if source["kind"] == "journal" => {
                    source["record"] = json!("epoch");
                }
                Some(Fault::SweptRunning) if swept && source["state"] == "running" && source["type"] == "statement" => {
                    source["state"] = json!("cancelled");
                }
                Some(Fault::NoSilence) if anothers => source["leaseMillis"] = json!(0),
                _ => {}
            }
        }
        found
    }

    /// The next search is a complete one.
    pub fn refreshed(&self) {
        *self.complete.lock().unwrap() = true;
    }

    /// What the process makes of a search.
    pub fn found(&self, search: &Search, mut found: Vec<Found>) -> Vec<Found> {
        let complete = std::mem::take(&mut *self.complete.lock().unwrap());
        if search.index == Index::State && search.terms.iter().any(|(field, _)| *field == Field::Kind) {
            *self.sweeping.lock().unwrap() = true;
            if self.has(Fault::NoSweep) {
                found.clear();
            }
        }
        if self.has(Fault::UnnamedStaged) && search.terms.iter().any(|(field, _)| *field == Field::Status) {
            found.clear();
        }
        if search.index == Index::Requests {
            if self.has(Fault::Overtaking)
                && !complete
                && found.iter().filter(|f| f.source["type"] == "statement").count() > 1
            {
                let first = found.iter().position(|f| f.source["type"] == "statement");
                first.map(|n| found.remove(n));
            }
            if self.has(Fault::PartialSearch) && complete {
                found.retain(|f| f.source["type"] != "statement");
            }
        }
        found
    }
}

fn moved(op: Op, to: Version) -> Op {
    match op {
        Op::Update { key, fields, .. } => Op::Update { key, at: to, fields },
        op => op,
    }
}
