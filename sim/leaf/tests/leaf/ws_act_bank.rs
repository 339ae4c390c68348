//! Activation blocks in, the same blocks with their sums out.

use std::collections::HashMap;

use proptest::{array::uniform32, prelude::*};
use weightstream_leaf::{Bits, Leaf};

/// Cycles from `store_i` until a read sees the block.
const WRITE: usize = 2;

#[derive(Debug, Clone, Copy)]
struct Block {
    address: u64,
    q: [i8; 32],
    d: u16,
}

/// A block that may be stored and an address that may be read, in one cycle.
fn cycle() -> impl Strategy<Value = (Option<Block>, Option<u64>)> {
    // Few addresses, so that reads find what was stored, and the last one.
    let address = || prop_oneof![0u64..4, Just(2047)];
    let q = prop_oneof![3 => uniform32(any::<i8>()), 1 => Just([-128; 32]), 1 => Just([127; 32])];
    let block = (address(), q, any::<u16>()).prop_map(|(address, q, d)| Block { address, q, d });
    (prop::option::of(block), prop::option::of(address()))
}

proptest! {
    #[test]
    fn blocks_come_back_with_their_sums(cycles in prop::collection::vec(cycle(), 1..60)) {
        let mut leaf = Leaf::new("ws_act_bank")?;
        leaf.reset()?;
        let mut stored: HashMap<u64, Block> = HashMap::new();
        // What the output registers hold, where it is known.
        let mut read: Option<Block> = None;
        for (n, &(store, address)) in cycles.iter().enumerate() {
            if n >= WRITE && let Some(block) = cycles[n - WRITE].0 {
                stored.insert(block.address, block);
            }
            leaf.set("store_i", store.is_some())?;
            if let Some(block) = store {
                leaf.set("store_addr_i", block.address)?;
                leaf.set_bits("store_q_i", &Bits::from_bytes(&block.q.map(|q| q as u8)))?;
                leaf.set("store_d_i", block.d)?;
            }
            leaf.set("read_i", address.is_some())?;
            if let Some(address) = address {
                leaf.set("read_addr_i", address)?;
                // Users do not read what is on its way in.
                let moving = n > 0 && cycles[n - 1].0.is_some_and(|b| b.address == address);
                read = if moving { None } else { stored.get(&address).copied() };
            }
            leaf.tick()?;
            if let Some(block) = read {
                let sum = |half: &[i8]| half.iter().map(|&q| i128::from(q)).sum::<i128>();
                prop_assert_eq!(leaf.get_bits("q_o")?, Bits::from_bytes(&block.q.map(|q| q as u8)));
                prop_assert_eq!(leaf.get("d_o")?, u64::from(block.d));
                prop_assert_eq!(leaf.get_signed("sum_lo_o")?, sum(&block.q[..16]));
                prop_assert_eq!(leaf.get_signed("sum_hi_o")?, sum(&block.q[16..]));
            }
        }
    }
}
