//! `head`: the first rows.

use super::{Command, Read};
use crate::cursor::Cursor;
use crate::pipeline::Pipeline;
use crate::problem::Problem;

#[derive(Debug)]
struct Head {
    count: u64,
    from: u64,
}

/// `head [<count>] [from <offset>]`; ten rows, if nothing is said.
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let count = if c.ends() || c.is_word("from") { 10 } else { c.integer("a number of rows")? };
    let from = if c.eat_word("from") { c.integer("a number of rows to leave out")? } else { 0 };
    Ok(Box::new(Head { count, from }))
}

impl Command for Head {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.limit(self.count, self.from);
        Ok(())
    }
}
