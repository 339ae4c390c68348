//! Dot products, sums of activations and fp16 scales into one exact term.

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

use crate::fp16;

const STAGES: usize = 11;
/// Cycles from the scales to the dot products.
const DOTS: usize = 4;

/// What belongs to 16 of the 32 weights.
#[derive(Debug, Clone, Copy)]
struct Half {
    scale: i8,
    minimum: u8,
    /// Of the activations.
    sum: i32,
    dot: i32,
}

#[derive(Debug, Clone, Copy)]
struct Input {
    enable: bool,
    d: u16,
    m: u16,
    dx: u16,
    lo: Half,
    hi: Half,
}

/// In units of 2^-48; nothing if a scale is inf or NaN.
fn reference(input: &Input) -> Option<i128> {
    let Input {
        enable,
        d,
        m,
        dx,
        lo,
        hi,
    } = *input;
    if !enable {
        return Some(0);
    }
    let all_finite = [d, m, dx].into_iter().all(fp16::is_finite);
    let dots =
        i128::from(lo.dot) * i128::from(lo.scale) + i128::from(hi.dot) * i128::from(hi.scale);
    let sums =
        i128::from(lo.sum) * i128::from(lo.minimum) + i128::from(hi.sum) * i128::from(hi.minimum);
    all_finite.then(|| fp16::fixed(dx) * (fp16::fixed(d) * dots + fp16::fixed(m) * sums))
}

/// What the formats can hold: 16 bytes of activations, and |dot · scale| of at most 2^23.
fn half() -> impl Strategy<Value = Half> {
    let ends = |end: i32| prop_oneof![3 => -end..=end, 1 => Just(-end), 1 => Just(end)];
    (any::<i8>(), 0u8..64, -2048i32..=2032).prop_flat_map(move |(scale, minimum, sum)| {
        let most = (1 << 23) / i32::from(scale).abs().max(1);
        ends(most.min(1 << 18)).prop_map(move |dot| Half {
            scale,
            minimum,
            sum,
            dot,
        })
    })
}

fn input() -> impl Strategy<Value = Input> {
    let scale =
        || prop_oneof![4 => fp16::any_bits().prop_map(|b| b & !0x4000), 1 => fp16::any_bits()];
    (
        prop::bool::weighted(0.9),
        scale(),
        scale(),
        scale(),
        half(),
        half(),
    )
        .prop_map(|(enable, d, m, dx, lo, hi)| Input {
            enable,
            d,
            m,
            dx,
            lo,
            hi,
        })
}

fn set_scales(leaf: &mut Leaf, input: &Input) -> Result<(), LeafError> {
    leaf.set("enable_i", input.enable)?;
    leaf.set("d_i", input.d)?;
    leaf.set("m_i", input.m)?;
    leaf.set("dx_i", input.dx)?;
    for (half, end) in [(input.lo, "lo"), (input.hi, "hi")] {
        leaf.set_signed(&format!("sc_{end}_i"), half.scale)?;
        leaf.set(&format!("mn_{end}_i"), half.minimum)?;
        leaf.set_signed(&format!("sum_{end}_i"), half.sum)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn exact_terms(inputs in prop::collection::vec(prop::option::weighted(0.8, input()), 1..24)) {
        let mut leaf = Leaf::new("ws_scale")?;
        let mut valid = 0u64;
        for cycle in 0..inputs.len() + STAGES - 1 {
            let at = |ago: usize| cycle.checked_sub(ago).and_then(|i| *inputs.get(i)?);
            valid = valid << 1 & ((1 << STAGES) - 1) | u64::from(at(0).is_some());
            leaf.set("valid_i", valid)?;
            if let Some(input) = at(0) {
                set_scales(&mut leaf, &input)?;
            }
            if let Some(input) = at(DOTS) {
                leaf.set_signed("dot_lo_i", input.lo.dot)?;
                leaf.set_signed("dot_hi_i", input.hi.dot)?;
            }
            leaf.tick()?;
            if let Some(input) = at(STAGES - 1) {
                let expected = reference(&input);
                prop_assert_eq!(leaf.is("bad_o")?, expected.is_none(), "{:?}", input);
                if let Some(term) = expected {
                    prop_assert_eq!(leaf.get_signed("term_o")?, term, "{:?}", input);
                }
            }
        }
    }
}
