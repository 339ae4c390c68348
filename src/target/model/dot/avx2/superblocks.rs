//! The types with blocks of 256 weights, whose scales and minima are themselves integers, one for
//! each 16 weights: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K. The layouts are told in `formats`.

use std::arch::x86_64::*;

use super::columns::Group;
use super::lanes::{
    add_halves, add_pairs, broadcast_half, fold_i16, four, load16, load32, quants, sums, to_f64,
    u16_at, u32_at, u64_at,
};
use super::sum::Sum;
use super::{BLOCKS, Kernel};

/// What quants and scales have in common in all of them.
struct Scaled {
    /// Unsigned, in the order of the weights.
    quants: [__m256i; BLOCKS],
    /// 16 of i16.
    scales: __m256i,
    d: __m256,
}

impl Scaled {
    /// The products with a column, summed over each 32 weights with their scales, as i32. Quants up
    /// to 63 keep the 16-bit sums in range: a lane has 4 products when it is widened,
    /// 63 · 128 · 4 = 32256.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn dot_blocks(&self, x: &Group) -> __m256i {
        // Of four scales, those of the even 16 weights to the low lane, of the odd ones to the
        // high lane, where the sums of theirs are; each four times.
        let spread = _mm256_setr_epi8(
            0, 1, 0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5, 4, 5, //
            2, 3, 2, 3, 2, 3, 2, 3, 6, 7, 6, 7, 6, 7, 6, 7,
        );
        let product = |i: usize| _mm256_maddubs_epi16(self.quants[i], quants(&x.quants, 32 * i));
        let pair = |i: usize, scales: __m256i| {
            let folded = fold_i16(product(2 * i), product(2 * i + 1));
            _mm256_madd_epi16(folded, _mm256_shuffle_epi8(scales, spread))
        };
        let first = add_pairs(
            pair(0, _mm256_permute4x64_epi64::<0x00>(self.scales)),
            pair(1, _mm256_permute4x64_epi64::<0x55>(self.scales)),
        );
        let second = add_pairs(
            pair(2, _mm256_permute4x64_epi64::<0xAA>(self.scales)),
            pair(3, _mm256_permute4x64_epi64::<0xFF>(self.scales)),
        );
        add_halves(first, second)
    }

    /// Adds the products of weights d · scale · (q - 2^SHIFT).
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn dot_centred<const SHIFT: i32>(&self, x: &Group, sum: &mut Sum) {
        let centre = _mm256_slli_epi32::<SHIFT>(_mm256_madd_epi16(self.scales, sums(&x.sums)));
        let dots = to_f64(_mm256_sub_epi32(self.dot_blocks(x), centre));
        sum.check(self.d);
        let d = _mm256_cvtps_pd(_mm256_castps256_ps128(self.d));
        for (half, dots) in dots.into_iter().enumerate() {
            sum.add(_mm256_mul_pd(d, four(&x.scales, half)), dots);
        }
    }
}

/// A type with minima.
pub struct Based {
    scaled: Scaled,
    /// 16 of i16.
    mins: __m256i,
    /// What the minima are multiplied with: -dmin.
    m: __m256,
}

impl Based {
    /// Adds the products of weights d · scale · q - dmin · min.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn dot(&self, x: &Group, sum: &mut Sum) {
        let dots = to_f64(self.scaled.dot_blocks(x));
        let mins = to_f64(_mm256_madd_epi16(self.mins, sums(&x.sums)));
        sum.check(self.scaled.d);
        sum.check(self.m);
        let d = _mm256_cvtps_pd(_mm256_castps256_ps128(self.scaled.d));
        let m = _mm256_cvtps_pd(_mm256_castps256_ps128(self.m));
        for (half, (dots, mins)) in dots.into_iter().zip(mins).enumerate() {
            let scales = four(&x.scales, half);
            sum.add2(
                _mm256_mul_pd(d, scales),
                dots,
                _mm256_mul_pd(m, scales),
                mins,
            );
        }
    }
}

/// The sign bit of an fp16.
const NEGATE: u16 = 0x8000;

