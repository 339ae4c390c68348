//! 32 signed bytes times 32 signed bytes, summed in two halves.

use proptest::{array::uniform32, prelude::*};
use weightstream_leaf::{Bits, Leaf, LeafError};

const LATENCY: usize = 4;

type Pair = ([i8; 32], [i8; 32]);

fn reference((a, b): &Pair) -> (i128, i128) {
    let sum =
        |half: std::ops::Range<usize>| half.map(|i| i128::from(a[i]) * i128::from(b[i])).sum();
    (sum(0..16), sum(16..32))
}

fn bytes() -> impl Strategy<Value = [i8; 32]> {
    prop_oneof![
        4 => uniform32(any::<i8>()),
        1 => Just([-128; 32]),
        1 => Just([127; 32]),
    ]
}

/// The two sums, in every cycle from that of the first input's result on.
fn run(inputs: &[Option<Pair>]) -> Result<Vec<(i128, i128)>, LeafError> {
    let mut leaf = Leaf::new("ws_dot")?;
    let mut outputs = Vec::new();
    let mut valid = 0u64;
    for cycle in 0..inputs.len() + LATENCY - 1 {
        let input = inputs.get(cycle).copied().flatten();
        valid = valid << 1 & 15 | u64::from(input.is_some());
        leaf.set("valid_i", valid)?;
        if let Some((a, b)) = input {
            leaf.set_bits("a_i", &Bits::from_bytes(&a.map(|q| q as u8)))?;
            leaf.set_bits("b_i", &Bits::from_bytes(&b.map(|q| q as u8)))?;
        }
        leaf.tick()?;
        outputs.push((leaf.get_signed("lo_o")?, leaf.get_signed("hi_o")?));
    }
    Ok(outputs.split_off(LATENCY - 1))
}

proptest! {
    /// Without an input the sums stay, so that nothing toggles.
    #[test]
    fn sums_of_products(
        inputs in prop::collection::vec(prop::option::weighted(0.8, (bytes(), bytes())), 1..20),
    ) {
        let outputs = run(&inputs)?;
        let mut last = None;
        for (input, output) in inputs.iter().zip(outputs) {
            last = input.as_ref().map(reference).or(last);
            if let Some(expected) = last {
                prop_assert_eq!(output, expected, "{:?}", input);
            }
        }
    }
}
