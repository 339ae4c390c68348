//! From a stratified sample to the whole.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Stratum;

/// The cycles of all chains, from those that were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub chains: u64,
    pub sampled: u64,
    /// Of all chains.
    pub cycles: f64,
    /// Half of the 95 % confidence interval; 0 where all chains were sampled.
    pub half_width: f64,
    /// Cycles of the sampled chains.
    pub sampled_cycles: u64,
}

impl Estimate {
    /// Whether the interval holds `cycles`; rounding to whole cycles is forgiven.
    pub fn holds(&self, cycles: u64) -> bool {
        (self.cycles - cycles as f64).abs() <= self.half_width + 0.5
    }

    /// `least`: a stratum's variance is taken for no less.
    pub(super) fn of<'a>(
        strata: impl Iterator<Item = &'a Stratum> + Clone,
        least: f64,
    ) -> Estimate {
        let mut estimate = Estimate::default();
        let spread = pooled(strata.clone());
        let (mut variance, mut freedom) = (0.0, 0.0);
        for stratum in strata {
            let (all, n) = (stratum.chains as f64, stratum.cycles.len() as f64);
            estimate.chains += stratum.chains;
            estimate.sampled += stratum.cycles.len() as u64;
            estimate.sampled_cycles += stratum.cycles.iter().sum::<u64>();
            estimate.cycles += all * stratum.mean();
            if n < all && n > 1.0 {
                let squares = stratum.variance().max(spread * stratum.mean()).max(least);
                let part = all * all * (1.0 - n / all) * squares / n;
                variance += part;
                freedom += part * part / (n - 1.0);
            }
        }
        if variance > 0.0 {
            let freedom = variance * variance / freedom;
            let quantile =
                StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975));
            estimate.half_width = quantile * variance.sqrt();
        }
        estimate
    }
}

/// Variance for each cycle of a chain, over all strata. Two or three chains of a stratum may happen
/// to take the same cycles, which would say that they all do.
fn pooled<'a>(strata: impl Iterator<Item = &'a Stratum>) -> f64 {
    let (mut squares, mut cycles) = (0.0, 0.0);
    for stratum in strata.filter(|s| s.cycles.len() > 1) {
        let freedom = (stratum.cycles.len() - 1) as f64;
        squares += freedom * stratum.variance();
        cycles += freedom * stratum.mean();
    }
    if cycles > 0.0 { squares / cycles } else { 0.0 }
}

impl Stratum {
    /// Of its sampled chains, with n - 1.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares = self.cycles.iter().map(|&c| (c as f64 - mean).powi(2));
        squares.sum::<f64>() / (self.cycles.len().max(2) - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stratum(chains: u64, cycles: &[u64]) -> Stratum {
        Stratum {
            chains,
            cycles: cycles.to_vec(),
        }
    }

    #[test]
    fn a_whole_that_was_sampled_is_known() {
        let estimate = Estimate::of([stratum(3, &[10, 20, 30])].iter(), 1.0);
        assert_eq!((estimate.cycles, estimate.half_width), (60.0, 0.0));
        assert!(estimate.holds(60) && !estimate.holds(61));
    }

    #[test]
    fn the_interval_is_the_textbooks() {
        // One stratum: N² (1 - n/N) s²/n, Student's 0.975 quantile at 3 degrees is 3.1824.
        let estimate = Estimate::of([stratum(20, &[8, 10, 12, 14])].iter(), 1.0);
        assert_eq!(estimate.cycles, 220.0);
        let variance = 400.0 * (1.0 - 4.0 / 20.0) * (20.0 / 3.0) / 4.0;
        let half = 3.182_446 * f64::sqrt(variance);
        assert!((estimate.half_width - half).abs() < 1e-3, "{estimate:?}");
    }

    #[test]
    fn a_stratum_without_spread_has_that_of_a_cycle_or_of_the_others() {
        let flat = stratum(100, &[1000, 1000, 1000, 1000]);
        let alone = Estimate::of([flat.clone()].iter(), 1.0).half_width;
        let cycle = 3.182_446 * 100.0 * f64::sqrt((1.0 - 0.04) / 4.0);
        assert!((alone - cycle).abs() < 1e-3, "{alone}");
        let wider = Estimate::of([flat.clone()].iter(), 9.0).half_width;
        assert!((wider - 3.0 * cycle).abs() < 1e-2, "{wider}");
        let others = stratum(4, &[900, 1100, 950, 1050]);
        assert!(Estimate::of([flat, others].iter(), 1.0).half_width > 3.0 * alone);
    }
}
