//! Recordings: what crosses a target's border, line by line.
//!
//! A recording is a text file of JSON, one [`Entry`] a line, after a first line that says what was
//! recorded (`docs/testbench.md`). What the device reads from memory is kept as a hash, what it
//! writes as it is, so that [`Replay`] can answer in its place.

mod compare;
mod queue;
mod record;
mod replay;

#[cfg(test)]
mod tests;

pub use compare::{Difference, Job, compare};
pub use record::{Recorder, Recording};
pub use replay::{Replay, ReplayFile};

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Interrupts, Window};

/// Version of the format, in the first line.
const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub weightstream_recording: u32,
    pub target: String,
}

/// A line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Which opening of the target it belongs to, counted from 0.
    #[serde(rename = "s")]
    pub session: u64,
    /// Which of its engines.
    #[serde(rename = "e")]
    pub engine: usize,
    /// The cycle after it, on a target that has cycles.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u64>,
    #[serde(flatten)]
    pub entry: Entry,
}

/// Something that crossed the border.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A register was read.
    Read {
        window: Window,
        offset: u32,
        value: u32,
    },
    /// A register was written.
    Write {
        window: Window,
        offset: u32,
        value: u32,
    },
    /// A wait for an interrupt ended with these lines high.
    Interrupt(Interrupts),
    /// The call before it failed: no interrupt came.
    Timeout(String),
    /// The call before it failed: the simulation ended.
    Failed(String),
    /// The write before it was a doorbell, and this descriptor was queued.
    Queued {
        channel: Channel,
        /// Device address of the descriptor.
        addr: u64,
        buffer: u64,
        /// Length and flags.
        control: u32,
        /// SHA-256 of the bytes in its buffer, of MM2S. None where there is no memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// By the end of the call before it, the device was done with this descriptor.
    Done {
        channel: Channel,
        addr: u64,
        status: u32,
        /// The bytes it put into the buffer, of S2MM, in hexadecimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<String>,
    },
}

/// A channel of the DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Mm2s,
    S2mm,
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        path: PathBuf,
        line: u64,
        what: String,
    },
}

/// A recording's lines, as they are read.
struct Reader {
    path: PathBuf,
    lines: io::Lines<BufReader<File>>,
    /// Number of the line read last.
    line: u64,
}

impl Reader {
    /// Opens a recording and reads its first line.
    fn open(path: &Path) -> Result<(Head, Reader), RecordingError> {
        let io = |source| RecordingError::Io {
            path: path.into(),
            source,
        };
        // A pipe would wait for a writer, and a device may never end.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io(io::Error::new(kind, "not a regular file")));
        }
        let mut reader = Reader {
            path: path.into(),
            lines: BufReader::new(File::open(path).map_err(io)?).lines(),
            line: 0,
        };
        let text = reader.text()?.unwrap_or_default();
        let head: Head = serde_json::from_str(&text)
            .map_err(|_| reader.bad("not the first line of a recording"))?;
        if head.weightstream_recording != VERSION {
            let found = head.weightstream_recording;
            return Err(reader.bad(format!("version {found}, expected {VERSION}")));
        }
        Ok((head, reader))
    }

    fn bad(&self, what: impl ToString) -> RecordingError {
        RecordingError::Line {
            path: self.path.clone(),
            line: self.line,
            what: what.to_string(),
        }
    }

    fn text(&mut self) -> Result<Option<String>, RecordingError> {
        self.line += 1;
        let line = self.lines.next().transpose();
        line.map_err(|source| RecordingError::Io {
            path: self.path.clone(),
            source,
        })
    }

    fn next(&mut self) -> Result<Option<Line>, RecordingError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| self.bad(error))
    }
}

fn sha256(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    (text.len().is_multiple_of(2))
        .then(|| digits.map(byte).collect())
        .flatten()
}
