//! The parameters of the RTL and what follows from them.

use std::collections::VecDeque;

use super::dma::Region;
#[cfg(doc)]
use crate::driver::Capabilities;
use crate::quant::{Q8_0_BLOCK_BYTES, WeightType};
use crate::regs::job::PART_ALIGN;

/// The parameters of `weightstream.sv`, which a kernel reports as its [`Capabilities`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Bytes of a bus word: 8, 16, 32 or 64 (`BusWidth` / 8).
    pub bus_bytes: usize,
    /// Blocks of 32 weights and one column a cycle: 1, 2 or 4 (`BlocksPerCycle`).
    pub blocks_per_cycle: usize,
    /// Most columns of a job (`MaxCols`).
    pub max_cols: usize,
    /// Largest k (`MaxK`).
    pub max_k: usize,
    /// Bits of a descriptor's length field (`LengthWidth`).
    pub length_width: u32,
}

impl Config {
    /// A configuration with the other parameters at their defaults in `weightstream.sv`.
    pub fn new(bus_bytes: usize, blocks_per_cycle: usize) -> Config {
        Config {
            bus_bytes,
            blocks_per_cycle,
            max_cols: 4,
            max_k: 16384,
            length_width: 26,
        }
    }

    /// log2 of the lanes: the levels of the adder tree in `ws_acc`.
    pub(super) fn levels(&self) -> u64 {
        u64::from(self.blocks_per_cycle.ilog2())
    }

    /// Words of the buffer in `ws_realign` (`Words`).
    pub(super) fn realign_words(&self) -> u32 {
        if self.bus_bytes <= 16 { 8 } else { 4 }
    }

    /// The descriptors of a region of `len` bytes, split as the driver does.
    pub(super) fn split(&self, regions: &mut VecDeque<Region>, addr: u64, len: u64) {
        let longest = ((1u64 << self.length_width) - 1) / PART_ALIGN as u64 * PART_ALIGN as u64;
        for at in (0..len).step_by(longest as usize) {
            let beats = longest.min(len - at).div_ceil(self.bus_bytes as u64);
            let addr = addr + at;
            regions.push_back(Region { addr, beats });
        }
    }

    /// How rows of `k` weights of `ty` are taken out of the stream: `ws_kernel_pkg` and the part's
    /// shape in `ws_job_walk`.
    pub(super) fn walk(&self, ty: WeightType, k: usize, kind: Kind, cols: usize) -> Walk {
        let lanes = self.blocks_per_cycle;
        let extract = match self.bus_bytes {
            ..=16 => Q8_0_BLOCK_BYTES,
            32 => 48,
            _ => 96,
        };
        let bytes = ty.block_bytes();
        let slots = match kind {
            Kind::Activations => 1,
            _ if ty.block_len() == 256 => 8 / lanes * cols,
            _ => cols,
        };
        let (groups, full, tail) = if ty.block_len() == 256 {
            let pieces = bytes.div_ceil(extract);
            let group = Group {
                pieces: pieces as u32,
                piece: bytes.min(extract) as u32,
                last: (bytes - (pieces - 1) * extract) as u32,
            };
            (k / 256, group, group)
        } else {
            let most = [4, 2]
                .into_iter()
                .find(|n| lanes >= *n && bytes * n <= extract);
            let blocks = most.unwrap_or(1);
            let group = |n: usize| Group {
                pieces: n.div_ceil(blocks) as u32,
                piece: (bytes * blocks) as u32,
                last: (bytes * ((n - 1) % blocks + 1)) as u32,
            };
            let row = k / 32;
            let groups = row.div_ceil(lanes);
            (groups, group(lanes), group(row - (groups - 1) * lanes))
        };
        Walk {
            kind,
            groups: groups as u32,
            full,
            tail,
            slots: slots as u32,
            words: if kind == Kind::Weights {
                cols as u32
            } else {
                0
            },
        }
    }
}

/// What an extraction is (`kind_e`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Activations,
    Weights,
    Footer,
}

/// The pieces of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub pieces: u32,
    /// Bytes of a piece but the last.
    pub piece: u32,
    pub last: u32,
}

/// A row of activations or weights as the parser walks through it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub kind: Kind,
    /// Groups in a row.
    pub groups: u32,
    /// A group but the row's last.
    pub full: Group,
    pub tail: Group,
    /// Issue slots of a group.
    pub slots: u32,
    /// Of the row's last group the slots that make a word, which are the last.
    pub words: u32,
}
