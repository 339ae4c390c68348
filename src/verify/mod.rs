//! Constrained-random checking of a target against the behavioural model, bit for bit.
//!
//! A case is a scenario: chains of random jobs under random conditions. Case *n* of a seed is the
//! same on every machine, so a run can be cut into ranges, and a case repeated alone. One that fails is shrunk
//! and kept as a vector.

mod content;
mod coverage;
mod cross;
mod record;
mod reference;
mod smaller;
mod strategy;

pub use content::Scales;
pub use coverage::Coverage;
pub use cross::{CrossReport, Hole};
pub use strategy::{Built, Plan};

use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::driver::{Capabilities, DriverError};
use crate::regress::{Ended, Mismatch, Opener, Player, ReplayError, judge};
use crate::target::TargetOptions;
use crate::vectors::{Case, Noise, Outcome};

/// What is checked, and how.
pub struct Verifier<'a> {
    open: &'a Opener<'a>,
    options: TargetOptions,
    capabilities: Capabilities,
    clocked: bool,
    seed: u64,
    /// The target is the model: its results are compared with exact ones.
    is_model: bool,
}

/// A case that has run.
pub struct Checked {
    pub built: Built,
    pub ended: Vec<Ended>,
    expected: Vec<Outcome>,
    /// Nothing if all is as it should be.
    pub mismatches: Vec<Mismatch>,
}

/// A failing case, shrunk.
pub struct Failure {
    /// Number of the case.
    pub number: u64,
    /// What was wrong with the case as it was generated.
    pub first: Vec<Mismatch>,
    /// What is wrong with the smallest one found.
    pub mismatches: Vec<Mismatch>,
    /// The smallest one that was found, with exact results, as a vector file keeps it.
    pub case: Case,
    /// Smaller cases tried, and how many of them failed.
    pub tried: usize,
    pub taken: usize,
    /// The model does not give the exact results for this case: it is the model that is wrong.
    pub model_is_wrong: bool,
}

impl<'a> Verifier<'a> {
    /// For the target that `open` opens, with `options` in what a case does not set itself.
    /// `is_model` says that it is the model.
    pub fn new(
        open: &'a Opener<'a>,
        options: &TargetOptions,
        seed: u64,
        is_model: bool,
    ) -> Result<Verifier<'a>, ReplayError> {
        let options = TargetOptions {
            engines: 1,
            log_beats: true,
            ..options.clone()
        };
        let player = Player::new(open(&options)?, &options, 0)?;
        Ok(Verifier {
            open,
            capabilities: player.capabilities(),
            clocked: player.activity().is_some(),
            options,
            seed,
            is_model,
        })
    }

    /// Coverage of which nothing is met yet.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.capabilities, self.clocked)
    }

    /// Case `number`, as something that can be shrunk.
    fn tree(&self, number: u64) -> Result<impl ValueTree<Value = Plan> + use<>, ReplayError> {
        let mut bytes = [0; 32];
        Noise::new(self.seed, &[number]).fill(&mut bytes);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        strategy::plans(&self.capabilities)
            .new_tree(&mut runner)
            .map_err(|reason| ReplayError::Strategy(reason.to_string()))
    }

    /// Runs case `number`.
    pub fn check(&self, number: u64) -> Result<Checked, ReplayError> {
        self.check_plan(&self.tree(number)?.current())
    }

    fn check_plan(&self, plan: &Plan) -> Result<Checked, ReplayError> {
        let mut built = plan.build(&self.capabilities);
        let options = Player::options(&built.scenario, &self.options);
        let mut expected = reference::outcomes(&built.scenario, &options, &self.capabilities)?;
        reference::settle(&mut built.scenario, &expected);
        if self.is_model {
            reference::make_exact(&built.scenario, &mut expected);
        }
        let mut player = Player::new((self.open)(&options)?, &options, 0)?;
        let ended = player.play(&built.scenario).map_err(DriverError::from)?;
        let actual: Vec<Outcome> = ended.iter().map(|e| e.outcome.clone()).collect();
        Ok(Checked {
            mismatches: judge(&built.scenario, &expected, &actual),
            built,
            ended,
            expected,
        })
    }

    /// Shrinks case `number`, which failed, for at most `time`. `tick` is called for each smaller
    /// case that is tried.
    ///
    /// A smaller case is taken if anything is wrong with it: what is wrong may change on the way.
    /// If the time is enough, no single step down from what comes out fails any more.
    pub fn shrink(
        &self,
        number: u64,
        time: Duration,
        mut tick: impl FnMut(),
    ) -> Result<Option<Failure>, ReplayError> {
        let mut tree = self.tree(number)?;
        let mut plan = tree.current();
        let mut smallest = self.check_plan(&plan)?;
        if smallest.mismatches.is_empty() {
            return Ok(None);
        }
        let first = smallest.mismatches.clone();
        let start = Instant::now();
        let (mut tried, mut taken) = (0, 0);
        let mut goes_on = tree.simplify();
        while goes_on && start.elapsed() < time {
            tick();
            tried += 1;
            let checked = self.check_plan(&tree.current())?;
            goes_on = match checked.mismatches.is_empty() {
                true => tree.complicate(),
                false => {
                    (smallest, plan, taken) = (checked, tree.current(), taken + 1);
                    tree.simplify()
                }
            };
        }
        let types = strategy::types(&self.capabilities);
        let mut candidates = smaller::smaller(&plan, &smallest.built.scenario, &types).into_iter();
        while let Some(candidate) = candidates.next()
            && start.elapsed() < time
        {
            tick();
            tried += 1;
            let checked = self.check_plan(&candidate)?;
            if !checked.mismatches.is_empty() {
                (smallest, taken) = (checked, taken + 1);
                candidates =
                    smaller::smaller(&candidate, &smallest.built.scenario, &types).into_iter();
            }
        }
        let mut exact = smallest.expected.clone();
        reference::make_exact(&smallest.built.scenario, &mut exact);
        let against_model = judge(&smallest.built.scenario, &exact, &smallest.expected);
        Ok(Some(Failure {
            number,
            first,
            case: record::case(&smallest, exact, self.seed, number),
            mismatches: smallest.mismatches,
            tried,
            taken,
            model_is_wrong: !self.is_model && !against_model.is_empty(),
        }))
    }
}
