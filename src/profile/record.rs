//! Collects a profile while a model runs.

use std::collections::HashMap;
use std::time::Duration;

use super::{Chain, Graph, Job, Phase, Profile, Step, Tensor};
use crate::driver::ChainLog;

/// The weights of a product that was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightId {
    pub tensor: Tensor,
    pub expert: Option<usize>,
}

/// Products that were computed in one call of the driver.
pub struct Run {
    /// In the order in which [`crate::driver::JobLog::matmul`] counts them.
    pub weights: Vec<WeightId>,
    pub chains: Vec<ChainLog>,
    /// What the whole call took, the simulator's time included.
    pub wall: Duration,
}

/// Takes the graphs in as they are computed.
#[derive(Default)]
pub struct Recorder {
    tensors: Vec<Tensor>,
    index: HashMap<String, usize>,
    steps: Vec<Step>,
    graphs: Vec<Graph>,
}

impl Recorder {
    /// Takes in a graph: `wall` is what it took, `host` what lay between it and the one before.
    pub fn graph(&mut self, host: Duration, wall: Duration, runs: Vec<Run>) {
        let in_runs: Duration = runs.iter().map(|r| r.wall).sum();
        let chains = runs.into_iter().flat_map(|run| {
            let Run {
                weights, chains, ..
            } = run;
            let indices: Vec<usize> = weights.iter().map(|w| self.tensor(&w.tensor)).collect();
            let named = chains
                .into_iter()
                .map(move |c| chain(c, &weights, &indices));
            named.collect::<Vec<_>>()
        });
        let chains = chains.collect();
        self.graphs.push(Graph {
            host_ns: ns(host),
            driver_ns: ns(wall.saturating_sub(in_runs)),
            chains,
        });
    }

    fn tensor(&mut self, tensor: &Tensor) -> usize {
        if let Some(&index) = self.index.get(&tensor.name) {
            return index;
        }
        self.index.insert(tensor.name.clone(), self.tensors.len());
        self.tensors.push(tensor.clone());
        self.tensors.len() - 1
    }

    /// The graphs so far were a step with at most `columns` columns.
    pub fn end_step(&mut self, columns: usize) {
        let graphs = std::mem::take(&mut self.graphs);
        if graphs.is_empty() {
            return;
        }
        self.steps.push(Step {
            phase: match columns {
                0 | 1 => Phase::Decode,
                _ => Phase::Prefill,
            },
            columns,
            graphs,
        });
    }

    /// Fills `profile` with the steps that have ended; without cycles in them it has no clock.
    pub fn finish(self, mut profile: Profile) -> Profile {
        profile.tensors = self.tensors;
        profile.steps = self.steps;
        let has_clock = profile.chains().any(|c| c.cycles.is_some());
        profile.clock_mhz = profile.clock_mhz.filter(|_| has_clock);
        if let Some(mhz) = profile.clock_mhz {
            profile.set_clock(mhz);
        }
        profile
    }
}

fn chain(log: ChainLog, weights: &[WeightId], indices: &[usize]) -> Chain {
    let jobs = log.jobs.into_iter().map(|job| Job {
        tensor: indices[job.matmul],
        expert: weights[job.matmul].expert,
        rows: job.rows,
        cols: job.cols,
        bytes: job.bytes,
        weight_bytes: job.weight_bytes,
        answer_bytes: job.answer_bytes,
        cycles: job.cycles,
        prepare_ns: ns(job.prepare),
        results_ns: ns(job.results),
    });
    Chain {
        engine: log.engine,
        prepare_ns: ns(log.prepare),
        kernel_ns: ns(log.kernel),
        results_ns: ns(log.results),
        cycles: log.cycles,
        counters: log.counters,
        jobs: jobs.collect(),
    }
}

fn ns(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}
