//! Q4_1: fp16 d, fp16 m, 16 bytes of nibbles. Weight: d · q + m.

use super::{Block, half_bits, nibbles};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    block.m = half_bits(bytes, 2);
    block.mins = [1; 16];
    nibbles(&bytes[4..20], &mut block.q[..32]);
}
