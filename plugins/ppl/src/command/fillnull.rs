//! `fillnull`: a value in place of null.

use super::{Command, Read};
use crate::ast::{Expr, Name};
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::{expression, field, fields, sum};
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::sql;
use crate::value::Value;

#[derive(Debug)]
struct FillNull(Vec<Fill>);

#[derive(Debug)]
struct Fill {
    /// None: every field.
    field: Option<Name>,
    value: Expr,
}

/// `fillnull with <value> [in <field>, …]`, `fillnull using <field> = <value>, …`, `fillnull value=<value> [<field> …]`
pub fn read(c: &mut Cursor<'_>, _: &str) -> Read {
    let each = |names: Vec<Name>, value: &Expr| {
        names.into_iter().map(|n| Fill { field: Some(n), value: value.clone() }).collect()
    };
    let all = |value: &Expr| vec![Fill { field: None, value: value.clone() }];
    let fills: Vec<Fill> = if c.eat_word("with") {
        let value = sum(c)?;
        if c.eat_word("in") { each(fields(c, false)?, &value) } else { all(&value) }
    } else if c.eat_word("using") {
        let mut fills = Vec::new();
        loop {
            let name = field(c)?;
            c.expect("=", "and a value")?;
            fills.push(Fill { field: Some(name), value: expression(c)? });
            if !c.eat(",") {
                break;
            }
        }
        fills
    } else if c.option("value") {
        let value = sum(c)?;
        if matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_)) {
            each(fields(c, true)?, &value)
        } else {
            all(&value)
        }
    } else {
        return Err(c.wrong("`with`, `using` or `value=`"));
    };
    Ok(Box::new(FillNull(fills)))
}

impl Command for FillNull {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        let mut todo: Vec<(Name, &Expr)> = Vec::new();
        for fill in &self.0 {
            match &fill.field {
                Some(name) => todo.push((name.clone(), &fill.value)),
                None => todo.extend(
                    rows.visible().map(|c| (Name { parts: vec![c.name.clone()], at: fill.value.at }, &fill.value)),
                ),
            }
        }
        // All at once, so that a value may use a field that is filled too.
        rows.before_compute(&todo.iter().map(|(_, e)| *e).collect::<Vec<_>>());
        rows.before_compute_of(&todo.iter().map(|(n, _)| n).collect::<Vec<_>>());
        let mut filled = Vec::new();
        for (name, by) in todo {
            let Some(column) = rows.column_of(&name)? else {
                return Err(Problem::new(
                    name.at,
                    format!("`{}` is inside a field; make a field of it with `eval` first", name.text()),
                ));
            };
            let (old, new) = (rows.field(&name)?, rows.value(by)?);
            if !fit(&old.data_type, &new.data_type) {
                return Err(Problem::new(
                    by.at,
                    format!(
                        "the field `{column}` is {} and cannot be filled with {}; name the fields to fill",
                        old.data_type.called(),
                        new.data_type.called()
                    ),
                ));
            }
            let data_type = old.data_type.or(&new.data_type);
            filled.push((column, Value::new(sql!("coalesce({}, {})", old.sql, new.sql), data_type)));
        }
        for (column, value) in filled {
            rows.set(&column, value);
        }
        Ok(())
    }
}

fn fit(old: &Type, new: &Type) -> bool {
    old == new
        || old.is_number() && new.is_number()
        || [old, new].iter().any(|t| matches!(t, Type::Unknown | Type::Null))
        || old.is_dated() && (new.is_dated() || *new == Type::Text)
}
