//! Q8_0: 32 int8.

use std::arch::x86_64::*;

use super::columns::Group;
use super::lanes::{
    add_halves, add_i16, add_pairs, fold_i32, four, load32, quants, to_f64, u16_at, widen,
};
use super::sum::Sum;
use super::{BLOCKS, Kernel};

pub struct Q8_0;

pub struct Weights {
    quants: [__m256i; BLOCKS],
    scales: __m256,
}

/// The products of 32 quants as eight i32.
///
/// `maddubs` takes one factor without a sign and its sums saturate at 16 bits. With w's sign moved
/// to x, and x never -128, no pair of products passes 2 · 128 · 127.
#[inline]
#[target_feature(enable = "avx2")]
fn products<const LOWEST: bool>(w: __m256i, x: __m256i) -> __m256i {
    if !LOWEST {
        let magnitude = _mm256_abs_epi8(w);
        return add_i16(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w)));
    }
    let low = |v: __m256i| _mm256_cvtepi8_epi16(_mm256_castsi256_si128(v));
    let high = |v: __m256i| _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(v));
    let first = _mm256_madd_epi16(low(w), low(x));
    _mm256_add_epi32(first, _mm256_madd_epi16(high(w), high(x)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn dot_blocks<const N: usize, const LOWEST: bool>(weights: &Weights, x: &Group) -> __m256i {
    let mut v = [_mm256_setzero_si256(); BLOCKS];
    for (i, v) in v.iter_mut().enumerate().take(N) {
        *v = products::<LOWEST>(weights.quants[i], quants(&x.quants, 32 * i));
    }
    let four = |v: &[__m256i]| add_pairs(fold_i32(v[0], v[1]), fold_i32(v[2], v[3]));
    add_halves(four(&v[..4]), four(&v[4..]))
}

impl Kernel for Q8_0 {
    const BLOCK_BYTES: usize = 34;
    const BLOCKS: usize = BLOCKS;
    /// 128 · 128 · 32 = 2^19.
    const TERM_BITS: u32 = 19;
    type Weights = Weights;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Weights {
        assert_eq!(bytes.len(), N * Self::BLOCK_BYTES);
        let mut quants = [_mm256_setzero_si256(); BLOCKS];
        for (i, quants) in quants.iter_mut().enumerate().take(N) {
            *quants = load32(bytes, 34 * i + 2);
        }
        let at = |i: usize| {
            if i < N {
                u16_at(bytes, 34 * i) as i16
            } else {
                0
            }
        };
        let bits = _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
        Weights {
            quants,
            scales: _mm256_cvtph_ps(bits),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Weights, x: &Group, sum: &mut Sum) {
        sum.check(weights.scales);
        let dots = to_f64(match x.has_lowest {
            false => dot_blocks::<N, false>(weights, x),
            true => dot_blocks::<N, true>(weights, x),
        });
        let halves = widen(weights.scales).into_iter().zip(dots).enumerate();
        for (half, (scales, dots)) in halves.take(N.div_ceil(4)) {
            sum.add(_mm256_mul_pd(scales, four(&x.scales, half)), dots);
        }
    }
}
