//! The memory's side of an AXI port, cycle by cycle, as the simulation's has it (`sim/cpp/ports.h`).

use std::collections::VecDeque;

use super::memory::Memory;

/// Random stalls at their mean: of the cycles in which something waits, the given share stalls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    chance: f64,
    owed: f64,
}

impl Stall {
    pub fn new(chance: f64) -> Stall {
        Stall {
            chance,
            owed: 0.5 * chance,
        }
    }

    fn now(&mut self) -> bool {
        if self.chance == 0.0 {
            return false;
        }
        self.owed += self.chance;
        let stalls = self.owed >= 1.0;
        if stalls {
            self.owed -= 1.0;
        }
        stalls
    }
}

/// What a read port does in a cycle.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadEvents {
    /// An address is taken.
    pub address: bool,
    /// A beat is given; it is its burst's last.
    pub beat: bool,
    pub last: bool,
}

pub(super) struct ReadPort {
    beat_bytes: u32,
    /// Beats yet to be given of the bursts that are out.
    bursts: VecDeque<u32>,
    /// When they may be given: from a cycle on, so many.
    runs: VecDeque<(u64, u32)>,
    most: usize,
    stall_address: Stall,
    stall_data: Stall,
    /// What the port drives: an address is taken; a beat is there, the last of its burst.
    ready: bool,
    valid: Option<bool>,
}

impl ReadPort {
    pub fn new(beat_bytes: u32, most: u32, stall_address: f64, stall_data: f64) -> ReadPort {
        ReadPort {
            beat_bytes,
            bursts: VecDeque::new(),
            runs: VecDeque::new(),
            most: most as usize,
            stall_address: Stall::new(stall_address),
            stall_data: Stall::new(stall_data),
            ready: true,
            valid: None,
        }
    }

    /// One cycle. The accelerator offers `address`, the beats of a burst, and takes any beat.
    pub fn step(
        &mut self,
        now: u64,
        address: Option<(u64, u32)>,
        memory: &mut Memory,
    ) -> ReadEvents {
        let mut events = ReadEvents::default();
        if let Some((addr, beats)) = address
            && self.ready
        {
            self.bursts.push_back(beats);
            memory.read(now, addr, self.beat_bytes, beats, &mut self.runs);
            events.address = true;
        }
        if let Some(last) = self.valid.take() {
            (events.beat, events.last) = (true, last);
            if last {
                self.bursts.pop_front();
            }
        }
        if let Some((ready, beats)) = self.runs.front_mut()
            && *ready <= now + 1
            && memory.can_move()
            && !self.stall_data.now()
            && let Some(left) = self.bursts.front_mut()
        {
            memory.moved();
            *beats -= 1;
            if *beats == 0 {
                self.runs.pop_front();
            }
            *left -= 1;
            self.valid = Some(*left == 0);
        }
        // A stall of a channel on which nothing waits costs nothing.
        let waits = address.is_some() && !events.address;
        self.ready = self.bursts.len() < self.most && !(waits && self.stall_address.now());
        events
    }
}

struct WriteBurst {
    addr: u64,
    beats: u32,
    /// From when on its response may be given; 0 before its data is in.
    response: u64,
}

/// What a write port does in a cycle.
#[derive(Clone, Copy, Default)]
pub(super) struct WriteEvents {
    pub address: bool,
    pub data: bool,
    pub response: bool,
}

pub(super) struct WritePort {
    beat_bytes: u32,
    /// The bursts whose address is taken.
    bursts: VecDeque<WriteBurst>,
    filled: usize,
    most: usize,
    stall_address: Stall,
    stall_data: Stall,
    stall_response: Stall,
    ready: bool,
    data_ready: bool,
    valid: bool,
}

impl WritePort {
    pub fn new(beat_bytes: u32, most: u32, stalls: [f64; 3]) -> WritePort {
        let [stall_address, stall_data, stall_response] = stalls.map(Stall::new);
        WritePort {
            beat_bytes,
            bursts: VecDeque::new(),
            filled: 0,
            most: most as usize,
            stall_address,
            stall_data,
            stall_response,
            ready: true,
            data_ready: false,
            valid: false,
        }
    }

    /// One cycle. The accelerator offers an address and data (its burst's last beat or not).
    pub fn step(
        &mut self,
        now: u64,
        address: Option<(u64, u32)>,
        data: Option<bool>,
        memory: &mut Memory,
    ) -> WriteEvents {
        let mut events = WriteEvents::default();
        if let Some(last) = data
            && self.data_ready
        {
            events.data = true;
            memory.moved();
            if last {
                let burst = &mut self.bursts[self.filled];
                burst.response = memory.write(now, burst.addr, burst.beats * self.beat_bytes);
                self.filled += 1;
            }
        }
        if let Some((addr, beats)) = address
            && self.ready
        {
            events.address = true;
            self.bursts.push_back(WriteBurst {
                addr,
                beats,
                response: 0,
            });
        }
        if std::mem::take(&mut self.valid) {
            events.response = true;
            self.bursts.pop_front();
            self.filled -= 1;
        }
        if self.filled > 0
            && let Some(burst) = self.bursts.front()
        {
            self.valid = burst.response <= now + 1 && !self.stall_response.now();
        }
        let waits = address.is_some() && !events.address;
        self.ready = self.bursts.len() < self.most && !(waits && self.stall_address.now());
        let due = self.filled < self.bursts.len();
        self.data_ready = due && memory.can_move() && !(data.is_some() && self.stall_data.now());
        events
    }
}
