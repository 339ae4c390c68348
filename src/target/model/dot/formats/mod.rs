//! GGUF's weight blocks as exact integers; one file a type. Source: the block structs and
//! dequantisers of ggml.

mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

use crate::quant::WeightType;

/// Weights that share a scale and a minimum.
pub const GROUP: usize = 16;

/// A block's weights: weight i is `d · scales[i/16] · q[i] + m · mins[i/16]`.
pub struct Block {
    /// fp16 bits.
    pub d: u16,
    /// fp16 bits; 0 in formats without minima.
    pub m: u16,
    pub scales: [i8; 16],
    pub mins: [i8; 16],
    pub q: [i8; 256],
}

impl Default for Block {
    /// Scales of 1 and no minima, as decoders find it that do not set them.
    fn default() -> Block {
        Block {
            d: 0,
            m: 0,
            scales: [1; 16],
            mins: [0; 16],
            q: [0; 256],
        }
    }
}

/// Decodes the bytes of one block of its type into a [`Block`] that has only been used for blocks
/// of this type.
pub type Decoder = fn(&[u8], &mut Block);

pub fn decoder(ty: WeightType) -> Decoder {
    match ty {
        WeightType::Q4_0 => q4_0::decode,
        WeightType::Q4_1 => q4_1::decode,
        WeightType::Q5_0 => q5_0::decode,
        WeightType::Q5_1 => q5_1::decode,
        WeightType::Q8_0 => q8_0::decode,
        WeightType::Q2_K => q2_k::decode,
        WeightType::Q3_K => q3_k::decode,
        WeightType::Q4_K => q4_k::decode,
        WeightType::Q5_K => q5_k::decode,
        WeightType::Q6_K => q6_k::decode,
    }
}

fn half_bits(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The 4-bit quants of 32 weights in 16 bytes: low nibbles first, then high ones.
fn nibbles(bytes: &[u8], q: &mut [i8]) {
    let (low, high) = q.split_at_mut(16);
    for ((b, low), high) in bytes.iter().zip(low).zip(high) {
        *low = (b & 15) as i8;
        *high = (b >> 4) as i8;
    }
}

/// Adds the fifth bits of 32 weights, bit i to weight i.
fn fifth_bits(bytes: &[u8], q: &mut [i8]) {
    for (i, q) in q.iter_mut().enumerate() {
        *q |= ((bytes[i / 8] >> (i % 8) & 1) << 4) as i8;
    }
}

/// The 6-bit scales and minima of Q4_K and Q5_K, eight of each in 12 bytes, one for 32 weights.
/// The minima are subtracted, so they are given negative.
fn scales_and_mins(bytes: &[u8], block: &mut Block) {
    for i in 0..8 {
        let (scale, min) = match i {
            0..4 => (bytes[i] & 63, bytes[i + 4] & 63),
            _ => (
                bytes[i + 4] & 15 | bytes[i - 4] >> 6 << 4,
                bytes[i + 4] >> 4 | bytes[i] >> 6 << 4,
            ),
        };
        block.scales[2 * i..2 * i + 2].fill(scale as i8);
        block.mins[2 * i..2 * i + 2].fill(-(min as i8));
    }
}
