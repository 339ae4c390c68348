//! Exact sums of f64 terms in two levels of 64-bit integers.

use std::arch::x86_64::*;

use super::super::exact::{NAN, UNIT, round};

/// 1.5 · 2^52: within 2^51 of it, f64 values are the integers, and their bits count them.
const HIGH: f64 = 1.5 * (1u64 << 52) as f64;
/// Within 8 of it, f64 values are the multiples of 2^-48, and their bits count them.
const LOW: f64 = 24.0;

/// What the terms of one addition may come to in magnitude.
pub const LARGEST_TERM: f64 = (1u64 << 51) as f64;

/// Sums of terms that are multiples of 2^-48. Each term is split into the nearest integer, added
/// to `high`, and the rest, at most 1/2, added to `low`; the bits of the biased values are what is
/// added, and the biases are taken off at the end.
///
/// With a k of at most 65536, 512 terms fall to a lane: |high| stays below 2^60 a lane and 2^62 in
/// all, |low| below 2^58 in all (2^59 where a term is two).
#[derive(Clone, Copy)]
pub struct Sum {
    high: __m256i,
    low: __m256i,
    /// Additions so far, each of a term in every lane.
    terms: i64,
    /// NaN where a scale was not finite.
    bad: __m256,
}

impl Sum {
    pub const ZERO: Sum = Sum {
        // SAFETY: of all bits 0, these are registers of zeros.
        high: unsafe { std::mem::zeroed() },
        low: unsafe { std::mem::zeroed() },
        terms: 0,
        bad: unsafe { std::mem::zeroed() },
    };

    /// Makes the result NaN if one of these scales of weights is not finite.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn check(&mut self, scales: __m256) {
        self.bad = _mm256_fmadd_ps(scales, _mm256_setzero_ps(), self.bad);
    }

    /// Adds a · b, a product of at most 53 bits.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn add(&mut self, a: __m256d, b: __m256d) {
        let whole = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
        // LOW less the nearest integer is an integer too, so exact; with the product, LOW and the
        // rest remain.
        let rest = _mm256_sub_pd(_mm256_set1_pd(HIGH + LOW), whole);
        self.put(whole, _mm256_fmadd_pd(a, b, rest));
    }

    /// Adds a · b + c · d.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn add2(&mut self, a: __m256d, b: __m256d, c: __m256d, d: __m256d) {
        let first = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
        let both = _mm256_fmadd_pd(c, d, first);
        let rest = _mm256_sub_pd(_mm256_set1_pd(HIGH + LOW), first);
        let rest = _mm256_fmadd_pd(a, b, rest);
        let other = _mm256_fmadd_pd(c, d, _mm256_sub_pd(first, both));
        self.put(both, _mm256_add_pd(rest, other));
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn put(&mut self, high: __m256d, low: __m256d) {
        self.high = _mm256_add_epi64(self.high, _mm256_castpd_si256(high));
        self.low = _mm256_add_epi64(self.low, _mm256_castpd_si256(low));
        self.terms += 1;
    }

    /// The sum as fp32, rounded once.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn round(&self, column_is_finite: bool) -> f32 {
        let bad = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(self.bad, self.bad));
        if bad != 0 || !column_is_finite {
            return NAN;
        }
        let unbiased = |lanes: __m256i, bias: f64| {
            let biases = (4 * self.terms).wrapping_mul(bias.to_bits() as i64);
            add_lanes(lanes).wrapping_sub(biases)
        };
        let (high, low) = (unbiased(self.high, HIGH), unbiased(self.low, LOW));
        if high.unsigned_abs() < 1 << 13 {
            // 64 bits hold it.
            return ((high << 48) + low) as f32 * UNIT;
        }
        round((i128::from(high) << 48) + i128::from(low))
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_lanes(lanes: __m256i) -> i64 {
    let halves = _mm256_extracti128_si256::<1>(lanes);
    let two = _mm_add_epi64(_mm256_castsi256_si128(lanes), halves);
    _mm_cvtsi128_si64(two).wrapping_add(_mm_extract_epi64::<1>(two))
}
