//! `where`: the rows for which something is true.

use super::{Command, Read};
use crate::ast::Expr;
use crate::cursor::Cursor;
use crate::expression::expression;
use crate::pipeline::Pipeline;
use crate::problem::Problem;

#[derive(Debug)]
struct Where(Expr);

/// `where <condition>`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    Ok(Box::new(Where(expression(c)?)))
}

impl Command for Where {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_filter(&[&self.0]);
        let condition = rows.condition(&self.0)?;
        rows.filter(condition);
        Ok(())
    }
}
