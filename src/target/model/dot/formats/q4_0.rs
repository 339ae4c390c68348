//! Q4_0: fp16 d, 16 bytes of nibbles. Weight: d · (q - 8).

use super::{Block, half_bits, nibbles};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    let q = &mut block.q[..32];
    nibbles(&bytes[2..18], q);
    q.iter_mut().for_each(|q| *q -= 8);
}
