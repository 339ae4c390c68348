//! Choosing a target and opening it.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use super::model::{ModelConfig, ModelDevice};
use super::recording::{Recorder, Recording, RecordingError, Replay, ReplayFile};
#[cfg(feature = "rtl")]
use super::rtl::{RtlDevice, RtlModel};
use super::{Conditions, Device, DeviceError, Fault, Trace, Window};
use crate::dma::{Coherence, DmaError, GRANULE, Heap, SimMemory};
use crate::regs::kernel;
use crate::sample::Sampling;

/// Which target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// The behavioural model.
    Model,
    /// The Verilated RTL: the default configuration, or the one named (`rtl:w256b2`).
    Rtl(Option<String>),
    /// RTL in a shared object that `weightstream dut build` made.
    Dut(PathBuf),
    /// What a recording holds.
    Replay(ReplayFile),
}

impl TargetSpec {
    /// All targets there are, as the command line spells them.
    pub const NAMES: [&str; 5] = [
        "model",
        "rtl",
        "rtl:CONFIGURATION",
        "dut:FILE",
        "replay:FILE",
    ];

    /// The targets of this build, each configuration of the RTL by itself.
    pub fn built() -> Vec<TargetSpec> {
        #[cfg(feature = "rtl")]
        let configs = weightstream_sim::configs();
        #[cfg(not(feature = "rtl"))]
        let configs: Vec<String> = Vec::new();
        let rtl = configs
            .into_iter()
            .map(|config| TargetSpec::Rtl(Some(config)));
        std::iter::once(TargetSpec::Model).chain(rtl).collect()
    }
}

impl FromStr for TargetSpec {
    type Err = TargetError;

    fn from_str(s: &str) -> Result<Self, TargetError> {
        match s.split_once(':') {
            None if s == "model" => Ok(TargetSpec::Model),
            None if s == "rtl" => Ok(TargetSpec::Rtl(None)),
            Some(("rtl", config)) => Ok(TargetSpec::Rtl(Some(config.into()))),
            Some(("dut", file)) => Ok(TargetSpec::Dut(file.into())),
            Some(("replay", file)) => Ok(TargetSpec::Replay(ReplayFile::new(file))),
            _ => Err(TargetError::Unknown(s.into())),
        }
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetSpec::Model => f.write_str("model"),
            TargetSpec::Rtl(None) => f.write_str("rtl"),
            TargetSpec::Rtl(Some(config)) => write!(f, "rtl:{config}"),
            TargetSpec::Dut(file) => write!(f, "dut:{}", file.display()),
            TargetSpec::Replay(file) => write!(f, "replay:{}", file.path().display()),
        }
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
    /// Engines side by side, 1 to 4.
    pub engines: usize,
    /// Threads the model computes with, each of its engines; an engine of the RTL takes one.
    pub threads: usize,
    /// Width of the DMA's length fields in bits, 8 to 26.
    pub length_width: u32,
    /// Faults to show.
    pub faults: Vec<Fault>,
    /// The memory's timing.
    pub conditions: Conditions,
    /// The trace that the RTL writes.
    pub trace: Option<Trace>,
    /// Where all that crosses the target's border is written.
    pub record: Option<Arc<Recording>>,
    /// Keep a log of the data beats ([`Device::take_beats`]).
    pub log_beats: bool,
    /// Compute on the model, and some chains on the target too.
    pub sampling: Option<Sampling>,
}

