//! Options that several commands share.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use weightstream::dma::Coherence;
use weightstream::driver::Accelerator;
use weightstream::memory::Setting;
use weightstream::sample::Sampling;
use weightstream::target::recording::Recording;
use weightstream::target::{Stalls, TargetOptions, TargetSpec, Trace, open};

/// How simulated targets are set up.
#[derive(Args, Clone, Debug)]
pub struct SimulationArgs {
    /// Keep the CPU's and the device's view of DMA memory apart until a sync moves the bytes, as on
    /// a board without coherent caches.
    #[arg(long)]
    pub strict: bool,
    /// Size of the simulated DMA memory in MiB; the default is the machine's memory. Pages are
    /// taken as they are used.
    #[arg(long, value_name = "MIB")]
    pub heap_mib: Option<usize>,
    /// Engines side by side, 1 to 4; the rows are shared out among them. `regress` replays each case
    /// on each engine.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    pub engines: u8,
    /// Threads the model computes with; the default is one a core. The RTL takes one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// DRAM behind the RTL instead of a memory of a fixed latency, as seen from a fabric of so many
    /// MHz (200 if not given): ddr3-1050, ddr4-2400, 4xddr4-2400 or hbm2.
    #[arg(long, value_name = "PRESET[@MHZ]")]
    pub memory: Option<Setting>,
    /// Compute on the model, and run only this share of the chains of jobs on the RTL, 0 to 1: their
    /// answers are compared bit for bit, and the cycles of the whole are estimated.
    #[arg(long, value_name = "RATE")]
    pub sample: Option<f64>,
    /// Seed of the draw of --sample.
    #[arg(long, value_name = "S", default_value_t = 0, requires = "sample")]
    pub sample_seed: u64,
    /// Write an FST trace of the RTL to this file. It slows the simulation about a hundredfold.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write all that crosses the target's border to this file: register accesses, descriptors,
    /// buffers, interrupts, cycles. `--target replay:FILE` answers from it.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl SimulationArgs {
    pub fn options(&self) -> anyhow::Result<TargetOptions> {
        let mut options = TargetOptions::default();
        if self.strict {
            options.coherence = Coherence::Strict;
        }
        if let Some(mib) = self.heap_mib {
            options.heap_bytes = mib
                .checked_mul(1 << 20)
                .with_context(|| format!("--heap-mib {mib} is more than an address holds"))?;
        }
        if let Some(threads) = self.threads {
            options.threads = threads.into();
        }
        options.engines = self.engines.into();
        options.conditions.dram = self.memory;
        options.sampling = self.sample.map(|rate| Sampling {
            rate,
            seed: self.sample_seed,
        });
        options.record = self
            .record
            .as_ref()
            .map(|path| Arc::new(Recording::new(path)));
        options.trace = self.trace.clone().map(|path| Trace {
            path,
            cycles: 0..u64::MAX,
        });
        Ok(options)
    }

    /// The options that were given, as they are given.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.strict {
            words.push("--strict".into());
        }
        let numbers = [
            ("--heap-mib", self.heap_mib.map(|n| n.to_string())),
            (
                "--engines",
                (self.engines > 1).then(|| self.engines.to_string()),
            ),
            ("--threads", self.threads.map(|n| n.to_string())),
            ("--memory", self.memory.map(|m| m.to_string())),
        ];
        for (name, value) in numbers {
            words.extend(
                value
                    .map(|value| [name.to_string(), value])
                    .into_iter()
                    .flatten(),
            );
        }
        words
    }

    /// Opens `target` and gives it its driver.
    pub fn open(&self, target: &TargetSpec) -> anyhow::Result<Accelerator> {
        let opened = open(target, &self.options()?)
            .with_context(|| format!("cannot open target {target}"))?;
        Accelerator::new(opened).with_context(|| format!("cannot start target {target}"))
    }
}

/// The timing of the memory behind the RTL.
#[derive(Args, Clone, Debug)]
pub struct ConditionArgs {
    /// Chances that channels stall in a cycle, in percent, as in mm2s_r=20,s2mm_w=5 or all=30.
    #[arg(long, value_name = "CHANNEL=PERCENT,...")]
    stalls: Option<Stalls>,
    /// Seed of the stalls, and of what memory and registers hold at first.
    #[arg(long, value_name = "S")]
    stall_seed: Option<u64>,
    /// Cycles from an address to the first response; 60 if not given.
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u32).range(1..))]
    latency: Option<u32>,
}

impl ConditionArgs {
    pub fn apply(&self, options: &mut TargetOptions) {
        if let Some(stalls) = self.stalls {
            options.conditions.stalls = stalls;
        }
        if let Some(seed) = self.stall_seed {
            options.seed = seed;
        }
        if let Some(latency) = self.latency {
            options.conditions.latency = latency;
        }
    }

    /// The options that were given, as they are given.
    pub fn words(&self) -> Vec<String> {
        let options = [
            ("--stalls", self.stalls.map(|s| s.to_string())),
            ("--stall-seed", self.stall_seed.map(|s| s.to_string())),
            ("--latency", self.latency.map(|n| n.to_string())),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.into(), value?]));
        given.flatten().collect()
    }
}
