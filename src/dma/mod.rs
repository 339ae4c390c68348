//! DMA buffers: memory that the CPU and a device both use, with explicit, ranged ownership.
//!
//! A [`Heap`] hands out [`Buffer`]s from one [`DmaMemory`]. A buffer has a CPU view, a device
//! address and a length. The CPU calls [`Buffer::sync_for_device`] before the device reads what the
//! CPU wrote, and [`Buffer::sync_for_cpu`] before it reads what the device wrote.

mod heap;
mod sim;

pub use heap::{Buffer, GRANULE, Heap};
pub use sim::{Coherence, SimMemory};

use std::io;
use std::ptr::NonNull;

/// Memory that a [`Heap`] can hand out; one implementation for each way of getting at it.
///
/// # Safety
/// `cpu_ptr` points to `len` bytes that stay mapped, readable and writable at that address for the
/// life of the value. The device may read and write them at any time.
#[allow(clippy::len_without_is_empty)]
pub unsafe trait DmaMemory: Send + Sync {
    /// What the memory is, for messages: a device's name, or `simulated`.
    fn name(&self) -> &str;
    /// Start of the CPU's view.
    fn cpu_ptr(&self) -> NonNull<u8>;
    /// Bytes.
    fn len(&self) -> usize;
    /// The address at which the device sees the first byte.
    fn device_base(&self) -> u64;
    /// Makes what the CPU wrote to `offset..offset + len` visible to the device.
    fn sync_for_device(&self, offset: usize, len: usize) -> io::Result<()>;
    /// Makes what the device wrote to `offset..offset + len` visible to the CPU.
    fn sync_for_cpu(&self, offset: usize, len: usize) -> io::Result<()>;
    /// Called when `offset..offset + len` is handed out.
    fn on_alloc(&self, _offset: usize, _len: usize) {}
    /// Called instead when it is handed out to be read from a file.
    fn on_alloc_for_file(&self, _offset: usize, _len: usize) {}
    /// Called when `offset..offset + len` is given back.
    fn on_free(&self, _offset: usize, _len: usize) {}
}

/// What can go wrong with DMA memory.
#[derive(Debug, thiserror::Error)]
pub enum DmaError {
    #[error("heap {heap}: {requested} bytes asked for, {free} of {total} free")]
    Exhausted {
        heap: String,
        requested: u64,
        free: u64,
        total: u64,
    },
    #[error("heap {heap}: {what} 0x{value:x} is not a multiple of {align}")]
    Misaligned {
        heap: String,
        what: &'static str,
        value: u64,
        align: u64,
    },
    #[error("bytes {offset} to {} lie outside the buffer of {buffer} bytes", offset.saturating_add(*len))]
    OutOfRange {
        offset: usize,
        len: usize,
        buffer: usize,
    },
    #[error(
        "device addresses 0x{addr:x} and {len} bytes on lie outside the heap, 0x{base:x} and {size} bytes on"
    )]
    OutsideHeap {
        addr: u64,
        len: u64,
        base: u64,
        size: u64,
    },
    #[error("heap {heap}: {what}: {source}")]
    Io {
        heap: String,
        what: &'static str,
        source: io::Error,
    },
}