/// Four runs of 32 quants of 2 bits in 32 bytes, those of the first run lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn two_bits(bytes: __m256i) -> [__m256i; 4] {
    let mask = _mm256_set1_epi8(3);
    [
        _mm256_and_si256(bytes, mask),
        _mm256_and_si256(_mm256_srli_epi16::<2>(bytes), mask),
        _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask),
        _mm256_and_si256(_mm256_srli_epi16::<6>(bytes), mask),
    ]
}

/// Adds a bit of value 2^SHIFT to each quant: bit i of the bytes to those of block i.
#[inline]
#[target_feature(enable = "avx2")]
fn add_bits<const SHIFT: i32>(mut bits: __m256i, quants: &mut [__m256i; BLOCKS]) {
    for quants in quants {
        let bit = _mm256_and_si256(bits, _mm256_set1_epi8(1));
        *quants = _mm256_or_si256(*quants, _mm256_slli_epi16::<SHIFT>(bit));
        // What comes from the next byte comes to the top, and no further than bit 1.
        bits = _mm256_srli_epi16::<1>(bits);
    }
}

/// The quants of Q4_K, and those of Q5_K without their fifth bits: nibbles from `at` on, of each 32
/// bytes the low ones and then the high ones.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(bytes: &[u8], at: usize) -> [__m256i; BLOCKS] {
    let mask = _mm256_set1_epi8(15);
    let mut quants = [_mm256_setzero_si256(); BLOCKS];
    for i in 0..BLOCKS / 2 {
        let both = load32(bytes, at + 32 * i);
        quants[2 * i] = _mm256_and_si256(both, mask);
        quants[2 * i + 1] = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
    }
    quants
}

/// d, dmin and the 6-bit scales and minima of Q4_K and Q5_K.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn six_bits(bytes: &[u8], quants: [__m256i; BLOCKS]) -> Based {
    const SIX: u32 = 0x3F3F_3F3F;
    const FOUR: u32 = 0x0F0F_0F0F;
    let [a, b, c] = [4, 8, 12].map(|at| u32_at(bytes, at));
    // The upper four have their low bits in the last word and their high bits above the lower four.
    let high = |low: u32, six: u32| low & FOUR | (six & !SIX) >> 2;
    let scales = u64::from(a & SIX) | u64::from(high(c, a)) << 32;
    let mins = u64::from(b & SIX) | u64::from(high(c >> 4, b)) << 32;
    // Each is one for 32 weights, so twice.
    let twice = |eight: u64| {
        let eight = _mm_cvtsi64_si128(eight as i64);
        _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(eight, eight))
    };
    Based {
        scaled: Scaled {
            quants,
            scales: twice(scales),
            d: broadcast_half(u16_at(bytes, 0)),
        },
        mins: twice(mins),
        m: broadcast_half(u16_at(bytes, 2) ^ NEGATE),
    }
}

pub struct Q2K;

