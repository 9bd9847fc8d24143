//! The mappings that we make, and what an existing one must have.

use firesteel_session::ports::StoreError;
use serde_json::Value;

use crate::documents::Index;

/// The body that makes an index: settings and mapping.
#[must_use]
pub fn body(index: Index) -> &'static str {
    match index {
        Index::Requests => include_str!("../../../../../mappings/request_index.json"),
        Index::Results => include_str!("../../../../../mappings/result_index.json"),
        Index::State => include_str!("../../../../../mappings/state_index.json"),
    }
}

/// The fields by which documents are searched or sorted.
fn searched(index: Index) -> &'static [&'static str] {
    match index {
        Index::Requests => &["type", "state", "sessionId", "statementId", "queryId", "submitTime", "lastUpdateTime"],
        Index::Results => &["queryId", "jobRunId", "updateTime"],
        Index::State => {
            &["kind", "type", "state", "sessionId", "statementId", "queryId", "submitTime", "lastUpdateTime"]
        }
    }
}

/// Checks the mapping of an index that exists: more than ours is fine. Fields by which nothing is searched may differ;
/// they are returned, to be logged.
///
/// # Errors
/// `Refused` names the index and the field, what was expected of it and what was found.
pub fn check(index: Index, name: &str, found: &Value) -> Result<Vec<String>, StoreError> {
    let ours: Value =
        serde_json::from_str(body(index)).map_err(|e| StoreError::Corrupt(format!("our own mapping: {e}")))?;
    let mut gaps = Vec::new();
    let Some(fields) = ours["mappings"]["properties"].as_object() else { return Ok(gaps) };
    for (field, expected) in fields {
        let kind = |mapping: &Value| match mapping["type"].as_str() {
            Some(t) => t.to_owned(),
            // A mapping with `properties` and no type is an object.
            None if mapping.is_object() => "object".to_owned(),
            None => "nothing".to_owned(),
        };
        let (expected, there) = (kind(expected), kind(&found["properties"][field]));
        if expected == there {
            continue;
        }
        let gap = format!("index `{name}`: field `{field}` should be mapped as {expected}, found {there}");
        if searched(index).contains(&field.as_str()) {
            return Err(StoreError::Refused(format!("{gap}; correct the mapping or name another index")));
        }
        gaps.push(gap);
    }
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mapping_with_more_fields_is_taken_and_one_that_contradicts_a_search_is_refused() {
        let ours: Value = serde_json::from_str(body(Index::Requests)).unwrap();
        let mut mapping = ours["mappings"].clone();
        mapping["properties"]["more"] = json!({ "type": "long" });
        mapping["properties"].as_object_mut().unwrap().remove("accountId");
        assert_eq!(
            check(Index::Requests, "r", &mapping),
            Ok(vec!["index `r`: field `accountId` should be mapped as keyword, found nothing".to_owned()])
        );

        mapping["properties"]["sessionId"] = json!({ "type": "text" });
        assert_eq!(
            check(Index::Requests, "r", &mapping),
            Err(StoreError::Refused(
                "index `r`: field `sessionId` should be mapped as keyword, found text; \
                 correct the mapping or name another index"
                    .to_owned()
            ))
        );
    }

    #[test]
    fn every_field_that_is_searched_is_in_our_mapping() {
        for index in [Index::Requests, Index::Results, Index::State] {
            let ours: Value = serde_json::from_str(body(index)).unwrap();
            for field in searched(index) {
                assert!(ours["mappings"]["properties"][field].is_object(), "{index:?} {field}");
            }
        }
    }
}
