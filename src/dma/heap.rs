//! The heap and its buffers.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use range_alloc::RangeAllocator;

use super::{DmaError, DmaMemory};

/// Allocations start and end on multiples of this many bytes: a page, so that files can be read
/// into buffers with O_DIRECT, and far more than a bus word or a descriptor needs.
pub const GRANULE: usize = 4096;

/// Hands out buffers of one DMA memory. Clones share it.
#[derive(Clone)]
pub struct Heap(Arc<Inner>);

struct Inner {
    memory: Arc<dyn DmaMemory>,
    free: Mutex<RangeAllocator<usize>>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, RangeAllocator<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heap {
    /// A heap over all of `memory`.
    ///
    /// # Errors
    /// [`DmaError::Misaligned`] if the device address or the length is not a multiple of
    /// [`GRANULE`].
    pub fn new(memory: Arc<dyn DmaMemory>) -> Result<Heap, DmaError> {
        let numbers = [
            ("device address", memory.device_base()),
            ("size", memory.len() as u64),
            ("CPU address", memory.cpu_ptr().as_ptr() as u64),
        ];
        for (what, value) in numbers {
            if !value.is_multiple_of(GRANULE as u64) {
                return Err(DmaError::Misaligned {
                    heap: memory.name().into(),
                    what,
                    value,
                    align: GRANULE as u64,
                });
            }
        }
        let free = Mutex::new(RangeAllocator::new(0..memory.len()));
        Ok(Heap(Arc::new(Inner { memory, free })))
    }

    /// A buffer of at least `len` bytes (a buffer of 0 bytes is given one granule).
    ///
    /// # Errors
    /// [`DmaError::Exhausted`] if no free range is long enough.
    pub fn alloc(&self, len: usize) -> Result<Buffer, DmaError> {
        let buffer = self.take(0, len)?;
        let (start, len) = (buffer.range.start, buffer.range.len());
        self.0.memory.on_alloc(start, len);
        Ok(buffer)
    }

    /// As [`Heap::alloc`], of a buffer that starts as far past a multiple of [`GRANULE`] as
    /// `file_offset` does: then whole blocks of a file, [`Buffer::granules`], can be read such that
    /// the bytes from `file_offset` on land in the buffer.
    pub fn alloc_for_file(&self, file_offset: u64, len: usize) -> Result<Buffer, DmaError> {
        let buffer = self.take((file_offset % GRANULE as u64) as usize, len)?;
        let (start, len) = (buffer.range.start, buffer.range.len());
        self.0.memory.on_alloc_for_file(start, len);
        Ok(buffer)
    }

    fn take(&self, skip: usize, len: usize) -> Result<Buffer, DmaError> {
        let exhausted = |free: usize| DmaError::Exhausted {
            heap: self.0.memory.name().into(),
            requested: len as u64,
            free: free as u64,
            total: self.0.memory.len() as u64,
        };
        let mut ranges = self.0.lock();
        let granules = len
            .max(1)
            .checked_add(skip)
            .and_then(|bytes| bytes.checked_next_multiple_of(GRANULE))
            .ok_or_else(|| exhausted(ranges.total_available()))?;
        let range = ranges
            .allocate_range(granules)
            .map_err(|_| exhausted(ranges.total_available()))?;
        Ok(Buffer {
            heap: self.0.clone(),
            range,
            skip,
            len,
        })
    }

    /// Bytes free, in however many pieces.
    pub fn free(&self) -> u64 {
        self.0.lock().total_available() as u64
    }

    /// Bytes in all.
    pub fn total(&self) -> u64 {
        self.0.memory.len() as u64
    }

    /// Device address of the heap's first byte.
    pub fn device_base(&self) -> u64 {
        self.0.memory.device_base()
    }
}

/// A piece of DMA memory; it goes back to its heap when dropped.
///
/// The device may change the bytes at any time, so safe code copies in and out; references to the
/// bytes are for `unsafe` code that knows who owns them.
pub struct Buffer {
    heap: Arc<Inner>,
    /// The granules.
    range: Range<usize>,
    /// Bytes of the first granule before the buffer.
    skip: usize,
    len: usize,
}

impl Buffer {
    /// Bytes asked for.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where the device sees the first byte.
    pub fn device_addr(&self) -> u64 {
        self.heap.memory.device_base() + self.start() as u64
    }

