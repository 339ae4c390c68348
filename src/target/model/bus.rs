//! The memory as the DMA masters see it: device addresses, and error responses.

use std::ops::Range;
use std::sync::Arc;

use crate::dma::SimMemory;

/// An access that memory did not carry out, by its AXI response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// SLVERR: an injected fault.
    Slave,
    /// DECERR: no memory at the address.
    Decode,
}

pub struct Bus {
    memory: Arc<SimMemory>,
    faults: Vec<Range<u64>>,
}

impl Bus {
    /// `faults` are device addresses whose accesses are answered SLVERR.
    pub fn new(memory: Arc<SimMemory>, faults: Vec<Range<u64>>) -> Bus {
        Bus { memory, faults }
    }

    /// The device's view of `len` bytes at `addr`, valid as long as the bus is.
    pub fn at(&self, addr: u64, len: usize) -> Result<*mut u8, Denied> {
        let len = len as u64;
        let end = addr.saturating_add(len);
        if self.faults.iter().any(|f| f.start < end && addr < f.end) {
            return Err(Denied::Slave);
        }
        let view = self.memory.at_device_addr(addr, len);
        view.map_err(|_| Denied::Decode)
    }

    /// Reads `N` bytes at `addr`.
    pub fn read<const N: usize>(&self, addr: u64) -> Result<[u8; N], Denied> {
        let from = self.at(addr, N)?;
        let mut bytes = [0; N];
        // SAFETY: `at` gave a view of N bytes of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), N) };
        Ok(bytes)
    }

    /// Writes `bytes` to `addr`.
    pub fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Denied> {
        let to = self.at(addr, bytes.len())?;
        // SAFETY: as in `read`; a slice of ours does not overlap DMA memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}
