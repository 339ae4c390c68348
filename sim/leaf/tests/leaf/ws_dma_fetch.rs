//! Descriptor prefetch: a chain up to its tail, in order, with what goes wrong in its place.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

use crate::channel::{CMPLT, DEC_ERR, INT_ERR, Pattern, SLV_ERR, pattern};

/// As the model in `build.rs` has them.
const BUS: u64 = 16;
const LENGTH: u32 = (1 << 14) - 1;
const DEPTH: usize = 4;

const EOF: u32 = 1 << 26;

/// A descriptor in memory.
#[derive(Debug, Clone)]
struct Stored {
    /// Its own address without the low six bits.
    pointer: u64,
    address: u64,
    control: u32,
    status: u32,
    /// A word of the eight whose read fails, and how.
    fault: Option<(usize, u64)>,
}

/// A descriptor that has been fetched; of a failed one only the error and the pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fetched {
    pointer: u64,
    error: u64,
    rest: Option<(u64, u32, bool, bool)>,
}

fn chain() -> impl Strategy<Value = Vec<Stored>> {
    let address = prop_oneof![4 => any::<u64>().prop_map(|a| a & !(BUS - 1)), 1 => any::<u64>()];
    let control = prop_oneof![4 => any::<u32>(), 1 => any::<u32>().prop_map(|c| c & !LENGTH)];
    let status = prop_oneof![20 => any::<u32>().prop_map(|s| s & !CMPLT), 1 => any::<u32>()];
    let fault =
        prop::option::weighted(0.04, (0usize..8, prop_oneof![Just(SLV_ERR), Just(DEC_ERR)]));
    let one = (0u64..1 << 30, address, control, status, fault);
    prop::collection::vec(one, 1..20).prop_map(|list| {
        list.into_iter()
            .enumerate()
            .map(|(n, (place, address, control, status, fault))| Stored {
                // No two are the same.
                pointer: place << 20 | n as u64,
                address,
                control,
                status,
                fault,
            })
            .collect()
    })
}

impl Stored {
    fn words(&self, next: u64) -> [u32; 8] {
        let next = next << 6;
        [
            next as u32,
            (next >> 32) as u32,
            self.address as u32,
            (self.address >> 32) as u32,
            0,
            0,
            self.control,
            self.status,
        ]
    }

    fn fetched(&self) -> Fetched {
        let stale = if self.status & CMPLT != 0 { INT_ERR } else { 0 };
        let error = self.fault.map_or(stale, |fault| fault.1);
        let length = self.control & LENGTH;
        let bad = length == 0 || !self.address.is_multiple_of(BUS);
        Fetched {
            pointer: self.pointer,
            error,
            rest: (error == 0).then_some((self.address, length, self.control & EOF != 0, bad)),
        }
    }
}

#[derive(Debug, Clone)]
struct Timing {
    ask: Pattern,
    word: Pattern,
    latency: u64,
    take: Pattern,
    /// The tail moves on so many times, with so many cycles in between.
    tails: usize,
    between: u64,
}

fn timing() -> impl Strategy<Value = Timing> {
    (
        pattern(),
        pattern(),
        0u64..40,
        pattern(),
        1usize..4,
        0u64..150,
    )
        .prop_map(|(ask, word, latency, take, tails, between)| Timing {
            ask,
            word,
            latency,
            take,
            tails,
            between,
        })
}

struct Bench {
    leaf: Leaf,
    /// Asked for and not yet answered: the descriptor's number, and when its first word may come.
    asked: VecDeque<(usize, u64)>,
    /// Of the oldest, the next word.
    word: usize,
    requests: usize,
    fetched: Vec<Fetched>,
}

impl Bench {
    fn new() -> Result<Bench, LeafError> {
        let mut leaf = Leaf::new("ws_dma_fetch")?;
        leaf.set("halted_i", true)?;
        leaf.reset()?;
        Ok(Bench {
            leaf,
            asked: VecDeque::new(),
            word: 0,
            requests: 0,
            fetched: Vec::new(),
        })
    }

