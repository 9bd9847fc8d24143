//! The commands: one file each, with its syntax, what is read of it, and what it does to the rows.

use std::fmt::Debug;

pub use crate::aggregate::is_one as is_aggregate;
use crate::cursor::Cursor;
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::{Problem, shortened};

mod dedup;
mod eval;
mod fields;
mod fillnull;
mod head;
mod join;
mod lookup;
mod parse;
mod rename;
pub mod search;
mod sort;
mod stats;
mod top;
mod wher;

/// A command as it was read.
pub trait Command: Debug {
    /// Does to the rows what it says.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    fn apply(&self, rows: &mut Pipeline<'_>) -> Result<(), Problem>;
}

type Read = Result<Box<dyn Command>, Problem>;

/// How a command is written.
struct Syntax {
    /// The word that it begins with.
    name: &'static str,
    /// Reads what follows the word, which is given.
    read: fn(&mut Cursor<'_>, &str) -> Read,
}

/// Every command but `search`, which begins a text.
const COMMANDS: &[Syntax] = &[
    Syntax { name: "where", read: wher::read },
    Syntax { name: "fields", read: fields::read },
    Syntax { name: "table", read: fields::read },
    Syntax { name: "eval", read: eval::read },
    Syntax { name: "stats", read: stats::read },
    Syntax { name: "sort", read: sort::read },
    Syntax { name: "head", read: head::read },
    Syntax { name: "dedup", read: dedup::read },
    Syntax { name: "rename", read: rename::read },
    Syntax { name: "top", read: top::read },
    Syntax { name: "rare", read: top::read },
    Syntax { name: "parse", read: parse::read },
    Syntax { name: "fillnull", read: fillnull::read },
    Syntax { name: "lookup", read: lookup::read },
    Syntax { name: "join", read: join::read },
    Syntax { name: "inner", read: join::read },
    Syntax { name: "left", read: join::read },
    Syntax { name: "right", read: join::read },
    Syntax { name: "full", read: join::read },
    Syntax { name: "cross", read: join::read },
    Syntax { name: "outer", read: join::read },
    Syntax { name: "semi", read: join::read },
    Syntax { name: "anti", read: join::read },
];

/// PPL's other commands, so that a user is told that they are missing rather than wrong.
const MISSING: &[&str] = &[
    "ad",
    "addcoltotals",
    "addtotals",
    "append",
    "appendcol",
    "appendpipe",
    "bin",
    "chart",
    "eventstats",
    "expand",
    "fieldsummary",
    "flatten",
    "grok",
    "kmeans",
    "ml",
    "multisearch",
    "mvcombine",
    "mvexpand",
    "patterns",
    "regex",
    "replace",
    "reverse",
    "rex",
    "spath",
    "streamstats",
    "timechart",
    "transpose",
    "trendline",
];

/// Their names, of those that stand in a table of commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    // `inner`, `left` and their like begin a `join`.
    let join = COMMANDS.iter().position(|s| s.name == "join").unwrap_or(COMMANDS.len() - 1);
    COMMANDS[..=join].iter().map(|s| s.name)
}

/// Reads a command.
///
/// # Errors
/// It is none.
pub fn read(c: &mut Cursor<'_>) -> Read {
    let Kind::Word(word) = c.peek().kind.clone() else { return Err(c.wrong("a command")) };
    let at = c.start();
    if let Some(syntax) = COMMANDS.iter().find(|s| s.name.eq_ignore_ascii_case(&word)) {
        c.next();
        let command = (syntax.read)(c, syntax.name)?;
        if c.ends() {
            return Ok(command);
        }
        return Err(c.wrong("`|` or the end of the command"));
    }
    if word.eq_ignore_ascii_case("search") || word.eq_ignore_ascii_case("source") {
        return Err(Problem::new(at, format!("`{word}` can only be the first command")));
    }
    if MISSING.iter().any(|m| m.eq_ignore_ascii_case(&word)) {
        return Err(Problem::new(at, format!("the command `{}` is not supported yet", shortened(&word))));
    }
    Err(Problem::no_such(at, "command", &word, COMMANDS.iter().map(|s| s.name)))
}
