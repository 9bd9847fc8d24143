//! Reads a text: what it is about, then commands with pipes between them.

use crate::command::{self, Command, search::Search};
use crate::cursor::Cursor;
use crate::lexer::Kind;
use crate::problem::Problem;

/// A source and what is done with its rows.
#[derive(Debug)]
pub struct Query {
    /// Where the rows come from.
    pub search: Search,
    /// What is done with them, in this order, and where each begins.
    pub stages: Vec<(usize, Box<dyn Command>)>,
}

/// A whole text.
#[derive(Debug)]
pub enum Text {
    /// Rows.
    Query(Query),
    /// How they would be found.
    Explain(Query),
    /// A table's columns.
    Describe(Vec<String>),
}

/// Reads a whole text.
///
/// # Errors
/// It is none.
pub fn text(c: &mut Cursor<'_>) -> Result<Text, Problem> {
    let text = if c.is_word("describe") && !c.symbol_ahead(1, "=") {
        c.next();
        Text::Describe(command::search::table(c)?.parts)
    } else if c.is_word("explain") && !c.symbol_ahead(1, "=") {
        c.next();
        let formats = ["simple", "standard", "cost", "extended"];
        if formats.iter().any(|f| c.is_word(f)) && !c.symbol_ahead(1, "=") {
            c.next();
        }
        Text::Explain(query(c)?)
    } else {
        Text::Query(query(c)?)
    };
    while c.eat(";") {}
    if c.peek().kind == Kind::End { Ok(text) } else { Err(c.wrong("`|` and a command")) }
}

fn query(c: &mut Cursor<'_>) -> Result<Query, Problem> {
    let search = command::search::read(c)?;
    let mut stages = Vec::new();
    while c.eat("|") {
        let at = c.start();
        stages.push((at, command::read(c)?));
    }
    Ok(Query { search, stages })
}

/// Reads `[ … ]`.
///
/// # Errors
/// It is none.
pub fn subquery(c: &mut Cursor<'_>) -> Result<Query, Problem> {
    c.deeper(|c| {
        c.expect("[", "and a subquery")?;
        let query = query(c)?;
        c.expect("]", "or `|`")?;
        Ok(query)
    })
}
