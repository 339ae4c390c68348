//! What should come: from the model, and where it is good, exactly.

use std::sync::Arc;

use super::coverage::refuses_header;
use crate::dma::{Heap, SimMemory};
use crate::driver::{Capabilities, DriverError};
use crate::regress::{Player, ReplayError};
use crate::regs::job::HEADER_BYTES;
use crate::target::model::{ModelConfig, ModelDevice};
use crate::target::{Target, TargetError, TargetOptions, TargetSpec};
use crate::vectors::{Answer, Flaw, Job, Outcome, Scenario, exact};

/// How `scenario` ends on a model that can do what the target can.
pub fn outcomes(
    scenario: &Scenario,
    options: &TargetOptions,
    capabilities: &Capabilities,
) -> Result<Vec<Outcome>, ReplayError> {
    let memory = Arc::new(
        SimMemory::new(
            options.heap_bytes,
            options.heap_base,
            options.coherence,
            options.seed,
        )
        .map_err(TargetError::from)?,
    );
    let config = ModelConfig {
        bus_bytes: capabilities.bus_bytes,
        blocks_per_cycle: capabilities.blocks_per_cycle as u32,
        max_k: capabilities.max_k as u32,
        max_cols: capabilities.max_cols as u32,
        threads: 1,
        faults: options.faults.clone(),
        ..ModelConfig::default()
    };
    let target = Target {
        spec: TargetSpec::Model,
        heap: Heap::new(memory.clone()).map_err(TargetError::from)?,
        devices: vec![Box::new(ModelDevice::new(memory, config))],
        sample: None,
        length_width: options.length_width,
    };
    let mut player = Player::new(target, options, 0)?;
    let ended = player.play(scenario).map_err(DriverError::from)?;
    Ok(ended.into_iter().map(|e| e.outcome).collect())
}

/// Gives each job that reuses activations those that the kernel held by then.
pub fn settle(scenario: &mut Scenario, outcomes: &[Outcome]) {
    let mut held: Option<Arc<[u8]>> = None;
    for (chain, outcome) in scenario.chains.iter_mut().zip(outcomes) {
        let Outcome::Answers(answers) = outcome else {
            // The engine was reset.
            held = None;
            continue;
        };
        for (job, answer) in chain.jobs.iter_mut().zip(answers) {
            if job.reuse {
                if let (true, Some(held)) = (answer.status().is_good(), &held) {
                    job.activations = held.clone();
                }
            } else if answer.status().is_good() {
                held = Some(job.activations.clone());
            } else if !refuses_header(answer.status()) && has_header(job) {
                held = None;
            }
        }
    }
}

/// Whether the packet is as long as a header.
fn has_header(job: &Job) -> bool {
    let skip = job.offset % 64;
    let most = HEADER_BYTES + job.activations.len().next_multiple_of(64) + skip + job.weights.len();
    match job.flaw {
        Some(Flaw::Short(bytes)) => most.saturating_sub(bytes) >= HEADER_BYTES,
        _ => true,
    }
}

/// Puts exact results and their status into the good answers of `outcomes`.
pub fn make_exact(scenario: &Scenario, outcomes: &mut [Outcome]) {
    for (chain, outcome) in scenario.chains.iter().zip(outcomes) {
        let Outcome::Answers(answers) = outcome else {
            continue;
        };
        for (job, answer) in chain.jobs.iter().zip(answers) {
            let results = in_kernel_order(job, &exact_results(job));
            let good = Answer::good(results);
            if answer.status().is_good() {
                *answer = good;
            } else {
                // As many as came are to be right.
                let came = answer.results.len();
                answer.results = good.results.into_iter().take(came).collect();
            }
        }
    }
}

/// All rows of column 0, then of column 1, and so on.
pub fn exact_results(job: &Job) -> Vec<u32> {
    exact::results(job.ty, job.k, &job.weights, &job.activations)
}

/// Row 0 of every column, then row 1, and so on.
fn in_kernel_order(job: &Job, results: &[u32]) -> Vec<u32> {
    (0..job.rows * job.cols)
        .map(|n| results[n % job.cols * job.rows + n / job.cols])
        .collect()
}
