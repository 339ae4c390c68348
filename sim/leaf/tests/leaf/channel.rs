//! What stands around a data mover of the DMA engine: descriptors in, status words out, run and
//! halt as the channel's registers give them, and patterns of readiness.

use std::{collections::VecDeque, fmt};

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

pub const CMPLT: u32 = 1 << 31;
/// Errors as `err_t` holds them. Shifted by 28 they are those of a descriptor's STATUS.
pub const INT_ERR: u64 = 1;
pub const SLV_ERR: u64 = 2;
pub const DEC_ERR: u64 = 4;

/// A fetched descriptor (`desc_t`).
#[derive(Clone, Copy)]
pub struct Descriptor {
    pub error: u64,
    /// Its own address without the low six bits.
    pub pointer: u64,
    pub address: u64,
    pub length: u32,
    pub eof: bool,
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Descriptor {
            error,
            pointer,
            address,
            length,
            eof,
        } = self;
        write!(
            f,
            "descriptor {pointer:#x}: {length} bytes at {address:#x}, eof {eof}, error {error}"
        )
    }
}

impl Descriptor {
    /// `desc_t`, whose `bad` the fetch unit sets.
    fn bits(&self, bus: usize) -> Bits {
        Bits::zero(153)
            .with(0, 3, self.error.into())
            .with(3, 1, self.is_bad(bus).into())
            .with(4, 1, self.eof.into())
            .with(5, 26, self.length.into())
            .with(31, 58, self.pointer.into())
            .with(89, 64, self.address.into())
    }

    /// It has no bytes, or does not begin on a bus word.
    pub fn is_bad(&self, bus: usize) -> bool {
        self.length == 0 || !self.address.is_multiple_of(bus as u64)
    }
}

/// A status word on its way to memory (`update_t`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Update {
    pub pointer: u64,
    pub status: u32,
    pub eof: bool,
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "update {:#x}: {:#x}, eof {}",
            self.pointer, self.status, self.eof
        )
    }
}

/// Levels, cycle by cycle, over and over; high at least once.
#[derive(Debug, Clone)]
pub struct Pattern(Vec<bool>);

impl Pattern {
    pub const ALWAYS: Pattern = Pattern(Vec::new());

    pub fn at(&self, cycle: u64) -> bool {
        self.0.is_empty() || self.0[cycle as usize % self.0.len()]
    }
}

pub fn pattern() -> impl Strategy<Value = Pattern> {
    let mixed = prop::collection::vec(any::<bool>(), 1..9).prop_map(|mut levels| {
        levels[0] = true;
        Pattern(levels)
    });
    prop_oneof![1 => Just(Pattern::ALWAYS), 2 => mixed]
}

pub struct Channel {
    bus: usize,
    descriptors: VecDeque<Descriptor>,
    offer: Pattern,
    ready: Pattern,
    /// Cycles from a status word's acceptance until it is in memory.
    write_back: u64,
    running: bool,
    halted: bool,
    retiring: VecDeque<u64>,
    pub updates: Vec<Update>,
    pub dma_error: u64,
    pub sg_error: u64,
    /// The descriptor of `sg_error`.
    pub marked: Option<u64>,
    /// Descriptors taken whose status is not in memory.
    pending: usize,
}

impl Channel {
    pub fn new(
        bus: usize,
        descriptors: &[Descriptor],
        offer: Pattern,
        ready: Pattern,
        write_back: u64,
    ) -> Channel {
        Channel {
            bus,
            descriptors: descriptors.iter().copied().collect(),
            offer,
            ready,
            write_back,
            running: false,
            halted: true,
            retiring: VecDeque::new(),
            updates: Vec::new(),
            dma_error: 0,
            sg_error: 0,
            marked: None,
            pending: 0,
        }
    }

