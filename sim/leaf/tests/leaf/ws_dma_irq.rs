//! Interrupt coalescing: an event after so many packets, or after so long without one.

use proptest::prelude::*;
use weightstream_leaf::Leaf;

/// Cycles in a unit of `IRQDelay`.
const UNIT: u64 = 125;

/// So many quiet cycles, and then one with a packet, or a new threshold, or both.
#[derive(Debug, Clone, Copy)]
struct Op {
    quiet: u64,
    packet: bool,
    threshold: Option<u8>,
}

fn op() -> impl Strategy<Value = Op> {
    let quiet = prop_oneof![2 => Just(0u64), 3 => 0u64..400, 1 => 0u64..600];
    let packet = prop::bool::weighted(0.8);
    let threshold = prop::option::weighted(0.15, 1u8..6);
    (quiet, packet, threshold).prop_map(|(quiet, packet, threshold)| Op {
        quiet,
        packet,
        threshold,
    })
}

/// Packets still missing, and for how long some have been unreported. A cycle with a new
/// threshold does not count.
struct Reference {
    threshold: u8,
    missing: u8,
    waited: Option<u64>,
}

proptest! {
    #[test]
    fn events(delay in 0u8..4, ops in prop::collection::vec(op(), 1..30)) {
        let mut leaf = Leaf::new("ws_dma_irq")?;
        leaf.reset()?;
        leaf.set("threshold_i", 1u64)?;
        leaf.set("delay_i", delay)?;
        let mut r = Reference { threshold: 1, missing: 1, waited: None };
        for op in ops {
            for n in 0..=op.quiet {
                let packet = n == op.quiet && op.packet;
                let load = op.threshold.filter(|_| n == op.quiet);
                r.threshold = load.unwrap_or(r.threshold);
                leaf.set("packet_i", packet)?;
                leaf.set("load_i", load.is_some())?;
                leaf.set("threshold_i", r.threshold)?;
                let now = leaf.cycle();
                let units = r.waited.map_or(0, |cycles| cycles / UNIT);
                prop_assert_eq!(leaf.get("threshold_sts_o")?, u64::from(r.missing));
                prop_assert_eq!(leaf.get("delay_sts_o")?, units, "cycle {}", now);

                if delay != 0 && !packet && load.is_none() {
                    r.waited = r.waited.map(|cycles| cycles + 1);
                }
                let reached = packet && r.missing == 1;
                let late = !packet && load.is_none() && delay != 0
                    && r.waited == Some(UNIT * u64::from(delay));
                if packet {
                    r.missing -= 1;
                    r.waited = Some(0);
                }
                if reached || late {
                    r.waited = None;
                }
                if reached || late || load.is_some() {
                    r.missing = r.threshold;
                }
                leaf.tick()?;
                prop_assert_eq!(leaf.is("ioc_o")?, reached, "threshold, cycle {}", now);
                prop_assert_eq!(leaf.is("dly_o")?, late, "delay, cycle {}", now);
            }
        }
    }
}
