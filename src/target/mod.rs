//! Targets: what stands behind the registers and the DMA memory.
//!
//! Everything above this border (driver, loader, ggml backend, command line) is the same code for
//! all targets. A target is memory for a heap and an engine's [`Device`].

mod conditions;
pub mod model;
mod open;
pub mod recording;
#[cfg(feature = "rtl")]
pub mod rtl;

pub use conditions::{Beat, CHANNELS, Conditions, Port, Stalls, Trace};
pub use open::{Sample, Target, TargetError, TargetOptions, TargetSpec, open};

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A window of an engine's registers (`docs/registers.md`); offsets count from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    Dma,
    Kernel,
}

/// The interrupt lines of an engine that are high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    pub mm2s: bool,
    pub s2mm: bool,
}

impl Interrupts {
    pub fn any(self) -> bool {
        self.mm2s || self.s2mm
    }
}

/// One engine: its registers and its interrupt. Made for the driver; one file a target.
pub trait Device: Send {
    /// Reads the 32-bit register at `offset`, with the read's effects.
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError>;

    /// Writes the 32-bit register at `offset`, with the write's effects.
    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError>;

    /// Waits until an interrupt line is high.
    ///
    /// # Errors
    /// [`DeviceError::Timeout`] after the target's own limit: cycles without progress in a
    /// simulation, time on a board.
    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError>;

    /// What the simulated clock and bus did so far; `None` where nothing is simulated cycle by
    /// cycle.
    fn activity(&self) -> Option<Activity> {
        None
    }

    /// The data beats since the last call, in the order of their cycles, where
    /// [`TargetOptions::log_beats`] asked for them; none where no bus is simulated.
    fn take_beats(&mut self) -> Vec<Beat> {
        Vec::new()
    }
}

/// Totals of a cycle-accurate target since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Clock cycles simulated.
    pub cycles: u64,
    /// Data beats on the MM2S read channel.
    pub mm2s_beats: u64,
    /// Data beats on the S2MM write channel.
    pub s2mm_beats: u64,
    /// Wall time spent in the simulator, seconds.
    pub seconds: f64,
}

/// What can go wrong at a target's border.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Nothing happened for as long as the target waits; `stuck` names what it waits for.
    #[error("no interrupt: {stuck}")]
    Timeout { stuck: String },
    /// The simulation ended itself: a protocol violation, a failed assertion.
    #[error("simulation: {0}")]
    Simulation(String),
    /// A replayed recording holds something else than the driver does now.
    #[error("replay: {0}")]
    Diverged(String),
}

/// A fault that a simulated target is made to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Accesses of a DMA master to these device addresses are answered SLVERR.
    SlaveError(Range<u64>),
    /// Jobs are taken and no answer ever reaches memory.
    NoAnswer,
}
