//! Interrupt coalescing: an event after so many packets, or after so long without one.

use proptest::prelude::*;
use weightstream_leaf::Leaf;

/// Cycles in a unit of `IRQDelay`.
const UNIT: u64 = 125;

#[derive(Debug, Clone, Copy)]
enum Op {
    /// A packet after so many quiet cycles.
    Packet(u64),
    Threshold(u8),
    Quiet(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop_oneof![Just(0u64), 0u64..400].prop_map(Op::Packet),
        1 => (1u8..6).prop_map(Op::Threshold),
        1 => (0u64..600).prop_map(Op::Quiet),
    ]
}

/// Packets still missing, and when the last unreported one was.
struct Reference {
    threshold: u8,
    missing: u8,
    waiting_since: Option<u64>,
}

proptest! {
    #[test]
    fn events(delay in 0u8..4, ops in prop::collection::vec(op(), 1..30)) {
        let mut leaf = Leaf::new("ws_dma_irq")?;
        leaf.reset()?;
        leaf.set("threshold_i", 1u64)?;
        leaf.set("delay_i", delay)?;
        let mut r = Reference { threshold: 1, missing: 1, waiting_since: None };
        for op in ops {
            let quiet = match op {
                Op::Packet(quiet) | Op::Quiet(quiet) => quiet,
                Op::Threshold(_) => 0,
            };
            for n in 0..=quiet {
                let packet = n == quiet && matches!(op, Op::Packet(_));
                let load = if let Op::Threshold(value) = op { Some(value) } else { None };
                r.threshold = load.unwrap_or(r.threshold);
                leaf.set("packet_i", packet)?;
                leaf.set("load_i", load.is_some())?;
                leaf.set("threshold_i", r.threshold)?;
                leaf.eval()?;
                let now = leaf.cycle();
                let reached = packet && r.missing == 1;
                let late = !packet && delay != 0
                    && r.waiting_since.is_some_and(|since| now == since + UNIT * u64::from(delay));
                prop_assert_eq!(leaf.is("ioc_o")?, reached, "threshold, cycle {}", now);
                prop_assert_eq!(leaf.is("dly_o")?, late, "delay, cycle {}", now);
                prop_assert_eq!(leaf.get("threshold_sts_o")?, u64::from(r.missing));
                let units = match r.waiting_since {
                    Some(since) if delay != 0 => (now - since - 1) / UNIT,
                    _ => 0,
                };
                prop_assert_eq!(leaf.get("delay_sts_o")?, units, "cycle {}", now);
                leaf.tick()?;
                if packet {
                    r.missing -= 1;
                    r.waiting_since = Some(now);
                }
                if reached || late {
                    r.waiting_since = None;
                }
                if reached || late || load.is_some() {
                    r.missing = r.threshold;
                }
            }
        }
    }
}
