//! A 64-bit counter read in two halves.

use proptest::prelude::*;
use weightstream_leaf::Leaf;

#[derive(Debug, Clone, Copy)]
enum Read {
    None,
    Low,
    High,
}

proptest! {
    /// Low word, then high word, are those of one moment, however many counts fall between.
    #[test]
    fn halves_belong_together(
        start in prop_oneof![any::<u64>(), (any::<u32>(), 0u32..20).prop_map(|(high, back)| {
            u64::from(high) << 32 | u64::from(u32::MAX - back)
        })],
        cycles in prop::collection::vec(
            (any::<bool>(), prop::bool::weighted(0.02), prop::sample::select(vec![Read::None, Read::Low, Read::High])),
            1..60,
        ),
    ) {
        let mut leaf = Leaf::new("ws_counter64")?;
        leaf.reset()?;
        leaf.set("count_q", start)?;
        let mut count = start;
        let mut held: Option<u64> = None;
        for (counts, clear, read) in cycles {
            leaf.set("count_i", counts)?;
            leaf.set("clear_i", clear)?;
            leaf.set("read_low_i", matches!(read, Read::Low))?;
            leaf.set("read_high_i", matches!(read, Read::High))?;
            leaf.eval()?;
            match read {
                Read::None => {}
                Read::Low => {
                    prop_assert_eq!(leaf.get("low_o")?, count & 0xFFFF_FFFF);
                    held = Some(count >> 32);
                }
                Read::High => {
                    prop_assert_eq!(leaf.get("high_o")?, held.take().unwrap_or(count >> 32));
                }
            }
            leaf.tick()?;
            count = count.wrapping_add(counts.into());
            if clear {
                count = 0;
                held = None;
            }
        }
    }
}
