//! The documents of the control plane in the state index: allocations of sessions, and books of slots under limits.

use firesteel_model::SessionId;
use firesteel_model::permits::{Book, Holding};
use firesteel_session::ports::control::Allocation;
use serde_json::{Map, Value, json};

use super::fields::{BadField, Fields};
use super::session::object;
use super::state::{FORMAT_VERSION, of_kind};

/// The whole document of an allocation, which is also what a change of it writes.
#[must_use]
pub fn allocation(session: &SessionId, allocation: &Allocation) -> Map<String, Value> {
    let time = |time: Option<u64>| time.map_or(json!(-1), |t| json!(t));
    object(json!({
        "kind": "allocation",
        "formatVersion": FORMAT_VERSION,
        "sessionId": session.as_str(),
        "user": allocation.user,
        "name": allocation.name,
        "submitTime": allocation.created,
        "idleMillis": time(allocation.idle_timeout),
        "lifetimeMillis": time(allocation.lifetime),
        "recoveredFrom": allocation.recovered_from.as_ref().map_or("", SessionId::as_str),
        "recoveries": allocation.recoveries,
    }))
}

/// Reads an allocation and whose it is.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_allocation(source: &Value) -> Result<(SessionId, Allocation), BadField> {
    let fields = of_kind(source, "allocation")?;
    let session = |field: &str, id: &str| SessionId::new(id).map_err(|_| BadField::new(field, "an id"));
    let from = fields.some_text("recoveredFrom")?.map(|id| session("recoveredFrom", id)).transpose()?;
    let recoveries = fields.number("recoveries")?.unwrap_or(0);
    let allocation = Allocation {
        user: fields.text("user")?.to_owned(),
        name: fields.text("name")?.to_owned(),
        created: fields.time("submitTime")?,
        idle_timeout: fields.number("idleMillis")?,
        lifetime: fields.number("lifetimeMillis")?,
        recovered_from: from,
        recoveries: u32::try_from(recoveries).map_err(|_| BadField::new("recoveries", "a number below 2^32"))?,
    };
    Ok((session("sessionId", fields.text("sessionId")?)?, allocation))
}

/// The whole document of a book. Its holders are one text, so that a partial write replaces them all.
#[must_use]
pub fn book(name: &str, book: &Book) -> Map<String, Value> {
    let holders: Vec<Value> =
        book.holders.iter().map(|(id, holding)| json!([id, holding.slots, holding.since])).collect();
    object(json!({
        "kind": "permits",
        "formatVersion": FORMAT_VERSION,
        "name": name,
        "holders": Value::from(holders).to_string(),
        "borrowed": book.borrowed,
        "last": book.last,
    }))
}

/// Reads a book.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_book(source: &Value) -> Result<Book, BadField> {
    let fields: Fields<'_> = of_kind(source, "permits")?;
    let bad = || BadField::new("holders", "an array of [id, slots, since], as text");
    let holders: Vec<(String, u32, u64)> = serde_json::from_str(fields.text("holders")?).map_err(|_| bad())?;
    let borrowed = fields.number("borrowed")?.unwrap_or(0);
    Ok(Book {
        holders: holders.into_iter().map(|(id, slots, since)| (id, Holding { slots, since })).collect(),
        borrowed: u32::try_from(borrowed).map_err(|_| BadField::new("borrowed", "a number below 2^32"))?,
        last: fields.number("last")?.unwrap_or(0),
    })
}
