//! A channel's descriptors: a ring in DMA memory.

use crate::dma::{Buffer, DmaError, Heap};
use crate::regs::axi_dma::{DESCRIPTOR_BYTES, desc};

const BYTES: usize = DESCRIPTOR_BYTES as usize;

/// Descriptors linked into a circle. Some run of them, starting at the oldest, is queued for the
/// device; the rest is free.
pub(super) struct Ring {
    buffer: Buffer,
    size: usize,
    /// Index of the oldest queued descriptor.
    oldest: usize,
    queued: usize,
}

/// A descriptor that the device has done with.
pub(super) struct Done {
    /// Bytes the device moved.
    pub transferred: usize,
    /// It holds the end of a packet (S2MM).
    pub end_of_packet: bool,
}

impl Ring {
    pub fn new(heap: &Heap, size: usize) -> Result<Ring, DmaError> {
        let buffer = heap.alloc(size * BYTES)?;
        let ring = Ring {
            buffer,
            size,
            oldest: 0,
            queued: 0,
        };
        for index in 0..size {
            let next = ring.addr(index + 1);
            let mut bytes = [0; BYTES];
            bytes[desc::NXTDESC..][..8].copy_from_slice(&next.to_le_bytes());
            ring.buffer.write(index * BYTES, &bytes)?;
        }
        ring.buffer.sync_for_device(0, size * BYTES)?;
        Ok(ring)
    }

    fn addr(&self, index: usize) -> u64 {
        self.buffer.device_addr() + (index % self.size * BYTES) as u64
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn free(&self) -> usize {
        self.size - self.queued
    }

    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Forgets what is queued and starts over at the first descriptor, as the device does after a
    /// reset. Returns the address for `CURDESC`.
    pub fn restart(&mut self) -> u64 {
        (self.oldest, self.queued) = (0, 0);
        self.addr(0)
    }

    /// Fills the next free descriptor; there must be one. `control` holds the flags beside the
    /// length.
    pub fn push(&mut self, addr: u64, len: usize, control: u32) -> Result<(), DmaError> {
        debug_assert!(self.free() > 0 && len as u64 <= u64::from(desc::LENGTH_MASK));
        let at = (self.oldest + self.queued) % self.size * BYTES;
        self.buffer
            .write(at + desc::BUFFER_ADDRESS, &addr.to_le_bytes())?;
        let control_and_status = u64::from(control | len as u32).to_le_bytes();
        self.buffer.write(at + desc::CONTROL, &control_and_status)?;
        self.buffer.sync_for_device(at, BYTES)?;
        self.queued += 1;
        Ok(())
    }

    /// Address of the newest queued descriptor, for `TAILDESC`.
    pub fn tail(&self) -> u64 {
        debug_assert!(self.queued > 0);
        self.addr(self.oldest + self.queued - 1)
    }

    /// Takes the oldest queued descriptor back if the device has done with it.
    pub fn reap(&mut self) -> Result<Option<Done>, DmaError> {
        if self.queued == 0 {
            return Ok(None);
        }
        let at = self.oldest * BYTES;
        self.buffer.sync_for_cpu(at, BYTES)?;
        let mut status = [0; 4];
        self.buffer.read(at + desc::STATUS, &mut status)?;
        let status = u32::from_le_bytes(status);
        if status & desc::CMPLT == 0 {
            return Ok(None);
        }
        self.oldest = (self.oldest + 1) % self.size;
        self.queued -= 1;
        Ok(Some(Done {
            transferred: (status & desc::LENGTH_MASK) as usize,
            end_of_packet: status & desc::RXEOF != 0,
        }))
    }
}
