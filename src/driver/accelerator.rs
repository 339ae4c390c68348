//! Matrix products on a target's engines.

use std::time::Duration;

use super::shard::Shard;
use super::{Capabilities, ChainLog, DriverError, Engine};
use crate::dma::Heap;
use crate::quant::{WeightType, q8_0_row_bytes};
use crate::sample::Tally;
use crate::target::{Activity, Target};

/// Activations: columns of the same length.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Columns of k values; they are quantised to Q8_0 on the way.
    F32(Vec<&'a [f32]>),
    /// Columns of native Q8_0 blocks, `k / 32 * 34` bytes each.
    Q8_0(Vec<&'a [u8]>),
}

impl Input<'_> {
    pub(super) fn cols(&self) -> usize {
        match self {
            Input::F32(columns) => columns.len(),
            Input::Q8_0(columns) => columns.len(),
        }
    }
}

/// One product: weight rows times activation columns.
#[derive(Debug)]
pub struct MatMul<'a> {
    /// Device address of the first row's first byte. The caller has synced the rows.
    pub weights: u64,
    pub ty: WeightType,
    /// Weights in a row.
    pub k: usize,
    /// Rows, which lie one after the other without gaps.
    pub rows: usize,
    /// Index of its activations among the inputs.
    pub input: usize,
    /// For each column a slice of `rows` results.
    pub out: Vec<&'a mut [f32]>,
}

/// Totals since the accelerator was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub jobs: u64,
    /// Jobs with a NaN among the results because a scale was inf or NaN.
    pub nonfinite_jobs: u64,
    /// Bytes of all job packets.
    pub bytes_streamed: u64,
    /// Of these, weight bytes.
    pub weight_bytes: u64,
    /// Chains of jobs that were sent and waited for; those of all engines.
    pub chains: u64,
    /// Time from a chain's doorbell to its last answer; of engines side by side, of the one that
    /// took most.
    pub kernel_time: Duration,
}

/// Of engines side by side.
impl std::ops::Add for Stats {
    type Output = Stats;

    fn add(self, other: Stats) -> Stats {
        Stats {
            jobs: self.jobs + other.jobs,
            nonfinite_jobs: self.nonfinite_jobs + other.nonfinite_jobs,
            bytes_streamed: self.bytes_streamed + other.bytes_streamed,
            weight_bytes: self.weight_bytes + other.weight_bytes,
            chains: self.chains + other.chains,
            kernel_time: self.kernel_time.max(other.kernel_time),
        }
    }
}

/// A target's engines, side by side, each with its shard of the rows.
pub struct Accelerator {
    heap: Heap,
    shards: Vec<Shard>,
}

impl Accelerator {
    /// Takes the target over: checks each kernel, resets it, allocates the driver's own buffers.
    ///
    /// # Errors
    /// [`DriverError::Unequal`] if the engines' kernels are not the same.
    pub fn new(target: Target) -> Result<Accelerator, DriverError> {
        let Target {
            heap,
            devices,
            sample,
            length_width,
            ..
        } = target;
        let (mut sampled, tally) = match sample {
            Some(sample) => (
                sample.devices.into_iter(),
                Some(Tally::new(sample.sampling, sample.refresh_cycles)),
            ),
            None => (Vec::new().into_iter(), None),
        };
        let mut shards = Vec::new();
        for device in devices {
            let sample = sampled.next().zip(tally.clone());
            shards.push(Shard::new(&heap, device, sample, length_width)?);
        }
        let first = shards
            .first()
            .ok_or(DriverError::NoEngine)?
            .engine
            .capabilities();
        if let Some(engine) = shards.iter().position(|s| s.engine.capabilities() != first) {
            let other = shards[engine].engine.capabilities();
            return Err(DriverError::Unequal {
                engine,
                first,
                other,
            });
        }
        Ok(Accelerator { heap, shards })
    }

    /// The target's DMA memory.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// What each of the kernels can do.
    pub fn capabilities(&self) -> Capabilities {
        self.shards[0].engine.capabilities()
    }

    /// Totals of all engines.
    pub fn stats(&self) -> Stats {
        self.shards
            .iter()
            .fold(Stats::default(), |sum, shard| sum + shard.stats())
    }

    /// What cycle-accurate engines did so far: beats of all, cycles and time of the one that took
    /// most, since they run side by side.
    pub fn activity(&self) -> Option<Activity> {
        self.shards
            .iter()
            .filter_map(|s| s.engine.activity())
            .reduce(|a, b| Activity {
                cycles: a.cycles.max(b.cycles),
                mm2s_beats: a.mm2s_beats + b.mm2s_beats,
                s2mm_beats: a.s2mm_beats + b.s2mm_beats,
                seconds: a.seconds.max(b.seconds),
            })
    }

    /// Keeps a log of all chains from now on, or ends it ([`Accelerator::take_log`]).
    pub fn set_log(&mut self, on: bool) {
        self.shards.iter_mut().for_each(|shard| shard.set_log(on));
    }

