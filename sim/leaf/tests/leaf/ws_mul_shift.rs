//! A signed value times a mantissa product, shifted left.

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

const LATENCY: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Input {
    value: i128,
    mantissa: u32,
    shift: u32,
}

/// Values of `width` bits, the two ends often.
fn input(width: u32) -> impl Strategy<Value = Option<Input>> {
    let end = 1i128 << (width - 1);
    let value = prop_oneof![3 => -end..end, 1 => Just(-end), 1 => Just(end - 1)];
    // Two fp16 mantissas of 11 bits.
    let mantissa = prop_oneof![3 => 0..=2047u32 * 2047, 1 => Just(2047 * 2047)];
    // Two shifts of 0 to 29.
    prop::option::weighted(
        0.8,
        (value, mantissa, 0..=58u32).prop_map(|(value, mantissa, shift)| Input {
            value,
            mantissa,
            shift,
        }),
    )
}

fn check(module: &str, inputs: &[Option<Input>]) -> Result<(), TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    let mut valid = 0u64;
    for cycle in 0..inputs.len() + LATENCY - 1 {
        let input = inputs.get(cycle).copied().flatten();
        valid = valid << 1 & 15 | u64::from(input.is_some());
        leaf.set("valid_i", valid)?;
        if let Some(input) = input {
            leaf.set_signed("value_i", input.value)?;
            leaf.set("mant_i", input.mantissa)?;
            leaf.set("shift_i", input.shift)?;
        }
        leaf.tick()?;
        let done = (cycle + 1).checked_sub(LATENCY).and_then(|i| inputs[i]);
        if let Some(input) = done {
            let expected = (input.value * i128::from(input.mantissa)) << input.shift;
            prop_assert_eq!(leaf.get_signed("term_o")?, expected, "{:?}", input);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn main_term(inputs in prop::collection::vec(input(26), 1..20)) {
        check("ws_mul_shift_26", &inputs)?;
    }

    #[test]
    fn minimum_term(inputs in prop::collection::vec(input(20), 1..20)) {
        check("ws_mul_shift_20", &inputs)?;
    }
}

#[test]
fn a_value_too_wide_is_an_error() {
    let mut leaf = Leaf::new("ws_mul_shift_20").unwrap();
    let error = leaf.set_signed("value_i", 1 << 19).unwrap_err();
    assert!(
        matches!(error, LeafError::Width { width: 20, .. }),
        "{error}"
    );
    let error = leaf.set("value", 0u64).unwrap_err();
    assert!(matches!(error, LeafError::UnknownPort { .. }), "{error}");
    let error = leaf.set("term_o", 0u64).unwrap_err();
    assert!(matches!(error, LeafError::Output { .. }), "{error}");
    let error = Leaf::new("ws_mul").map(drop).unwrap_err();
    assert!(matches!(error, LeafError::UnknownModule { .. }), "{error}");
}
