//! How long the accelerator takes: a model of the RTL's timing without its data.
//!
//! It follows the RTL's structure, module by module ([`config`], [`kernel`], [`dma`]), with the
//! RTL's parameters and depths and nothing fitted: descriptors fetched ahead, bursts as the FIFOs
//! have room, realignment, pieces, groups, issue slots, credits, answers, status write-backs,
//! interrupt, the driver's register accesses. Time passes in cycles, since what bounds a job is which
//! of these waits for which; of a long job only some rows are gone through, and the others take as
//! long as the last of these. So a job costs a fraction of a millisecond, and one that was asked for
//! before is looked up.
//!
//! Random stalls are taken at their mean. `docs/timing.md` has the error against the RTL.

mod config;
mod dma;
mod engine;
mod kernel;
mod memory;
mod ports;

pub use config::Config;

use std::collections::HashMap;
use std::ops::Add;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::dma::GRANULE;
use crate::quant::WeightType;
use crate::sample::Shape;
use crate::target::Conditions;
use engine::Engine;

/// A job of the streaming kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub ty: WeightType,
    /// Weights in a row.
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    /// It uses the activations of the job before (`REUSE_ACTIVATIONS`).
    pub reuse: bool,
    /// Device address of the first row; what counts is where in a page it lies.
    pub weights: u64,
}

impl Job {
    /// A job that brings its activations, its weights at the start of a page.
    pub fn new(ty: WeightType, k: usize, rows: usize, cols: usize) -> Job {
        Job {
            ty,
            k,
            rows,
            cols,
            reuse: false,
            weights: 0,
        }
    }
}

impl From<Shape> for Job {
    /// With its weights at the start of a page.
    fn from(shape: Shape) -> Job {
        Job {
            reuse: shape.reuse,
            ..Job::new(shape.ty, shape.k, shape.rows, shape.cols)
        }
    }
}

/// Why a job cannot be timed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {index}: {field} is {value}, not {wanted}")]
pub struct JobError {
    pub index: usize,
    pub field: &'static str,
    pub value: usize,
    pub wanted: String,
}

/// Clock cycles of a chain by what they went into; every cycle is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// A beat went into the kernel.
    pub beats: u64,
    /// The driver's register accesses, before the chain and after its interrupt.
    pub registers: u64,
    /// No beat was there: the next descriptor had not come.
    pub descriptors: u64,
    /// No beat was there: memory had not given the data that was asked for.
    pub memory: u64,
    /// A beat waited for the parser: header, padding, the end of a packet.
    pub parser: u64,
    /// A beat waited for the lanes.
    pub lanes: u64,
    /// A beat waited for room in the result buffer.
    pub output: u64,
    /// All beats are in: pipeline, answer, status, interrupt.
    pub drain: u64,
}

impl Causes {
    const COUNT: usize = 8;

    fn array(&self) -> [u64; Causes::COUNT] {
        let Causes {
            beats,
            registers,
            descriptors,
            memory,
            parser,
            lanes,
            output,
            drain,
        } = *self;
        [
            beats,
            registers,
            descriptors,
            memory,
            parser,
            lanes,
            output,
            drain,
        ]
    }

    fn from_array(array: [u64; Causes::COUNT]) -> Causes {
        let [
            beats,
            registers,
            descriptors,
            memory,
            parser,
            lanes,
            output,
            drain,
        ] = array;
        Causes {
            beats,
            registers,
            descriptors,
            memory,
            parser,
            lanes,
            output,
            drain,
        }
    }

    /// Their sum.
    pub fn total(&self) -> u64 {
        self.array().iter().sum()
    }
}

impl Add for Causes {
    type Output = Causes;

    fn add(self, other: Causes) -> Causes {
        let (a, b) = (self.array(), other.array());
        Causes::from_array(std::array::from_fn(|n| a[n] + b[n]))
    }
}

/// What a chain takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// Clock cycles from the driver's first register access to its last.
    pub total: u64,
    pub by_cause: Causes,
}

impl Add for Cycles {
    type Output = Cycles;

    /// One after the other.
    fn add(self, other: Cycles) -> Cycles {
        Cycles {
            total: self.total + other.total,
            by_cause: self.by_cause + other.by_cause,
        }
    }
}

