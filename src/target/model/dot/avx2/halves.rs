//! Q4_0, Q4_1, Q5_0 and Q5_1: 16 bytes of nibbles hold weights 0 to 15 in the low ones and 16 to 31 in the
//! high ones.

use std::arch::x86_64::*;

use super::columns::Group;
use super::lanes::{
    add_i16, add_pairs, fold_i16, four, load16, sums, to_f64, u16_at, u32_at, widen,
};
use super::sum::Sum;
use super::{BLOCKS, Kernel};

/// Unsigned quants of a group, laid out as [`Group::paired`].
struct Quants {
    low: [__m256i; 4],
    high: [__m256i; 4],
}

/// Loads the nibbles of `N` blocks of `STRIDE` bytes, which are their last 16.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles<const N: usize, const STRIDE: usize>(bytes: &[u8]) -> Quants {
    let mask = _mm256_set1_epi8(15);
    let block = |i: usize| load16(bytes, STRIDE * (i + 1) - 16);
    let mut low = [_mm256_setzero_si256(); 4];
    let mut high = low;
    for i in 0..N.min(4) {
        let both = if i + 4 < N {
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(block(i)), block(i + 4))
        } else {
            _mm256_zextsi128_si256(block(i))
        };
        low[i] = _mm256_and_si256(both, mask);
        high[i] = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
    }
    Quants { low, high }
}

/// Adds the fifth bits of `N` blocks of `STRIDE` bytes, which are the four bytes before the nibbles:
/// bit i of weight i.
#[inline]
#[target_feature(enable = "avx2")]
fn add_fifth_bits<const N: usize, const STRIDE: usize>(bytes: &[u8], quants: &mut Quants) {
    let bits = |i: usize| match i < N {
        true => _mm_cvtsi32_si128(u32_at(bytes, STRIDE * (i + 1) - 20) as i32),
        false => _mm_setzero_si128(),
    };
    // To each byte the byte that has its bit, in which it is set or not.
    let first = _mm256_set_epi64x(0x0101_0101_0101_0101, 0, 0x0101_0101_0101_0101, 0);
    let second = _mm256_or_si256(first, _mm256_set1_epi8(2));
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let fifth = |bits: __m256i, of: __m256i| {
        let bits = _mm256_and_si256(_mm256_shuffle_epi8(bits, of), own);
        _mm256_and_si256(_mm256_cmpeq_epi8(bits, own), _mm256_set1_epi8(16))
    };
    for i in 0..N.min(4) {
        let both = _mm256_set_m128i(bits(i + 4), bits(i));
        quants.low[i] = _mm256_or_si256(quants.low[i], fifth(both, first));
        quants.high[i] = _mm256_or_si256(quants.high[i], fifth(both, second));
    }
}

/// The integer dot products of the 8 blocks. Quants up to 31 keep the 16-bit sums in range: a lane
/// has 8 products when it is widened, 31 · 128 · 8 = 31744.
#[inline]
#[target_feature(enable = "avx2")]
fn dot_blocks<const N: usize>(quants: &Quants, x: &Group) -> __m256i {
    let mut v = [_mm256_setzero_si256(); 4];
    for (i, v) in v.iter_mut().enumerate().take(N) {
        let low = _mm256_maddubs_epi16(quants.low[i], super::lanes::quants(&x.paired, 64 * i));
        let high =
            _mm256_maddubs_epi16(quants.high[i], super::lanes::quants(&x.paired, 64 * i + 32));
        *v = _mm256_add_epi16(low, high);
    }
    add_pairs(add_i16(fold_i16(v[0], v[1])), add_i16(fold_i16(v[2], v[3])))
}

/// The fp16 at the beginning of each of `N` blocks of `STRIDE` bytes, and 0.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn scales<const N: usize, const STRIDE: usize>(bytes: &[u8]) -> __m256 {
    let at = |i: usize| {
        if i < N {
            u16_at(bytes, STRIDE * i) as i16
        } else {
            0
        }
    };
    let bits = _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
    _mm256_cvtph_ps(bits)
}

/// The two fp16 at the beginning of each of four blocks of `STRIDE` bytes from `first` on: four
/// times the one, then four times the other; 0 from block `N` on.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn scales_and_mins<const N: usize, const STRIDE: usize>(bytes: &[u8], first: usize) -> __m256 {
    let at = |i: usize| match first + i < N {
        true => u32_at(bytes, STRIDE * (first + i)) as i32,
        false => 0,
    };
    let pairs = _mm_setr_epi32(at(0), at(1), at(2), at(3));
    let sorted = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    _mm256_cvtph_ps(_mm_shuffle_epi8(pairs, sorted))
}

