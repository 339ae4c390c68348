//! What a model would reach on a board: tokens a second, what bounds each tensor, what fits.
//!
//! The device's part is [`crate::timing`]'s, of the jobs that the driver would send; the host's is
//! given, or comes from a measured profile ([`host`]). A model is its GGUF header or a description
//! ([`arch`]).

pub mod arch;
pub mod area;
pub mod host;
pub mod model;
mod passes;
pub mod plot;
pub mod sweep;

#[cfg(test)]
mod tests;

use crate::memory::{Preset, Setting};
use serde::Serialize;

use crate::boards::Board;
use crate::target::Conditions;
use crate::timing::{Accelerator, Causes, Config, JobError};
use host::Host;
use model::{Model, Product};
use passes::Pass;

/// The accelerator on a board, and the board's memory.
#[derive(Clone, Debug)]
pub struct Platform {
    pub config: Config,
    /// The memory; without one, of a fixed latency and a beat in every cycle on each port.
    pub dram: Option<&'static Preset>,
    /// Of the fabric; with DRAM 1 to 1000.
    pub clock_mhz: u32,
    pub engines: usize,
    /// For DMA buffers.
    pub dma_bytes: u64,
}

impl Platform {
    /// What `board` describes.
    pub fn of(board: &Board) -> Platform {
        Platform {
            config: board.config(),
            dram: Preset::find(&board.memory.preset),
            clock_mhz: board.fabric.clock_mhz,
            engines: board.fabric.engines,
            dma_bytes: board.memory.heap_mib << 20,
        }
    }

    /// What the memory gives at most, or the buses take where it has no limit, GB/s.
    pub fn peak_gb_per_s(&self) -> f64 {
        let buses = (self.config.bus_bytes * self.engines) as f64 * f64::from(self.clock_mhz) / 1e3;
        self.dram.map_or(buses, |preset| preset.peak() / 1e9)
    }

    fn conditions(&self) -> Conditions {
        let clock_mhz = self.clock_mhz;
        Conditions {
            dram: self.dram.map(|preset| Setting { preset, clock_mhz }),
            ..Conditions::default()
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Tokens in the text when a token is decoded; those of a prompt when it is computed.
    pub context: usize,
    /// Most tokens computed at once.
    pub batch: usize,
}

/// What slows a tensor down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// A beat in nearly every cycle: bus width and clock.
    Bus,
    /// The memory gives beats more slowly than the bus takes them.
    Memory,
    /// Blocks and columns are more than the lanes keep up with.
    Lanes,
    /// Descriptors, pipeline, answers, registers: the job is short.
    Latency,
    /// The kernel does not take it.
    Cpu,
}

impl Bound {
    pub fn name(self) -> &'static str {
        match self {
            Bound::Bus => "bus",
            Bound::Memory => "memory",
            Bound::Lanes => "lanes",
            Bound::Latency => "latency",
            Bound::Cpu => "CPU",
        }
    }

    /// A beat in at least so much of the cycles is the bus's bound.
    const BUS_SHARE: f64 = 0.95;

    fn of(causes: &Causes) -> Bound {
        let beats = causes.beats as f64;
        if beats >= Bound::BUS_SHARE * causes.total() as f64 {
            return Bound::Bus;
        }
        let latency = causes.registers + causes.descriptors + causes.drain + causes.parser;
        let lanes = causes.lanes + causes.output;
        match causes.memory.max(lanes).max(latency) {
            most if most == causes.memory => Bound::Memory,
            most if most == lanes => Bound::Lanes,
            _ => Bound::Latency,
        }
    }
}

/// A tensor's part of a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorPart {
    pub name: String,
    pub r#type: String,
    pub k: usize,
    pub rows: usize,
    pub jobs: u64,
    /// Into the kernel.
    pub bytes: u64,
    pub cycles: f64,
    pub ns: f64,
    pub gb_per_s: f64,
    pub bound: Bound,
}

/// A pass over the model, by who takes how long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassPart {
    /// Tokens it computes.
    pub tokens: usize,
    pub jobs: u64,
    pub chains: u64,
    /// Into the kernels, all engines together.
    pub bytes: u64,
    pub kernel_ns: f64,
    pub driver_ns: f64,
    /// The CPU's operations, without what follows.
    pub host_ns: f64,
    /// Keys and values, which the CPU reads.
    pub attention_ns: f64,
    /// Weights that the kernel does not take.
    pub left_ns: f64,
    pub tokens_per_s: f64,
    /// Bytes over the memory's peak in the kernels' time.
    pub kernel_use_of_peak: f64,
    /// And in the whole time.
    pub use_of_peak: f64,
    pub causes: Causes,
    pub tensors: Vec<TensorPart>,
}

/// Whether a model fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// In DMA buffers: weights of products that the kernel takes.
    pub weight_bytes: u64,
    pub dma_bytes: u64,
    pub fits: bool,
    /// In the host's memory: keys and values at the context, other tensors, weights left to the CPU.
    pub kv_bytes: u64,
    pub other_bytes: u64,
    pub left_bytes: u64,
}

/// What a model would reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub model: String,
    pub context: usize,
    pub decode: PassPart,
    pub prefill: PassPart,
    pub fit: Fit,
    /// What is not in the times because nothing was said of it.
    pub not_counted: Vec<String>,
}

/// Predicts what `model` reaches on `platform` with `host`.
///
/// # Errors
/// If the timing model refuses a job, which names its field and value.
pub fn predict(
    model: &Model,
    platform: &Platform,
    host: &Host,
    request: Request,
) -> Result<Prediction, JobError> {
    let accelerator = Accelerator::new(&platform.config, &platform.conditions());
    let taken = |p: &Product| takes(&platform.config, p);
    let pass = |tokens| Pass {
        model,
        platform,
        host,
        accelerator: &accelerator,
        tokens,
        context: request.context,
    };
    let decode = pass(1).run()?;
    let prefill = pass(request.batch.min(request.context).max(1)).run()?;

    let bytes = |kept: bool| -> u64 {
        let products = model.products.iter().filter(|p| taken(p) == kept);
        products.map(|p| p.bytes).sum()
    };
    let (weight_bytes, left_bytes) = (bytes(true), bytes(false));
    let fit = Fit {
        weight_bytes,
        dma_bytes: platform.dma_bytes,
        fits: weight_bytes <= platform.dma_bytes,
        kv_bytes: model.kv_bytes * request.context as u64,
        other_bytes: model.other_bytes,
        left_bytes,
    };
    let mut not_counted = Vec::new();
    if host.decode.is_none() {
        not_counted.push("driver and CPU operations".to_string());
    }
    if host.gb_per_s.is_none() {
        not_counted.push("reading of keys and values by the CPU".into());
        if left_bytes > 0 {
            not_counted.push("weights left to the CPU".into());
        }
    }
    Ok(Prediction {
        model: model.name.clone(),
        context: request.context,
        decode,
        prefill,
        fit,
        not_counted,
    })
}

/// Whether the kernel takes a product.
pub fn takes(config: &Config, product: &Product) -> bool {
    product.weight_type().is_some_and(|ty| {
        product.k > 0 && product.k <= config.max_k && ty.row_bytes(product.k).is_some()
    })
}
