//! The DMA engine, cycle by cycle, without its data: `ws_dma_fetch`, `ws_dma_sg`, `ws_dma_mm2s`,
//! `ws_dma_s2mm`.

use std::collections::VecDeque;

use super::memory::Memory;
use super::ports::{ReadPort, WritePort};
use crate::regs::axi_dma::DESCRIPTOR_BYTES;

/// A region of memory that a descriptor names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub addr: u64,
    pub beats: u64,
}

/// Descriptors held ahead of the data (`Depth` of `ws_dma_fetch`).
const FETCHED: u32 = 8;
/// Fetches of a channel that are out (`inflight_q`).
const FETCHES: u32 = 3;
/// Descriptors taken and not written back (`MaxDescs`).
const TAKEN: u32 = 16;
/// Descriptor reads and write-backs on AXI (`MaxReads`, `MaxWrites` of `ws_dma_sg`).
const SG_READS: usize = 4;
const SG_WRITES: usize = 8;
/// 32-bit words of a descriptor that are read.
const SG_BEATS: u32 = 8;
/// `MaxBurst`, `FifoDepth`, `MaxReads` of `ws_dma_mm2s`.
const MM2S_BURST: u64 = 64;
const MM2S_FIFO: u64 = 256;
const MM2S_READS: usize = 16;
/// `MaxBurst`, `FifoDepth`, `MaxWrites`, `MaxSegs` of `ws_dma_s2mm`.
const S2MM_BURST: u32 = 16;
const S2MM_FIFO: u32 = 64;
const S2MM_WRITES: usize = 16;
const S2MM_SEGMENTS: usize = 8;
/// Bytes that no burst crosses.
const PAGE: u64 = 4096;

/// `ws_dma_fetch` of one channel.
struct Fetch {
    active: bool,
    /// The address of the next descriptor is known.
    known: bool,
    asked: u64,
    total: u64,
    room: u32,
    inflight: u32,
    word: u32,
    pushed: bool,
    /// Descriptors in the FIFO.
    held: u32,
    ring: u64,
}

impl Fetch {
    fn new(ring: u64, total: u64) -> Fetch {
        Fetch {
            active: false,
            known: true,
            asked: 0,
            total,
            room: FETCHED,
            inflight: 0,
            word: 0,
            pushed: false,
            held: 0,
            ring,
        }
    }

    fn wants(&self) -> bool {
        self.active && self.known && self.room != 0 && self.inflight != FETCHES
    }

    /// The end of a cycle in which the request was granted or not, a word came or not, and the
    /// channel took a descriptor or not.
    fn step(&mut self, asked: bool, word: bool, taken: bool) {
        if std::mem::take(&mut self.pushed) {
            self.held += 1;
        }
        if taken {
            self.held -= 1;
            self.room += 1;
        }
        if asked {
            self.known = false;
            self.room -= 1;
            self.inflight += 1;
            self.asked += 1;
            self.active = self.asked < self.total;
        }
        if word {
            match self.word {
                // The second word completes the address of the next descriptor.
                1 => self.known = true,
                7 => {
                    self.pushed = true;
                    self.inflight -= 1;
                }
                _ => {}
            }
            self.word = (self.word + 1) % SG_BEATS;
        }
    }
}

/// `ws_dma_sg` and the two channels' `ws_dma_fetch`.
pub(super) struct ScatterGather {
    fetches: [Fetch; 2],
    // Reads
    turn: usize,
    address: Option<(u64, u32)>,
    pushed: Option<usize>,
    reads: VecDeque<usize>,
    word: Option<bool>,
    read_port: ReadPort,
    // Write-backs: of the channels those that wait, through `update_push_q` and the FIFO
    updates: [u32; 2],
    fresh: [bool; 2],
    write_turn: usize,
    write_address: Option<(u64, u32)>,
    write_data: bool,
    write_pushed: Option<usize>,
    writes: VecDeque<usize>,
    answered: bool,
    write_port: WritePort,
}

