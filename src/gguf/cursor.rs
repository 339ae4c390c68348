//! Reads GGUF's primitive values, each named, so that an error says what was being read.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::GgufError;

/// An error that does not know its file's path yet.
pub(super) enum Error {
    Io(io::Error),
    Field {
        field: String,
        value: String,
        expected: String,
    },
    Truncated {
        field: String,
        offset: u64,
        needed: u64,
        size: u64,
    },
}

impl Error {
    pub fn at(self, path: &Path) -> GgufError {
        let path = path.to_path_buf();
        match self {
            Error::Io(source) => GgufError::Io { path, source },
            Error::Field {
                field,
                value,
                expected,
            } => GgufError::Field {
                path,
                field,
                value,
                expected,
            },
            Error::Truncated {
                field,
                offset,
                needed,
                size,
            } => GgufError::Truncated {
                path,
                field,
                offset,
                needed,
                size,
            },
        }
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Error::Io(source)
    }
}

/// The error that `field` holds `value` where `expected` was due.
pub(super) fn bad(field: &str, value: impl ToString, expected: &str) -> Error {
    Error::Field {
        field: field.into(),
        value: value.to_string(),
        expected: expected.into(),
    }
}

/// A metadata value's type; source: `enum gguf_type`.
mod kind {
    pub const STRING: u32 = 8;
    pub const ARRAY: u32 = 9;

    /// Bytes of a value of a type that has a fixed size.
    pub fn size(kind: u32) -> Option<u64> {
        match kind {
            0 | 1 | 7 => Some(1),
            2 | 3 => Some(2),
            4..=6 => Some(4),
            10..=12 => Some(8),
            _ => None,
        }
    }

    pub fn is_unsigned(kind: u32) -> bool {
        matches!(kind, 0 | 2 | 4 | 10)
    }

    pub fn is_signed(kind: u32) -> bool {
        matches!(kind, 1 | 3 | 5 | 11)
    }
}

/// A metadata value, as far as anybody here asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unsigned(u64),
    Signed(i64),
    /// A float, a truth value, a string or an array.
    Other,
}

impl Value {
    /// The integer, whatever its type, unless it is negative.
    pub fn count(self) -> Option<u64> {
        match self {
            Value::Unsigned(n) => Some(n),
            Value::Signed(n) => n.try_into().ok(),
            Value::Other => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(n) => n.fmt(f),
            Value::Signed(n) => n.fmt(f),
            Value::Other => f.write_str("no integer"),
        }
    }
}

pub(super) struct Cursor<'a> {
    reader: BufReader<&'a File>,
    offset: u64,
    size: u64,
}

impl<'a> Cursor<'a> {
    pub fn new(file: &'a File) -> Result<Self, Error> {
        let size = file.metadata()?.len();
        Ok(Cursor {
            reader: BufReader::new(file),
            offset: 0,
            size,
        })
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Checks that `needed` bytes from `offset` on lie within the file.
    pub fn check(&self, field: &str, offset: u64, needed: u64) -> Result<(), Error> {
        match offset.checked_add(needed) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Error::Truncated {
                field: field.into(),
                offset,
                needed,
                size: self.size,
            }),
        }
    }

    fn fill(&mut self, field: &str, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(field, self.offset, bytes.len() as u64)?;
        self.reader.read_exact(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    pub fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(field, &mut bytes)?;
        Ok(bytes)
    }

    pub fn u32(&mut self, field: &str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub fn u64(&mut self, field: &str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    pub fn string(&mut self, field: &str) -> Result<String, Error> {
        let len = self.u64(field)?;
        self.check(field, self.offset, len)?;
        let mut bytes = vec![0; len as usize];
        self.fill(field, &mut bytes)?;
        String::from_utf8(bytes).map_err(|e| bad(field, e, "UTF-8"))
    }

    fn skip(&mut self, field: &str, len: u64) -> Result<(), Error> {
        self.check(field, self.offset, len)?;
        self.reader.seek_relative(len as i64)?;
        self.offset += len;
        Ok(())
    }

    /// The value of metadata `key`, which is passed over if it is no integer.
    pub fn value(&mut self, key: &str) -> Result<Value, Error> {
        let kind = self.u32(key)?;
        if kind == kind::ARRAY {
            self.skip_array(key)?;
            return Ok(Value::Other);
        }
        let Some(size) = self.scalar_size(key, kind)? else {
            return Ok(Value::Other);
        };
        let mut bytes = [0; 8];
        self.fill(key, &mut bytes[..size as usize])?;
        let unused_bits = 64 - 8 * size as u32;
        Ok(if kind::is_unsigned(kind) {
            Value::Unsigned(u64::from_le_bytes(bytes))
        } else if kind::is_signed(kind) {
            Value::Signed(i64::from_le_bytes(bytes) << unused_bits >> unused_bits)
        } else {
            Value::Other
        })
    }

    /// The size of a scalar; passes over a string, which is none.
    fn scalar_size(&mut self, key: &str, kind: u32) -> Result<Option<u64>, Error> {
        if kind == kind::STRING {
            let len = self.u64(key)?;
            self.skip(key, len)?;
            return Ok(None);
        }
        let expected = "a value type from 0 to 12";
        kind::size(kind)
            .map(Some)
            .ok_or_else(|| bad(&format!("type of {key}"), kind, expected))
    }

    fn skip_array(&mut self, key: &str) -> Result<(), Error> {
        let kind = self.u32(key)?;
        let count = self.u64(key)?;
        match kind {
            kind::ARRAY => Err(bad(
                &format!("element type of {key}"),
                kind,
                "no array of arrays",
            )),
            kind::STRING => (0..count).try_for_each(|_| {
                let len = self.u64(key)?;
                self.skip(key, len)
            }),
            _ => {
                let size = self.scalar_size(key, kind)?.unwrap_or(0);
                let len = count.saturating_mul(size);
                self.skip(key, len)
            }
        }
    }
}
