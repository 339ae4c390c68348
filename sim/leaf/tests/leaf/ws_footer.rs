//! Footer words among the results, and the flag for NaN.

use proptest::prelude::*;
use weightstream_leaf::Leaf;

const NAN: u32 = 0x7FC0_0000;
const NONFINITE: u32 = 1;

#[derive(Debug, Clone)]
struct Job {
    results: Vec<u32>,
    tag: u32,
    /// Without `NONFINITE`.
    status: u32,
    start: u64,
    /// Cycles without a word before each word, over and over.
    gaps: Vec<usize>,
}

fn job() -> impl Strategy<Value = Job> {
    let result = prop_oneof![8 => any::<u32>(), 1 => Just(NAN)];
    (
        prop::collection::vec(result, 0..6),
        any::<u32>(),
        any::<u32>().prop_map(|status| status & !NONFINITE),
        any::<u64>(),
        prop::collection::vec(0usize..4, 1..6),
    )
        .prop_map(|(results, tag, status, start, gaps)| Job {
            results,
            tag,
            status,
            start,
            gaps,
        })
}

proptest! {
    #[test]
    fn results_then_footer(jobs in prop::collection::vec(job(), 1..5), epoch in any::<u64>()) {
        let mut leaf = Leaf::new("ws_footer")?;
        leaf.reset()?;
        for job in &jobs {
            let nonfinite = job.results.contains(&NAN);
            let status = job.status | if nonfinite { NONFINITE } else { 0 };
            let mut cycles = 0;
            leaf.set("tag_i", job.tag)?;
            leaf.set("status_i", job.status)?;
            leaf.set("start_i", job.start)?;
            for n in 0..job.results.len() + 4 {
                // Nothing counts while there is no word, whatever stands on the other inputs.
                leaf.set("valid_i", false)?;
                leaf.set("footer_i", n % 2 == 0)?;
                leaf.set("float_i", NAN)?;
                for _ in 0..job.gaps[n % job.gaps.len()] {
                    leaf.set("now_i", epoch.wrapping_add(leaf.cycle()))?;
                    leaf.eval()?;
                    prop_assert!(!leaf.is("done_o")?);
                    leaf.tick()?;
                }
                let footer = n.checked_sub(job.results.len());
                let now = epoch.wrapping_add(leaf.cycle());
                leaf.set("now_i", now)?;
                leaf.set("valid_i", true)?;
                leaf.set("footer_i", footer.is_some())?;
                leaf.set("word_i", footer.unwrap_or(0) as u64)?;
                // In a footer's slot the rounder gives anything.
                leaf.set("float_i", job.results.get(n).copied().unwrap_or(NAN))?;
                leaf.eval()?;
                if footer == Some(0) {
                    cycles = now.wrapping_sub(job.start);
                }
                let expected = match footer {
                    None => job.results[n],
                    Some(0) => job.tag,
                    Some(1) => status,
                    Some(2) => cycles as u32,
                    Some(_) => (cycles >> 32) as u32,
                };
                prop_assert_eq!(leaf.get("word_o")?, u64::from(expected), "word {} of {:?}", n, job);
                prop_assert_eq!(leaf.is("last_o")?, footer == Some(3));
                prop_assert_eq!(leaf.is("done_o")?, footer == Some(3));
                if footer == Some(3) {
                    prop_assert_eq!(leaf.get("status_o")?, u64::from(status), "{:?}", job);
                }
                leaf.tick()?;
            }
        }
    }
}
