//! 128-bit fixed point in units of 2^-48 to the nearest fp32, ties to even.

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

const LATENCY: usize = 6;

#[derive(Debug, Clone, Copy)]
struct Input {
    valid: bool,
    sum: i128,
    bad: bool,
    user: bool,
}

/// `as` rounds an integer to the nearest float, ties to even, and a power of two scales exactly.
pub fn reference(sum: i128, bad: bool) -> u32 {
    if bad {
        return 0x7FC0_0000;
    }
    (sum as f32 * 2f32.powi(-48)).to_bits()
}

/// Sums of every size, many of them on a tie or next to one.
fn sum() -> impl Strategy<Value = i128> {
    let near_tie = (0u32..104, 1u32 << 23..1 << 24, -1i128..=1, any::<bool>()).prop_map(
        |(shift, mantissa, off, negative)| {
            let half = (1i128 << shift) >> 1;
            let sum = (i128::from(mantissa) << shift >> 1) + half + off;
            if negative { -sum } else { sum }
        },
    );
    prop_oneof![
        near_tie,
        (any::<i128>(), 0u32..128).prop_map(|(sum, shift)| sum >> shift),
        Just(0),
        Just(i128::MIN),
        Just(i128::MAX),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    (
        prop::bool::weighted(0.8),
        sum(),
        prop::bool::weighted(0.1),
        any::<bool>(),
    )
        .prop_map(|(valid, sum, bad, user)| Input {
            valid,
            sum,
            bad,
            user,
        })
}

/// What leaves, cycle by cycle: the float and the user bit, where valid.
fn run(inputs: &[Input]) -> Result<Vec<Option<(u32, bool)>>, LeafError> {
    let mut leaf = Leaf::new("ws_round")?;
    leaf.reset()?;
    let mut outputs = Vec::new();
    for cycle in 0..inputs.len() + LATENCY {
        let input = inputs.get(cycle).copied();
        leaf.set("valid_i", input.is_some_and(|i| i.valid))?;
        if let Some(input) = input {
            leaf.set_signed("sum_i", input.sum)?;
            leaf.set("bad_i", input.bad)?;
            leaf.set("user_i", input.user)?;
        }
        leaf.tick()?;
        let valid = leaf.is("valid_o")?;
        outputs.push(valid.then_some((leaf.get("float_o")? as u32, leaf.is("user_o")?)));
    }
    Ok(outputs.split_off(LATENCY - 1))
}

proptest! {
    #[test]
    fn nearest_ties_to_even(inputs in prop::collection::vec(input(), 1..40)) {
        let outputs = run(&inputs)?;
        for (input, output) in inputs.iter().zip(outputs) {
            let expected = input.valid.then(|| (reference(input.sum, input.bad), input.user));
            prop_assert_eq!(output, expected, "{:?}", input);
        }
    }
}

/// Each power of two, and what is around it and around the ties next to it.
#[test]
fn every_exponent() -> Result<(), LeafError> {
    let mut inputs = Vec::new();
    for exponent in 0..127 {
        let one = 1i128 << exponent;
        let half_ulp = one >> 24;
        for off in [0, half_ulp, 3 * half_ulp, -(half_ulp / 2), -half_ulp] {
            for near in -1..=1 {
                for sign in [1, -1] {
                    let sum = sign * (one + off + near);
                    inputs.push(Input {
                        valid: true,
                        sum,
                        bad: false,
                        user: false,
                    });
                }
            }
        }
    }
    let outputs = run(&inputs)?;
    for (input, output) in inputs.iter().zip(outputs) {
        assert_eq!(
            output,
            Some((reference(input.sum, false), false)),
            "{:#x}",
            input.sum
        );
    }
    Ok(())
}
