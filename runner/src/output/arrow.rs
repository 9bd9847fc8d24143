//! Arrow's IPC stream on an output.

use std::io::{self, Write};

use firesteel_session::ports::Column;
use firesteel_session::result::ipc;

use super::{Printer, Summary};

pub struct Stream<'a> {
    out: Option<&'a mut dyn Write>,
    stream: Option<ipc::Stream<&'a mut dyn Write>>,
}

impl<'a> Stream<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Stream { out: Some(out), stream: None }
    }
}

impl Printer for Stream<'_> {
    fn begin(&mut self, columns: &[Column]) -> io::Result<()> {
        if let Some(out) = self.out.take() {
            self.stream = Some(ipc::Stream::begin(out, columns)?);
        }
        Ok(())
    }

    fn rows(&mut self, rows: &[String]) -> io::Result<()> {
        self.stream.as_mut().map_or(Ok(()), |stream| stream.rows(rows))
    }

    fn end(&mut self, _: &Summary) -> io::Result<()> {
        self.stream.take().map_or(Ok(()), |stream| stream.end().map(drop))
    }
}
