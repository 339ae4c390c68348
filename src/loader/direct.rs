//! Files opened for direct I/O: reads that go past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{AtFlags, OFlags, StatxFlags, fstatfs, statx};

use crate::dma::GRANULE;

/// A file open with O_DIRECT.
pub struct DirectFile {
    pub file: File,
    /// Reads start and end, in the file and in memory, on multiples of this many bytes; it divides
    /// [`GRANULE`].
    pub block: u64,
}

/// What statfs(2) calls file systems that are page cache and nothing else.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

impl DirectFile {
    /// Opens the file behind `file` once more.
    ///
    /// # Errors
    /// Why it cannot be read directly.
    pub fn open(file: &File) -> Result<DirectFile, String> {
        let error = |what: &str| {
            let what = what.to_string();
            move |e: io::Error| format!("{what}: {e}")
        };
        let block = block_of(file)?;
        let flags = OFlags::DIRECT.bits() as i32;
        // By its descriptor: its name may mean another file by now, or none.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)
            .map_err(error("the file cannot be opened with O_DIRECT"))?;
        Ok(DirectFile { file, block })
    }
}

fn block_of(file: &File) -> Result<u64, String> {
    // Where the file system does not tell, a granule is as good a guess as there is: logical
    // blocks are not larger, and the first read shows whether it holds.
    let told = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|s| s.stx_mask & StatxFlags::DIOALIGN.bits() != 0)
        .map(|s| (s.stx_dio_mem_align, s.stx_dio_offset_align));
    match told {
        Some((0, _) | (_, 0)) => {
            Err("the file system reads this file only through the page cache".into())
        }
        Some((memory, offset)) => {
            let block = u64::from(memory.max(offset));
            if block.is_power_of_two() && block <= GRANULE as u64 {
                Ok(block)
            } else {
                Err(format!(
                    "direct I/O wants multiples of {block} bytes, buffers start on multiples of {GRANULE}"
                ))
            }
        }
        None => match fstatfs(file).map(|s| s.f_type as u64) {
            Ok(TMPFS_MAGIC | RAMFS_MAGIC) => Err("the file is in memory (tmpfs)".into()),
            _ => Ok(GRANULE as u64),
        },
    }
}