/// A type whose weights are d · (q - OFFSET).
pub struct Centred {
    quants: Quants,
    scales: __m256,
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_centred<const N: usize, const OFFSET: i16>(weights: &Centred, x: &Group, sum: &mut Sum) {
    sum.check(weights.scales);
    let offset = _mm256_madd_epi16(sums(&x.sums), _mm256_set1_epi16(OFFSET));
    let dots = to_f64(_mm256_sub_epi32(
        dot_blocks::<N>(&weights.quants, x),
        offset,
    ));
    let halves = widen(weights.scales).into_iter().zip(dots).enumerate();
    for (half, (scales, dots)) in halves.take(N.div_ceil(4)) {
        sum.add(_mm256_mul_pd(scales, four(&x.scales, half)), dots);
    }
}

/// A type whose weights are d · q + m.
pub struct Based {
    quants: Quants,
    /// d and m of four blocks each.
    scales: [__m256; 2],
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_based<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
    let dots = to_f64(dot_blocks::<N>(&weights.quants, x));
    let halves = weights.scales.into_iter().zip(dots).enumerate();
    for (half, (scales, dots)) in halves.take(N.div_ceil(4)) {
        sum.check(scales);
        let [d, m] = widen(scales);
        let scale = _mm256_mul_pd(d, four(&x.scales, half));
        sum.add2(scale, dots, m, four(&x.weighted, half));
    }
}

pub struct Q4_0;

impl Kernel for Q4_0 {
    const BLOCK_BYTES: usize = 18;
    const BLOCKS: usize = BLOCKS;
    /// 8 · 128 · 32 = 2^15.
    const TERM_BITS: u32 = 16;
    type Weights = Centred;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Centred {
        assert_eq!(bytes.len(), N * Self::BLOCK_BYTES);
        Centred {
            quants: nibbles::<N, 18>(bytes),
            scales: scales::<N, 18>(bytes),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Centred, x: &Group, sum: &mut Sum) {
        dot_centred::<N, 8>(weights, x, sum);
    }
}

pub struct Q4_1;

impl Kernel for Q4_1 {
    const BLOCK_BYTES: usize = 20;
    const BLOCKS: usize = BLOCKS;
    /// (15 + 1) · 128 · 32 = 2^16.
    const TERM_BITS: u32 = 17;
    type Weights = Based;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Based {
        assert_eq!(bytes.len(), N * Self::BLOCK_BYTES);
        Based {
            quants: nibbles::<N, 20>(bytes),
            scales: [
                scales_and_mins::<N, 20>(bytes, 0),
                scales_and_mins::<N, 20>(bytes, 4),
            ],
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
        dot_based::<N>(weights, x, sum);
    }
}

pub struct Q5_0;

impl Kernel for Q5_0 {
    const BLOCK_BYTES: usize = 22;
    const BLOCKS: usize = BLOCKS;
    /// 16 · 128 · 32 = 2^16.
    const TERM_BITS: u32 = 17;
    type Weights = Centred;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Centred {
        assert_eq!(bytes.len(), N * Self::BLOCK_BYTES);
        let mut quants = nibbles::<N, 22>(bytes);
        add_fifth_bits::<N, 22>(bytes, &mut quants);
        Centred {
            quants,
            scales: scales::<N, 22>(bytes),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Centred, x: &Group, sum: &mut Sum) {
        dot_centred::<N, 16>(weights, x, sum);
    }
}

pub struct Q5_1;

impl Kernel for Q5_1 {
    const BLOCK_BYTES: usize = 24;
    const BLOCKS: usize = BLOCKS;
    /// (31 + 1) · 128 · 32 = 2^17.
    const TERM_BITS: u32 = 18;
    type Weights = Based;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Based {
        assert_eq!(bytes.len(), N * Self::BLOCK_BYTES);
        let mut quants = nibbles::<N, 24>(bytes);
        add_fifth_bits::<N, 24>(bytes, &mut quants);
        Based {
            quants,
            scales: [
                scales_and_mins::<N, 24>(bytes, 0),
                scales_and_mins::<N, 24>(bytes, 4),
            ],
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
        dot_based::<N>(weights, x, sum);
    }
}