    /// Offset in the memory.
    fn start(&self) -> usize {
        self.range.start + self.skip
    }

    /// Start of the CPU's view, valid for [`Buffer::len`] bytes.
    pub fn as_ptr(&self) -> NonNull<u8> {
        // SAFETY: the range lies within the memory, by the allocator.
        unsafe { self.heap.memory.cpu_ptr().add(self.start()) }
    }

    /// Start and length of the granules that the buffer lies in, in the CPU's view. They are the
    /// buffer's alone, the bytes before and after it included.
    pub fn granules(&self) -> (NonNull<u8>, usize) {
        // SAFETY: the range lies within the memory, by the allocator.
        let start = unsafe { self.heap.memory.cpu_ptr().add(self.range.start) };
        (start, self.range.len())
    }

    fn check(&self, offset: usize, len: usize) -> Result<(), DmaError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(DmaError::OutOfRange {
                offset,
                len,
                buffer: self.len,
            }),
        }
    }

    /// Copies `bytes` to `offset` in the CPU's view.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DmaError> {
        self.check(offset, bytes.len())?;
        // SAFETY: checked to lie within the buffer, and a borrow cannot overlap it.
        unsafe {
            let to = self.as_ptr().add(offset).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Ok(())
    }

    /// Copies from `offset` in the CPU's view to `bytes`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), DmaError> {
        self.check(offset, bytes.len())?;
        // SAFETY: as in `write`.
        unsafe {
            let from = self.as_ptr().add(offset).as_ptr();
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
        }
        Ok(())
    }

    /// The bytes at `offset..offset + len` in the CPU's view.
    ///
    /// # Safety
    /// While the slice lives nothing writes these bytes: no device, and nothing on the CPU.
    pub unsafe fn slice(&self, offset: usize, len: usize) -> Result<&[u8], DmaError> {
        self.check(offset, len)?;
        // SAFETY: within the buffer; the caller vouches for the rest.
        Ok(unsafe { std::slice::from_raw_parts(self.as_ptr().add(offset).as_ptr(), len) })
    }

    /// As [`Buffer::slice`], to write.
    ///
    /// # Safety
    /// While the slice lives nothing else reads or writes these bytes.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, offset: usize, len: usize) -> Result<&mut [u8], DmaError> {
        self.check(offset, len)?;
        // SAFETY: within the buffer; the caller vouches for the rest.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.as_ptr().add(offset).as_ptr(), len) })
    }

    /// Hands `offset..offset + len` to the device: it will see what the CPU wrote there.
    pub fn sync_for_device(&self, offset: usize, len: usize) -> Result<(), DmaError> {
        self.check(offset, len)?;
        let at = self.start() + offset;
        let done = self.heap.memory.sync_for_device(at, len);
        done.map_err(|source| self.sync_error("sync_for_device", source))
    }

    /// Hands `offset..offset + len` to the CPU: it will see what the device wrote there.
    pub fn sync_for_cpu(&self, offset: usize, len: usize) -> Result<(), DmaError> {
        self.check(offset, len)?;
        let at = self.start() + offset;
        let done = self.heap.memory.sync_for_cpu(at, len);
        done.map_err(|source| self.sync_error("sync_for_cpu", source))
    }

    fn sync_error(&self, what: &'static str, source: std::io::Error) -> DmaError {
        DmaError::Io {
            heap: self.heap.memory.name().into(),
            what,
            source,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.heap.memory.on_free(self.range.start, self.range.len());
        self.heap.lock().free_range(self.range.clone());
    }
}

// SAFETY: the memory is Send and Sync, and all safe access copies.
unsafe impl Send for Buffer {}
// SAFETY: as above; concurrent copies to the same bytes are the caller's races, as with a file.
unsafe impl Sync for Buffer {}
