//! Activation columns as the kernels want them.

use std::arch::x86_64::*;

use super::BLOCKS;
use crate::quant::{Q8_0_BLOCK_BYTES, Q8_0_BLOCK_LEN};

/// 256 activations of a column; those past its end are 0.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Group {
    /// In their order.
    pub quants: [i8; 256],
    /// As the types want them whose blocks hold weights 0 to 15 in low nibbles and 16 to 31 in
    /// high ones: for i of 0 to 3 the first halves of blocks i and i + 4, then their second halves.
    pub paired: [i8; 256],
    /// Of each block.
    pub scales: [f64; BLOCKS],
    /// Of each block, scale · sum of quants.
    pub weighted: [f64; BLOCKS],
    /// Of each 16 quants.
    pub sums: [i16; 2 * BLOCKS],
    /// Whether a quant is -128, whose negation 8 bits do not hold.
    pub has_lowest: bool,
}

impl Group {
    const ZERO: Group = Group {
        quants: [0; 256],
        paired: [0; 256],
        scales: [0.0; BLOCKS],
        weighted: [0.0; BLOCKS],
        sums: [0; 2 * BLOCKS],
        has_lowest: false,
    };
}

/// The activation columns of a job.
pub struct Columns {
    groups: Vec<Group>,
    groups_per_column: usize,
    finite: Vec<bool>,
    /// Of all columns, in magnitude.
    largest_scale: f64,
}

impl Columns {
    /// No columns; `None` on a machine that cannot use them.
    pub fn new() -> Option<Columns> {
        super::is_supported().then_some(Columns {
            groups: Vec::new(),
            groups_per_column: 0,
            finite: Vec::new(),
            largest_scale: 0.0,
        })
    }

    pub fn len(&self) -> usize {
        self.finite.len()
    }

    pub fn column(&self, n: usize) -> &[Group] {
        &self.groups[n * self.groups_per_column..][..self.groups_per_column]
    }

    /// Whether all scales of a column are.
    pub fn is_finite(&self, n: usize) -> bool {
        self.finite[n]
    }

    pub fn largest_scale(&self) -> f64 {
        self.largest_scale
    }

    /// Reads columns of `row_bytes` bytes of Q8_0 blocks each.
    pub fn load(&mut self, bytes: &[u8], row_bytes: usize) {
        let columns = bytes.len() / row_bytes;
        let blocks = row_bytes / Q8_0_BLOCK_BYTES;
        self.groups_per_column = blocks.div_ceil(BLOCKS);
        self.groups
            .resize(columns * self.groups_per_column, Group::ZERO);
        self.finite.clear();
        self.largest_scale = 0.0;
        let groups = self.groups.chunks_exact_mut(self.groups_per_column);
        for (bytes, groups) in bytes.chunks_exact(row_bytes).zip(groups) {
            // SAFETY: there are columns only where `is_supported`.
            let largest = unsafe { load_column(bytes, groups) };
            self.finite.push(largest.is_finite());
            if largest.is_finite() {
                self.largest_scale = self.largest_scale.max(largest);
            }
        }
    }
}

/// Gives the largest scale's magnitude, infinite if one is not finite.
#[target_feature(enable = "avx2,f16c")]
fn load_column(bytes: &[u8], groups: &mut [Group]) -> f64 {
    let mut largest = 0f64;
    let parts = bytes.chunks(BLOCKS * Q8_0_BLOCK_BYTES);
    for (bytes, group) in parts.zip(groups) {
        if bytes.len() < BLOCKS * Q8_0_BLOCK_BYTES {
            *group = Group::ZERO;
        }
        group.has_lowest = false;
        for (i, block) in bytes.chunks_exact(Q8_0_BLOCK_BYTES).enumerate() {
            let scale = load_block(block, i, group);
            // `max` would pass over a NaN.
            let magnitude = if scale.is_nan() {
                f64::INFINITY
            } else {
                scale.abs()
            };
            largest = magnitude.max(largest);
        }
    }
    largest
}

/// Gives the block's scale, 0 standing for it in the group where it is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_block(block: &[u8], i: usize, group: &mut Group) -> f64 {
    let x = super::lanes::load32(block, 2);
    let first = &mut group.quants[Q8_0_BLOCK_LEN * i..][..Q8_0_BLOCK_LEN];
    // SAFETY: writes 32 bytes, which the slice has.
    unsafe { _mm256_storeu_si256(first.as_mut_ptr().cast(), x) };
    let pair = &mut group.paired[i % 4 * 64 + i / 4 * 16..][..48];
    // SAFETY: write 16 bytes each, 32 bytes apart.
    unsafe {
        let to: *mut __m128i = pair.as_mut_ptr().cast();
        _mm_storeu_si128(to, _mm256_castsi256_si128(x));
        _mm_storeu_si128(to.add(2), _mm256_extracti128_si256::<1>(x));
    }
    let lowest = _mm256_cmpeq_epi8(x, _mm256_set1_epi8(i8::MIN));
    group.has_lowest |= _mm256_movemask_epi8(lowest) != 0;

    // Sums of 8 quants, each taken with 128 added.
    let biased = _mm256_xor_si256(x, _mm256_set1_epi8(i8::MIN));
    let eights = _mm256_sad_epu8(biased, _mm256_setzero_si256());
    let low = _mm256_castsi256_si128(eights);
    let high = _mm256_extracti128_si256::<1>(eights);
    let sum = |v: __m128i| (_mm_cvtsi128_si32(v) + _mm_extract_epi32::<2>(v) - 16 * 128) as i16;
    let sums = [sum(low), sum(high)];
    group.sums[2 * i..2 * i + 2].copy_from_slice(&sums);

    let bits = super::lanes::u16_at(block, 0);
    let scale = f64::from(_mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(
        bits,
    )))));
    let held = if scale.is_finite() { scale } else { 0.0 };
    group.scales[i] = held;
    group.weighted[i] = held * f64::from(i32::from(sums[0]) + i32::from(sums[1]));
    scale
}