    fn cycle(&mut self, chain: &[Stored], t: &Timing) -> Result<(), TestCaseError> {
        let leaf = &mut self.leaf;
        let now = leaf.cycle();
        leaf.set("req_ready_i", t.ask.at(now))?;
        let answer = self.asked.front().filter(|a| a.1 <= now && t.word.at(now));
        leaf.set("word_valid_i", answer.is_some())?;
        if let Some(&(n, _)) = answer {
            let next = chain.get(n + 1).map_or(0x3_FFFF, |d| d.pointer);
            let fault = chain[n].fault.filter(|fault| fault.0 == self.word);
            leaf.set("word_i", chain[n].words(next)[self.word])?;
            leaf.set("word_err_i", fault.map_or(0, |fault| fault.1))?;
            leaf.set("word_ptr_i", chain[n].pointer)?;
        }
        let answered = answer.is_some();
        let taken = leaf.is("desc_valid_o")? && t.take.at(now);
        leaf.set("desc_ready_i", taken)?;
        leaf.eval()?;
        if taken {
            let desc = leaf.get_bits("desc_o")?;
            let error = desc.field(0, 3) as u64;
            let rest = (
                desc.field(89, 64) as u64,
                desc.field(5, 26) as u32,
                desc.field(4, 1) == 1,
                desc.field(3, 1) == 1,
            );
            self.fetched.push(Fetched {
                pointer: desc.field(31, 58) as u64,
                error,
                rest: (error == 0).then_some(rest),
            });
        }
        if answered {
            self.word = (self.word + 1) % 8;
            if self.word == 0 {
                self.asked.pop_front();
            }
        }
        if leaf.is("req_valid_o")? && leaf.is("req_ready_i")? {
            let pointer = leaf.get("req_ptr_o")?;
            let expected = chain.get(self.requests).map(|d| d.pointer);
            prop_assert_eq!(Some(pointer), expected, "request {}", self.requests);
            self.asked.push_back((self.requests, now + 1 + t.latency));
            self.requests += 1;
            let held = self.requests - self.fetched.len();
            prop_assert!(held <= DEPTH + 1, "{} descriptors asked for at once", held);
        }
        Ok(leaf.tick()?)
    }

    /// From halted to running, at the chain's first descriptor.
    fn start(&mut self, chain: &[Stored]) -> Result<(), LeafError> {
        (self.requests, self.fetched) = (0, Vec::new());
        self.leaf.set("curdesc_i", chain[0].pointer)?;
        self.leaf.set("start_i", true)?;
        self.leaf.tick()?;
        self.leaf.set("start_i", false)?;
        self.leaf.set("halted_i", false)?;
        self.leaf.set("run_i", true)
    }

    fn tail(&mut self, chain: &[Stored], n: usize, t: &Timing) -> Result<(), TestCaseError> {
        self.leaf.set("taildesc_i", chain[n].pointer)?;
        self.leaf.set("tail_i", true)?;
        self.cycle(chain, t)?;
        Ok(self.leaf.set("tail_i", false)?)
    }
}

proptest! {
    #[test]
    fn a_chain_up_to_its_tail(chain in chain(), t in timing(), cut in chain(), when in 0u64..200) {
        let mut bench = Bench::new()?;
        // A chain that is stopped on its way leaves nothing behind.
        bench.start(&cut)?;
        bench.tail(&cut, cut.len() - 1, &t)?;
        for _ in 0..when {
            bench.cycle(&cut, &t)?;
        }
        bench.leaf.set("run_i", false)?;
        bench.cycle(&cut, &t)?;
        let end = bench.leaf.cycle() + 2000;
        while !bench.leaf.is("quiet_o")? {
            prop_assert!(bench.leaf.cycle() < end, "not quiet");
            bench.cycle(&cut, &t)?;
        }
        prop_assert!(bench.asked.is_empty(), "quiet with words on their way");
        for port in ["req_ready_i", "word_valid_i", "desc_ready_i"] {
            bench.leaf.set(port, false)?;
        }
        bench.leaf.set("halted_i", true)?;
        bench.leaf.tick()?;

        bench.start(&chain)?;
        for step in 1..=t.tails {
            let (old, new) = (chain.len() * (step - 1) / t.tails, chain.len() * step / t.tails);
            if new != old {
                bench.tail(&chain, new - 1, &t)?;
            }
            for _ in 0..t.between {
                bench.cycle(&chain, &t)?;
                prop_assert!(bench.requests <= new, "fetched past the tail");
            }
        }
        let mut expected: Vec<Fetched> = chain.iter().map(|d| d.fetched()).collect();
        let failed = expected.iter().position(|d| d.error != 0);
        expected.truncate(failed.map_or(chain.len(), |n| n + 1));
        for _ in 0..chain.len() as u64 * 300 {
            bench.cycle(&chain, &t)?;
            if failed.is_none() && bench.leaf.is("idle_o")? {
                break;
            }
        }
        prop_assert_eq!(&bench.fetched, &expected);
        // Past an error nothing counts as done, and nothing is on its way.
        prop_assert_eq!(bench.leaf.is("quiet_o")?, true);
        prop_assert!(bench.asked.is_empty());
        // The address of the next one comes first, so at most what was asked for before it failed.
        prop_assert!(bench.requests <= expected.len() + 3);
    }
}