    pub fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
        let now = leaf.cycle();
        leaf.set("run_i", self.running)?;
        leaf.set("halted_i", self.halted)?;
        let offered = self.descriptors.front().filter(|_| self.offer.at(now));
        leaf.set("desc_valid_i", offered.is_some())?;
        if let Some(descriptor) = offered {
            leaf.set_bits("desc_i", &descriptor.bits(self.bus))?;
        }
        // The scatter-gather port answers a status word that is there.
        let taken = leaf.is("update_valid_o")? && self.ready.at(now);
        leaf.set("update_ready_i", taken)?;
        leaf.set(
            "retire_i",
            self.retiring.front().is_some_and(|&due| due <= now),
        )
    }

    pub fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError> {
        let now = leaf.cycle();
        // Software takes idle for done.
        if !self.failed() && self.running && leaf.is("idle_o")? {
            prop_assert_eq!(self.pending, 0, "idle in cycle {} with descriptors", now);
        }
        if leaf.is("retire_i")? {
            self.retiring.pop_front();
            self.pending -= 1;
        }
        if leaf.is("desc_valid_i")? && leaf.is("desc_ready_o")? {
            self.descriptors.pop_front();
            // Of an error no status is written.
            self.pending += usize::from(!leaf.is("mark_o")?);
        }
        if leaf.is("update_valid_o")? && leaf.is("update_ready_i")? {
            let update = leaf.get_bits("update_o")?;
            self.updates.push(Update {
                pointer: update.field(33, 58) as u64,
                status: update.field(0, 32) as u32,
                eof: update.field(32, 1) == 1,
            });
            self.retiring.push_back(now + 1 + self.write_back);
        }
        self.dma_error |= leaf.get("dma_err_o")?;
        self.sg_error |= leaf.get("sg_err_o")?;
        if leaf.is("mark_o")? {
            self.marked = Some(leaf.get("mark_ptr_o")?);
        }
        // An error stops the channel; it is halted once nothing of it is under way.
        if self.failed() {
            self.halted |= !self.running && leaf.is("quiet_o")?;
            self.running = false;
        } else {
            self.running = true;
            self.halted = false;
        }
        Ok(())
    }

    pub fn failed(&self) -> bool {
        self.dma_error != 0 || self.sg_error != 0
    }

    /// Nothing is left to do: halted with an error, or idle with no descriptor left.
    pub fn ended(&self, leaf: &Leaf) -> Result<bool, LeafError> {
        Ok(match self.failed() {
            true => self.halted,
            false => self.running && self.descriptors.is_empty() && leaf.is("idle_o")?,
        })
    }
}

/// Descriptors that do not overlap, in a region far up; now and then a bad one.
pub fn descriptors(bus: usize, count: usize) -> impl Strategy<Value = Vec<Descriptor>> {
    let bus = bus as u64;
    let length = prop_oneof![
        4 => 1u32..200,
        2 => (1u32..12).prop_map(move |words| words * bus as u32),
        1 => 4000u32..4200,
        1 => 1u32..9000,
    ];
    let offset = prop_oneof![2 => Just(0u64), 3 => 0..4096 / bus, 2 => 4096 / bus - 3..4096 / bus];
    let odd = prop_oneof![
        60 => Just((0u64, None, 0u64)),
        1 => Just((0, Some(0u32), 0)),
        1 => (1..bus).prop_map(|off| (0, None, off)),
        1 => (1u64..8).prop_map(|error| (error, None, 0)),
    ];
    let one = (length, offset, any::<bool>(), odd);
    (prop::collection::vec(one, 1..count), 0u64..0xFFFF_FFFF).prop_map(move |(list, region)| {
        let descriptors = list.into_iter().enumerate();
        descriptors
            .map(
                |(i, (length, offset, eof, (error, empty, off)))| Descriptor {
                    error,
                    pointer: 0x2_5555_0000_0000 + region + i as u64,
                    address: (region << 20) + 0x4000 * i as u64 + offset * bus + off,
                    length: empty.unwrap_or(length),
                    eof,
                },
            )
            .collect()
    })
}

/// A burst's address channel: begins on a bus word, is not too long, stays inside 4 KiB.
pub fn check_burst(
    address: u64,
    len: u64,
    bus: usize,
    longest: usize,
) -> Result<usize, TestCaseError> {
    let beats = len as usize + 1;
    prop_assert!(beats <= longest, "a burst of {} beats", beats);
    prop_assert!(
        address.is_multiple_of(bus as u64),
        "a burst at {:#x}",
        address
    );
    let last = address + (beats * bus) as u64 - 1;
    prop_assert_eq!(
        address >> 12,
        last >> 12,
        "a burst crosses 4 KiB: {:#x} to {:#x}",
        address,
        last
    );
    Ok(beats)
}
