//! Results on standard output: as a table, JSON lines, CSV or an Arrow stream, page by page.

mod arrow;
mod csv;
mod json;
mod table;

use std::io::{self, Write};

use firesteel_session::ports::Column;

pub use table::{Look, grid};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// One object a line.
    Json,
    /// With a header.
    Csv,
    /// Arrow's IPC stream.
    Arrow,
}

impl Format {
    /// The names, as options have them.
    pub const NAMES: [(&'static str, Format); 4] =
        [("table", Format::Table), ("json", Format::Json), ("csv", Format::Csv), ("arrow", Format::Arrow)];

    /// The format of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Format> {
        Format::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

/// What there is to say below a result.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Rows in all pages.
    pub rows: u64,
    /// From submitting to the result, in milliseconds; None: not to be said.
    pub millis: Option<u64>,
    /// Rows beyond a limit were left out, as asked.
    pub truncated: bool,
}

/// Writes one result. The rows are those of the result document: JSON objects, nulls left out.
pub trait Printer {
    /// The columns, before any row.
    ///
    /// # Errors
    /// The output's.
    fn begin(&mut self, columns: &[Column]) -> io::Result<()>;
    /// Some rows.
    ///
    /// # Errors
    /// The output's; `InvalidData` for rows that are none.
    fn rows(&mut self, rows: &[String]) -> io::Result<()>;
    /// The end.
    ///
    /// # Errors
    /// The output's.
    fn end(&mut self, summary: &Summary) -> io::Result<()>;
    /// What `end` was told stands in the output. If not, somebody else must say that rows were left out.
    fn shows_summary(&self) -> bool {
        false
    }
}

/// A printer of this format.
pub fn printer<'a>(format: Format, look: Look, out: &'a mut dyn Write) -> Box<dyn Printer + 'a> {
    match format {
        Format::Table => Box::new(table::Table::new(out, look)),
        Format::Json => Box::new(json::Lines::new(out)),
        Format::Csv => Box::new(csv::Csv::new(out)),
        Format::Arrow => Box::new(arrow::Stream::new(out)),
    }
}

/// `3 rows, 12 ms`.
#[must_use]
pub fn summary_text(summary: &Summary) -> String {
    let rows = if summary.rows == 1 { "1 row".to_owned() } else { format!("{} rows", summary.rows) };
    let time = summary.millis.map_or(String::new(), |ms| format!(", {}", span(ms)));
    let more = if summary.truncated { "; the result is longer: a limit was reached" } else { "" };
    format!("({rows}{time}{more})")
}

/// A length of time for people.
#[must_use]
pub fn span(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis / 100 % 10),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests;
