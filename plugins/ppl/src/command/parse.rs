//! `parse`: new fields from the named groups of a regular expression.

use super::{Command, Read};
use crate::ast::Name;
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::field;
use crate::pattern::Regex;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::{Value, as_text};

#[derive(Debug)]
struct Parse {
    field: Name,
    regex: Regex,
}

/// `parse <field> '<expression with named groups>'`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let field = field(c)?;
    let at = c.start();
    let regex = Regex::read(&c.text("an expression in quotes, such as '(?<year>[0-9]+)-.*'")?, at)?;
    if regex.groups.is_empty() {
        return Err(Problem::new(
            at,
            "the expression has no named group; write (?<name>…) around what is to become a field",
        ));
    }
    Ok(Box::new(Parse { field, regex }))
}

impl Command for Parse {
    /// The expression has to match all of the text; where it does not, the fields are empty, and null where the text is null.
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_compute_of(&[&self.field]);
        let text = as_text(&rows.field(&self.field)?);
        let regex = Sql::text(&format!(r"\A(?:{})\z", self.regex.text));
        for (name, group) in &self.regex.groups {
            let found =
                sql!("coalesce(array_element(regexp_match({}, {}), {}), '')", text, regex, Sql::integer(*group));
            let sql = sql!("CASE WHEN {} IS NOT NULL THEN {} END", text, found);
            rows.set(name, Value::new(sql.from(self.field.at), Type::Text));
        }
        Ok(())
    }
}
