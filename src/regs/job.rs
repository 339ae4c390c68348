//! The job header, the result footer and the job status (`docs/stream.md`).

use std::fmt;

pub const HEADER_BYTES: usize = 64;
pub const FOOTER_BYTES: usize = 16;
/// Every part of a job packet but the last is a multiple of this many bytes.
pub const PART_ALIGN: usize = 64;
/// The bytes `WSJ1`.
pub const MAGIC: u32 = 0x314A_5357;
pub const VERSION: u32 = 1;
/// Most rows of a job.
pub const MAX_ROWS: u32 = (1 << 24) - 1;
/// Header flag: use the activations of the last job that brought its own.
pub const REUSE_ACTIVATIONS: u32 = 1 << 0;

/// Offsets in the header.
pub mod header {
    pub const MAGIC: usize = 0x00;
    pub const VERSION: usize = 0x04;
    pub const TYPE: usize = 0x08;
    pub const K: usize = 0x0C;
    pub const ROWS: usize = 0x10;
    pub const COLS: usize = 0x14;
    pub const SKIP: usize = 0x18;
    pub const FLAGS: usize = 0x1C;
    pub const TAG: usize = 0x20;
    /// From here to the end all bytes are 0.
    pub const RESERVED: usize = 0x24;
}

/// A job header's fields, in the order they lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub magic: u32,
    pub version: u32,
    /// ggml's number of the weight type.
    pub ty: u32,
    pub k: u32,
    pub rows: u32,
    pub cols: u32,
    /// Bytes before the first weight row.
    pub skip: u32,
    pub flags: u32,
    pub tag: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let words = [
            self.magic,
            self.version,
            self.ty,
            self.k,
            self.rows,
            self.cols,
            self.skip,
            self.flags,
            self.tag,
        ];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The fields as they are; nothing is checked here, and reserved bytes are not looked at.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Header {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Header {
            magic: word(header::MAGIC),
            version: word(header::VERSION),
            ty: word(header::TYPE),
            k: word(header::K),
            rows: word(header::ROWS),
            cols: word(header::COLS),
            skip: word(header::SKIP),
            flags: word(header::FLAGS),
            tag: word(header::TAG),
        }
    }
}

/// The end of a result packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    pub tag: u32,
    pub status: Status,
    /// Kernel clock cycles from the packet's first beat to the footer; 0 without a clock.
    pub cycles: u64,
}

impl Footer {
    pub fn to_bytes(self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[0..4].copy_from_slice(&self.tag.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.status.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.cycles.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; FOOTER_BYTES]) -> Footer {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Footer {
            tag: word(0),
            status: Status(word(4)),
            cycles: u64::from(word(8)) | u64::from(word(12)) << 32,
        }
    }
}

/// A job's status: the bits of the footer and of the kernel's `ERROR` register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u32);

/// The status bits. Those above bit 7 mean that the job was malformed; not all its
/// results are there.
pub mod status {
    pub const NONFINITE: u32 = 1 << 0;
    pub const BAD_MAGIC: u32 = 1 << 8;
    pub const BAD_VERSION: u32 = 1 << 9;
    pub const BAD_TYPE: u32 = 1 << 10;
    pub const BAD_K: u32 = 1 << 11;
    pub const BAD_ROWS: u32 = 1 << 12;
    pub const BAD_COLS: u32 = 1 << 13;
    pub const BAD_SKIP: u32 = 1 << 14;
    pub const BAD_FLAGS: u32 = 1 << 15;
    pub const NO_ACTIVATIONS: u32 = 1 << 16;
    pub const SHORT: u32 = 1 << 17;
    pub const LONG: u32 = 1 << 18;
    pub const BAD_KEEP: u32 = 1 << 19;

    pub const NAMES: [(u32, &str); 13] = [
        (NONFINITE, "NONFINITE"),
        (BAD_MAGIC, "BAD_MAGIC"),
        (BAD_VERSION, "BAD_VERSION"),
        (BAD_TYPE, "BAD_TYPE"),
        (BAD_K, "BAD_K"),
        (BAD_ROWS, "BAD_ROWS"),
        (BAD_COLS, "BAD_COLS"),
        (BAD_SKIP, "BAD_SKIP"),
        (BAD_FLAGS, "BAD_FLAGS"),
        (NO_ACTIVATIONS, "NO_ACTIVATIONS"),
        (SHORT, "SHORT"),
        (LONG, "LONG"),
        (BAD_KEEP, "BAD_KEEP"),
    ];
}

impl Status {
    /// Whether the job was well formed and all its results are there.
    pub fn is_good(self) -> bool {
        self.0 < 1 << 8
    }

    /// Whether at least one result is NaN because of a scale that is inf or NaN.
    pub fn is_nonfinite(self) -> bool {
        self.0 & status::NONFINITE != 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = status::NAMES
            .iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        let unknown = status::NAMES
            .iter()
            .fold(self.0, |rest, (bit, _)| rest & !bit);
        match (known.is_empty(), unknown) {
            (true, 0) => f.write_str("OK"),
            (_, 0) => f.write_str(&known.join(" | ")),
            (true, bits) => write!(f, "unknown bits 0x{bits:08x}"),
            (false, bits) => write!(f, "{} | unknown bits 0x{bits:08x}", known.join(" | ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_footer_survive_their_bytes() {
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            ty: 3,
            k: 576,
            rows: 192,
            cols: 2,
            skip: 7,
            flags: REUSE_ACTIVATIONS,
            tag: 0xDEAD_BEEF,
        };
        let bytes = header.to_bytes();
        assert_eq!(&bytes[..4], b"WSJ1");
        assert_eq!(
            &bytes[header::RESERVED..],
            &[0; HEADER_BYTES - header::RESERVED]
        );
        assert_eq!(Header::from_bytes(&bytes), header);

        let footer = Footer {
            tag: 9,
            status: Status(status::SHORT),
            cycles: 1 << 40 | 5,
        };
        assert_eq!(Footer::from_bytes(&footer.to_bytes()), footer);
    }

    #[test]
    fn status_names_its_bits() {
        assert_eq!(Status(0).to_string(), "OK");
        assert_eq!(
            Status(status::BAD_K | status::BAD_SKIP).to_string(),
            "BAD_K | BAD_SKIP"
        );
        assert_eq!(
            Status(status::NONFINITE | 1 << 30).to_string(),
            "NONFINITE | unknown bits 0x40000000"
        );
        assert!(Status(status::NONFINITE).is_good() && !Status(status::BAD_MAGIC).is_good());
    }
}
