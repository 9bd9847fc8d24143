//! JSON lines: the rows as they stand in the result document.

use std::io::{self, Write};

use firesteel_session::ports::Column;
use firesteel_session::result::row;

use super::{Printer, Summary};

pub struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Lines<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Lines { out }
    }
}

impl Printer for Lines<'_> {
    fn begin(&mut self, _: &[Column]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &[String]) -> io::Result<()> {
        rows.iter().try_for_each(|text| writeln!(self.out, "{}", row::standard(text)))
    }

    fn end(&mut self, _: &Summary) -> io::Result<()> {
        self.out.flush()
    }
}
