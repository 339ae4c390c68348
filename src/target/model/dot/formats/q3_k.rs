//! Q3_K: 32 bytes of third bits; 64 bytes of 2-bit quants; 12 bytes of 6-bit scales, one for 16
//! weights; fp16 d. Weight: d · (scale - 32) · (q - 4).

use super::{Block, half_bits};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 108);
    let scales = &bytes[96..108];
    for g in 0..16 {
        // Four bits in the nibbles of bytes 0 to 7, two more in bytes 8 to 11.
        let low = scales[g % 8] >> (g / 8 * 4) & 15;
        let high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
        block.scales[g] = (low | high << 4) as i8 - 32;
    }
    // Quants as in Q2_K; bit j of third-bit byte l belongs to weight 32 · j + l.
    for (i, q) in block.q.iter_mut().enumerate() {
        let low = bytes[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        let high = bytes[i % 32] >> (i / 32) & 1;
        *q = (low | high << 2) as i8 - 4;
    }
}
