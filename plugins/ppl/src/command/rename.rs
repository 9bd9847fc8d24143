//! `rename`: other names for fields, by `*` for many.

use super::{Command, Read};
use crate::ast::{Name, Pattern};
use crate::cursor::Cursor;
use crate::expression::pattern;
use crate::pipeline::{Pipeline, fits};
use crate::problem::Problem;

#[derive(Debug)]
struct Rename(Vec<(Pattern, Pattern)>);

/// `rename <field> as <field> [, …]`; with `*` in both, as many in one as in the other.
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let mut all = Vec::new();
    loop {
        let from = pattern(c)?;
        c.expect_word("as")?;
        let to = pattern(c)?;
        let stars = |p: &Pattern| p.text.matches('*').count();
        if stars(&from) != stars(&to) {
            return Err(Problem::new(
                to.at,
                format!(
                    "`{}` has {} `*` and `{}` has {}; write as many in both",
                    from.text,
                    stars(&from),
                    to.text,
                    stars(&to)
                ),
            ));
        }
        all.push((from, to));
        if !c.eat(",") {
            return Ok(Box::new(Rename(all)));
        }
    }
}

impl Command for Rename {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        for (from, to) in &self.0 {
            if from.is_wild() {
                let names: Vec<String> = rows.visible().map(|c| c.name.clone()).collect();
                for name in names {
                    if let Some(parts) = fits(&from.text, &name) {
                        let mut parts = parts.into_iter();
                        let new = to
                            .text
                            .split('*')
                            .map(str::to_owned)
                            .reduce(|a, b| a + &parts.next().unwrap_or_default() + &b);
                        rows.rename(&name, &new.unwrap_or_default());
                    }
                }
                continue;
            }
            let name = Name { parts: vec![from.text.clone()], at: from.at };
            match rows.column_of(&name) {
                Ok(Some(column)) => rows.rename(&column, &to.text),
                Ok(None) => {
                    rows.before_compute_of(&[&name]);
                    let value = rows.field(&name)?;
                    rows.set(&to.text, value);
                }
                // A field that is not there takes the place of one that is.
                Err(_) => rows.drop(&to.text),
            }
        }
        Ok(())
    }
}