impl Kernel for Q2K {
    const BLOCK_BYTES: usize = 84;
    const BLOCKS: usize = 1;
    /// (15 · 3 + 15) · 128 · 32 < 2^18.
    const TERM_BITS: u32 = 18;
    type Weights = Based;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Based {
        assert_eq!(bytes.len(), Self::BLOCK_BYTES);
        let both = load16(bytes, 0);
        let mask = _mm_set1_epi8(15);
        let high = _mm_and_si128(_mm_srli_epi16::<4>(both), mask);
        let [a, b, c, d] = two_bits(load32(bytes, 16));
        let [e, f, g, h] = two_bits(load32(bytes, 48));
        Based {
            scaled: Scaled {
                quants: [a, b, c, d, e, f, g, h],
                scales: _mm256_cvtepu8_epi16(_mm_and_si128(both, mask)),
                d: broadcast_half(u16_at(bytes, 80)),
            },
            mins: _mm256_cvtepu8_epi16(high),
            m: broadcast_half(u16_at(bytes, 82) ^ NEGATE),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
        weights.dot(x, sum);
    }
}

/// A type without minima.
pub struct Centred(Scaled);

pub struct Q3K;

impl Kernel for Q3K {
    const BLOCK_BYTES: usize = 110;
    const BLOCKS: usize = 1;
    /// 32 · 4 · 128 · 32 = 2^19.
    const TERM_BITS: u32 = 19;
    type Weights = Centred;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Centred {
        assert_eq!(bytes.len(), Self::BLOCK_BYTES);
        let [a, b, c, d] = two_bits(load32(bytes, 32));
        let [e, f, g, h] = two_bits(load32(bytes, 64));
        let mut quants = [a, b, c, d, e, f, g, h];
        add_bits::<2>(load32(bytes, 0), &mut quants);

        // Four bits of the scales in nibbles, two in the pairs of bits of four bytes.
        let low = u64_at(bytes, 96);
        let high = u32_at(bytes, 104);
        let pairs = |shift: u32| {
            let four = |shift: u32| u64::from(high >> shift & 0x0303_0303) << 4;
            four(shift) | four(shift + 2) << 32
        };
        const FOUR: u64 = 0x0F0F_0F0F_0F0F_0F0F;
        let first = low & FOUR | pairs(0);
        let second = low >> 4 & FOUR | pairs(4);
        let biased = _mm_set_epi64x(second as i64, first as i64);
        let scales = _mm_sub_epi8(biased, _mm_set1_epi8(32));
        Centred(Scaled {
            quants,
            scales: _mm256_cvtepi8_epi16(scales),
            d: broadcast_half(u16_at(bytes, 108)),
        })
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Centred, x: &Group, sum: &mut Sum) {
        weights.0.dot_centred::<2>(x, sum);
    }
}

pub struct Q4K;

impl Kernel for Q4K {
    const BLOCK_BYTES: usize = 144;
    const BLOCKS: usize = 1;
    /// 63 · (15 + 1) · 128 · 32 < 2^22.
    const TERM_BITS: u32 = 22;
    type Weights = Based;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Based {
        assert_eq!(bytes.len(), Self::BLOCK_BYTES);
        six_bits(bytes, nibbles(bytes, 16))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
        weights.dot(x, sum);
    }
}

pub struct Q5K;

impl Kernel for Q5K {
    const BLOCK_BYTES: usize = 176;
    const BLOCKS: usize = 1;
    /// 63 · (31 + 1) · 128 · 32 < 2^23.
    const TERM_BITS: u32 = 23;
    type Weights = Based;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Based {
        assert_eq!(bytes.len(), Self::BLOCK_BYTES);
        let mut quants = nibbles(bytes, 48);
        add_bits::<4>(load32(bytes, 16), &mut quants);
        six_bits(bytes, quants)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Based, x: &Group, sum: &mut Sum) {
        weights.dot(x, sum);
    }
}

pub struct Q6K;

impl Kernel for Q6K {
    const BLOCK_BYTES: usize = 210;
    const BLOCKS: usize = 1;
    /// 128 · 32 · 128 · 32 = 2^24.
    const TERM_BITS: u32 = 24;
    type Weights = Centred;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Centred {
        assert_eq!(bytes.len(), Self::BLOCK_BYTES);
        let mask = _mm256_set1_epi8(15);
        let mut quants = [_mm256_setzero_si256(); BLOCKS];
        for half in 0..2 {
            let high = two_bits(load32(bytes, 128 + 32 * half));
            for i in 0..2 {
                let both = load32(bytes, 64 * half + 32 * i);
                let low = _mm256_and_si256(both, mask);
                let top = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
                let with = |q, high| _mm256_or_si256(q, _mm256_slli_epi16::<4>(high));
                quants[4 * half + i] = with(low, high[i]);
                quants[4 * half + i + 2] = with(top, high[i + 2]);
            }
        }
        Centred(Scaled {
            quants,
            scales: _mm256_cvtepi8_epi16(load16(bytes, 192)),
            d: broadcast_half(u16_at(bytes, 208)),
        })
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dot<const N: usize>(weights: &Centred, x: &Group, sum: &mut Sum) {
        weights.0.dot_centred::<5>(x, sum);
    }
}