/// Cycles of a job's window beyond which its rows are extrapolated.
const WINDOW: u64 = 16_000;
/// The same where DRAM refreshes: some tens of intervals.
const DRAM_WINDOW: u64 = 64_000;

/// The accelerator with the memory behind it.
pub struct Accelerator {
    config: Config,
    conditions: Conditions,
    known: Mutex<HashMap<Vec<Vec<Job>>, Vec<Cycles>>>,
}

impl Accelerator {
    /// `conditions` is the memory; the mean of its random stalls is taken.
    pub fn new(config: &Config, conditions: &Conditions) -> Accelerator {
        Accelerator {
            config: *config,
            conditions: conditions.clone(),
            known: Mutex::new(HashMap::new()),
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A job by itself.
    ///
    /// # Errors
    /// If the configuration cannot do it.
    pub fn job(&self, job: &Job) -> Result<Cycles, JobError> {
        self.chain(std::slice::from_ref(job))
    }

    /// Jobs that go down together, with one interrupt at their end, as the driver sends products
    /// that do not depend on each other.
    ///
    /// # Errors
    /// As [`Accelerator::job`]; an empty chain takes no time.
    pub fn chain(&self, jobs: &[Job]) -> Result<Cycles, JobError> {
        let cycles = self.engines(&[jobs])?;
        Ok(cycles.first().copied().unwrap_or_default())
    }

    /// Several engines on the same memory, each with its chain, begun at once: what each takes.
    ///
    /// # Errors
    /// As [`Accelerator::chain`].
    pub fn engines(&self, chains: &[&[Job]]) -> Result<Vec<Cycles>, JobError> {
        for chain in chains {
            self.check(chain)?;
        }
        // Only where in a page the weights lie makes a difference.
        let place = |job: &Job| Job {
            weights: job.weights % GRANULE as u64,
            ..*job
        };
        let key: Vec<Vec<Job>> = chains
            .iter()
            .map(|c| c.iter().map(place).collect())
            .collect();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cycles) = known().get(&key) {
            return Ok(cycles.clone());
        }
        let cycles = self.simulate(&key);
        known().insert(key, cycles.clone());
        Ok(cycles)
    }

    fn simulate(&self, chains: &[Vec<Job>]) -> Vec<Cycles> {
        let mut memory = memory::Memory::new(&self.conditions);
        let window = match self.conditions.dram {
            Some(_) => DRAM_WINDOW,
            None => WINDOW,
        };
        let engine = |(number, jobs): (usize, &Vec<Job>)| {
            let number = number as u64;
            let config = &self.config;
            (!jobs.is_empty()).then(|| Engine::new(config, &self.conditions, jobs, number, window))
        };
        let mut engines: Vec<Option<Engine>> = chains.iter().enumerate().map(engine).collect();
        let mut now = 0;
        loop {
            let mut running = engines.iter_mut().flatten().filter(|e| !e.done).peekable();
            if running.peek().is_none() {
                break;
            }
            memory.tick();
            running.for_each(|engine| engine.step(now, &mut memory));
            now += 1;
        }
        let cycles = |engine: Option<Engine>| {
            let Some(engine) = engine else {
                return Cycles::default();
            };
            let beyond = engine.beyond.map(|cycles| cycles.round() as u64);
            let by_cause = engine.causes + Causes::from_array(beyond);
            Cycles {
                total: by_cause.total(),
                by_cause,
            }
        };
        engines.into_iter().map(cycles).collect()
    }

    fn check(&self, jobs: &[Job]) -> Result<(), JobError> {
        for (index, job) in jobs.iter().enumerate() {
            let fail = |field, value, wanted: String| {
                Err(JobError {
                    index,
                    field,
                    value,
                    wanted,
                })
            };
            let most = self.config.max_k;
            if job.k == 0 || job.k > most || job.ty.row_bytes(job.k).is_none() {
                let block = job.ty.block_len();
                return fail("k", job.k, format!("a multiple of {block} up to {most}"));
            }
            if job.rows == 0 || job.rows > crate::regs::job::MAX_ROWS as usize {
                return fail(
                    "rows",
                    job.rows,
                    format!("1 to {}", crate::regs::job::MAX_ROWS),
                );
            }
            if job.cols == 0 || job.cols > self.config.max_cols {
                return fail("cols", job.cols, format!("1 to {}", self.config.max_cols));
            }
        }
        Ok(())
    }
}
