//! Tables for people.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use comfy_table::{Cell, CellAlignment, ContentArrangement};
use firesteel_session::ports::Column;
use firesteel_session::result::row;

use super::{Printer, Summary, summary_text};
use crate::logging::coloured;

/// What a cell shows of a wide value on a terminal.
const WIDEST: usize = 60;

/// How a table may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The terminal's columns; None: no terminal, so nothing is cut.
    pub width: Option<u16>,
    /// Escape sequences for colours may be written.
    pub colours: bool,
}

impl Look {
    /// As standard output is.
    #[must_use]
    pub fn of_stdout() -> Look {
        let terminal = std::io::stdout().is_terminal();
        let width = if terminal { terminal_size::terminal_size().map(|(w, _)| w.0) } else { None };
        Look { width, colours: coloured(terminal) }
    }
}

pub struct Table<'a> {
    out: &'a mut dyn Write,
    look: Look,
    columns: Vec<Column>,
    printed: bool,
}

impl<'a> Table<'a> {
    pub fn new(out: &'a mut dyn Write, look: Look) -> Self {
        Table { out, look, columns: Vec::new(), printed: false }
    }
}

impl Printer for Table<'_> {
    fn shows_summary(&self) -> bool {
        true
    }

    fn begin(&mut self, columns: &[Column]) -> io::Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn rows(&mut self, rows: &[String]) -> io::Result<()> {
        // Further pages of a result are further tables: widths are known of what is there.
        if self.columns.is_empty() || (rows.is_empty() && self.printed) {
            return Ok(());
        }
        let mut cells = Vec::with_capacity(rows.len());
        for text in rows {
            let text = row::standard(text);
            let members: HashMap<String, &str> = row::members(&text)?.into_iter().collect();
            let line = self.columns.iter().map(|c| members.get(&c.name).copied().map(row::text));
            cells.push(line.collect::<Vec<_>>());
        }
        let header: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let numbers: Vec<bool> = self.columns.iter().map(|c| is_number(&c.data_type)).collect();
        let table = grid(&header, &numbers, cells, self.look);
        self.printed = true;
        writeln!(self.out, "{table}")
    }

    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        writeln!(self.out, "{}", summary_text(summary))?;
        self.out.flush()
    }
}

/// A table of cells; None is a null.
#[must_use]
pub fn grid(header: &[&str], numbers: &[bool], rows: Vec<Vec<Option<String>>>, look: Look) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset("││──├─┼┤│    ┬┴┌┐└┘");
    if let Some(width) = look.width {
        table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.iter().map(|name| Cell::new(shown(name, look))));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(n, value)| {
            let cell = match value {
                None => Cell::new("NULL"),
                Some(text) if text == "NULL" => Cell::new("\"NULL\""),
                Some(text) => Cell::new(shown(&text, look)),
            };
            if numbers.get(n) == Some(&true) { cell.set_alignment(CellAlignment::Right) } else { cell }
        }));
    }
    let text = table.trim_fmt();
    if look.colours { dimmed(&text) } else { text }
}

/// The nulls in the background.
fn dimmed(text: &str) -> String {
    let cell = |cell: &str| if cell.trim() == "NULL" { format!("\u{1b}[2m{cell}\u{1b}[0m") } else { cell.to_owned() };
    let line = |line: &str| line.split('│').map(cell).collect::<Vec<_>>().join("│");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn is_number(data_type: &str) -> bool {
    matches!(data_type, "byte" | "short" | "integer" | "long" | "float" | "double") || data_type.starts_with("decimal")
}

/// The text without anything that would move a terminal's cursor or turn its text around, and on a terminal not too wide.
fn shown(text: &str, look: Look) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    match (look.width, out.char_indices().nth(WIDEST)) {
        (Some(_), Some((at, _))) => {
            out.truncate(at);
            out.push('…');
            out
        }
        _ => out,
    }
}
