//! What the page cache holds of a file.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// Takes the file, which has been written before, out of the page cache.
pub fn forget(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// Bytes of the file that the page cache holds.
pub fn cached(path: &Path) -> usize {
    let map = memmap2::MmapOptions::new()
        .map_raw_read_only(&File::open(path).unwrap())
        .unwrap();
    let mut pages = vec![0u8; map.len().div_ceil(4096)];
    // SAFETY: asks about a mapping that is there, with an answer's room for each of its pages.
    let done = unsafe {
        libc::mincore(
            map.as_ptr().cast_mut().cast(),
            map.len(),
            pages.as_mut_ptr(),
        )
    };
    assert_eq!(done, 0);
    pages.iter().filter(|p| **p & 1 != 0).count() * 4096
}
