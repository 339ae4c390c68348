//! The memory that all ports share, as the simulation's has it (`sim/cpp/memory.h`).

use crate::target::Conditions;

/// What limits the data beats of all ports together.
pub(super) struct Memory {
    latency: u64,
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
            bandwidth: conditions.bandwidth.map(wide),
            tokens: 0,
            refresh: conditions.refresh.map(wide),
            since_refresh: 0,
        }
    }

    pub fn latency(&self) -> u64 {
        self.latency
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
