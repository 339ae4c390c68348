//! The DMA reader: descriptors and memory in, stream and status words out.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

use crate::channel::*;

#[derive(Debug, Clone, Copy)]
struct Shape {
    module: &'static str,
    bus: usize,
    longest_burst: usize,
}

const NARROW: Shape = Shape {
    module: "ws_dma_mm2s_64",
    bus: 8,
    longest_burst: 8,
};
const DEFAULT: Shape = Shape {
    module: "ws_dma_mm2s_128",
    bus: 16,
    longest_burst: 64,
};
const WIDE: Shape = Shape {
    module: "ws_dma_mm2s_512",
    bus: 64,
    longest_burst: 64,
};

#[derive(Debug, Clone)]
struct Timing {
    offer: Pattern,
    update: Pattern,
    write_back: u64,
    address: Pattern,
    data: Pattern,
    latency: u64,
    stream: Pattern,
}

fn timing() -> impl Strategy<Value = Timing> {
    (
        pattern(),
        pattern(),
        0u64..20,
        pattern(),
        pattern(),
        0u64..40,
        pattern(),
    )
        .prop_map(
            |(offer, update, write_back, address, data, latency, stream)| Timing {
                offer,
                update,
                write_back,
                address,
                data,
                latency,
                stream,
            },
        )
}

/// A bus word that answers with an error: which descriptor's, which of its words, which response.
#[derive(Debug, Clone, Copy)]
struct Fault {
    descriptor: usize,
    word: u64,
    response: u64,
}

impl Fault {
    fn address(&self, descriptors: &[Descriptor], bus: usize) -> u64 {
        let descriptor = descriptors[self.descriptor % descriptors.len()];
        let words = u64::from(descriptor.length).div_ceil(bus as u64).max(1);
        descriptor.address + self.word % words * bus as u64
    }

    fn error(&self) -> u64 {
        if self.response == 3 { DEC_ERR } else { SLV_ERR }
    }
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    let fault =
        (0usize..20, any::<u64>(), 2u64..4).prop_map(|(descriptor, word, response)| Fault {
            descriptor,
            word,
            response,
        });
    prop::option::weighted(0.3, fault)
}

