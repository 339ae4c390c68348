//! Issue slots: which, in which order, and never more words than the result buffer has room for.

use proptest::prelude::*;
use weightstream_leaf::Leaf;

use crate::channel::{Pattern, pattern};

/// As the model in `build.rs` has them.
const COLUMNS: u64 = 3;
const STRIDE: u64 = 16;
const CREDITS: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Activations,
    Weights,
    Footer,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    kind: Kind,
    first: bool,
    last: bool,
    addr: u64,
    step_max: u64,
    col_max: u64,
}

/// A slot of the lanes: its kind, step and column, address, whether it is the first of its
/// weights, of its row, the last of its row, and whether it makes a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    kind: Kind,
    step: u64,
    col: u64,
    addr: u64,
    fresh: bool,
    first: bool,
    last: bool,
    word: bool,
}

fn group() -> impl Strategy<Value = Group> {
    let kind = prop_oneof![
        2 => Just(Kind::Activations),
        6 => Just(Kind::Weights),
        1 => Just(Kind::Footer),
    ];
    (
        kind,
        any::<bool>(),
        any::<bool>(),
        0u64..8,
        0u64..8,
        0..COLUMNS,
    )
        .prop_map(|(kind, first, last, addr, step_max, col_max)| {
            let (step_max, col_max) = match kind {
                Kind::Activations => (0, 0),
                Kind::Weights => (step_max, col_max),
                Kind::Footer => (3, 0),
            };
            Group {
                kind,
                first,
                last,
                addr,
                step_max,
                col_max,
            }
        })
}

impl Group {
    /// For each step one slot a column.
    fn slots(self) -> impl Iterator<Item = Slot> {
        (0..=self.step_max).flat_map(move |step| {
            (0..=self.col_max).map(move |col| Slot {
                kind: self.kind,
                step,
                col,
                addr: self.addr + step + col * STRIDE,
                fresh: col == 0,
                first: self.first && step == 0,
                last: self.last && step == self.step_max,
                word: match self.kind {
                    Kind::Activations => false,
                    Kind::Weights => self.last && step == self.step_max,
                    Kind::Footer => true,
                },
            })
        })
    }
}

proptest! {
    #[test]
    fn slots_in_order(
        groups in prop::collection::vec(group(), 1..30),
        offer in pattern(),
        free in pattern(),
        pop in pattern(),
    ) {
        run(&groups, &offer, &free, &pop)?;
    }
}

/// Returns the cycles that the groups took.
fn run(
    groups: &[Group],
    offer: &Pattern,
    free: &Pattern,
    pop: &Pattern,
) -> Result<u64, TestCaseError> {
    let mut leaf = Leaf::new("ws_issue")?;
    leaf.reset()?;
    let begin = leaf.cycle();
    let (mut words, mut offered) = (0, false);
    for group in groups {
        let mut slots = group.slots().peekable();
        while let Some(&slot) = slots.peek() {
            let now = leaf.cycle();
            prop_assert!(now < begin + 5000, "stuck at {:?}", slot);
            let store_busy = !free.at(now);
            let popped = words > 0 && pop.at(now);
            // A group stays until it is done with.
            offered |= offer.at(now);
            leaf.set("valid_i", offered)?;
            let kind = match group.kind {
                Kind::Activations => 0u64,
                Kind::Weights => 1,
                Kind::Footer => 2,
            };
            let makes = match group.kind {
                Kind::Activations => false,
                Kind::Weights => group.last,
                Kind::Footer => true,
            };
            leaf.set("kind_i", kind)?;
            leaf.set("first_i", group.first)?;
            leaf.set("last_i", group.last)?;
            leaf.set("makes_i", makes)?;
            leaf.set("step_max_i", group.step_max)?;
            leaf.set("addr_i", group.addr)?;
            leaf.set("col_max_i", group.col_max)?;
            leaf.set("store_busy_i", store_busy)?;
            leaf.set("word_pop_i", popped)?;
            leaf.eval()?;
            let issued = ["store_o", "weight_o", "footer_o"].map(|port| leaf.is(port));
            let [store, weight, footer] = issued;
            let kinds = [
                (store?, Kind::Activations),
                (weight?, Kind::Weights),
                (footer?, Kind::Footer),
            ];
            let kinds: Vec<Kind> = kinds.into_iter().filter(|k| k.0).map(|k| k.1).collect();
            let room = !slot.word || words < CREDITS;
            let may = offered && room && !(store_busy && slot.kind == Kind::Weights);
            prop_assert_eq!(kinds.len(), usize::from(may), "slots in cycle {}", now);
            if may {
                let got = Slot {
                    kind: kinds[0],
                    step: leaf.get("step_o")?,
                    col: leaf.get("col_o")?,
                    addr: leaf.get("addr_o")?,
                    fresh: leaf.is("fresh_o")?,
                    first: leaf.is("first_o")?,
                    last: leaf.is("last_o")?,
                    word: slot.word,
                };
                prop_assert_eq!(got, slot);
                if slot.kind == Kind::Footer {
                    prop_assert_eq!(leaf.get("word_o")?, slot.step);
                }
                words += u64::from(slot.word);
                slots.next();
            }
            let done = may && slots.peek().is_none();
            prop_assert_eq!(leaf.is("done_o")?, done, "done in cycle {}", now);
            offered &= !done;
            words -= u64::from(popped);
            leaf.tick()?;
        }
    }
    Ok(leaf.cycle() - begin)
}

/// A slot a cycle where there is room.
#[test]
fn a_slot_a_cycle() {
    let group = Group {
        kind: Kind::Weights,
        first: true,
        last: true,
        addr: 0,
        step_max: 7,
        col_max: 2,
    };
    let always = Pattern::ALWAYS;
    let cycles = run(&[group; 20], &always, &always, &always).unwrap();
    assert_eq!(cycles, 20 * 24);
}
