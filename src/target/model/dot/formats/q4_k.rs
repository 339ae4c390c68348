//! Q4_K: fp16 d, fp16 dmin, 12 bytes of 6-bit scales and minima, one for 32 weights, 128 bytes of
//! nibbles. Weight: d · scale · q - dmin · min.

use super::{Block, half_bits, scales_and_mins};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    block.m = half_bits(bytes, 2);
    scales_and_mins(&bytes[4..16], block);
    // Each 64 weights share 32 bytes: the first 32 in the low nibbles.
    for (i, q) in block.q.iter_mut().enumerate() {
        *q = (bytes[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15) as i8;
    }
}
