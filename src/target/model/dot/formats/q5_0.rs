//! Q5_0: fp16 d, 4 bytes of fifth bits, 16 bytes of nibbles. Weight: d · (q - 16).

use super::{Block, fifth_bits, half_bits, nibbles};

pub fn decode(bytes: &[u8], block: &mut Block) {
    block.d = half_bits(bytes, 0);
    let q = &mut block.q[..32];
    nibbles(&bytes[6..22], q);
    fifth_bits(&bytes[2..6], q);
    q.iter_mut().for_each(|q| *q -= 16);
}
