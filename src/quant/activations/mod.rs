//! The Q8_0 activation quantiser, bit for bit ggml's reference.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(test)]
mod tests;

use half::f16;

/// Values in a Q8_0 block.
pub const Q8_0_BLOCK_LEN: usize = 32;
/// Bytes of a Q8_0 block: an fp16 scale, then 32 int8.
pub const Q8_0_BLOCK_BYTES: usize = 34;

/// Bytes of `k` activations in Q8_0; `k` is a multiple of 32.
pub fn q8_0_row_bytes(k: usize) -> usize {
    k / Q8_0_BLOCK_LEN * Q8_0_BLOCK_BYTES
}

/// Quantises `x` (a multiple of 32 values) into `out` (`q8_0_row_bytes(x.len())` bytes).
///
/// The scale is max|x|/127 in f32, stored as fp16; the quotients use the reciprocal of the
/// unrounded scale and round half away from zero. A reciprocal that is not finite makes the int8
/// values 0; a value that is not finite makes the block's scale NaN.
///
/// # Panics
/// If the lengths do not fit each other.
pub fn quantize_q8_0(x: &[f32], out: &mut [u8]) {
    assert_eq!(
        x.len() % Q8_0_BLOCK_LEN,
        0,
        "activations come in blocks of 32"
    );
    assert_eq!(
        out.len(),
        q8_0_row_bytes(x.len()),
        "one 34-byte block for 32 activations"
    );
    #[cfg(target_arch = "x86_64")]
    if avx2::is_supported() {
        // SAFETY: just asked.
        return unsafe { avx2::quantize(x, out) };
    }
    quantize_portable(x, out);
}

fn quantize_portable(x: &[f32], out: &mut [u8]) {
    let blocks = x.chunks_exact(Q8_0_BLOCK_LEN);
    for (x, out) in blocks.zip(out.chunks_exact_mut(Q8_0_BLOCK_BYTES)) {
        quantize_block(x, out);
    }
}

fn quantize_block(x: &[f32], out: &mut [u8]) {
    let (scale, quants) = out.split_at_mut(2);
    if !x.iter().all(|v| v.is_finite()) {
        scale.copy_from_slice(&f16::NAN.to_le_bytes());
        quants.fill(0);
        return;
    }
    let max = x.iter().fold(0f32, |m, v| m.max(v.abs()));
    let d = max / 127.0;
    let inverse = 1.0 / d;
    scale.copy_from_slice(&f16::from_f32(d).to_le_bytes());
    for (q, v) in quants.iter_mut().zip(x) {
        let quotient = if inverse.is_finite() {
            v * inverse
        } else {
            0.0
        };
        *q = quotient.round() as i8 as u8;
    }
}
