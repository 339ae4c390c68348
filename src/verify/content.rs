//! The bytes of random blocks, of a class of scales.
//!
//! A block's bytes depend on the job's seed and on its own row and place alone, so those that stay
//! when a job shrinks stay as they are.

use crate::quant::{WeightType, q8_0_row_bytes};
use crate::vectors::Noise;

/// What the scales of a job's blocks are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scales {
    /// As in a model: 2^-10 to 1, of either sign.
    Normal,
    Zero,
    NegativeZero,
    Subnormal,
    /// The largest finite one, with quants of the largest magnitude.
    Largest,
    /// Each block of another class that is finite.
    Mixed,
    /// Pairs of blocks whose sums cancel where the other side pairs as well, and a tiny one.
    Cancelling,
    /// Some are infinite.
    Infinite,
    /// Some are NaN.
    Nan,
}

impl Scales {
    pub const ALL: [Scales; 9] = [
        Scales::Normal,
        Scales::Zero,
        Scales::NegativeZero,
        Scales::Subnormal,
        Scales::Largest,
        Scales::Mixed,
        Scales::Cancelling,
        Scales::Infinite,
        Scales::Nan,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scales::Normal => "normal",
            Scales::Zero => "zero",
            Scales::NegativeZero => "negative zero",
            Scales::Subnormal => "subnormal",
            Scales::Largest => "largest",
            Scales::Mixed => "mixed",
            Scales::Cancelling => "cancelling",
            Scales::Infinite => "infinite",
            Scales::Nan => "NaN",
        }
    }
}

const SIGN: u16 = 0x8000;

/// Where a block's fp16 scales stand (source: the block structs of ggml).
fn scale_offsets(ty: WeightType) -> &'static [usize] {
    match ty {
        WeightType::Q4_0 | WeightType::Q5_0 | WeightType::Q8_0 => &[0],
        WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4_K | WeightType::Q5_K => &[0, 2],
        WeightType::Q2_K => &[80, 82],
        WeightType::Q3_K => &[108],
        WeightType::Q6_K => &[208],
    }
}

/// `rows` rows of `k` weights.
pub fn weights(ty: WeightType, k: usize, rows: usize, scales: Scales, seed: u64) -> Vec<u8> {
    let blocks = k / ty.block_len();
    let mut bytes = Vec::with_capacity(rows * blocks * ty.block_bytes());
    for row in 0..rows {
        line(ty, blocks, scales, seed, row as u64, &mut bytes);
    }
    bytes
}

/// `cols` columns of `k` activations. Pairs that cancel are as long as the weights' blocks.
pub fn activations(ty: WeightType, k: usize, cols: usize, scales: Scales, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(cols * q8_0_row_bytes(k));
    let (q8_0, in_block) = (WeightType::Q8_0, ty.block_len() / 32);
    for col in 0..cols {
        let start = bytes.len();
        line(q8_0, k / 32, scales, !seed, col as u64, &mut bytes);
        if scales == Scales::Cancelling {
            // Equal pairs: the weights' blocks are each other's negatives.
            let pair = in_block * q8_0.block_bytes();
            for pair in bytes[start..].chunks_exact_mut(2 * pair) {
                let (first, second) = pair.split_at_mut(pair.len() / 2);
                second.copy_from_slice(first);
            }
        }
    }
    bytes
}

fn line(ty: WeightType, blocks: usize, scales: Scales, seed: u64, row: u64, out: &mut Vec<u8>) {
    let len = ty.block_bytes();
    for place in 0..blocks {
        let mut noise = Noise::new(seed, &[row, place as u64]);
        let start = out.len();
        out.resize(start + len, 0);
        let odd = place % 2 == 1;
        if scales == Scales::Cancelling && odd {
            out.copy_within(start - len..start, start);
            for at in scale_offsets(ty) {
                out[start + at + 1] ^= 0x80;
            }
            continue;
        }
        let block = &mut out[start..];
        noise.fill(block);
        let of_block = match scales {
            Scales::Mixed => noise.pick(&Scales::ALL[..5]),
            Scales::Cancelling if place + 1 < blocks => Scales::Largest,
            Scales::Cancelling => Scales::Subnormal,
            Scales::Infinite | Scales::Nan if noise.below(3) > 0 => Scales::Normal,
            scales => scales,
        };
        if of_block == Scales::Largest {
            let extremes = noise.pick(&[0x00, 0xFF, 0x80, 0x7F, 0x88]);
            // Not in each: all alike would hide swapped places.
            if noise.below(2) == 0 {
                block.fill(extremes);
            }
        }
        for at in scale_offsets(ty) {
            let bits = scale(of_block, &mut noise);
            block[*at..at + 2].copy_from_slice(&bits.to_le_bytes());
        }
    }
}

/// The fp16 bits of a scale.
fn scale(scales: Scales, noise: &mut Noise) -> u16 {
    let sign = noise.pick(&[0, SIGN]);
    let fraction = noise.below(1 << 10) as u16;
    match scales {
        Scales::Zero => 0,
        Scales::NegativeZero => SIGN,
        Scales::Subnormal => sign | noise.pick(&[1, 2, 0x3FF, fraction]),
        Scales::Largest => sign | noise.pick(&[0x7BFF, 0x7BFE, 0x7800]),
        Scales::Infinite => sign | 0x7C00,
        Scales::Nan => sign | 0x7C00 | noise.pick(&[1, 0x200, 0x3FF, fraction | 1]),
        Scales::Normal | Scales::Mixed | Scales::Cancelling => {
            sign | (5 + noise.below(11) as u16) << 10 | fraction
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::exact;

    #[test]
    fn cancelling_pairs_cancel_in_every_type_and_an_odd_block_stays() {
        for ty in WeightType::all() {
            let even = 4 * ty.block_len();
            let results = |k| {
                let w = weights(ty, k, 3, Scales::Cancelling, 7);
                let x = activations(ty, k, 2, Scales::Cancelling, 7);
                exact::results(ty, k, &w, &x)
            };
            assert_eq!(results(even), [0; 6], "{ty}");
            let odd = results(even + ty.block_len());
            assert!(odd.iter().any(|&bits| bits != 0), "{ty}");
            assert!(odd.iter().all(|&b| f32::from_bits(b).is_finite()), "{ty}");
        }
    }

    #[test]
    fn what_is_left_of_a_smaller_job_is_as_it_was() {
        for scales in Scales::ALL.into_iter().filter(|s| *s != Scales::Cancelling) {
            let large = weights(WeightType::Q6_K, 1024, 4, scales, 3);
            let small = weights(WeightType::Q6_K, 512, 2, scales, 3);
            assert_eq!(small[..420], large[..420], "{scales:?}");
            assert_eq!(small[420..840], large[840..1260], "{scales:?}");
        }
    }

    #[test]
    fn only_the_classes_that_say_so_are_not_finite() {
        for ty in WeightType::all() {
            for scales in Scales::ALL {
                let k = 8 * ty.block_len();
                let w = weights(ty, k, 8, scales, 1);
                let x = activations(ty, k, 1, Scales::Normal, 1);
                let nan = exact::results(ty, k, &w, &x)
                    .iter()
                    .any(|&bits| f32::from_bits(bits).is_nan());
                let wanted = matches!(scales, Scales::Infinite | Scales::Nan);
                assert_eq!(nan, wanted, "{ty} {scales:?}");
            }
        }
    }
}
