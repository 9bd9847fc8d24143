//! `top` and `rare`: the values that are there most often, and least often.

use super::{Command, Read};
use crate::ast::Name;
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::{field, fields};
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::value::Value;

#[derive(Debug)]
struct Top {
    count: u64,
    rare: bool,
    show: bool,
    name: String,
    nulls: bool,
    fields: Vec<Name>,
    by: Vec<Name>,
}

/// `top [<count>] [showcount=<bool>] [countfield=<name>] [usenull=<bool>] <field>, … [by <field>, …]`
pub fn read(c: &mut Cursor<'_>, word: &str) -> Read {
    let mut top = Top {
        count: 10,
        rare: word == "rare",
        show: true,
        name: "count".to_owned(),
        nulls: false,
        fields: Vec::new(),
        by: Vec::new(),
    };
    loop {
        if matches!(c.peek().kind, Kind::Integer(_)) {
            top.count = c.integer("a number of rows")?;
        } else if c.option("showcount") {
            top.show = c.boolean("showcount")?;
        } else if c.option("usenull") {
            top.nulls = c.boolean("usenull")?;
        } else if c.option("countfield") {
            top.name = match c.peek().kind.clone() {
                Kind::Text(text) => {
                    c.next();
                    text
                }
                _ => field(c)?.text(),
            };
        } else if let Kind::Word(option) = c.peek().kind.clone()
            && c.symbol_ahead(1, "=")
        {
            let what = format!("option of `{word}`");
            return Err(Problem::no_such(c.start(), &what, &option, ["showcount", "countfield", "usenull"]));
        } else {
            break;
        }
    }
    top.fields = fields(c, true)?;
    if c.eat_word("by") {
        top.by = fields(c, true)?;
    }
    Ok(Box::new(top))
}

impl Command for Top {
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem> {
        rows.before_groups();
        let mut groups: Vec<(String, Value)> = Vec::new();
        for name in self.by.iter().chain(&self.fields) {
            let column = rows.column_of(name)?.unwrap_or_else(|| name.text());
            if groups.iter().any(|(known, _)| known.eq_ignore_ascii_case(&column)) {
                return Err(Problem::new(name.at, format!("`{}` is there twice; leave one out", name.text())));
            }
            if column.eq_ignore_ascii_case(&self.name) && self.show {
                return Err(Problem::new(
                    name.at,
                    format!("`{column}` is the name of the count too; give it another by `countfield`"),
                ));
            }
            groups.push((column, rows.field(name)?));
        }
        if !self.nulls {
            groups.iter().for_each(|(_, v)| rows.filter(sql!("({} IS NOT NULL)", v.sql)));
        }
        let names: Vec<String> = groups.iter().map(|(name, _)| name.clone()).collect();
        let (by, of) = names.split_at(self.by.len());
        rows.aggregate(vec![(self.name.clone(), Value::new(sql!("count(*)"), Type::Integer))], groups);
        let mut order: Vec<(String, bool)> = by.iter().map(|name| (name.clone(), false)).collect();
        order.push((self.name.clone(), !self.rare));
        // Which of two that are there equally often comes first has to be the same each time.
        order.extend(of.iter().map(|name| (name.clone(), false)));
        if by.is_empty() {
            rows.order(order);
            rows.limit(self.count, 0);
        } else {
            rows.close();
            rows.order(order[by.len()..].to_vec());
            let keys: Vec<Sql> = by.iter().map(|name| Sql::name(name)).collect();
            let by_count = rows.order_by().unwrap_or_default();
            let place =
                rows.window(sql!("row_number() OVER (PARTITION BY {} ORDER BY {})", Sql::join(&keys, ", "), by_count));
            rows.filter(sql!("({} <= {})", place, Sql::integer(self.count)));
            rows.order(order);
        }
        let mut shown = names;
        if self.show {
            shown.push(self.name.clone());
        }
        rows.keep(&shown);
        Ok(())
    }
}
