//! The memory that all ports share, as the simulation's has it (`sim/cpp/memory.h`).

use std::collections::VecDeque;

use weightstream_memory::Dram;

use crate::target::Conditions;

/// What limits the data beats of all ports together.
pub(super) struct Memory {
    latency: u64,
    dram: Option<Dram>,
    /// Of the beats of a burst that is asked for.
    ready: Vec<u64>,
    bandwidth: Option<(u64, u64)>,
    tokens: u64,
    refresh: Option<(u64, u64)>,
    since_refresh: u64,
}

impl Memory {
    pub fn new(conditions: &Conditions) -> Memory {
        let wide = |(a, b): (u32, u32)| (u64::from(a), u64::from(b));
        Memory {
            latency: conditions.latency.into(),
            dram: conditions.dram.as_ref().map(Dram::new),
            ready: Vec::new(),
            bandwidth: conditions.bandwidth.map(wide),
            tokens: 0,
            refresh: conditions.refresh.map(wide),
            since_refresh: 0,
        }
    }

    /// A burst is read, its address taken in cycle `now`: from when on its beats may be given, as
    /// runs of (cycle of the first, beats that follow one a cycle).
    pub fn read(
        &mut self,
        now: u64,
        addr: u64,
        beat_bytes: u32,
        beats: u32,
        runs: &mut VecDeque<(u64, u32)>,
    ) {
        let Some(dram) = &mut self.dram else {
            runs.push_back((now + self.latency, beats));
            return;
        };
        self.ready.resize(beats as usize, 0);
        dram.read(now, addr, beat_bytes, &mut self.ready);
        runs.extend(self.ready.iter().map(|&ready| (ready, 1)));
    }

    /// A burst's last data is taken in cycle `now`: from when on its response may be given.
    pub fn write(&mut self, now: u64, addr: u64, bytes: u32) -> u64 {
        match &mut self.dram {
            Some(dram) => dram.write(now, addr, bytes),
            None => now + self.latency,
        }
    }

    /// Once a cycle, before the ports.
    pub fn tick(&mut self) {
        if let Some((beats, cycles)) = self.bandwidth {
            self.tokens = (self.tokens + beats).min(cycles + beats);
        }
        if let Some((interval, _)) = self.refresh {
            self.since_refresh = (self.since_refresh + 1) % interval;
        }
    }

    /// Whether a data beat may move in the coming cycle.
    pub fn can_move(&self) -> bool {
        let refreshing = self
            .refresh
            .is_some_and(|(_, length)| self.since_refresh < length);
        !refreshing
            && self
                .bandwidth
                .is_none_or(|(_, cycles)| self.tokens >= cycles)
    }

    /// A data beat has moved.
    pub fn moved(&mut self) {
        if let Some((_, cycles)) = self.bandwidth {
            self.tokens = self.tokens.saturating_sub(cycles);
        }
    }
}
