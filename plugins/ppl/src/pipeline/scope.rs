//! What a name stands for.

use super::Pipeline;
use crate::ast::{Name, Pattern};
use crate::catalog::Type;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::Value;

pub(super) fn same(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// The parts of a name that stand for the `*` of a pattern; None: it does not fit.
pub fn fits(pattern: &str, name: &str) -> Option<Vec<String>> {
    // Of ASCII letters only, so that places in one are places in the other.
    let (pattern, lower) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next()?;
    let last = parts.next_back();
    let mut at = lower.starts_with(first).then_some(first.len())?;
    let Some(last) = last else { return (at == lower.len()).then(Vec::new) };
    let end = lower[at..].ends_with(last).then(|| lower.len() - last.len())?;
    let mut found = Vec::new();
    // The leftmost place leaves most to the parts behind it.
    for part in parts {
        let place = at + lower[at..end].find(part)?;
        found.push(name[at..place].to_owned());
        at = place + part.len();
    }
    found.push(name[at..end].to_owned());
    Some(found)
}

impl Pipeline<'_> {
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let columns = &self.select.columns;
        let exact = columns.iter().position(|c| !c.hidden && c.name == name);
        exact.or_else(|| columns.iter().position(|c| !c.hidden && same(&c.name, name)))
    }

    /// The column that a name means as a whole, if it means one.
    ///
    /// # Errors
    /// There is neither a column nor a field of one.
    pub fn column_of(&self, name: &Name) -> Result<Option<String>, Problem> {
        match self.resolve(name) {
            Some((at, fields)) if fields.is_empty() => Ok(Some(self.select.columns[at].name.clone())),
            Some(_) => Ok(None),
            None => Err(self.missing(name)),
        }
    }

    /// The column of a name, and the fields inside it that follow.
    pub(super) fn resolve(&self, name: &Name) -> Option<(usize, Vec<String>)> {
        let whole = name.text();
        let parts: Vec<&str> = whole.split('.').collect();
        for n in (1..=parts.len()).rev() {
            if let Some(at) = self.find(&parts[..n].join("."))
                && let Some(fields) = inside(&self.select.columns[at].data_type, &parts[n..])
            {
                return Some((at, fields));
            }
        }
        for q in (1..parts.len()).rev() {
            let qualifier = parts[..q].join(".");
            for n in (q + 1..=parts.len()).rev() {
                let base = parts[q..n].join(".");
                let found = self.select.columns.iter().position(|c| {
                    !c.hidden && same(&c.base, &base) && c.qualifiers.iter().any(|known| same(known, &qualifier))
                });
                if let Some(at) = found
                    && let Some(fields) = inside(&self.select.columns[at].data_type, &parts[n..])
                {
                    return Some((at, fields));
                }
            }
        }
        None
    }

    fn missing(&self, name: &Name) -> Problem {
        Problem::no_such(name.at, "field", &name.text(), self.visible().map(|c| c.name.as_str()))
    }

    /// What a name stands for: a column, a field of one, or the same of the query outside.
    ///
    /// # Errors
    /// There is none.
    pub fn field(&self, name: &Name) -> Result<Value, Problem> {
        if let Some((at, fields)) = self.resolve(name) {
            let column = &self.select.columns[at];
            return Ok(value_of(column.sql.clone(), &column.data_type, &fields, name.at, column.input.is_some()));
        }
        let mut outer = self.outer;
        while let Some(rows) = outer {
            if let Some((at, fields)) = rows.resolve(name) {
                let column = &rows.select.columns[at];
                if let Some(input) = &column.input {
                    rows.select.used.set(true);
                    let qualified = Sql::path([input.relation.as_str(), input.column.as_str()]);
                    return Ok(value_of(qualified, &column.data_type, &fields, name.at, false));
                }
            }
            outer = rows.outer;
        }
        Err(self.missing(name))
    }

    /// The columns that a pattern names.
    ///
    /// # Errors
    /// There is none.
    pub fn matching(&mut self, pattern: &Pattern) -> Result<Vec<String>, Problem> {
        if pattern.is_wild() {
            let found: Vec<String> =
                self.visible().filter(|c| fits(&pattern.text, &c.name).is_some()).map(|c| c.name.clone()).collect();
            if found.is_empty() {
                let names = self.visible().map(|c| c.name.as_str());
                return Err(Problem::no_such(pattern.at, "field that fits", &pattern.text, names));
            }
            return Ok(found);
        }
        let name = Name { parts: vec![pattern.text.clone()], at: pattern.at };
        if let Some(column) = self.column_of(&name)? {
            return Ok(vec![column]);
        }
        // A field inside a column becomes one.
        self.before_compute_of(&[&name]);
        let value = self.field(&name)?;
        self.set(&pattern.text, value);
        Ok(vec![pattern.text.clone()])
    }
}

/// The fields of a column that a path names, as they are written in its type.
fn inside(data_type: &Type, path: &[&str]) -> Option<Vec<String>> {
    let mut data_type = data_type;
    let mut found = Vec::new();
    for part in path {
        let Type::Struct(fields) = data_type else { return None };
        let field = fields.iter().find(|f| f.name == *part).or_else(|| fields.iter().find(|f| same(&f.name, part)))?;
        found.push(field.name.clone());
        data_type = &field.data_type;
    }
    Some(found)
}

fn value_of(mut sql: Sql, data_type: &Type, path: &[String], at: usize, direct: bool) -> Value {
    let mut data_type = data_type;
    for part in path {
        sql = sql!("get_field({}, {})", sql, Sql::text(part));
        if let Type::Struct(fields) = data_type
            && let Some(field) = fields.iter().find(|f| f.name == *part)
        {
            data_type = &field.data_type;
        }
    }
    Value { sql: sql.from(at), data_type: data_type.clone(), direct: direct && path.is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_tells_what_its_stars_stand_for() {
        let parts = |parts: &[&str]| Some(parts.iter().map(|p| (*p).to_owned()).collect::<Vec<String>>());
        for (pattern, name, found) in [
            ("a", "A", parts(&[])),
            ("a", "ab", None),
            ("*name", "firstname", parts(&["first"])),
            ("sev*", "Severity", parts(&["erity"])),
            ("*", "", parts(&[""])),
            ("a*b*c", "axbyc", parts(&["x", "y"])),
            ("a*a", "a", None),
            ("*é*", "aéb", parts(&["a", "b"])),
            ("*a*a*a*a*a*a*a*a*b", &"a".repeat(250), None),
        ] {
            assert_eq!(fits(pattern, name), found, "{pattern} {name}");
        }
    }
}
