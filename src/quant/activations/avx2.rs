//! The quantiser with AVX2 and F16C.

use std::arch::x86_64::*;

use super::{Q8_0_BLOCK_BYTES, Q8_0_BLOCK_LEN};

pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
}

/// As [`super::quantize_portable`].
#[target_feature(enable = "avx2,f16c")]
pub fn quantize(x: &[f32], out: &mut [u8]) {
    let (blocks, _) = x.as_chunks::<Q8_0_BLOCK_LEN>();
    let (outs, _) = out.as_chunks_mut::<Q8_0_BLOCK_BYTES>();
    for (x, out) in blocks.iter().zip(outs) {
        quantize_block(x, out);
    }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn quantize_block(x: &[f32; Q8_0_BLOCK_LEN], out: &mut [u8; Q8_0_BLOCK_BYTES]) {
    // SAFETY: 8 values each, of the 32 there are.
    let x = [0, 8, 16, 24].map(|at| unsafe { _mm256_loadu_ps(x.as_ptr().add(at)) });
    let max = largest(x);
    if !max.is_finite() {
        const NAN: [u8; 2] = half::f16::NAN.to_le_bytes();
        out[..2].copy_from_slice(&NAN);
        out[2..].fill(0);
        return;
    }
    let d = max / 127.0;
    let inverse = 1.0 / d;
    let scale = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(d));
    out[..2].copy_from_slice(&(_mm_extract_epi16::<0>(scale) as u16).to_le_bytes());
    let quants = match inverse.is_finite() {
        true => round_and_pack(x, inverse),
        false => _mm256_setzero_si256(),
    };
    // SAFETY: 32 bytes follow the scale's two.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(2).cast(), quants) };
}

/// The largest magnitude; what is not finite is larger than all that is, as the bits of magnitudes
/// are ordered as they are.
#[inline]
#[target_feature(enable = "avx2")]
fn largest(x: [__m256; 4]) -> f32 {
    let magnitude = _mm256_set1_epi32(0x7FFF_FFFF);
    let [a, b, c, d] = x.map(|x| _mm256_and_si256(_mm256_castps_si256(x), magnitude));
    let max = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
    let half = _mm256_extracti128_si256::<1>(max);
    let max = _mm_max_epi32(_mm256_castsi256_si128(max), half);
    let max = _mm_max_epi32(max, _mm_shuffle_epi32::<0b01_00_11_10>(max));
    let max = _mm_max_epi32(max, _mm_shuffle_epi32::<0b10_11_00_01>(max));
    f32::from_bits(_mm_cvtsi128_si32(max) as u32)
}

#[inline]
#[target_feature(enable = "avx2")]
fn round_and_pack(x: [__m256; 4], inverse: f32) -> __m256i {
    let inverse = _mm256_set1_ps(inverse);
    let [a, b, c, d] = x.map(|x| _mm256_cvttps_epi32(round_away(_mm256_mul_ps(x, inverse))));
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    // Packing works within 128-bit lanes: their four-byte pieces come out interleaved.
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// The nearest integers, halves away from zero. What truncation takes off a quotient is exact, so
/// the comparison with 1/2 is; to add 1/2 first would round what lies just below it up.
#[inline]
#[target_feature(enable = "avx2")]
fn round_away(x: __m256) -> __m256 {
    let sign = _mm256_set1_ps(-0.0);
    let whole = _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
    let rest = _mm256_andnot_ps(sign, _mm256_sub_ps(x, whole));
    let up = _mm256_cmp_ps::<_CMP_GE_OQ>(rest, _mm256_set1_ps(0.5));
    let one = _mm256_or_ps(_mm256_set1_ps(1.0), _mm256_and_ps(x, sign));
    _mm256_add_ps(whole, _mm256_and_ps(up, one))
}
