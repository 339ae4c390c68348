//! The driver: the only one, for all targets.
//!
//! [`Engine`] moves packets through one DMA engine and kernel; [`Accelerator`] spreads matrix
//! products over a target's engines and turns them into jobs.

mod accelerator;
mod engine;
mod log;
mod ring;
mod sampler;
mod shard;

pub use accelerator::{Accelerator, Input, MatMul, Stats};
pub use engine::{Answer, Capabilities, Engine, Packet, Part};
pub use log::{ChainLog, Counters, JobLog};

use crate::dma::DmaError;
use crate::quant::WeightType;
use crate::regs::job::Status;
use crate::target::DeviceError;

/// What can go wrong between a job and its results.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error(transparent)]
    Dma(#[from] DmaError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(
        "no streaming kernel at the kernel window: ID reads 0x{found:08x}, expected 0x{expected:08x}"
    )]
    NoKernel { found: u32, expected: u32 },
    #[error(
        "the kernel's VERSION is {found_major}.{found_minor}; this driver drives major version {driven}"
    )]
    Version {
        found_major: u32,
        found_minor: u32,
        driven: u32,
    },
    #[error("the target has no engine")]
    NoEngine,
    #[error(
        "engine {engine} can do {other:?}, engine 0 {first:?}; rows can be shared among equals only"
    )]
    Unequal {
        engine: usize,
        first: Capabilities,
        other: Capabilities,
    },
    #[error("kernel register {register} reads 0x{value:x}: {expected}")]
    Capability {
        register: &'static str,
        value: u32,
        expected: &'static str,
    },
    #[error("{what} did not end within {polls} reads of its register")]
    ResetStuck { what: &'static str, polls: u32 },
    /// A channel of the DMA halted on an error bit.
    #[error(
        "the DMA's {channel} channel halted with {errors} (DMASR 0x{dmasr:08x}) at the descriptor at 0x{curdesc:x}"
    )]
    Halted {
        channel: &'static str,
        errors: String,
        dmasr: u32,
        curdesc: u64,
    },
    /// No interrupt came; the state of both channels and the kernel beside it.
    #[error(
        "{answered} of {jobs} jobs answered, then {source} (MM2S DMASR 0x{mm2s:08x}, S2MM DMASR 0x{s2mm:08x}, kernel STATUS 0x{kernel:x})"
    )]
    Unanswered {
        answered: usize,
        jobs: usize,
        source: DeviceError,
        mm2s: u32,
        s2mm: u32,
        kernel: u32,
    },
    /// The footer says that the kernel refused the job.
    #[error("job {tag} ({ty}, k {k}, rows {rows}, cols {cols}): the kernel answered {status}")]
    Refused {
        tag: u32,
        ty: WeightType,
        k: usize,
        rows: usize,
        cols: usize,
        status: Status,
    },
    #[error("job {expected}: the answer carries the tag {found}")]
    WrongTag { expected: u32, found: u32 },
    #[error("job {tag}: the answer has {found} bytes, expected {expected}")]
    AnswerLength {
        tag: u32,
        expected: usize,
        found: usize,
    },
    /// A sampled chain's answer differs between the RTL and the model.
    #[error(
        "job {tag}: the RTL's answer of {found} bytes differs from the model's of {expected} at byte {at}"
    )]
    Differs {
        tag: u32,
        found: usize,
        expected: usize,
        at: usize,
    },
    /// The kernel was built without this type, or the shape is beyond it.
    #[error("{field} {value} is not supported by this kernel: {limit}")]
    Unsupported {
        field: &'static str,
        value: String,
        limit: String,
    },
    /// The caller's slices do not fit the shape it gave.
    #[error("{field} is {value}, expected {expected}")]
    Argument {
        field: &'static str,
        value: usize,
        expected: usize,
    },
    #[error("a packet needs {needed} descriptors of the {channel} ring, which has {size}")]
    RingTooSmall {
        channel: &'static str,
        needed: usize,
        size: usize,
    },
}
