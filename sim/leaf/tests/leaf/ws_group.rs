//! Pieces gathered to groups, two at a time.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf};

use crate::channel::{Pattern, pattern};

const PIECE: usize = 4;

/// The pieces of a group, each a number that is its bytes, and a label.
#[derive(Debug, Clone)]
struct Group {
    pieces: Vec<u32>,
    label: u8,
}

fn groups(most: usize) -> impl Strategy<Value = Vec<Group>> {
    let group = (prop::collection::vec(any::<u32>(), 1..=most), any::<u8>())
        .prop_map(|(pieces, label)| Group { pieces, label });
    prop::collection::vec(group, 1..20)
}

/// Returns the cycles that the groups took.
fn check(
    module: &str,
    groups: &[Group],
    offer: &Pattern,
    done: &Pattern,
) -> Result<u64, TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    let begin = leaf.cycle();
    let mut pieces: VecDeque<(u8, usize, bool, u32)> = groups
        .iter()
        .flat_map(|group| {
            let last = group.pieces.len() - 1;
            let numbered = group.pieces.iter().enumerate();
            numbered.map(move |(n, &piece)| (group.label, n, n == last, piece))
        })
        .collect();
    let mut expected = groups.iter();
    let mut waiting = expected.next();
    while let Some(group) = waiting {
        let now = leaf.cycle();
        prop_assert!(
            now < begin + 2000,
            "stuck with {} pieces left",
            pieces.len()
        );
        let offered = pieces.front().copied().filter(|_| offer.at(now));
        leaf.set("valid_i", offered.is_some())?;
        if let Some((label, n, last, piece)) = offered {
            leaf.set("user_i", label)?;
            leaf.set("piece_i", n as u64)?;
            leaf.set("piece_last_i", last)?;
            leaf.set("raw_i", piece)?;
        }
        let valid = leaf.is("valid_o")?;
        let taken = valid && done.at(now);
        leaf.set("done_i", taken)?;
        leaf.eval()?;
        if valid {
            // All of a group is there for as long as it is.
            prop_assert_eq!(leaf.get("user_o")?, u64::from(group.label));
            let bytes: Vec<u8> = group.pieces.iter().flat_map(|p| p.to_le_bytes()).collect();
            let got = leaf.get_bits("group_o")?.bytes()[..PIECE * group.pieces.len()].to_vec();
            prop_assert_eq!(Bits::from_bytes(&got), Bits::from_bytes(&bytes));
        }
        if taken {
            waiting = expected.next();
        }
        if offered.is_some() && leaf.is("ready_o")? {
            pieces.pop_front();
        }
        leaf.tick()?;
    }
    prop_assert!(!leaf.is("valid_o")?, "a group too many");
    Ok(leaf.cycle() - begin)
}

proptest! {
    #[test]
    fn one_piece(groups in groups(1), offer in pattern(), done in pattern()) {
        check("ws_group_1", &groups, &offer, &done)?;
    }

    #[test]
    fn up_to_three_pieces(groups in groups(3), offer in pattern(), done in pattern()) {
        check("ws_group_3", &groups, &offer, &done)?;
    }
}

/// A piece a cycle, and a cycle of latency.
#[test]
fn a_piece_a_cycle() {
    for (module, most) in [("ws_group_1", 1), ("ws_group_3", 3)] {
        let groups: Vec<Group> = (0..50u8)
            .map(|label| Group {
                pieces: (0..most).collect(),
                label,
            })
            .collect();
        let cycles = check(module, &groups, &Pattern::ALWAYS, &Pattern::ALWAYS).unwrap();
        assert_eq!(cycles, 50 * u64::from(most) + 1);
    }
}
