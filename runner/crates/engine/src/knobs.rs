//! The settings that a statement may `SET`. An allow-list: limits, catalogs and the runtime are the operator's.

use firesteel_model::{Code, Failure, Stage};

use crate::failures;

/// DataFusion's keys that may be set.
const KEYS: &[&str] = &[
    "datafusion.execution.batch_size",
    "datafusion.execution.coalesce_batches",
    "datafusion.execution.collect_statistics",
    "datafusion.execution.enable_ansi_mode",
    "datafusion.execution.enable_recursive_ctes",
    "datafusion.execution.enforce_batch_size_in_joins",
    "datafusion.execution.parquet.binary_as_string",
    "datafusion.execution.parquet.bloom_filter_on_read",
    "datafusion.execution.parquet.enable_page_index",
    "datafusion.execution.parquet.pruning",
    "datafusion.execution.parquet.pushdown_filters",
    "datafusion.execution.parquet.reorder_filters",
    "datafusion.execution.target_partitions",
    "datafusion.execution.time_zone",
    "datafusion.explain.analyze_level",
    "datafusion.explain.format",
    "datafusion.explain.logical_plan_only",
    "datafusion.explain.physical_plan_only",
    "datafusion.explain.show_schema",
    "datafusion.explain.show_sizes",
    "datafusion.explain.show_statistics",
    "datafusion.optimizer.enable_dynamic_filter_pushdown",
    "datafusion.optimizer.enable_piecewise_merge_join",
    "datafusion.optimizer.enable_round_robin_repartition",
    "datafusion.optimizer.enable_topk_aggregation",
    "datafusion.optimizer.filter_null_join_keys",
    "datafusion.optimizer.hash_join_single_partition_threshold",
    "datafusion.optimizer.hash_join_single_partition_threshold_rows",
    "datafusion.optimizer.join_reordering",
    "datafusion.optimizer.prefer_existing_sort",
    "datafusion.optimizer.prefer_hash_join",
    "datafusion.optimizer.repartition_aggregations",
    "datafusion.optimizer.repartition_file_min_size",
    "datafusion.optimizer.repartition_file_scans",
    "datafusion.optimizer.repartition_joins",
    "datafusion.optimizer.repartition_sorts",
    "datafusion.optimizer.repartition_windows",
    "datafusion.optimizer.top_down_join_key_reordering",
    "datafusion.sql_parser.default_null_ordering",
    "datafusion.sql_parser.parse_float_as_decimal",
];

/// Spark's keys that mean one of them, in lower case.
const SPARK: &[(&str, &str)] = &[
    ("spark.sql.session.timezone", "datafusion.execution.time_zone"),
    ("spark.sql.shuffle.partitions", "datafusion.execution.target_partitions"),
    ("spark.sql.join.prefersortmergejoin", "datafusion.optimizer.prefer_hash_join"),
];

/// Spark's keys that would change what a query means, and do not here.
const FIXED: &[(&str, &str)] = &[(
    "spark.sql.ansi.enabled",
    "a CAST that cannot be done is an error here, whatever it says; TRY_CAST gives NULL instead",
)];

/// The largest value of a key that costs memory or threads.
const LARGEST: &[(&str, u64)] =
    &[("datafusion.execution.batch_size", 65_536), ("datafusion.execution.target_partitions", 256)];

/// Every key that may be set.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().copied()
}

/// DataFusion's key for one that may be set.
///
/// # Errors
/// `Refused`, naming the nearest that is allowed.
pub fn key(written: &str) -> Result<&'static str, Failure> {
    let written = written.to_lowercase();
    if let Some(key) = keys().find(|k| *k == written) {
        return Ok(key);
    }
    if let Some((_, key)) = SPARK.iter().find(|(spark, _)| *spark == written) {
        return Ok(key);
    }
    let refused = |what: &str| {
        let text = format!("the setting `{written}` may not be changed by a statement; {what}");
        Err(Failure::new(Code::Refused, Stage::Plan, text))
    };
    if let Some((_, why)) = FIXED.iter().find(|(fixed, _)| *fixed == written) {
        return refused(why);
    }
    let all: Vec<String> = keys().chain(SPARK.iter().map(|(k, _)| *k)).map(str::to_owned).collect();
    let near = failures::nearest(&written, &all)
        .map_or_else(|| "SET shows those that may be".to_owned(), |n| format!("did you mean `{n}`?"));
    refused(&near)
}

/// The value for a key, in DataFusion's terms.
///
/// # Errors
/// `Refused`: above what is allowed.
pub fn value(written: &str, key: &str, value: &str) -> Result<String, Failure> {
    if written.eq_ignore_ascii_case("spark.sql.join.prefersortmergejoin") {
        return Ok(if value.eq_ignore_ascii_case("true") { "false".into() } else { "true".into() });
    }
    if let Some((_, largest)) = LARGEST.iter().find(|(k, _)| *k == key)
        && let Ok(number) = value.parse::<u64>()
        && (number > *largest || number == 0)
    {
        return Err(Failure::new(Code::Refused, Stage::Plan, format!("`{key}` may be 1 to {largest}, not {number}")));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn what_is_not_listed_is_refused_with_the_nearest_that_is() {
        assert_eq!(key("spark.sql.session.timeZone").unwrap(), "datafusion.execution.time_zone");
        for (written, message) in [
            (
                "datafusion.execution.batch_sise",
                "the setting `datafusion.execution.batch_sise` may not be changed by a statement; did you mean `datafusion.execution.batch_size`?",
            ),
            (
                "spark.sql.ansi.enabled",
                "the setting `spark.sql.ansi.enabled` may not be changed by a statement; a CAST that cannot be done is an error here, whatever it says; TRY_CAST gives NULL instead",
            ),
            ("x", "the setting `x` may not be changed by a statement; SET shows those that may be"),
        ] {
            let failure = key(written).unwrap_err();
            assert_eq!((failure.code, failure.message.as_str()), (Code::Refused, message));
        }
        for key in [
            "datafusion.runtime.memory_limit",
            "datafusion.catalog.information_schema",
            "datafusion.sql_parser.recursion_limit",
        ] {
            assert_eq!(super::key(key).unwrap_err().code, Code::Refused, "{key}");
        }
        assert_eq!(
            value("datafusion.execution.batch_size", "datafusion.execution.batch_size", "99999999").unwrap_err().code,
            Code::Refused
        );
    }
}
