//! The rules as they are configured.

use firesteel_plugin::{Decision, Field, Mask};
use serde::Deserialize;

use crate::mask::Kind;

/// All rules.
pub struct Rules(Vec<Rule>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    rules: Vec<Written>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    table: String,
    #[serde(default)]
    columns: Vec<String>,
    mask: Option<String>,
    expression: Option<String>,
    #[serde(default)]
    hide: bool,
    rows: Option<String>,
    sessions: Option<Vec<String>>,
    #[serde(default)]
    except_sessions: Vec<String>,
    data_sources: Option<Vec<String>>,
}

/// A rule.
pub struct Rule {
    table: String,
    columns: Vec<String>,
    shows: Option<Shows>,
    /// A predicate: only these rows are there.
    pub rows: Option<String>,
    sessions: Option<Vec<String>>,
    except_sessions: Vec<String>,
    data_sources: Option<Vec<String>>,
}

enum Shows {
    Nothing,
    Masked(Kind),
    /// SQL, with `{column}` for the column.
    Expression(String),
}

impl Rules {
    /// Reads the configuration.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(json: &str) -> Result<Rules, String> {
        let config: Config =
            serde_json::from_str(json).map_err(|e| format!("the configuration of `masking` is wrong: {e}"))?;
        if config.rules.is_empty() {
            return Err("the configuration of `masking` has no `rules`; write at least one, with `table` and `columns` or `rows`".into());
        }
        config
            .rules
            .into_iter()
            .enumerate()
            .map(|(n, rule)| Rule::read(n + 1, rule))
            .collect::<Result<_, _>>()
            .map(Rules)
    }

    /// Those that hold for a table, in this session.
    pub fn of(&self, name: &[String], session: &str, data_source: &str) -> Vec<&Rule> {
        self.0.iter().filter(|rule| rule.holds(name, session, data_source)).collect()
    }
}

impl Rule {
    fn read(number: usize, rule: Written) -> Result<Rule, String> {
        let given = [rule.mask.is_some(), rule.expression.is_some(), rule.hide];
        let shows = match given.iter().filter(|g| **g).count() {
            0 => None,
            1 if rule.hide => Some(Shows::Nothing),
            1 => match (&rule.mask, rule.expression) {
                (Some(mask), _) => {
                    Some(Shows::Masked(Kind::read(mask).map_err(|e| format!("rule {number} of `masking`: {e}"))?))
                }
                (None, expression) => expression.map(Shows::Expression),
            },
            _ => {
                return Err(format!(
                    "rule {number} of `masking` says more than one of `mask`, `expression` and `hide`; leave one"
                ));
            }
        };
        if rule.columns.is_empty() != shows.is_none() || (shows.is_none() && rule.rows.is_none()) {
            return Err(format!(
                "rule {number} of `masking` does nothing; give it `columns` with `mask`, `expression` or `hide`, or `rows`"
            ));
        }
        Ok(Rule {
            table: rule.table,
            columns: rule.columns,
            shows,
            rows: rule.rows,
            sessions: rule.sessions,
            except_sessions: rule.except_sessions,
            data_sources: rule.data_sources,
        })
    }

    fn holds(&self, name: &[String], session: &str, data_source: &str) -> bool {
        let whole = name.join(".");
        let last = name.last().map_or("", String::as_str);
        let among = |patterns: &[String], text: &str| patterns.iter().any(|p| fits(p, text));
        (fits(&self.table, last) || fits(&self.table, &whole))
            && self.sessions.as_ref().is_none_or(|all| among(all, session))
            && !among(&self.except_sessions, session)
            && self.data_sources.as_ref().is_none_or(|all| among(all, data_source))
    }

    /// Whether it says something of a column.
    pub fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|pattern| fits(pattern, column))
    }

    /// Puts what it says of a column into the decision.
    ///
    /// # Errors
    /// The column's type has no such mask.
    pub fn apply(&self, field: &Field, decision: &mut Decision) -> Result<(), String> {
        let column = format!("`{}`", field.name.replace('`', "``"));
        let expression = match &self.shows {
            None => return Ok(()),
            Some(Shows::Nothing) => {
                decision.hidden.push(field.name.clone());
                return Ok(());
            }
            Some(Shows::Masked(kind)) => kind.expression(&column, &field.data_type),
            Some(Shows::Expression(sql)) => sql.replace("{column}", &column),
        };
        decision.masks.push(Mask { column: field.name.clone(), expression });
        Ok(())
    }
}

/// Whether a name fits a pattern with `*`, without case.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The leftmost place leaves most to the parts behind it.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_do_not_care_about_case() {
        for (pattern, name, found) in [
            ("*", "", true),
            ("cust*", "Customers", true),
            ("*_phone", "work_phone", true),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axc", false),
            ("a", "ab", false),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(fits(pattern, name), found, "{pattern} {name}");
        }
    }
}
