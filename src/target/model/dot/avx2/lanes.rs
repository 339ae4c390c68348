//! Loads and reductions.

use std::arch::x86_64::*;

/// 16 bytes at `at`.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load16(bytes: &[u8], at: usize) -> __m128i {
    let bytes: &[u8; 16] = bytes[at..at + 16].try_into().expect("16 bytes");
    // SAFETY: reads 16 bytes, which the reference has.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 32 bytes at `at`.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load32(bytes: &[u8], at: usize) -> __m256i {
    let bytes: &[u8; 32] = bytes[at..at + 32].try_into().expect("32 bytes");
    // SAFETY: reads 32 bytes, which the reference has.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Quants `at..at + 32` of a column.
#[inline]
#[target_feature(enable = "avx2")]
pub fn quants(quants: &[i8; 256], at: usize) -> __m256i {
    let quants: &[i8; 32] = quants[at..at + 32].try_into().expect("32 quants");
    // SAFETY: as in `load32`.
    unsafe { _mm256_loadu_si256(quants.as_ptr().cast()) }
}

/// Four of eight f64: those from `4 * half` on.
#[inline]
#[target_feature(enable = "avx2")]
pub fn four(values: &[f64; 8], half: usize) -> __m256d {
    let values: &[f64; 4] = values[4 * half..4 * half + 4].try_into().expect("4 values");
    // SAFETY: as in `load32`.
    unsafe { _mm256_loadu_pd(values.as_ptr()) }
}

/// The sums of a column's 16 groups of 16 quants.
#[inline]
#[target_feature(enable = "avx2")]
pub fn sums(sums: &[i16; 16]) -> __m256i {
    // SAFETY: as in `load32`.
    unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) }
}

#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// An fp16 in all lanes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub fn broadcast_half(bits: u16) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(bits as i16))
}

/// Asks for as many bytes as `bytes` has, `ahead` bytes behind them; they need not exist.
#[inline]
#[target_feature(enable = "avx2")]
pub fn prefetch(bytes: &[u8], ahead: usize) {
    let from = bytes.as_ptr().wrapping_add(ahead);
    for line in (0..bytes.len()).step_by(64) {
        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast());
    }
}

/// Eight i32 as f64, in two registers.
#[inline]
#[target_feature(enable = "avx2")]
pub fn to_f64(v: __m256i) -> [__m256d; 2] {
    [
        _mm256_cvtepi32_pd(_mm256_castsi256_si128(v)),
        _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(v)),
    ]
}

/// Eight f32 as f64, in two registers.
#[inline]
#[target_feature(enable = "avx2")]
pub fn widen(v: __m256) -> [__m256d; 2] {
    [
        _mm256_cvtps_pd(_mm256_castps256_ps128(v)),
        _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v)),
    ]
}

/// In each 128-bit lane: the 64-bit halves of a, each half's i16 added to the other's, and those of
/// b.
#[inline]
#[target_feature(enable = "avx2")]
pub fn fold_i16(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
}

/// As [`fold_i16`], of i32.
#[inline]
#[target_feature(enable = "avx2")]
pub fn fold_i32(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
}

/// In each 128-bit lane: the sums of a's neighbouring i32, then those of b's.
#[inline]
#[target_feature(enable = "avx2")]
pub fn add_pairs(a: __m256i, b: __m256i) -> __m256i {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let even = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(a, b));
    let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0xDD>(a, b));
    _mm256_add_epi32(even, odd)
}

/// a's lanes added to each other, then b's.
#[inline]
#[target_feature(enable = "avx2")]
pub fn add_halves(a: __m256i, b: __m256i) -> __m256i {
    let low = _mm256_permute2x128_si256::<0x20>(a, b);
    _mm256_add_epi32(low, _mm256_permute2x128_si256::<0x31>(a, b))
}

/// Neighbouring i16 added to i32.
#[inline]
#[target_feature(enable = "avx2")]
pub fn add_i16(v: __m256i) -> __m256i {
    _mm256_madd_epi16(v, _mm256_set1_epi16(1))
}
