//! Q2_K: 16 bytes of scales (low nibble) and minima (high nibble), one for 16 weights; 64 bytes of
//! 2-bit quants; fp16 d; fp16 dmin. Weight: d · scale · q - dmin · min.

use super::{Block, half_bits};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 80);
    block.m = half_bits(bytes, 82);
    for (g, byte) in bytes[..16].iter().enumerate() {
        block.scales[g] = (byte & 15) as i8;
        block.mins[g] = -((byte >> 4) as i8);
    }
    // Each 128 weights share 32 bytes: weights 0 to 31 in bits 0 and 1, and so on.
    for (i, q) in block.q.iter_mut().enumerate() {
        let byte = bytes[16 + i / 128 * 32 + i % 32];
        *q = (byte >> (i % 128 / 32 * 2) & 3) as i8;
    }
}
