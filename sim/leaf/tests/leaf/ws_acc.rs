//! Terms of several lanes into 128-bit sums, one a column.

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

const TERM: usize = 107;

#[derive(Debug, Clone)]
enum Slot {
    /// Nothing in this cycle.
    Bubble,
    /// A footer word, which passes through.
    Footer(u64),
    /// A term and its bad flag a lane, for a column; `last` ends the column's sum.
    Terms {
        column: usize,
        last: bool,
        lanes: Vec<(i128, bool)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Sum(i128),
    /// A sum with an inf or NaN scale in it: its value does not count.
    Bad,
    Footer(u64),
}

/// What each slot gives out.
fn reference(slots: &[Slot], columns: usize) -> Vec<Option<Output>> {
    let mut sums = vec![(0i128, false); columns];
    let one = |slot: &Slot| match slot {
        Slot::Bubble => None,
        Slot::Footer(word) => Some(Output::Footer(*word)),
        Slot::Terms {
            column,
            last,
            lanes,
        } => {
            for &(term, bad) in lanes {
                sums[*column].0 += term;
                sums[*column].1 |= bad;
            }
            let (sum, bad) = sums[*column];
            last.then(|| {
                sums[*column] = (0, false);
                if bad { Output::Bad } else { Output::Sum(sum) }
            })
        }
    };
    slots.iter().map(one).collect()
}

/// Terms of any size; the two ends, and pairs that cancel but for a little, often.
fn term() -> impl Strategy<Value = i128> {
    let end = 1i128 << (TERM - 1);
    prop_oneof![
        4 => (-end..end, 0u32..106).prop_map(|(term, shift)| term >> shift),
        1 => Just(-end),
        1 => Just(end - 1),
        1 => Just(-end + 1),
        1 => -1i128..=1,
    ]
}

fn slot(lanes: usize, columns: usize) -> impl Strategy<Value = Slot> {
    let terms = prop::collection::vec((term(), prop::bool::weighted(0.03)), lanes);
    prop_oneof![
        1 => Just(Slot::Bubble),
        1 => (0u64..4).prop_map(Slot::Footer),
        8 => (0..columns, prop::bool::weighted(0.2), terms)
            .prop_map(|(column, last, lanes)| Slot::Terms { column, last, lanes }),
    ]
}

/// What leaves in each slot's cycle. Terms come `levels` cycles before their slot.
fn run(
    module: &str,
    slots: &[Slot],
    columns: usize,
    levels: usize,
) -> Result<Vec<Option<Output>>, LeafError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    let latency = levels + 2;
    let mut fresh = vec![true; columns];
    let mut outputs = Vec::new();
    for cycle in 0..slots.len() + latency - 1 {
        let terms = match slots.get(cycle) {
            Some(Slot::Terms { lanes, .. }) => lanes.as_slice(),
            _ => &[],
        };
        leaf.set("valid_i", !terms.is_empty())?;
        let mut bits = Bits::zero(leaf.width("term_i")?);
        let mut bad = 0u64;
        for (lane, &(term, b)) in terms.iter().enumerate() {
            bits = bits.with(TERM * lane, TERM, term as u128);
            bad |= u64::from(b) << lane;
        }
        leaf.set_bits("term_i", &bits)?;
        leaf.set("bad_i", bad)?;

        let slot = cycle.checked_sub(levels).and_then(|i| slots.get(i));
        leaf.set("slot_valid_i", !matches!(slot, None | Some(Slot::Bubble)))?;
        leaf.set("footer_i", matches!(slot, Some(Slot::Footer(_))))?;
        match slot {
            Some(&Slot::Footer(word)) => leaf.set("word_i", word)?,
            Some(&Slot::Terms { column, last, .. }) => {
                leaf.set("col_i", column as u64)?;
                leaf.set("first_i", fresh[column])?;
                leaf.set("last_i", last)?;
                fresh[column] = last;
            }
            _ => {}
        }
        leaf.tick()?;
        let output = match (leaf.is("valid_o")?, leaf.is("footer_o")?) {
            (false, _) => None,
            (true, true) => Some(Output::Footer(leaf.get("word_o")?)),
            (true, false) if leaf.is("bad_o")? => Some(Output::Bad),
            (true, false) => Some(Output::Sum(leaf.get_signed("sum_o")?)),
        };
        outputs.push(output);
    }
    Ok(outputs.split_off(latency - 1))
}

fn check(module: &str, slots: &[Slot], columns: usize, levels: usize) -> Result<(), TestCaseError> {
    let outputs = run(module, slots, columns, levels)?;
    for (n, (output, expected)) in outputs
        .into_iter()
        .zip(reference(slots, columns))
        .enumerate()
    {
        prop_assert_eq!(output, expected, "slot {} of {:?}", n, slots);
    }
    Ok(())
}

proptest! {
    #[test]
    fn one_lane_one_column(slots in prop::collection::vec(slot(1, 1), 1..60)) {
        check("ws_acc_1", &slots, 1, 0)?;
    }

    #[test]
    fn two_lanes_four_columns(slots in prop::collection::vec(slot(2, 4), 1..60)) {
        check("ws_acc_2", &slots, 4, 1)?;
    }

    #[test]
    fn four_lanes_five_columns(slots in prop::collection::vec(slot(4, 5), 1..60)) {
        check("ws_acc_4", &slots, 5, 2)?;
    }
}

/// The largest k of the largest terms stays inside 128 bits, and cancels without a trace.
#[test]
fn largest_sums() -> Result<(), LeafError> {
    let end = 1i128 << (TERM - 1);
    let terms = |term, last| Slot::Terms {
        column: 0,
        last,
        lanes: vec![(term, false); 4],
    };
    let mut slots = vec![terms(-end, false); 1 << 11];
    slots.push(terms(0, true));
    slots.extend(vec![terms(end - 1, false); 1 << 11]);
    slots.extend(vec![terms(1 - end, false); 1 << 11]);
    slots.push(terms(1, true));
    let outputs: Vec<Output> = run("ws_acc_4", &slots, 5, 2)?
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(outputs, [Output::Sum(-(end << 13)), Output::Sum(4)]);
    Ok(())
}
