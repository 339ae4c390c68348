//! fp16 as the numerics of the kernel see it.

use proptest::prelude::*;

/// The value in units of 2^-24, exact. Of inf and NaN, what the bits would be as a number.
pub fn fixed(bits: u16) -> i128 {
    let exponent = u32::from(bits >> 10 & 31);
    let fraction = i128::from(bits & 1023);
    let magnitude = match exponent {
        0 => fraction,
        _ => (fraction + 1024) << (exponent - 1),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

pub fn is_finite(bits: u16) -> bool {
    bits >> 10 & 31 != 31
}

/// Any bits; zeros, subnormals, the largest, inf and NaN often.
pub fn any_bits() -> impl Strategy<Value = u16> {
    let corner = prop::sample::select(vec![0u16, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00]);
    prop_oneof![
        3 => any::<u16>(),
        1 => (corner, any::<bool>()).prop_map(|(bits, negative)| bits | u16::from(negative) << 15),
    ]
}