pub(super) const MM2S: usize = 0;
pub(super) const S2MM: usize = 1;

impl ScatterGather {
    pub fn new(
        rings: [u64; 2],
        totals: [u64; 2],
        read_port: ReadPort,
        write_port: WritePort,
    ) -> ScatterGather {
        ScatterGather {
            fetches: [
                Fetch::new(rings[MM2S], totals[MM2S]),
                Fetch::new(rings[S2MM], totals[S2MM]),
            ],
            turn: 0,
            address: None,
            pushed: None,
            reads: VecDeque::new(),
            word: None,
            read_port,
            updates: [0; 2],
            fresh: [false; 2],
            write_turn: 0,
            write_address: None,
            write_data: false,
            write_pushed: None,
            writes: VecDeque::new(),
            answered: false,
            write_port,
        }
    }

    /// `TAILDESC` has been written.
    pub fn start(&mut self, channel: usize) {
        self.fetches[channel].active = true;
    }

    pub fn has_descriptor(&self, channel: usize) -> bool {
        self.fetches[channel].held != 0
    }

    /// One cycle, in which the channels `taken` took a descriptor each and those in `complete`
    /// completed one. Returns the channel whose status is in memory.
    pub fn step(
        &mut self,
        now: u64,
        taken: [bool; 2],
        complete: [bool; 2],
        memory: &mut Memory,
    ) -> Option<usize> {
        // Reads
        let wants = [self.fetches[MM2S].wants(), self.fetches[S2MM].wants()];
        let busy = self.address.is_some() || self.pushed.is_some() || self.reads.len() == SG_READS;
        let asked = match (busy, wants) {
            (true, _) | (_, [false, false]) => None,
            (_, [true, true]) => Some(self.turn),
            (_, [true, false]) => Some(MM2S),
            (_, [false, true]) => Some(S2MM),
        };
        let offered = self.address;
        let arrived = self.word;
        if let Some(channel) = self.pushed.take() {
            self.reads.push_back(channel);
        }
        let events = self.read_port.step(now, offered, memory);
        if events.address {
            self.address = None;
        }
        if let Some(channel) = asked {
            let fetch = &self.fetches[channel];
            let index = fetch.asked;
            self.address = Some((fetch.ring + index * DESCRIPTOR_BYTES, SG_BEATS));
            self.turn = 1 - channel;
            self.pushed = Some(channel);
        }
        self.word = events.beat.then_some(events.last);
        let reader = arrived.and_then(|_| self.reads.front().copied());
        if arrived == Some(true) {
            self.reads.pop_front();
        }
        for channel in [MM2S, S2MM] {
            self.fetches[channel].step(
                asked == Some(channel),
                reader == Some(channel),
                taken[channel],
            );
        }

        // Write-backs
        let busy = self.write_address.is_some()
            || self.write_data
            || self.write_pushed.is_some()
            || self.writes.len() == SG_WRITES;
        let waits = self.updates.map(|n| n != 0);
        let begun = match (busy, waits) {
            (true, _) | (_, [false, false]) => None,
            (_, [true, true]) => Some(self.write_turn),
            (_, [true, false]) => Some(MM2S),
            (_, [false, true]) => Some(S2MM),
        };
        let retired = self.answered.then(|| self.writes.pop_front()).flatten();
        if let Some(channel) = self.write_pushed.take() {
            self.writes.push_back(channel);
        }
        let data = self.write_data.then_some(true);
        let events = self.write_port.step(now, self.write_address, data, memory);
        if events.address {
            self.write_address = None;
        }
        self.write_data &= !events.data;
        self.answered = events.response;
        if let Some(channel) = begun {
            self.updates[channel] -= 1;
            self.write_address = Some((self.fetches[channel].ring, 1));
            self.write_data = true;
            self.write_turn = 1 - channel;
            self.write_pushed = Some(channel);
        }
        for channel in [MM2S, S2MM] {
            self.updates[channel] += u32::from(self.fresh[channel]);
        }
        self.fresh = complete;
        retired
    }
}

