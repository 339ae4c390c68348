use proptest::prelude::*;

use super::*;

fn quantized(x: &[f32]) -> Vec<u8> {
    let mut out = vec![0xAA; q8_0_row_bytes(x.len())];
    quantize_q8_0(x, &mut out);
    out
}

fn portable(x: &[f32]) -> Vec<u8> {
    let mut out = vec![0xAA; q8_0_row_bytes(x.len())];
    quantize_portable(x, &mut out);
    out
}

/// Quantises `values` with a largest value beside them; gives scale and quants.
fn block(largest: f32, values: &[f32]) -> (f16, Vec<i8>) {
    let mut x = [0.0; 32];
    x[..values.len()].copy_from_slice(values);
    x[31] = largest;
    let bytes = quantized(&x);
    assert_eq!(bytes, portable(&x));
    let scale = f16::from_le_bytes([bytes[0], bytes[1]]);
    let quants = bytes[2..2 + values.len()].iter().map(|q| *q as i8);
    (scale, quants.collect())
}

#[test]
fn halves_go_away_from_zero_and_nothing_else_does() {
    // With a largest value of 127 the quotients are the values.
    let below = 0.5f32.next_down();
    let values = [
        0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 126.5, -126.5, below, -below, 0.25, -0.0, 63.49, 127.0,
    ];
    let expected = [1, -1, 2, -2, 3, -3, 127, -127, 0, 0, 0, 0, 63, 127];
    let (scale, quants) = block(127.0, &values);
    assert_eq!((scale.to_f32(), quants), (1.0, expected.to_vec()));
}

#[test]
fn scales_from_zero_to_infinity() {
    assert_eq!(block(0.0, &[0.0, -0.0]), (f16::ZERO, vec![0, 0]));
    // The smallest values whose reciprocal scale is finite, and the largest where it is not.
    let least = 127.0 * 2f32.powi(-128) * 1.001;
    assert_eq!(block(least, &[least, -least]), (f16::ZERO, vec![127, -127]));
    let less = 127.0 * 2f32.powi(-129);
    assert_eq!(block(less, &[less, -less]), (f16::ZERO, vec![0, 0]));
    assert_eq!(block(f32::from_bits(1), &[1e-45]), (f16::ZERO, vec![0]));
    // A subnormal fp16 scale, and one too large for fp16.
    let (scale, quants) = block(127.0 * 2f32.powi(-24), &[64.0 * 2f32.powi(-24)]);
    assert_eq!((scale, quants), (f16::from_bits(1), vec![64]));
    assert_eq!(block(f32::MAX, &[f32::MIN]), (f16::INFINITY, vec![-127]));
}

#[test]
fn a_value_that_is_not_finite_makes_the_scale_nan() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in 0..32 {
            let mut x = [1.0; 64];
            x[at] = bad;
            let bytes = quantized(&x);
            assert!(f16::from_le_bytes([bytes[0], bytes[1]]).is_nan());
            assert_eq!(bytes[2..34], [0; 32]);
            // The next block is not touched by it.
            assert_eq!(bytes[36..], [127; 32]);
            assert_eq!(bytes, portable(&x));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn fast_is_portable_on_any_bits(bits in prop::collection::vec(any::<u32>(), 32)) {
        let x: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
        prop_assert_eq!(quantized(&x), portable(&x));
    }

    #[test]
    fn fast_is_portable_on_like_magnitudes(
        exponent in -149i32..128,
        mantissas in prop::collection::vec(-1f64..1.0, 96),
    ) {
        let x: Vec<f32> = mantissas.iter().map(|m| (m * 2f64.powi(exponent)) as f32).collect();
        prop_assert_eq!(quantized(&x), portable(&x));
    }

    /// Quotients that are halves, or would be but for the last bit of what they are made of.
    #[test]
    fn fast_is_portable_on_ties(
        largest in prop_oneof![Just(127f32), (1u32..1000).prop_map(|n| n as f32 / 8.0)],
        halves in prop::collection::vec((-127i32..127, -2i32..3), 31),
    ) {
        let d = largest / 127.0;
        let mut x: Vec<f32> = halves
            .iter()
            .map(|(n, ulps)| {
                let tie = (*n as f32 + 0.5) * d;
                f32::from_bits(tie.to_bits().wrapping_add_signed(*ulps))
            })
            .collect();
        x.push(largest);
        prop_assert_eq!(quantized(&x), portable(&x));
    }
}
