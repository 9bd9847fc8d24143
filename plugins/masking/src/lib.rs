//! A table policy by rules in the plugin's configuration.
//!
//! ```toml
//! [[plugins.masking.rules]]
//! table = "customers"              # or "mys3.default.cust*"; names do not care about case
//! columns = ["email", "*_phone"]
//! mask = "keep-last-4"             # null, redact, hash, year, keep-first-N, keep-last-N
//!
//! [[plugins.masking.rules]]
//! table = "*"
//! columns = ["ssn"]
//! hide = true
//!
//! [[plugins.masking.rules]]
//! table = "orders"
//! rows = "region = 'EU'"           # only these are there
//! except-sessions = ["audit-*"]    # for all sessions but these
//! ```
//!
//! Of the rules that name a column, the first decides; the row predicates of all rules that fit hold together. A rule that cannot be
//! read refuses the load: nothing is shown by mistake.

mod mask;
mod rules;

use firesteel_plugin::{Decision, Field, Plugin, TablePolicy, host};

use rules::Rules;

/// The plugin.
pub fn plugin() -> Plugin {
    let plugin = Plugin::new("masking", env!("CARGO_PKG_VERSION"), "masks columns and filters rows by rules");
    match Rules::read(&host::config::json()) {
        Ok(rules) => plugin.policy(Masking(rules)),
        Err(message) => plugin.refuse(message),
    }
}

struct Masking(Rules);

impl TablePolicy for Masking {
    fn decide(&self, name: &[String], fields: &[Field]) -> Result<Decision, String> {
        let rules = self.0.of(name, &host::statement::session_id(), &host::statement::data_source());
        let mut decision = Decision::default();
        for field in fields {
            if let Some(rule) = rules.iter().find(|rule| rule.names(&field.name)) {
                rule.apply(field, &mut decision)?;
            }
        }
        let filters: Vec<String> =
            rules.iter().filter_map(|r| r.rows.as_ref()).map(|rows| format!("({rows})")).collect();
        decision.filter = (!filters.is_empty()).then(|| filters.join(" AND "));
        Ok(decision)
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::Mask;
    use firesteel_plugin::testing::Host;

    use super::*;

    fn decide(config: &str) -> Result<Decision, String> {
        let fields = [("Email", "Utf8"), ("work_phone", "Utf8"), ("ssn", "Int64"), ("born", "Date32"), ("id", "Int64")];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type));
        Host::new()
            .table(&["mys3", "default", "Customers"], fields)
            .config(config)
            .decide(&plugin(), &["mys3", "default", "Customers"])
    }

    #[test]
    fn the_first_rule_of_a_column_decides_and_all_predicates_hold() {
        let decision = decide(
            r#"{"rules": [
                {"table": "cust*", "columns": ["email"], "mask": "redact"},
                {"table": "mys3.default.customers", "columns": ["*"], "mask": "null", "rows": "id > 3"},
                {"table": "customers", "columns": ["ssn"], "hide": true, "rows": "born IS NOT NULL"},
                {"table": "other", "columns": ["*"], "hide": true, "rows": "false"}]}"#,
        )
        .unwrap();
        let mask = |column: &str, expression: &str| Mask { column: column.into(), expression: expression.into() };
        assert_eq!(
            decision.masks,
            [
                mask("Email", "CASE WHEN `Email` IS NOT NULL THEN '***' END"),
                mask("work_phone", "CASE WHEN false THEN `work_phone` END"),
                mask("ssn", "CASE WHEN false THEN `ssn` END"),
                mask("born", "CASE WHEN false THEN `born` END"),
                mask("id", "CASE WHEN false THEN `id` END"),
            ]
        );
        assert_eq!(decision.filter.unwrap(), "(id > 3) AND (born IS NOT NULL)");
        assert!(decision.hidden.is_empty());
    }

    #[test]
    fn rules_may_leave_out_sessions_or_be_for_some() {
        let all = |more: &str| {
            decide(&format!(r#"{{"rules": [{{"table": "*", "columns": ["ssn"], "hide": true {more}}}]}}"#))
                .unwrap()
                .hidden
        };
        assert_eq!(all(""), ["ssn"]);
        assert_eq!(all(r#", "except-sessions": ["te*"]"#), [""; 0]);
        assert_eq!(all(r#", "sessions": ["te*"]"#), ["ssn"]);
        assert_eq!(all(r#", "sessions": ["audit"]"#), [""; 0]);
        assert_eq!(all(r#", "data-sources": ["local"]"#), ["ssn"]);
    }

    #[test]
    fn what_cannot_be_read_refuses_the_load() {
        for (config, message) in [
            (
                "{}",
                "the configuration of `masking` has no `rules`; write at least one, with `table` and `columns` or `rows`",
            ),
            (
                r#"{"rules": [{"table": "t", "colums": ["a"]}]}"#,
                "the configuration of `masking` is wrong: unknown field `colums`",
            ),
            (
                r#"{"rules": [{"table": "t"}]}"#,
                "rule 1 of `masking` does nothing; give it `columns` with `mask`, `expression` or `hide`, or `rows`",
            ),
            (
                r#"{"rules": [{"table": "t", "columns": ["a"], "mask": "redakt"}]}"#,
                "rule 1 of `masking`: there is no mask `redakt`; there are null, redact, hash, year, keep-first-N and keep-last-N",
            ),
            (
                r#"{"rules": [{"table": "t", "columns": ["a"], "mask": "null", "hide": true}]}"#,
                "rule 1 of `masking` says more than one of `mask`, `expression` and `hide`; leave one",
            ),
        ] {
            let _host = Host::new().config(config);
            let plugin = plugin();
            let refused = plugin.refused().unwrap();
            assert!(refused.starts_with(message), "{refused}");
        }
    }
}
