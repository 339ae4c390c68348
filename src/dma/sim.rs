//! Simulated DMA memory: an arena that the CPU and a simulated device both map.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::mm::{Advice, madvise};

use super::{DmaError, DmaMemory, GRANULE};

const NAME: &str = "simulated";

/// Whether the CPU's and the device's view of simulated memory are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// One memory; syncs do nothing.
    Coherent,
    /// Two memories; a sync moves the bytes, so that a forgotten one gives wrong data, as on a
    /// board without coherent caches.
    Strict,
}

/// The arena. Bytes handed out are filled with seeded random bytes first, differently in each view,
/// so that nothing works because memory happened to be zero. A buffer for a file is filled where the
/// device alone sees it: the CPU's view of it is read from the file.
pub struct SimMemory {
    cpu: MmapRaw,
    device: Option<MmapRaw>,
    base: u64,
    seed: u64,
    allocations: AtomicU64,
}

impl SimMemory {
    /// `len` bytes that the device sees from `base` on. Pages are taken from the system as they are
    /// used.
    ///
    /// # Errors
    /// If `base` or `len` is not a multiple of [`GRANULE`], `len` is 0, or the system has no
    /// address space for it.
    pub fn new(
        len: usize,
        base: u64,
        coherence: Coherence,
        seed: u64,
    ) -> Result<SimMemory, DmaError> {
        for (what, value) in [("device address", base), ("size", len as u64)] {
            if !value.is_multiple_of(GRANULE as u64) {
                let align = GRANULE as u64;
                return Err(DmaError::Misaligned {
                    heap: NAME.into(),
                    what,
                    value,
                    align,
                });
            }
        }
        if base.checked_add(len as u64).is_none() {
            let size = len as u64;
            return Err(DmaError::OutsideHeap {
                addr: base,
                len: size,
                base,
                size,
            });
        }
        let map = || {
            arena(len).map_err(|source| DmaError::Io {
                heap: NAME.into(),
                what: "cannot map the arena",
                source,
            })
        };
        let cpu = map()?;
        let device = match coherence {
            Coherence::Coherent => None,
            Coherence::Strict => Some(map()?),
        };
        Ok(SimMemory {
            cpu,
            device,
            base,
            seed,
            allocations: AtomicU64::new(0),
        })
    }

    fn device_view(&self) -> &MmapRaw {
        self.device.as_ref().unwrap_or(&self.cpu)
    }

    /// The device's view of the whole memory, valid for [`DmaMemory::len`] bytes.
    pub fn device_ptr(&self) -> *mut u8 {
        self.device_view().as_mut_ptr()
    }

    /// The device's view of `len` bytes at device address `addr`.
    ///
    /// # Errors
    /// [`DmaError::OutsideHeap`] if any of them is not memory.
    pub fn at_device_addr(&self, addr: u64, len: u64) -> Result<*mut u8, DmaError> {
        let size = self.cpu.len() as u64;
        match addr.checked_sub(self.base) {
            Some(offset) if offset <= size && len <= size - offset => {
                // SAFETY: the offset was checked to lie within the mapping.
                Ok(unsafe { self.device_ptr().add(offset as usize) })
            }
            _ => Err(DmaError::OutsideHeap {
                addr,
                len,
                base: self.base,
                size,
            }),
        }
    }
}

fn arena(len: usize) -> io::Result<MmapRaw> {
    let map = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
    let map = MmapRaw::from(map);
    // A disk writes to few large pages faster than to many small ones. That the system has none to
    // give only means small ones.
    // SAFETY: the mapping is ours, and the advice changes no bytes.
    let _ = unsafe { madvise(map.as_mut_ptr().cast(), len, Advice::LinuxHugepage) };
    Ok(map)
}

fn fill(view: &MmapRaw, offset: usize, len: usize, seed: u64) {
    // SAFETY: the heap hands out ranges within the mapping, each to one owner.
    let bytes = unsafe { std::slice::from_raw_parts_mut(view.as_mut_ptr().add(offset), len) };
    SmallRng::seed_from_u64(seed).fill_bytes(bytes);
}

// SAFETY: the mappings live as long as the value and do not move.
unsafe impl DmaMemory for SimMemory {
    fn name(&self) -> &str {
        NAME
    }

    fn cpu_ptr(&self) -> NonNull<u8> {
        NonNull::new(self.cpu.as_mut_ptr()).expect("a mapping is not at address 0")
    }

    fn len(&self) -> usize {
        self.cpu.len()
    }

    fn device_base(&self) -> u64 {
        self.base
    }

    fn sync_for_device(&self, offset: usize, len: usize) -> io::Result<()> {
        copy(Some(&self.cpu), self.device.as_ref(), offset, len);
        Ok(())
    }

    fn sync_for_cpu(&self, offset: usize, len: usize) -> io::Result<()> {
        copy(self.device.as_ref(), Some(&self.cpu), offset, len);
        Ok(())
    }

    fn on_alloc(&self, offset: usize, len: usize) {
        let nth = self.allocations.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_add(nth.wrapping_mul(2));
        fill(&self.cpu, offset, len, seed);
        if let Some(device) = &self.device {
            fill(device, offset, len, seed ^ 1);
        }
    }