impl Default for TargetOptions {
    fn default() -> Self {
        TargetOptions {
            heap_bytes: physical_memory(),
            // Above 4 GiB, so that the high words of all addresses are in use.
            heap_base: 0x8_0000_0000,
            coherence: Coherence::Coherent,
            seed: 0,
            engines: 1,
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            length_width: 26,
            faults: Vec::new(),
            conditions: Conditions::default(),
            trace: None,
            record: None,
            log_beats: false,
            sampling: None,
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
    /// One an engine.
    pub devices: Vec<Box<dyn Device>>,
    /// Cycle-accurate engines on the same memory that run some chains too.
    pub sample: Option<Sample>,
    /// Width of the DMA's length fields in bits.
    pub length_width: u32,
}

/// What runs some of the chains too.
pub struct Sample {
    pub sampling: Sampling,
    /// Cycles for which a refresh holds their memory.
    pub refresh_cycles: u64,
    /// One an engine.
    pub devices: Vec<Box<dyn Device>>,
}

/// Why a target could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("unknown target {0:?}; there are {names}", names = TargetSpec::NAMES.join(", "))]
    Unknown(String),
    #[error("target {0} is not in this build; build with the feature `rtl`")]
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
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Opens the target `spec`; never another one.
pub fn open(spec: &TargetSpec, options: &TargetOptions) -> Result<Target, TargetError> {
    let range = |option, value: usize, wanted| {
        let value = value.to_string();
        Err(TargetError::Option {
            option,
            value,
            wanted,
        })
    };
    if !(8..=26).contains(&options.length_width) {
        return range("length_width", options.length_width as usize, "8 to 26");
    }
    if !(1..=4).contains(&options.engines) {
        return range("engines", options.engines, "1 to 4");
    }
    if let (Some(trace), TargetSpec::Model | TargetSpec::Replay(_)) = (&options.trace, spec) {
        return Err(TargetError::Option {
            option: "trace",
            value: trace.path.display().to_string(),
            wanted: "for a target without signals",
        });
    }
    if options.trace.is_some() && options.engines > 1 {
        return range(
            "engines",
            options.engines,
            "1, which is all that one trace can hold",
        );
    }
    let memory = Arc::new(SimMemory::new(
        options.heap_bytes,
        options.heap_base,
        options.coherence,
        options.seed,
    )?);
    let heap = Heap::new(memory.clone())?;
    let session = match spec {
        TargetSpec::Replay(file) => file.begin(),
        _ => 0,
    };
    let devices = (0..options.engines).map(|engine| {
        let memory = memory.clone();
        device(spec, memory, options, session, engine)
    });
    let mut devices = devices.collect::<Result<Vec<_>, _>>()?;
    if let Some(recording) = &options.record {
        let session = recording.begin(&spec.to_string())?;
        let recorded = devices.into_iter().enumerate().map(|(engine, device)| {
            let recording = recording.clone();
            let recorder = Recorder::new(device, memory.clone(), recording, session, engine);
            Box::new(recorder) as Box<dyn Device>
        });
        devices = recorded.collect();
    }
    let mut sample = None;
    if let Some(sampling) = options.sampling {
        if let TargetSpec::Model | TargetSpec::Replay(_) = spec {
            return Err(TargetError::Option {
                option: "sampling",
                value: sampling.rate.to_string(),
                wanted: "for a target without a clock",
            });
        }
        if !(sampling.rate > 0.0 && sampling.rate <= 1.0) {
            return Err(TargetError::Option {
                option: "sampling",
                value: sampling.rate.to_string(),
                wanted: "a share above 0, up to 1",
            });
        }
        let models = devices
            .iter_mut()
            .map(|device| like(device.as_mut(), memory.clone(), options));
        let models = models.collect::<Result<_, _>>()?;
        sample = Some(Sample {
            sampling,
            refresh_cycles: options.conditions.refresh_cycles(),
            devices: std::mem::replace(&mut devices, models),
        });
    }
    Ok(Target {
        spec: spec.clone(),
        devices,
        sample,
        heap,
        length_width: options.length_width,
    })
}

/// A model that takes the same jobs as `device`.
fn like(
    device: &mut dyn Device,
    memory: Arc<SimMemory>,
    options: &TargetOptions,
) -> Result<Box<dyn Device>, DeviceError> {
    let bus = device.read32(Window::Kernel, kernel::CAP_BUS)?;
    let config = ModelConfig {
        bus_bytes: (bus & 0xFFFF) as usize / 8,
        blocks_per_cycle: bus >> 16 & 0xFF,
        max_k: device.read32(Window::Kernel, kernel::CAP_MAX_K)?,
        max_cols: device.read32(Window::Kernel, kernel::CAP_MAX_COLS)?,
        threads: options.threads,
        ..ModelConfig::default()
    };
    Ok(Box::new(ModelDevice::new(memory, config)))
}

/// Engine `engine` of the target; of a recording, in session `session`.
fn device(
    spec: &TargetSpec,
    memory: Arc<SimMemory>,
    options: &TargetOptions,
    session: u64,
    engine: usize,
) -> Result<Box<dyn Device>, TargetError> {
    #[cfg(feature = "rtl")]
    let rtl = |model| -> Result<Box<dyn Device>, TargetError> {
        Ok(Box::new(RtlDevice::new(memory.clone(), model, options)?))
    };
    match spec {
        TargetSpec::Model => {
            let config = ModelConfig {
                threads: options.threads,
                faults: options.faults.clone(),
                ..ModelConfig::default()
            };
            Ok(Box::new(ModelDevice::new(memory, config)))
        }
        TargetSpec::Replay(file) => {
            Ok(Box::new(Replay::new(file.path(), memory, session, engine)?))
        }
        #[cfg(feature = "rtl")]
        TargetSpec::Rtl(config) => rtl(RtlModel::Built(config.as_deref())),
        #[cfg(feature = "rtl")]
        TargetSpec::Dut(file) => rtl(RtlModel::Dut(file)),
        #[cfg(not(feature = "rtl"))]
        TargetSpec::Rtl(_) | TargetSpec::Dut(_) => Err(TargetError::NotBuilt(spec.clone())),
    }
}
