//! The activations' quantiser by itself: Q8_0 blocks of f32 values.
//!
//! Quotients and products are taken in f64 and rounded to f32. The f64 has more than twice the bits
//! of an f32 and two, so rounding twice gives what rounding once would.

/// The quiet NaN of fp16.
const F16_NAN: u16 = 0x7E00;

/// Q8_0 blocks of `x`, as `docs/vectors.md` defines them.
///
/// # Panics
/// If they are not whole blocks of 32.
pub fn quantise(x: &[f32]) -> Vec<u8> {
    assert_eq!(x.len() % 32, 0, "activations come in blocks of 32");
    let mut out = Vec::with_capacity(x.len() / 32 * 34);
    for block in x.chunks_exact(32) {
        let (scale, quants) = quantise_block(block);
        out.extend(scale.to_le_bytes());
        out.extend(quants.map(|q| q as u8));
    }
    out
}

fn quantise_block(block: &[f32]) -> (u16, [i8; 32]) {
    let mut quants = [0; 32];
    if block.iter().any(|v| !v.is_finite()) {
        return (F16_NAN, quants);
    }
    let largest = block.iter().map(|v| v.abs()).fold(0.0, f32::max);
    let scale = (f64::from(largest) / 127.0) as f32;
    let reciprocal = (1.0 / f64::from(scale)) as f32;
    if reciprocal.is_finite() {
        for (quant, v) in quants.iter_mut().zip(block) {
            let quotient = (f64::from(*v) * f64::from(reciprocal)) as f32;
            *quant = half_away(quotient);
        }
    }
    (f16_bits(scale), quants)
}

/// The nearest integer, halves away from zero.
fn half_away(value: f32) -> i8 {
    let magnitude = (f64::from(value.abs()) + 0.5).floor();
    (if value < 0.0 { -magnitude } else { magnitude }) as i8
}

/// A positive f32 rounded to fp16, ties to even; what is too large is infinite.
fn f16_bits(value: f32) -> u16 {
    // In units of 2^-24, the least fp16 number. A power of two times a value is exact in f64.
    let units = f64::from(value) * f64::from(1 << 24);
    let bits = units.log2().floor().max(10.0) as i32;
    // The last of 11 bits is worth so much.
    let ulp = 2f64.powi(bits - 10);
    let (whole, rest) = ((units / ulp).floor(), units / ulp % 1.0);
    let up = rest > 0.5 || (rest == 0.5 && whole % 2.0 == 1.0);
    let mantissa = whole + f64::from(u8::from(up));
    // Without its first bit, except for subnormals, which have none; a carry moves on.
    let encoded = mantissa + f64::from(1024 * (bits - 10));
    encoded.min(f64::from(0x7C00)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn f16_is_rounded_as_ieee_has_it() {
        let interesting = [
            0x0000, 0x0001, 0x03FF, 0x0400, 0x0401, 0x3C00, 0x7BFE, 0x7BFF,
        ];
        for bits in interesting {
            let value = f16::from_bits(bits).to_f32();
            let next = f16::from_bits(bits + 1).to_f32();
            let middle = if next.is_finite() {
                (value + next) / 2.0
            } else {
                65520.0
            };
            for v in [value, middle, middle.next_down(), middle.next_up()] {
                assert_eq!(f16_bits(v), f16::from_f32(v).to_bits(), "{v:e}");
            }
        }
        assert_eq!(f16_bits(f32::MAX), 0x7C00);
        assert_eq!(f16_bits(f32::from_bits(1)), 0);
    }
}