/// What every byte of memory holds.
fn byte(address: u64) -> u8 {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Beat {
    kept: Vec<u8>,
    last: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    beats: Vec<Beat>,
    /// Addresses of the bus words read.
    words: Vec<u64>,
    updates: Vec<Update>,
    dma_error: u64,
    sg_error: u64,
    marked: Option<u64>,
}

fn reference(descriptors: &[Descriptor], fault: Option<Fault>, bus: usize) -> Outcome {
    let mut o = Outcome::default();
    for d in descriptors {
        let Descriptor {
            error,
            pointer,
            address,
            length,
            eof,
        } = *d;
        if error != 0 {
            (o.sg_error, o.marked) = (error, Some(pointer));
            break;
        }
        let words = (0..u64::from(length).div_ceil(bus as u64)).map(|n| address + n * bus as u64);
        let hit = fault.filter(|f| {
            words
                .clone()
                .any(|word| word == f.address(descriptors, bus))
        });
        let failure = if d.is_bad(bus) {
            INT_ERR
        } else {
            hit.map_or(0, |fault| fault.error())
        };
        if !d.is_bad(bus) {
            let bytes: Vec<u8> = (0..u64::from(length)).map(|n| byte(address + n)).collect();
            let count = words.clone().count();
            o.words.extend(words);
            o.beats
                .extend(bytes.chunks(bus).enumerate().map(|(i, chunk)| Beat {
                    kept: chunk.to_vec(),
                    last: eof && i + 1 == count,
                }));
        }
        if failure != 0 {
            o.dma_error = failure;
            o.updates.push(Update {
                pointer,
                status: CMPLT | (failure as u32) << 28,
                eof: false,
            });
            break;
        }
        o.updates.push(Update {
            pointer,
            status: CMPLT | length,
            eof,
        });
    }
    o
}

/// What the reader did, and in how many cycles.
fn run(
    s: Shape,
    descriptors: &[Descriptor],
    fault: Option<Fault>,
    t: &Timing,
) -> Result<(Outcome, u64), TestCaseError> {
    let mut leaf = Leaf::new(s.module)?;
    let mut channel = Channel::new(
        s.bus,
        descriptors,
        t.offer.clone(),
        t.update.clone(),
        t.write_back,
    );
    let mut o = Outcome::default();
    // Words that are asked for: address, whether it is its burst's last, when it may come.
    let mut asked: VecDeque<(u64, bool, u64)> = VecDeque::new();
    let mut data_valid = false;
    let mut quiet = 0;
    leaf.set("halted_i", true)?;
    leaf.reset()?;
    while quiet < 20 {
        let now = leaf.cycle();
        prop_assert!(now < 60_000, "stuck: {:?}", channel.updates);
        channel.drive(&mut leaf)?;
        leaf.set("arready_i", t.address.at(now))?;
        leaf.set("m_axis_tready_i", t.stream.at(now))?;
        // VALID once high stays so until the word is taken.
        data_valid |= asked.front().is_some_and(|word| word.2 <= now) && t.data.at(now);
        leaf.set("rvalid_i", data_valid)?;
        if let Some(&(address, last, _)) = asked.front().filter(|_| data_valid) {
            let word: Vec<u8> = (0..s.bus as u64).map(|n| byte(address + n)).collect();
            let response = fault.filter(|f| f.address(descriptors, s.bus) == address);
            leaf.set_bits("rdata_i", &Bits::from_bytes(&word))?;
            leaf.set("rresp_i", response.map_or(0, |fault| fault.response))?;
            leaf.set("rlast_i", last)?;
        }
        leaf.eval()?;
        channel.sample(&leaf)?;
        if leaf.is("arvalid_o")? && leaf.is("arready_i")? {
            let address = leaf.get("araddr_o")?;
            let beats = check_burst(address, leaf.get("arlen_o")?, s.bus, s.longest_burst)?;
            for n in 0..beats {
                let word = address + (n * s.bus) as u64;
                o.words.push(word);
                asked.push_back((word, n + 1 == beats, now + 1 + t.latency));
            }
        }
        if data_valid && leaf.is("rready_o")? {
            asked.pop_front();
            data_valid = false;
        }
        let moved = leaf.is("m_axis_tvalid_o")?;
        if moved && leaf.is("m_axis_tready_i")? {
            let keep = leaf.get_bits("m_axis_tkeep_o")?.field(0, s.bus);
            prop_assert!(keep & (keep + 1) == 0 && keep != 0, "TKEEP is {:#x}", keep);
            let data = leaf.get_bits("m_axis_tdata_o")?;
            o.beats.push(Beat {
                kept: data.bytes()[..keep.count_ones() as usize].to_vec(),
                last: leaf.is("m_axis_tlast_o")?,
            });
        }
        quiet = if channel.ended(&leaf)? && !moved {
            quiet + 1
        } else {
            0
        };
        leaf.tick()?;
    }
    prop_assert!(asked.is_empty(), "halted or idle with reads under way");
    o.updates = channel.updates;
    (o.dma_error, o.sg_error, o.marked) = (channel.dma_error, channel.sg_error, channel.marked);
    Ok((o, leaf.cycle()))
}

fn check(
    s: Shape,
    descriptors: &[Descriptor],
    fault: Option<Fault>,
    t: &Timing,
) -> Result<(), TestCaseError> {
    let (mut o, _) = run(s, descriptors, fault, t)?;
    let expected = reference(descriptors, fault, s.bus);
    if expected.dma_error != 0 {
        // Of what the failed descriptor would have brought, any beginning may have come.
        prop_assert!(
            expected.beats.starts_with(&o.beats),
            "wrong beats before the failure"
        );
        let failed = expected.updates.last().map_or(0, |update| update.pointer);
        let before = descriptors.iter().take_while(|d| d.pointer != failed);
        let sure: usize = before.map(|d| (d.length as usize).div_ceil(s.bus)).sum();
        prop_assert!(o.beats.len() >= sure, "{} beats of {}", o.beats.len(), sure);
        o.beats = expected.beats.clone();
        // Reads for later descriptors may have been under way.
        let common = o.words.len().min(expected.words.len());
        prop_assert_eq!(&o.words[..common], &expected.words[..common]);
        o.words = expected.words.clone();
    }
    prop_assert_eq!(o, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn bus_of_8_bytes(descriptors in descriptors(8, 12), fault in fault(), timing in timing()) {
        check(NARROW, &descriptors, fault, &timing)?;
    }

    #[test]
    fn bus_of_16_bytes(descriptors in descriptors(16, 24), fault in fault(), timing in timing()) {
        check(DEFAULT, &descriptors, fault, &timing)?;
    }

    #[test]
    fn bus_of_64_bytes(descriptors in descriptors(64, 24), fault in fault(), timing in timing()) {
        check(WIDE, &descriptors, fault, &timing)?;
    }
}

/// With 60 cycles of latency, 64 KiB come at a beat a cycle after the first.
#[test]
fn latency_is_hidden() -> Result<(), LeafError> {
    let descriptor = Descriptor {
        error: 0,
        pointer: 1,
        address: 0x10_0000,
        length: 65536,
        eof: true,
    };
    let timing = Timing {
        offer: Pattern::ALWAYS,
        update: Pattern::ALWAYS,
        write_back: 0,
        address: Pattern::ALWAYS,
        data: Pattern::ALWAYS,
        latency: 60,
        stream: Pattern::ALWAYS,
    };
    let (outcome, cycles) = run(DEFAULT, &[descriptor], None, &timing).unwrap();
    assert_eq!(outcome.beats.len(), 4096);
    // Besides the latency: start, both FIFOs, write-back, and the 20 quiet cycles at the end.
    assert!(cycles < 4096 + 60 + 40, "{cycles} cycles");
    Ok(())
}