/// `ws_dma_mm2s`.
pub(super) struct Reader {
    regions: VecDeque<Region>,
    bus_bytes: u64,
    // The descriptor at work, in beats
    current: Option<(u64, u64)>,
    taken: u32,
    free: bool,
    // The next burst
    burst: u64,
    burst_last: bool,
    burst_valid: bool,
    address: Option<(u64, u32)>,
    room: u64,
    /// Of the bursts in flight: the last of its descriptor.
    reads: VecDeque<bool>,
    arrived: Option<bool>,
    stored: u64,
    /// A beat stands in the FIFO's output register.
    pub valid: bool,
    port: ReadPort,
}

/// What a channel did in a cycle.
#[derive(Clone, Copy, Default)]
pub(super) struct Moves {
    pub taken: bool,
    pub complete: bool,
}

impl Reader {
    pub fn new(regions: VecDeque<Region>, bus_bytes: u64, port: ReadPort) -> Reader {
        Reader {
            regions,
            bus_bytes,
            current: None,
            taken: 0,
            free: true,
            burst: 0,
            burst_last: false,
            burst_valid: false,
            address: None,
            room: MM2S_FIFO,
            reads: VecDeque::new(),
            arrived: None,
            stored: 0,
            valid: false,
            port,
        }
    }

    /// No read is under way and no data is held.
    pub fn idle(&self) -> bool {
        self.reads.is_empty() && self.stored == 0 && self.arrived.is_none()
    }

    /// One cycle; `pop`: the kernel takes the beat that is there.
    pub fn step(
        &mut self,
        now: u64,
        described: bool,
        pop: bool,
        retired: bool,
        memory: &mut Memory,
    ) -> Moves {
        let issue = self.burst_valid
            && self.address.is_none()
            && self.room >= self.burst
            && self.reads.len() != MM2S_READS;
        let taken = described && self.free && self.taken != TAKEN;
        let events = self.port.step(now, self.address, memory);

        // Data
        let complete = match self.arrived {
            Some(true) => self.reads.pop_front().unwrap_or(false),
            _ => false,
        };
        let read = self.stored != 0 && (!self.valid || pop);
        self.stored = self.stored + u64::from(self.arrived.is_some()) - u64::from(read);
        self.valid = read || (self.valid && !pop);
        self.arrived = events.beat.then_some(events.last);

        // Addresses
        self.free = self.current.is_none() && !taken;
        if events.address {
            self.address = None;
        }
        let (burst, last) = (self.burst, self.burst_last);
        if let Some((addr, left)) = self.current {
            let to_end = MM2S_BURST - addr % MM2S_BURST;
            (self.burst, self.burst_last) = (left.min(to_end), left <= to_end);
        }
        self.burst_valid = self.current.is_some() && !issue;
        if issue && let Some((addr, left)) = self.current {
            self.address = Some((addr * self.bus_bytes, burst as u32));
            self.reads.push_back(last);
            self.current = (!last).then(|| (addr + burst, left - burst));
        }
        self.room = self.room + u64::from(pop) - if issue { burst } else { 0 };
        if taken && let Some(region) = self.regions.pop_front() {
            self.current = Some((region.addr / self.bus_bytes, region.beats));
        }
        self.taken = self.taken + u32::from(taken) - u32::from(retired);
        Moves { taken, complete }
    }
}

/// A closed burst.
#[derive(Clone, Copy)]
struct Segment {
    addr: u64,
    beats: u32,
    last: bool,
}

