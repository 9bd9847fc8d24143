//! The mappings against the page that tells of the documents.

use std::collections::BTreeMap;

use firesteel_tests_light::read;
use serde_json::Value;

use crate::table;

/// Field → type, from the mapping and from the table of docs/documents.md that begins with `first`.
fn check(mapping: &str, first: &str) {
    let index: Value = serde_json::from_str(&read(mapping)).unwrap();
    let mappings = index.get("mappings").unwrap_or(&index);
    assert_eq!(mappings["dynamic"].to_string().trim_matches('"'), "false", "{mapping}: other programs add fields of their own");
    let kind = |field: &Value| match (field["type"].as_str(), field["format"].as_str()) {
        (Some("date"), format) => {
            assert_eq!(format, Some("strict_date_time||epoch_millis"), "{mapping}");
            "date".to_owned()
        }
        (kind, _) => kind.unwrap_or("object").to_owned(),
    };
    let mapped: BTreeMap<String, String> =
        mappings["properties"].as_object().unwrap().iter().map(|(name, field)| (name.clone(), kind(field))).collect();
    let rows = table(&read("docs/documents.md"), first);
    let told: BTreeMap<String, String> =
        rows.into_iter().filter(|r| r[1] != "–").map(|r| (r[0].clone(), r[1].clone())).collect();
    assert_eq!(mapped, told, "{mapping} (left) and docs/documents.md (right)");
}

#[test]
fn the_request_index_has_the_fields_that_the_page_tells() {
    check("mappings/request_index.json", "field of the request index");
}

#[test]
fn the_result_index_has_the_fields_that_the_page_tells() {
    check("mappings/result_index.json", "field of the result index");
}
