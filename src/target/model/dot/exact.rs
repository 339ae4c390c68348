//! The arithmetic of the contract: fp16 scales as integers, one rounding at the end.
//!
//! Every finite fp16 value is a multiple of 2^-24, so every product of two is one of 2^-48, and a
//! 128-bit sum in that unit holds any row.

/// The result of a row or column with a scale that is inf or NaN.
pub const NAN: f32 = f32::from_bits(0x7FC0_0000);

/// An fp16 value in units of 2^-24; `None` for inf and NaN. At most 40 bits and a sign.
pub fn fixed(bits: u16) -> Option<i64> {
    let fraction = i64::from(bits & 0x3FF);
    let magnitude = match bits >> 10 & 0x1F {
        0x1F => return None,
        0 => fraction,
        exponent => (fraction | 0x400) << (exponent - 1),
    };
    Some(match bits >> 15 {
        0 => magnitude,
        _ => -magnitude,
    })
}

/// 2^-48, what sums count.
pub const UNIT: f32 = f32::from_bits((127 - 48) << 23);

/// The fp32 nearest to `sum` times 2^-48, ties to even. Neither overflows nor goes subnormal.
pub fn round(sum: i128) -> f32 {
    sum as f32 * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn every_fp16_is_its_integer() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits).to_f64();
            match fixed(bits) {
                Some(n) => assert_eq!(n as f64, value * 2f64.powi(24)),
                None => assert!(!value.is_finite()),
            }
        }
    }

    #[test]
    fn rounds_once_to_the_nearest_even() {
        let one = 1i128 << 48;
        assert_eq!(round(0).to_bits(), 0);
        assert_eq!(round(one), 1.0);
        assert_eq!(round(-1), -(2f32.powi(-48)));
        // Half an ulp of 1.0 is 2^-24: a tie goes to even, one unit more goes up.
        let tie = one + (1 << 24);
        assert_eq!(round(tie), 1.0);
        assert_eq!(round(tie + 1), 1.0 + f32::EPSILON);
        assert_eq!(round(tie + (1 << 25)), 1.0 + 2.0 * f32::EPSILON);
        assert_eq!(round(-tie - 1), -1.0 - f32::EPSILON);
        // The largest magnitude there is stays finite.
        assert!(round(i128::MAX).is_finite());
    }
}
