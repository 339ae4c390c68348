//! Sampled simulation: which chains run on the RTL, and what their cycles say of the whole.
//!
//! A chain is what the driver sends at once. Chains of the same jobs, by type and shape, are a
//! stratum. Of each stratum the first two run on the RTL, so that it has a mean and a spread, and of
//! the others a random share. The whole is estimated as the strata's means times their chains; the
//! interval is that of stratified sampling without replacement, with Student's quantile at the
//! degrees of freedom after Satterthwaite.

mod estimate;

pub use estimate::Estimate;

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::quant::WeightType;

/// How chains are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Share of the chains, above 0 to 1.
    pub rate: f64,
    pub seed: u64,
}

/// What the time of a job depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub ty: WeightType,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    /// It uses the activations of the job before.
    pub reuse: bool,
}

/// Chains of a stratum that run on the RTL in any case.
const FIRST: u64 = 2;

/// The strata so far, and the draw.
#[derive(Clone, Debug)]
pub struct Tally {
    sampling: Sampling,
    /// Of a stratum's chains, squared cycles.
    least_variance: f64,
    rng: SmallRng,
    strata: HashMap<Vec<Shape>, Stratum>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Stratum {
    pub chains: u64,
    /// Cycles of those that ran on the RTL.
    pub cycles: Vec<u64>,
}

/// A stratum, for a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StratumReport {
    /// Its jobs: type, k × rows, columns where there are several.
    pub jobs: Vec<String>,
    pub chains: u64,
    pub sampled: u64,
    /// Of a sampled chain, cycles.
    pub mean: f64,
    pub least: u64,
    pub most: u64,
}

impl Tally {
    /// `refresh_cycles`: for so long a refresh holds the memory, 0 where there is none.
    ///
    /// Chains of a stratum differ by a few cycles as their weights lie, and by a refresh as they meet
    /// one. Both are rare enough for a small sample to miss, so that a stratum is never taken for
    /// steadier than by a cycle, nor than values within a refresh's time can be at worst: their
    /// variance is at most a quarter of its square.
    pub fn new(sampling: Sampling, refresh_cycles: u64) -> Tally {
        Tally {
            sampling,
            least_variance: (refresh_cycles as f64 / 2.0).powi(2).max(1.0),
            rng: SmallRng::seed_from_u64(sampling.seed),
            strata: HashMap::new(),
        }
    }

    /// A chain comes: whether it is to run on the RTL.
    pub fn draw(&mut self, chain: &[Shape]) -> bool {
        let stratum = self.strata.entry(chain.to_vec()).or_default();
        stratum.chains += 1;
        let drawn = self.rng.random_range(0.0..1.0) < self.sampling.rate;
        drawn || stratum.chains <= FIRST
    }

    /// A chain that was drawn took so many cycles.
    pub fn measured(&mut self, chain: &[Shape], cycles: u64) {
        self.strata
            .entry(chain.to_vec())
            .or_default()
            .cycles
            .push(cycles);
    }

    /// What is known of all chains that came.
    pub fn estimate(&self) -> Estimate {
        Estimate::of(self.strata.values(), self.least_variance)
    }

    /// The strata: jobs of a chain, chains that came, cycles of those that were sampled.
    pub fn strata(&self) -> impl Iterator<Item = (&[Shape], u64, &[u64])> {
        let strata = self.strata.iter();
        strata.map(|(jobs, stratum)| (jobs.as_slice(), stratum.chains, stratum.cycles.as_slice()))
    }

    /// The strata, those with most cycles first.
    pub fn report(&self) -> Vec<StratumReport> {
        let strata = self.strata.iter().map(|(jobs, stratum)| StratumReport {
            jobs: jobs.iter().map(Shape::to_string).collect(),
            chains: stratum.chains,
            sampled: stratum.cycles.len() as u64,
            mean: stratum.mean(),
            least: stratum.cycles.iter().copied().min().unwrap_or(0),
            most: stratum.cycles.iter().copied().max().unwrap_or(0),
        });
        let mut strata: Vec<StratumReport> = strata.collect();
        let total = |s: &StratumReport| s.mean * s.chains as f64;
        strata.sort_by(|a, b| {
            total(b)
                .total_cmp(&total(a))
                .then_with(|| a.jobs.cmp(&b.jobs))
        });
        strata
    }

    /// Forgets the chains that came; the draw goes on.
    pub fn clear(&mut self) {
        self.strata.clear();
    }
}

impl Stratum {
    pub(crate) fn mean(&self) -> f64 {
        self.cycles.iter().sum::<u64>() as f64 / self.cycles.len().max(1) as f64
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}×{}", self.ty, self.k, self.rows)?;
        if self.cols > 1 {
            write!(f, ", {} columns", self.cols)?;
        }
        Ok(())
    }
}
