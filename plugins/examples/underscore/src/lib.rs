//! A table policy: columns whose names begin with `_` are not there.

use firesteel_plugin::{Decision, Field, Plugin, TablePolicy};

/// The plugin.
pub fn plugin() -> Plugin {
    Plugin::new("underscore", env!("CARGO_PKG_VERSION"), "hides columns that begin with an underscore")
        .policy(Underscore)
}

struct Underscore;

impl TablePolicy for Underscore {
    fn decide(&self, _name: &[String], fields: &[Field]) -> Result<Decision, String> {
        let hidden = fields.iter().filter(|f| f.name.starts_with('_')).map(|f| f.name.clone()).collect();
        Ok(Decision { hidden, ..Decision::default() })
    }
}

firesteel_plugin::export!(plugin);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use firesteel_plugin::testing::Host;

    use super::*;

    #[test]
    fn only_what_begins_with_an_underscore_is_hidden() {
        let host = Host::new().table(&["t"], ["_id", "a_b", "_"].map(|name| Field::new(name, "Int64")));
        assert_eq!(host.decide(&plugin(), &["t"]).unwrap().hidden, ["_id", "_"]);
    }
}
