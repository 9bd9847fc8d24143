//! CSV with a header. A null is an empty field, nested values are their JSON text.

use std::collections::HashMap;
use std::io::{self, Write};

use firesteel_session::ports::Column;
use firesteel_session::result::row;

use super::{Printer, Summary};

pub struct Csv<'a> {
    out: csv::Writer<&'a mut dyn Write>,
    columns: Vec<String>,
}

impl<'a> Csv<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Csv { out: csv::Writer::from_writer(out), columns: Vec::new() }
    }
}

impl Printer for Csv<'_> {
    fn begin(&mut self, columns: &[Column]) -> io::Result<()> {
        self.columns = columns.iter().map(|c| c.name.clone()).collect();
        if self.columns.is_empty() {
            return Ok(());
        }
        self.out.write_record(&self.columns).map_err(failed)
    }

    fn rows(&mut self, rows: &[String]) -> io::Result<()> {
        for text in rows.iter().filter(|_| !self.columns.is_empty()) {
            let text = row::standard(text);
            let members: HashMap<String, &str> = row::members(&text)?.into_iter().collect();
            let fields =
                self.columns.iter().map(|name| members.get(name).map_or(String::new(), |json| row::text(json)));
            self.out.write_record(fields).map_err(failed)?;
        }
        Ok(())
    }

    fn end(&mut self, _: &Summary) -> io::Result<()> {
        self.out.flush()
    }
}

/// The output's own error, so that a closed pipe is seen as one.
fn failed(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("the result has no CSV form: {other:?}")),
    }
}
