//! Q5_1: fp16 d, fp16 m, 4 bytes of fifth bits, 16 bytes of nibbles. Weight: d · q + m.

use super::{Block, fifth_bits, half_bits, nibbles};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    block.m = half_bits(bytes, 2);
    block.mins = [1; 16];
    let q = &mut block.q[..32];
    nibbles(&bytes[8..24], q);
    fifth_bits(&bytes[4..8], q);
}
