//! Replays vectors on a target, bit for bit, each case on a fresh one: what a case shows does not
//! depend on the cases before it, and is the same each time.

mod diagnose;
mod farm;
mod judge;
mod play;
mod shard;
mod waves;

pub use diagnose::Group;
pub use farm::in_order;
pub use judge::{Mismatch, MismatchKind, WrongResult, judge};
pub use play::{Ended, Layout, Opener, Player};
pub use shard::Shard;
pub use waves::{Waves, waves};

use std::sync::Arc;

use crate::driver::{Capabilities, DriverError};
use crate::target::{Activity, TargetError, TargetOptions};
use crate::vectors::{Answer, Case, Chain, Job, Outcome, Scenario};

/// Byte offsets at which a golden case's weights are placed: one on a bus word, one that is on none
/// of any width.
pub const PLACEMENTS: [usize; 2] = [0, 37];

/// What replaying a case showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every bit is as expected.
    Passed,
    /// The target's kernel has no such weight type, or a shape is beyond it.
    Skipped,
    /// Quantising `x` gives another byte than the vector's activations.
    Quantiser {
        col: usize,
        offset: usize,
        expected: u8,
        actual: u8,
    },
    /// Something is not as expected; there is at least one mismatch.
    Failed(Vec<Mismatch>),
}

/// Why a case could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("no case can be generated: {0}")]
    Strategy(String),
}

/// A case as it was played.
pub struct Played {
    pub scenario: Scenario,
    pub mismatches: Vec<Mismatch>,
    pub ended: Vec<Ended>,
    pub activity: Option<Activity>,
}

/// Replays `case` on engine `engine` of a target that `open` opens. Golden cases run as `options`
/// say; a case with a recorded scenario sets seed, timing and width of length fields itself.
pub fn replay(
    open: &Opener<'_>,
    options: &TargetOptions,
    engine: usize,
    case: &Case,
) -> Result<(Verdict, Option<Activity>), ReplayError> {
    if let Some((col, offset, expected, actual)) = case.quantisation_difference() {
        let verdict = Verdict::Quantiser {
            col,
            offset,
            expected,
            actual,
        };
        return Ok((verdict, None));
    }
    Ok(match play(open, options, engine, case)? {
        None => (Verdict::Skipped, None),
        Some(played) if played.mismatches.is_empty() => (Verdict::Passed, played.activity),
        Some(played) => (Verdict::Failed(played.mismatches), played.activity),
    })
}

/// Plays `case` and judges it; `None` if the target's kernel cannot take it.
fn play(
    open: &Opener<'_>,
    options: &TargetOptions,
    engine: usize,
    case: &Case,
) -> Result<Option<Played>, ReplayError> {
    let options = match &case.recorded {
        Some(recorded) => Player::options(&recorded.scenario, options),
        None => options.clone(),
    };
    let mut player = Player::new(open(&options)?, &options, engine)?;
    let capabilities = player.capabilities();
    let (scenario, expected) = match &case.recorded {
        Some(recorded) => (recorded.scenario.clone(), recorded.outcomes()),
        None => golden(case, &capabilities, &options),
    };
    let takes =
        |job: &Job| capabilities.supports(job.ty, job.k) && job.cols <= capabilities.max_cols;
    if !scenario.jobs().all(takes) {
        return Ok(None);
    }
    let ended = player.play(&scenario).map_err(DriverError::from)?;
    let actual: Vec<Outcome> = ended.iter().map(|e| e.outcome.clone()).collect();
    let mut mismatches = judge(&scenario, &expected, &actual);
    if case.recorded.is_none() {
        // A golden case's columns may have gone down in several jobs.
        mismatches.iter_mut().for_each(|m| {
            let before = m.job.unwrap_or(0) * capabilities.max_cols;
            m.move_columns(before);
        });
    }
    Ok(Some(Played {
        mismatches,
        scenario,
        ended,
        activity: player.activity(),
    }))
}

/// A golden case's jobs: its columns in as many jobs as the kernel needs, once for each placement.
fn golden(
    case: &Case,
    capabilities: &Capabilities,
    options: &TargetOptions,
) -> (Scenario, Vec<Outcome>) {
    let weights: Arc<[u8]> = case.weights.as_slice().into();
    let mut chains = Vec::new();
    let mut expected = Vec::new();
    for offset in PLACEMENTS {
        let mut jobs = Vec::new();
        let mut answers = Vec::new();
        for first in (0..case.cols).step_by(capabilities.max_cols) {
            let cols = capabilities.max_cols.min(case.cols - first);
            let columns = (first..first + cols).flat_map(|c| case.column(c));
            jobs.push(Job {
                ty: case.ty,
                k: case.k,
                rows: case.rows,
                cols,
                offset,
                reuse: false,
                flaw: None,
                weights: weights.clone(),
                activations: columns.copied().collect(),
            });
            let results = (0..case.rows * cols)
                .map(|n| case.expected[(first + n % cols) * case.rows + n / cols]);
            answers.push(Answer::good(results.collect()));
        }
        chains.push(Chain { jobs, event: None });
        expected.push(Outcome::Answers(answers));
    }
    let scenario = Scenario {
        stall_seed: options.seed,
        conditions: options.conditions.clone(),
        length_width: options.length_width,
        chains,
    };
    (scenario, expected)
}
