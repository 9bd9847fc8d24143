//! The messages between runner and worker, and their frames.
//!
//! A frame is a length (four bytes, little endian, of what follows), a tag (one byte) and a payload: JSON for
//! messages, and for batches the statement's number (eight bytes, little endian) and Arrow IPC.

use std::io::{self, Read};

use firesteel_model::{Code, Failure, Kind, Stage};
use firesteel_session::journal::Entry;
use serde::{Deserialize, Serialize};

use crate::settings::Settings;

const MESSAGE: u8 = 0;
const ARROW: u8 = 1;

/// What the runner tells a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// The first message: whose session it is. The spill folder is the worker's own.
    Open { settings: Box<Settings>, spill: std::path::PathBuf },
    /// Plan a statement, after replaying the entries that the worker has not seen yet.
    Plan {
        n: u64,
        statement: String,
        session: String,
        lang: String,
        text: String,
        entries: Vec<String>,
        /// The plugins on demand, by language, that it may need.
        plugins: Vec<(String, serde_json::Value)>,
    },
    /// Run what was planned.
    Run { n: u64 },
    /// So many more batches may be sent.
    Credit { n: u64, batches: u32 },
    /// Stop it and confirm.
    Cancel { n: u64 },
}

/// What a worker tells the runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// The session is open.
    Ready,
    /// The session could not be opened, or will not go on.
    Broken { why: String },
    /// A plan.
    Planned { n: u64, kind: WireKind, entry: Option<WireEntry> },
    /// What was read so far.
    Progress { n: u64, rows: u64, bytes: u64 },
    /// The result is complete.
    Done { n: u64 },
    /// It ended without a result.
    Failed { n: u64, failure: WireFailure },
    /// Nothing of it runs any more.
    Cancelled { n: u64 },
    /// A plugin's line for the log: its level as tracing names it.
    Log { plugin: String, level: String, line: String },
}

/// [`Kind`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum WireKind {
    Read,
    Define,
    Write,
}

impl From<Kind> for WireKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Read => WireKind::Read,
            Kind::Define => WireKind::Define,
            Kind::Write => WireKind::Write,
        }
    }
}

impl From<WireKind> for Kind {
    fn from(kind: WireKind) -> Self {
        match kind {
            WireKind::Read => Kind::Read,
            WireKind::Define => Kind::Define,
            WireKind::Write => Kind::Write,
        }
    }
}

/// [`Entry`] on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireEntry {
    text: String,
    key: Option<String>,
}

impl From<Entry> for WireEntry {
    fn from(entry: Entry) -> Self {
        WireEntry { text: entry.text, key: entry.key }
    }
}

impl From<WireEntry> for Entry {
    fn from(entry: WireEntry) -> Self {
        Entry { text: entry.text, key: entry.key }
    }
}

/// [`Failure`] on the wire.
#[derive(Serialize, Deserialize)]
pub struct WireFailure {
    code: String,
    stage: String,
    message: String,
    retryable: bool,
}

impl std::fmt::Debug for WireFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.code, self.stage)
    }
}

impl From<Failure> for WireFailure {
    fn from(f: Failure) -> Self {
        WireFailure {
            code: f.code.as_str().to_owned(),
            stage: f.stage.as_str().to_owned(),
            message: f.message,
            retryable: f.retryable,
        }
    }
}

impl From<WireFailure> for Failure {
    fn from(f: WireFailure) -> Self {
        Failure {
            code: Code::parse(&f.code).unwrap_or(Code::Internal),
            stage: Stage::parse(&f.stage).unwrap_or(Stage::Execute),
            message: f.message,
            retryable: f.retryable,
        }
    }
}

/// A frame as it was read.
#[derive(Debug)]
pub enum Frame<M> {
    /// A message.
    Message(M),
    /// A part of a statement's Arrow stream.
    Arrow { n: u64, bytes: Vec<u8> },
}

/// The bytes of a message's frame.
pub fn message(m: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0, 0, 0, 0, MESSAGE];
    serde_json::to_writer(&mut frame, m)?;
    seal(frame)
}

/// The beginning of an Arrow frame: what is written behind it becomes the frame's rows with [`seal`].
pub fn arrow_header(n: u64) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, ARROW];
    frame.extend_from_slice(&n.to_le_bytes());
    frame
}

/// Writes a frame's length into its beginning.
///
/// # Errors
/// It is longer than a length can say.
pub fn seal(mut frame: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = u32::try_from(frame.len() - 4).map_err(|_| io::Error::other("a message of more than 4 GB"))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Reads one frame. None: the other side has closed.
///
/// # Errors
/// A frame larger than `limit`, a message that is none, or the socket's own error.
pub fn read<M: for<'de> Deserialize<'de>>(from: &mut impl Read, limit: u64) -> io::Result<Option<Frame<M>>> {
    let mut length = [0; 4];
    let mut got = 0;
    while got < 4 {
        match from.read(&mut length[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let length = u64::from(u32::from_le_bytes(length));
    if length == 0 || length > limit {
        return Err(io::Error::other(format!("a message of {length} bytes, the limit is {limit}")));
    }
    let mut tag = [0; 1];
    from.read_exact(&mut tag)?;
    let mut rest = length - 1;
    match tag[0] {
        MESSAGE => {
            let mut bytes = Vec::new();
            from.take(rest).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != rest {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Some(Frame::Message(serde_json::from_slice(&bytes)?)))
        }
        ARROW if rest >= 8 => {
            let mut n = [0; 8];
            from.read_exact(&mut n)?;
            rest -= 8;
            let mut bytes = Vec::with_capacity(usize::try_from(rest).unwrap_or(0));
            from.take(rest).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != rest {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Some(Frame::Arrow { n: u64::from_le_bytes(n), bytes }))
        }
        tag => Err(io::Error::other(format!("a message with the unknown tag {tag}"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn what_is_written_is_read_back_up_to_the_limit_and_no_further() {
        let mut bytes = message(&ToWorker::Run { n: 7 }).unwrap();
        let mut rows = arrow_header(9);
        rows.extend(b"abc");
        bytes.extend(seal(rows).unwrap());
        let mut from = bytes.as_slice();
        assert!(matches!(read::<ToWorker>(&mut from, 100).unwrap(), Some(Frame::Message(ToWorker::Run { n: 7 }))));
        assert!(
            matches!(read::<ToWorker>(&mut from, 100).unwrap(), Some(Frame::Arrow { n: 9, bytes }) if bytes == b"abc")
        );
        assert!(read::<ToWorker>(&mut from, 100).unwrap().is_none());
        assert_eq!(
            read::<ToWorker>(&mut bytes.as_slice(), 5).unwrap_err().to_string(),
            format!("a message of {} bytes, the limit is 5", u32::from_le_bytes(bytes[..4].try_into().unwrap()))
        );
    }

    #[test]
    fn half_a_frame_and_nonsense_are_errors() {
        let whole = message(&ToWorker::Run { n: 7 }).unwrap();
        for cut in 1..whole.len() {
            assert!(read::<ToWorker>(&mut &whole[..cut], 100).is_err(), "{cut}");
        }
        assert!(read::<ToWorker>(&mut [1, 0, 0, 0, 9].as_slice(), 100).is_err());
        assert!(read::<ToWorker>(&mut [3, 0, 0, 0, 0, b'{', b'}'].as_slice(), 100).is_err());
    }
}