/// `ws_dma_s2mm`.
pub(super) struct Writer {
    regions: VecDeque<Region>,
    bus_bytes: u64,
    /// The stream's beat; it is its packet's last.
    input: Option<bool>,
    current: Option<(u64, u64)>,
    taken: u32,
    free: bool,
    room: u32,
    // The open burst
    open_at: u64,
    open: u32,
    closed: Option<Segment>,
    segments: VecDeque<Segment>,
    address: Option<(u64, u32)>,
    /// Bursts whose address is out: the last of its descriptor.
    writes: VecDeque<bool>,
    /// Beats of the bursts that are issued, and how many of these bursts' addresses are taken.
    issued: VecDeque<u32>,
    open_data: u32,
    stored: u32,
    valid: bool,
    answered: bool,
    port: WritePort,
}

impl Writer {
    pub fn new(regions: VecDeque<Region>, bus_bytes: u64, port: WritePort) -> Writer {
        Writer {
            regions,
            bus_bytes,
            input: None,
            current: None,
            taken: 0,
            free: true,
            room: S2MM_FIFO,
            open_at: 0,
            open: 0,
            closed: None,
            segments: VecDeque::new(),
            address: None,
            writes: VecDeque::new(),
            issued: VecDeque::new(),
            open_data: 0,
            stored: 0,
            valid: false,
            answered: false,
            port,
        }
    }

    fn can_beat(&self) -> bool {
        self.current.is_some() && self.room != 0 && self.segments.len() < S2MM_SEGMENTS - 1
    }

    /// A beat that the stream offers is taken.
    pub fn ready(&self) -> bool {
        self.current.is_some() && (self.input.is_none() || self.can_beat())
    }

    /// One cycle; `offered`: the beat that is taken, its packet's last or not.
    pub fn step(
        &mut self,
        now: u64,
        described: bool,
        offered: Option<bool>,
        retired: bool,
        memory: &mut Memory,
    ) -> Moves {
        let taken = described && self.free && self.taken != TAKEN;
        let issue =
            !self.segments.is_empty() && self.address.is_none() && self.writes.len() != S2MM_WRITES;
        let can_beat = self.can_beat();
        let data = (self.valid && self.open_data != 0).then(|| self.issued.front() == Some(&1));
        let events = self.port.step(now, self.address, data, memory);

        // Responses
        let complete = self.answered && self.writes.pop_front().unwrap_or(false);
        self.answered = events.response;

        // Data out
        if events.data
            && let Some(left) = self.issued.front_mut()
        {
            *left -= 1;
            if *left == 0 {
                self.issued.pop_front();
                self.open_data -= 1;
            }
        }
        if events.address {
            self.open_data += 1;
            self.address = None;
        }
        let beat = self.input.filter(|_| can_beat);
        let read = self.stored != 0 && (!self.valid || events.data);
        self.stored = self.stored + u32::from(beat.is_some()) - u32::from(read);
        self.valid = read || (self.valid && !events.data);
        self.room = self.room + u32::from(events.data) - u32::from(beat.is_some());

        // Addresses
        if issue && let Some(segment) = self.segments.pop_front() {
            self.address = Some((segment.addr, segment.beats));
            self.writes.push_back(segment.last);
            self.issued.push_back(segment.beats);
        }
        self.segments.extend(self.closed.take());

        // Beats to bursts
        self.free = self.current.is_none() && !taken;
        if let Some(last) = beat
            && let Some((addr, left)) = self.current
        {
            if self.open == 0 {
                self.open_at = addr;
            }
            self.open += 1;
            let finish = last || left == 1;
            let page_end = ((addr + 1) * self.bus_bytes).is_multiple_of(PAGE);
            if finish || page_end || self.open == S2MM_BURST {
                self.closed = Some(Segment {
                    addr: self.open_at * self.bus_bytes,
                    beats: self.open,
                    last: finish,
                });
                self.open = 0;
            }
            self.current = (!finish).then_some((addr + 1, left - 1));
            self.input = None;
        }
        if offered.is_some() {
            self.input = offered;
        }
        if taken && let Some(region) = self.regions.pop_front() {
            self.current = Some((region.addr / self.bus_bytes, region.beats));
        }
        self.taken = self.taken + u32::from(taken) - u32::from(retired);
        Moves { taken, complete }
    }
}
