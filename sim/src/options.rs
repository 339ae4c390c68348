//! What a simulation is made with.

use std::ptr::NonNull;

use crate::{Channel, SimError, bridge::ffi};

/// The memory that the accelerator reads and writes, as the device sees it.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMemory {
    /// The first byte.
    pub data: NonNull<u8>,
    /// Bytes.
    pub length: usize,
    /// The device address of the first byte. Addresses outside answer DECERR.
    pub base: u64,
}

/// Memory timing, watchdog and seed.
///
/// The defaults are a memory of 60 cycles' latency that supplies a beat every cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// Cycles from an address (or the last write data) to the first response, at least 1.
    pub latency: u32,
    /// Bursts that a port's reads or writes may have in flight, 1 to 64.
    pub max_outstanding: u32,
    /// The most data beats of all memory ports together, as beats per cycles: `(3, 4)` is three
    /// beats in four cycles. The memory supplies a beat per port and cycle without it.
    pub bandwidth: Option<(u32, u32)>,
    /// Refresh, as (interval, length) in cycles: no data moves for `length` of every `interval`.
    pub refresh: Option<(u32, u32)>,
    /// DRAM in place of the fixed latency.
    pub dram: Option<weightstream_memory::Setting>,
    /// Random stalls: a channel and the chance, 0 to below 1, that it stalls in a cycle.
    pub stalls: Vec<(Channel, f64)>,
    /// Cycles without a transfer on the memory ports after which a run ends in an error.
    pub watchdog: u64,
    /// Seed of the stalls and of the contents of registers and memories without a reset.
    pub seed: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions {
            latency: 60,
            max_outstanding: 16,
            bandwidth: None,
            refresh: None,
            dram: None,
            stalls: Vec::new(),
            watchdog: 100_000,
            seed: 1,
        }
    }
}

impl SimOptions {
    /// Every AXI channel stalls with this chance.
    pub fn stall_all(mut self, chance: f64) -> Self {
        self.stalls = Channel::ALL[..Channel::AXI]
            .iter()
            .map(|&channel| (channel, chance))
            .collect();
        self
    }

    pub(crate) fn to_ffi(&self, memory: DeviceMemory) -> Result<ffi::Options, SimError> {
        let fail = |option, value: String, rule| {
            Err(SimError::Option {
                option,
                value,
                rule,
            })
        };
        if self.latency == 0 {
            return fail("latency", "0".into(), "must be at least 1 cycle");
        }
        if !(1..=64).contains(&self.max_outstanding) {
            let value = self.max_outstanding.to_string();
            return fail("max_outstanding", value, "must be 1 to 64 bursts");
        }
        if let Some((beats, cycles)) = self.bandwidth
            && (beats == 0 || cycles == 0)
        {
            let value = format!("{beats} beats in {cycles} cycles");
            return fail("bandwidth", value, "must move data");
        }
        if let Some((interval, length)) = self.refresh
            && length >= interval
        {
            let value = format!("{length} of {interval} cycles");
            return fail("refresh", value, "must be shorter than its interval");
        }
        if self.watchdog == 0 {
            return fail("watchdog", "0".into(), "must be at least 1 cycle");
        }
        if memory.base.checked_add(memory.length as u64).is_none() {
            let value = format!("{:#x} + {:#x}", memory.base, memory.length);
            return fail("memory", value, "must end below 2^64");
        }
        let mut stall = [0; Channel::AXI];
        for &(channel, chance) in &self.stalls {
            let index = channel as usize;
            if index >= Channel::AXI {
                return fail("stalls", channel.to_string(), "must be an AXI channel");
            }
            if !(0.0..1.0).contains(&chance) {
                let value = format!("{chance} on {channel}");
                return fail("stalls", value, "must be a chance from 0 to below 1");
            }
            stall[index] = (chance * f64::from(u32::MAX)) as u32;
        }
        let (bandwidth_beats, bandwidth_cycles) = self.bandwidth.unwrap_or((0, 0));
        let (refresh_interval, refresh_cycles) = self.refresh.unwrap_or((0, 0));
        Ok(ffi::Options {
            memory: memory.data.as_ptr() as usize,
            length: memory.length as u64,
            base: memory.base,
            latency: self.latency,
            max_outstanding: self.max_outstanding,
            bandwidth_beats,
            bandwidth_cycles,
            refresh_interval,
            refresh_cycles,
            stall,
            dram: self.dram.map_or_else(String::new, |dram| dram.to_string()),
            watchdog: self.watchdog,
            seed: self.seed,
        })
    }
}
