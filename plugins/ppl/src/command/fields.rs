//! `fields` and `table`: which fields there are, and in which order.

use super::{Command, Read};
use crate::ast::Pattern;
use crate::cursor::Cursor;
use crate::expression::pattern;
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;

#[derive(Debug)]
struct Fields {
    without: bool,
    patterns: Vec<Pattern>,
}

/// `fields [+|-] <field> [,] <field> …`; a field may hold `*`.
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let without = c.eat("-");
    if !without {
        c.eat("+");
    }
    let mut patterns = vec![pattern(c)?];
    while c.eat(",") || matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_) | Kind::Symbol("*")) {
        patterns.push(pattern(c)?);
    }
    Ok(Box::new(Fields { without, patterns }))
}

impl Command for Fields {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        if self.without {
            for pattern in &self.patterns {
                for name in rows.matching(pattern)? {
                    rows.drop(&name);
                }
            }
            return if rows.visible().next().is_some() {
                Ok(())
            } else {
                Err(Problem::new(self.patterns[0].at, "no field would be left; keep at least one"))
            };
        }
        let mut keep: Vec<String> = Vec::new();
        for pattern in &self.patterns {
            for name in rows.matching(pattern)? {
                if !keep.iter().any(|k| k.eq_ignore_ascii_case(&name)) {
                    keep.push(name);
                }
            }
        }
        rows.keep(&keep);
        Ok(())
    }
}
