//! `eval`: fields made of expressions, each of which sees those before it.

use super::{Command, Read};
use crate::ast::{Expr, Name};
use crate::cursor::Cursor;
use crate::expression::{expression, field};
use crate::pipeline::Pipeline;
use crate::problem::Problem;

#[derive(Debug)]
struct Eval(Vec<(Name, Expr)>);

/// `eval <field> = <expression> [, <field> = <expression>]…`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let mut all = Vec::new();
    loop {
        let name = field(c)?;
        c.expect("=", "and an expression")?;
        all.push((name, expression(c)?));
        if !c.eat(",") {
            return Ok(Box::new(Eval(all)));
        }
    }
}

impl Command for Eval {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        for (name, value) in &self.0 {
            rows.before_compute(&[value]);
            let value = rows.value(value)?;
            rows.set(&name.text(), value);
        }
        Ok(())
    }
}
