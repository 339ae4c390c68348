//! Q8_0: fp16 d, 32 int8. Weight: d · q.

use super::{Block, half_bits};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    for (q, b) in block.q.iter_mut().zip(&bytes[2..34]) {
        *q = *b as i8;
    }
}
