//! Choosing a target and opening it.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use super::model::{ModelConfig, ModelDevice};
use super::{Device, DeviceError, Fault};
use crate::dma::{Coherence, DmaError, GRANULE, Heap, SimMemory};

/// Which target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// The behavioural model.
    Model,
    /// The Verilated RTL.
    Rtl,
}

impl TargetSpec {
    /// All targets there are, as the command line spells them.
    pub const NAMES: [&str; 2] = ["model", "rtl"];

    /// The targets of this build.
    pub fn built() -> Vec<TargetSpec> {
        match cfg!(feature = "rtl") {
            true => vec![TargetSpec::Model, TargetSpec::Rtl],
            false => vec![TargetSpec::Model],
        }
    }
}

impl FromStr for TargetSpec {
    type Err = TargetError;

    fn from_str(s: &str) -> Result<Self, TargetError> {
        match s {
            "model" => Ok(TargetSpec::Model),
            "rtl" => Ok(TargetSpec::Rtl),
            _ => Err(TargetError::Unknown(s.into())),
        }
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetSpec::Model => "model",
            TargetSpec::Rtl => "rtl",
        })
    }
}

/// How a simulated target is set up.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// Size of the simulated DMA memory, bytes. Pages are used only as they are written.
    pub heap_bytes: usize,
    /// Device address of its first byte.
    pub heap_base: u64,
    pub coherence: Coherence,
    /// Seeds the fill of fresh memory and whatever else is random in a simulation.
    pub seed: u64,
    /// Threads the model computes with; the RTL takes one.
    pub threads: usize,
    /// Width of the DMA's length fields in bits, 8 to 26.
    pub length_width: u32,
    /// Faults to show.
    pub faults: Vec<Fault>,
    /// Where the RTL writes an FST trace of the whole run.
    pub trace: Option<PathBuf>,
}

impl Default for TargetOptions {
    fn default() -> Self {
        TargetOptions {
            heap_bytes: physical_memory(),
            // Above 4 GiB, so that the high words of all addresses are in use.
            heap_base: 0x8_0000_0000,
            coherence: Coherence::Coherent,
            seed: 0,
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            length_width: 26,
            faults: Vec::new(),
            trace: None,
        }
    }
}

/// The machine's memory in bytes, in whole granules of a heap.
fn physical_memory() -> usize {
    let info = rustix::system::sysinfo();
    info.totalram as usize * info.mem_unit as usize / GRANULE * GRANULE
}

/// An open target, ready for a driver.
pub struct Target {
    pub spec: TargetSpec,
    pub heap: Heap,
    pub device: Box<dyn Device>,
    /// Width of the DMA's length fields in bits.
    pub length_width: u32,
}

/// Why a target could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("unknown target {0:?}; there are {names}", names = TargetSpec::NAMES.join(", "))]
    Unknown(String),
    #[error("target {0} is not in this build; build with the feature of that name")]
    NotBuilt(TargetSpec),
    #[error("{option}: {value} is not {wanted}")]
    Option {
        option: &'static str,
        value: String,
        wanted: &'static str,
    },
    #[error(transparent)]
    Dma(#[from] DmaError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Opens the target `spec`; never another one.
pub fn open(spec: &TargetSpec, options: &TargetOptions) -> Result<Target, TargetError> {
    if !(8..=26).contains(&options.length_width) {
        return Err(TargetError::Option {
            option: "length_width",
            value: options.length_width.to_string(),
            wanted: "8 to 26",
        });
    }
    let memory = Arc::new(SimMemory::new(
        options.heap_bytes,
        options.heap_base,
        options.coherence,
        options.seed,
    )?);
    let heap = Heap::new(memory.clone())?;
    let device: Box<dyn Device> = match spec {
        TargetSpec::Model => {
            let config = ModelConfig {
                threads: options.threads,
                faults: options.faults.clone(),
                ..ModelConfig::default()
            };
            Box::new(ModelDevice::new(memory, config))
        }
        TargetSpec::Rtl => return Err(TargetError::NotBuilt(spec.clone())),
    };
    Ok(Target {
        spec: spec.clone(),
        heap,
        device,
        length_width: options.length_width,
    })
}
