//! The DMA engine's two FIFOs, against a queue.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::Leaf;

const DEPTH: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Cycle {
    push: Option<u8>,
    pop: bool,
    clear: bool,
}

fn cycles() -> impl Strategy<Value = Vec<Cycle>> {
    let cycle = (
        any::<Option<u8>>(),
        any::<bool>(),
        prop::bool::weighted(0.03),
    )
        .prop_map(|(push, pop, clear)| Cycle { push, pop, clear });
    prop::collection::vec(cycle, 1..80)
}

/// Pushes where `capacity` allows it and pops where something is there. `passes` is the number of
/// cycles after a push in which its entry is sure to be seen if it is the oldest. A `stream` FIFO
/// carries TKEEP and TLAST beside the data and shows no count.
fn check(
    module: &str,
    cycles: &[Cycle],
    capacity: usize,
    passes: u64,
    stream: bool,
) -> Result<(), TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    let mut queue: VecDeque<(u8, u64)> = VecDeque::new();
    for cycle in cycles {
        leaf.eval()?;
        let valid = leaf.is("valid_o")?;
        let now = leaf.cycle();
        match queue.front() {
            None => prop_assert!(!valid, "an entry in an empty FIFO"),
            Some(&(data, pushed)) if valid => {
                prop_assert_eq!(leaf.get("data_o")?, u64::from(data));
                if stream {
                    prop_assert_eq!(leaf.get("keep_o")?, u64::from(!data));
                    prop_assert_eq!(leaf.is("last_o")?, data % 3 == 0);
                }
                prop_assert!(now > pushed);
            }
            Some(&(_, pushed)) => prop_assert!(now < pushed + passes, "an entry is not shown"),
        }
        if !stream {
            prop_assert_eq!(leaf.get("count_o")?, queue.len() as u64);
        }
        let push = cycle
            .push
            .filter(|_| queue.len() < capacity && !cycle.clear);
        leaf.set("push_i", push.is_some())?;
        let data = push.unwrap_or(0xEE);
        leaf.set("data_i", data)?;
        if stream {
            leaf.set("keep_i", !data)?;
            leaf.set("last_i", data % 3 == 0)?;
        }
        leaf.set("pop_i", valid && cycle.pop)?;
        leaf.set("clear_i", cycle.clear)?;
        leaf.tick()?;
        if valid && cycle.pop {
            queue.pop_front();
        }
        if let Some(data) = push {
            queue.push_back((data, now));
        }
        if cycle.clear {
            queue.clear();
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn ws_dma_fifo(cycles in cycles()) {
        check("ws_dma_fifo", &cycles, DEPTH, 1, false)?;
    }

    /// Its output register holds one entry more, but only the RAM is promised.
    #[test]
    fn ws_dma_stream_fifo(cycles in cycles()) {
        check("ws_dma_stream_fifo", &cycles, DEPTH, 2, true)?;
    }
}
