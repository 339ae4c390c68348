//! DRAM behind an accelerator's ports, in time alone: when data that is asked for comes.
//!
//! The RTL simulation's memory and the timing model use the same [`Dram`]. It schedules each burst
//! when its address is taken, in the order of all ports' arrival: banks with open rows, activation
//! and precharge, bank groups, refresh, the turn of the data bus between reading and writing. Writes
//! are answered when the controller has them, and go to memory in batches or when it is idle.
//!
//! What a real controller may do beyond that is left out: it may also take a row's later hits before
//! an earlier miss, and put refreshes off.

mod channel;
mod presets;
mod setting;

pub use channel::Stats;
pub use presets::{PRESETS, Preset};
pub use setting::{Setting, SettingError};

use channel::Channel;

/// Memory of one or several channels, seen from a fabric with a clock of its own.
pub struct Dram {
    preset: &'static Preset,
    /// A cycle of the fabric, ps.
    cycle: u64,
    channels: Vec<Channel>,
}

impl Dram {
    pub fn new(setting: &Setting) -> Dram {
        let preset = setting.preset;
        Dram {
            preset,
            cycle: 1_000_000 / u64::from(setting.clock_mhz),
            channels: (0..preset.channels).map(|_| Channel::new(preset)).collect(),
        }
    }

    /// A burst of `ready.len()` beats of `beat_bytes` from `addr` on is read, its address taken in
    /// cycle `now`: the cycles from which on each beat may be given.
    pub fn read(&mut self, now: u64, addr: u64, beat_bytes: u32, ready: &mut [u64]) {
        let at = now * self.cycle + self.preset.path / 2;
        let size = self.preset.access_bytes();
        let end = addr + u64::from(beat_bytes) * ready.len() as u64;
        let mut next = addr / size * size;
        let mut data = 0;
        let mut beat = addr;
        for ready in ready {
            beat += u64::from(beat_bytes);
            while next < beat.min(end) {
                let (channel, place) = self.preset.place(next);
                data = self.channels[channel].read(at, place).max(data);
                next += size;
            }
            *ready = (data + self.preset.path / 2)
                .div_ceil(self.cycle)
                .max(now + 1);
        }
    }

    /// The last data of a burst of `bytes` to `addr` has come in cycle `now`: the cycle from which on
    /// the response may be given.
    pub fn write(&mut self, now: u64, addr: u64, bytes: u32) -> u64 {
        let at = now * self.cycle + self.preset.path / 2;
        let size = self.preset.access_bytes();
        let mut next = addr / size * size;
        while next < addr + u64::from(bytes) {
            let (channel, place) = self.preset.place(next);
            self.channels[channel].write(at, place);
            next += size;
        }
        now + self.preset.path.div_ceil(self.cycle).max(1)
    }

    /// What happened so far, of all channels.
    pub fn stats(&self) -> Stats {
        self.channels
            .iter()
            .fold(Stats::default(), |sum, channel| sum + channel.stats())
    }
}

#[cfg(test)]
mod tests;
