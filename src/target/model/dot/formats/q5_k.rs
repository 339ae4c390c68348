//! Q5_K: as Q4_K, with 32 bytes of fifth bits before the nibbles. Weight: d · scale · q - dmin · min.

use super::{Block, half_bits, scales_and_mins};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    block.m = half_bits(bytes, 2);
    scales_and_mins(&bytes[4..16], block);
    // Bit j of fifth-bit byte l belongs to weight 32 · j + l.
    for (i, q) in block.q.iter_mut().enumerate() {
        let low = bytes[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
        let high = bytes[16 + i % 32] >> (i / 32) & 1;
        *q = (low | high << 4) as i8;
    }
}