    fn on_alloc_for_file(&self, offset: usize, len: usize) {
        // The CPU's view is written over at once; the device's holds nothing of it until a sync.
        if let Some(device) = &self.device {
            let nth = self.allocations.fetch_add(1, Ordering::Relaxed);
            let seed = self.seed.wrapping_add(nth.wrapping_mul(2));
            fill(device, offset, len, seed ^ 1);
        }
    }

    fn on_free(&self, offset: usize, len: usize) {
        for view in [Some(&self.cpu), self.device.as_ref()]
            .into_iter()
            .flatten()
        {
            // SAFETY: nobody owns the range any more. Its pages go back to the system; that this
            // fails only means that they stay.
            let _ = unsafe {
                madvise(
                    view.as_mut_ptr().add(offset).cast(),
                    len,
                    Advice::LinuxDontNeed,
                )
            };
        }
    }
}

fn copy(from: Option<&MmapRaw>, to: Option<&MmapRaw>, offset: usize, len: usize) {
    if let (Some(from), Some(to)) = (from, to) {
        // SAFETY: two mappings of the same length; the caller checked the range.
        unsafe {
            let (from, to) = (from.as_ptr().add(offset), to.as_mut_ptr().add(offset));
            std::ptr::copy_nonoverlapping(from, to, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Buffer, Heap};
    use super::*;
    use std::sync::Arc;

    const BASE: u64 = 0x8_0000_0000;

    fn heap(coherence: Coherence) -> (Arc<SimMemory>, Heap) {
        let memory = Arc::new(SimMemory::new(1 << 20, BASE, coherence, 1).unwrap());
        let heap = Heap::new(memory.clone()).unwrap();
        (memory, heap)
    }

    fn device_bytes(memory: &SimMemory, buffer: &Buffer) -> Vec<u8> {
        let ptr = memory
            .at_device_addr(buffer.device_addr(), buffer.len() as u64)
            .unwrap();
        unsafe { std::slice::from_raw_parts(ptr, buffer.len()).to_vec() }
    }

    #[test]
    fn strict_memory_moves_bytes_only_by_sync() {
        let (memory, heap) = heap(Coherence::Strict);
        let buffer = heap.alloc(256).unwrap();
        buffer.write(0, &[7; 256]).unwrap();
        assert_ne!(device_bytes(&memory, &buffer), [7; 256]);
        buffer.sync_for_device(64, 64).unwrap();
        let seen = device_bytes(&memory, &buffer);
        assert_eq!(seen[64..128], [7; 64]);
        assert!(seen[..64] != [7; 64] && seen[128..192] != [7; 64]);

        buffer.sync_for_cpu(0, 64).unwrap();
        let mut back = [0; 64];
        buffer.read(0, &mut back).unwrap();
        assert_eq!(back, seen[..64]);
    }

    #[test]
    fn coherent_memory_is_one() {
        let (memory, heap) = heap(Coherence::Coherent);
        let buffer = heap.alloc(100).unwrap();
        buffer.write(0, &[9; 100]).unwrap();
        assert_eq!(device_bytes(&memory, &buffer), [9; 100]);
    }

    #[test]
    fn fresh_memory_is_random_and_repeatable() {
        let bytes = |seed| {
            let memory =
                Arc::new(SimMemory::new(1 << 16, BASE, Coherence::Coherent, seed).unwrap());
            let buffer = Heap::new(memory.clone()).unwrap().alloc(4096).unwrap();
            device_bytes(&memory, &buffer)
        };
        let first = bytes(5);
        assert_eq!(first, bytes(5));
        assert_ne!(first, bytes(6));
        assert!(first.iter().filter(|b| **b == 0).count() < 100);
    }

    #[test]
    fn errors_name_their_numbers() {
        let (memory, heap) = heap(Coherence::Coherent);
        let text = |e: DmaError| e.to_string();
        let full = text(heap.alloc(2 << 20).err().unwrap());
        assert_eq!(
            full,
            "heap simulated: 2097152 bytes asked for, 1048576 of 1048576 free"
        );
        assert!(heap.alloc(usize::MAX).is_err());
        let buffer = heap.alloc(10).unwrap();
        let outside = text(buffer.write(8, &[0; 4]).unwrap_err());
        assert_eq!(outside, "bytes 8 to 12 lie outside the buffer of 10 bytes");
        assert!(buffer.sync_for_device(usize::MAX, 2).is_err());
        assert!(memory.at_device_addr(BASE - 1, 1).is_err());
        assert!(memory.at_device_addr(BASE + (1 << 20), 1).is_err());
        assert!(memory.at_device_addr(BASE + (1 << 20) - 1, 1).is_ok());
        let odd = SimMemory::new(1 << 20, BASE + 64, Coherence::Coherent, 1)
            .err()
            .unwrap();
        assert!(text(odd).contains("0x800000040 is not a multiple of 4096"));
        assert!(SimMemory::new(1 << 20, u64::MAX - 4095, Coherence::Coherent, 1).is_err());
    }

    #[test]
    fn a_dropped_buffer_is_free_again() {
        let (_, heap) = heap(Coherence::Strict);
        let whole = heap.alloc(1 << 20).unwrap();
        assert_eq!(heap.free(), 0);
        assert!(heap.alloc(1).is_err());
        drop(whole);
        assert_eq!(heap.free(), 1 << 20);
        assert_eq!(heap.alloc(1 << 20).unwrap().device_addr(), BASE);
    }
}
