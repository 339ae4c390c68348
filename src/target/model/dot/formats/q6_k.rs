//! Q6_K: 128 bytes of low nibbles, 64 bytes of two high bits, 16 int8 scales, one for 16 weights,
//! fp16 d. Weight: d · scale · (q - 32).

use super::{Block, half_bits};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 208);
    for (scale, b) in block.scales.iter_mut().zip(&bytes[192..208]) {
        *scale = *b as i8;
    }
    // Each 128 weights share 64 bytes of nibbles, the first 64 in the low ones, and 32 bytes of
    // high bits, weights 0 to 31 in bits 0 and 1, and so on.
    for (i, q) in block.q.iter_mut().enumerate() {
        let low = bytes[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        let high = bytes[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        *q = (low | high << 4) as i8 - 32;
    }
}