    /// The chains since the last call, those of engine 0 first; none while no log is kept.
    pub fn take_log(&mut self) -> Vec<ChainLog> {
        let shards = self.shards.iter_mut().enumerate();
        let logs = shards.flat_map(|(engine, shard)| {
            let chains = shard.take_log().into_iter();
            chains.map(move |chain| ChainLog { engine, ..chain })
        });
        logs.collect()
    }

    /// Where chains are sampled, what came since the last call: the tally of the engine that took
    /// most, since they run side by side.
    pub fn take_sample(&mut self) -> Option<Tally> {
        let samplers = self.shards.iter_mut().filter_map(|s| s.sampler.as_mut());
        let tallies = samplers.map(|sampler| {
            let tally = sampler.tally.clone();
            sampler.tally.clear();
            tally
        });
        tallies.max_by(|a, b| a.estimate().cycles.total_cmp(&b.estimate().cycles))
    }

    /// Number of engines.
    pub fn engines(&self) -> usize {
        self.shards.len()
    }

    /// An engine, for packets of one's own making.
    ///
    /// # Panics
    /// If there is none of that number.
    pub fn engine(&mut self, number: usize) -> &mut Engine {
        &mut self.shards[number].engine
    }

    /// Computes all `matmuls`, which do not depend on each other.
    ///
    /// Products that share an input share its activations in the kernel, so they are grouped by
    /// it. Columns beyond the kernel's most, and results beyond the answer buffer, become several
    /// jobs.
    ///
    /// # Errors
    /// Whatever goes wrong; the results are then undefined, and the next call starts afresh.
    pub fn run(
        &mut self,
        inputs: &[Input<'_>],
        matmuls: &mut [MatMul<'_>],
    ) -> Result<(), DriverError> {
        for matmul in matmuls.iter() {
            self.check(inputs, matmul)?;
        }
        if let [shard] = self.shards.as_mut_slice() {
            return shard.run(inputs, matmuls);
        }
        let parts = split(matmuls, self.shards.len());
        std::thread::scope(|scope| {
            let run = |(shard, mut part): (&mut Shard, Vec<MatMul>)| shard.run(inputs, &mut part);
            let engines = self
                .shards
                .iter_mut()
                .zip(parts)
                .map(|work| scope.spawn(move || run(work)));
            let engines: Vec<_> = engines.collect();
            let ended = engines.into_iter().map(|e| {
                e.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect()
        })
    }

    fn check(&self, inputs: &[Input<'_>], matmul: &MatMul<'_>) -> Result<(), DriverError> {
        let argument = |field, value, expected| match value == expected {
            true => Ok(()),
            false => Err(DriverError::Argument {
                field,
                value,
                expected,
            }),
        };
        let capabilities = self.capabilities();
        let MatMul { ty, k, rows, .. } = *matmul;
        if capabilities.types & ty.mask() == 0 {
            return Err(DriverError::Unsupported {
                field: "weight type",
                value: ty.to_string(),
                limit: format!("CAP_TYPES is 0x{:x}", capabilities.types),
            });
        }
        if !capabilities.supports(ty, k) {
            return Err(DriverError::Unsupported {
                field: "k",
                value: k.to_string(),
                limit: format!(
                    "whole blocks of {}, at most {}",
                    ty.block_len(),
                    capabilities.max_k
                ),
            });
        }
        let Some(input) = inputs.get(matmul.input) else {
            let (value, expected) = (matmul.input, inputs.len());
            return Err(DriverError::Argument {
                field: "index of the input",
                value,
                expected,
            });
        };
        argument("number of output columns", matmul.out.len(), input.cols())?;
        for out in &matmul.out {
            argument("length of an output column", out.len(), rows)?;
        }
        match input {
            Input::F32(columns) => columns
                .iter()
                .try_for_each(|c| argument("length of an f32 column", c.len(), k)),
            Input::Q8_0(columns) => columns
                .iter()
                .try_for_each(|c| argument("bytes of a Q8_0 column", c.len(), q8_0_row_bytes(k))),
        }
    }
}

/// Splits the rows of all `matmuls` among `n` engines; whose share has no rows gets none.
fn split<'a>(matmuls: &'a mut [MatMul<'_>], n: usize) -> Vec<Vec<MatMul<'a>>> {
    let mut parts: Vec<Vec<MatMul<'a>>> = (0..n).map(|_| Vec::new()).collect();
    for matmul in matmuls {
        let MatMul {
            weights,
            ty,
            k,
            rows,
            input,
            ..
        } = *matmul;
        let row_bytes = ty.row_bytes(k).expect("k was checked to be whole blocks");
        let mut rest: Vec<&'a mut [f32]> = matmul.out.iter_mut().map(|out| &mut **out).collect();
        for (number, part) in parts.iter_mut().enumerate() {
            let (first, end) = (rows * number / n, rows * (number + 1) / n);
            let mut out = Vec::with_capacity(rest.len());
            for rest in &mut rest {
                let (head, tail) = std::mem::take(rest).split_at_mut(end - first);
                out.push(head);
                *rest = tail;
            }
            let weights = weights + (first * row_bytes) as u64;
            part.push(MatMul {
                weights,
                ty,
                k,
                rows: end - first,
                input,
                out,
            });
        }
    }
    parts
}
