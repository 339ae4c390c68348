//! The ten block formats, weight by weight.
//!
//! Source of the formats: the block structs of ggml, and its dequantisers as far as they say what
//! a block's bits mean.

use crate::quant::WeightType;

/// Weights in a block, bytes of a block, and where its fp16 scales stand: d, and that of the
/// minimum if there is one.
fn layout(ty: WeightType) -> (usize, usize, usize, Option<usize>) {
    match ty {
        WeightType::Q4_0 => (32, 18, 0, None),
        WeightType::Q4_1 => (32, 20, 0, Some(2)),
        WeightType::Q5_0 => (32, 22, 0, None),
        WeightType::Q5_1 => (32, 24, 0, Some(2)),
        WeightType::Q8_0 => (32, 34, 0, None),
        WeightType::Q2_K => (256, 84, 80, Some(82)),
        WeightType::Q3_K => (256, 110, 108, None),
        WeightType::Q4_K => (256, 144, 0, Some(2)),
        WeightType::Q5_K => (256, 176, 0, Some(2)),
        WeightType::Q6_K => (256, 210, 208, None),
    }
}

/// Bytes of `k` weights.
///
/// # Panics
/// If they are not whole blocks.
pub fn line_bytes(ty: WeightType, k: usize) -> usize {
    let (weights, bytes, ..) = layout(ty);
    assert_eq!(k % weights, 0, "{ty}: whole blocks of {weights}");
    k / weights * bytes
}

/// The weights of whole blocks in units of 2^-24; `None` if a scale is inf or NaN.
pub fn decode(ty: WeightType, line: &[u8]) -> Option<Vec<i64>> {
    let (weights, bytes, d_at, m_at) = layout(ty);
    let mut out = Vec::with_capacity(line.len() / bytes * weights);
    for block in line.chunks_exact(bytes) {
        let d = f16_units(block, d_at)?;
        let m = match m_at {
            Some(at) => f16_units(block, at)?,
            None => 0,
        };
        out.extend((0..weights).map(|i| {
            let (quant, minimum) = weight(ty, block, i);
            d * quant + m * minimum
        }));
    }
    Some(out)
}

/// The fp16 number at `at` in units of 2^-24; `None` if it is inf or NaN.
fn f16_units(block: &[u8], at: usize) -> Option<i64> {
    let bits = i64::from(block[at]) | i64::from(block[at + 1]) << 8;
    let (exponent, fraction) = (bits >> 10 & 31, bits & 0x3FF);
    let magnitude = match exponent {
        31 => return None,
        0 => fraction,
        _ => (fraction | 0x400) << (exponent - 1),
    };
    Some(if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    })
}

/// Weight `i` of a block as factors of d and of the minimum's scale.
fn weight(ty: WeightType, b: &[u8], i: usize) -> (i64, i64) {
    let byte = |at: usize| i64::from(b[at]);
    let bit = |at: usize, n: usize| byte(at) >> n & 1;
    let signed = |at: usize| i64::from(b[at] as i8);
    // 32 weights in 16 bytes: the low nibbles, then the high ones.
    let nibble = |at: usize| byte(at + i % 16) >> (i / 16 * 4) & 15;
    // Of 256 weights: halves, groups of 32 in a half, places in a group.
    let (half, group, place) = (i / 128, i / 32 % 4, i % 32);
    match ty {
        WeightType::Q4_0 => (nibble(2) - 8, 0),
        WeightType::Q4_1 => (nibble(4), 1),
        WeightType::Q5_0 => (nibble(6) + 16 * bit(2 + i / 8, i % 8) - 16, 0),
        WeightType::Q5_1 => (nibble(8) + 16 * bit(4 + i / 8, i % 8), 1),
        WeightType::Q8_0 => (signed(2 + i), 0),
        WeightType::Q2_K => {
            let code = byte(i / 16);
            let quant = byte(16 + 32 * half + place) >> (2 * group) & 3;
            ((code & 15) * quant, -(code >> 4))
        }
        WeightType::Q3_K => {
            let sub = i / 16;
            let low = byte(96 + sub % 8) >> (sub / 8 * 4) & 15;
            let high = byte(104 + sub % 4) >> (sub / 4 * 2) & 3;
            let quant = byte(32 + 32 * half + place) >> (2 * group) & 3;
            let quant = quant + 4 * bit(place, i / 32) - 4;
            ((low + 16 * high - 32) * quant, 0)
        }
        WeightType::Q4_K => {
            let (scale, minimum) = six_bits(&b[4..16], i / 32);
            let quant = byte(16 + 32 * (i / 64) + place) >> (i / 32 % 2 * 4) & 15;
            (scale * quant, -minimum)
        }
        WeightType::Q5_K => {
            let (scale, minimum) = six_bits(&b[4..16], i / 32);
            let quant = byte(48 + 32 * (i / 64) + place) >> (i / 32 % 2 * 4) & 15;
            (scale * (quant + 16 * bit(16 + place, i / 32)), -minimum)
        }
        WeightType::Q6_K => {
            let low = byte(64 * half + 32 * (group % 2) + place) >> (group / 2 * 4) & 15;
            let high = byte(128 + 32 * half + place) >> (2 * group) & 3;
            (signed(192 + i / 16) * (low + 16 * high - 32), 0)
        }
    }
}

/// The scale and the minimum of group `j` among the eight in Q4_K's and Q5_K's 12 bytes: bytes 0 to
/// 3 hold the first four scales, 4 to 7 the first four minimums, 8 to 11 the low nibbles of the
/// others, whose two high bits are those left over in bytes 0 to 7.
fn six_bits(codes: &[u8], j: usize) -> (i64, i64) {
    let code = |at: usize| i64::from(codes[at]);
    match j {
        0..4 => (code(j) & 63, code(j + 4) & 63),
        _ => {
            let (low, high) = (code(j + 4), |at: usize| code(at) >> 6 << 4);
            ((low & 15) + high(j - 4), (low >> 4) + high(j))
        }
    }
}
