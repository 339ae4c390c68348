//! The DMA writer: descriptors and stream in, memory and status words out.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf};

use crate::channel::*;

const RXEOF: u32 = 1 << 26;
const RXSOF: u32 = 1 << 27;

#[derive(Debug, Clone, Copy)]
struct Shape {
    module: &'static str,
    bus: usize,
    longest_burst: usize,
}

const NARROW: Shape = Shape {
    module: "ws_dma_s2mm_64",
    bus: 8,
    longest_burst: 4,
};
const DEFAULT: Shape = Shape {
    module: "ws_dma_s2mm_128",
    bus: 16,
    longest_burst: 16,
};
const WIDE: Shape = Shape {
    module: "ws_dma_s2mm_512",
    bus: 64,
    longest_burst: 16,
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

#[derive(Debug, Clone)]
struct Beat {
    data: Vec<u8>,
    kept: usize,
    first: bool,
    last: bool,
}

/// The stream's packets, given by their lengths. Byte n of the stream holds a number made of n.
fn beats(packets: &[usize], bus: usize) -> Vec<Beat> {
    let mut n = 0u32;
    let mut beats = Vec::new();
    for &length in packets {
        for at in (0..length).step_by(bus) {
            let kept = bus.min(length - at);
            let data = (0..bus as u32)
                .map(|i| ((n + i).wrapping_mul(0x9E37_79B9) >> 24) as u8)
                .collect();
            n += bus as u32;
            beats.push(Beat {
                data,
                kept,
                first: at == 0,
                last: at + bus >= length,
            });
        }
    }
    beats
}

/// A bus word whose burst answers with an error: where, and the response.
type Fault = Option<(u64, u64)>;

#[derive(Debug, Default)]
struct Expected {
    /// All bytes that may be written; those of `done` must be.
    memory: BTreeMap<u64, u8>,
    done: BTreeMap<u64, u8>,
    updates: Vec<Update>,
    /// The last update is a failure; so may be its other reasons.
    failures: Vec<u64>,
    sg_error: u64,
    marked: Option<u64>,
}

fn reference(descriptors: &[Descriptor], beats: &[Beat], fault: Fault, bus: usize) -> Expected {
    let mut e = Expected::default();
    let mut stream = beats.iter();
    for d in descriptors {
        if d.error != 0 {
            if e.failures.is_empty() {
                (e.sg_error, e.marked) = (d.error, Some(d.pointer));
            }
            break;
        }
        if d.is_bad(bus) {
            if e.failures.is_empty() {
                e.failures = vec![INT_ERR];
                e.updates.push(Update {
                    pointer: d.pointer,
                    status: 0,
                    eof: false,
                });
            }
            break;
        }
        let (mut at, mut left) = (d.address, d.length as usize);
        let mut written = BTreeMap::new();
        let mut failures = Vec::new();
        let (mut sof, mut eof, mut over) = (false, false, false);
        loop {
            let Some(beat) = stream.next() else { return e };
            // A whole word is needed before the end of a packet.
            let need = if beat.last { beat.kept } else { bus };
            if need > left {
                over = true;
                failures.push(INT_ERR);
                break;
            }
            if let Some((_, response)) = fault.filter(|fault| fault.0 == at) {
                failures.push(if response == 3 { DEC_ERR } else { SLV_ERR });
            }
            written.extend((0..beat.kept).map(|i| (at + i as u64, beat.data[i])));
            (at, left) = (at + bus as u64, left - need);
            sof |= beat.first;
            eof = beat.last;
            if eof || left == 0 {
                break;
            }
        }
        e.memory.extend(&written);
        if e.failures.is_empty() {
            let update = Update {
                pointer: d.pointer,
                status: CMPLT
                    | (d.length - left as u32)
                    | if sof { RXSOF } else { 0 }
                    | if eof { RXEOF } else { 0 },
                eof,
            };
            e.updates.push(update);
            if failures.is_empty() {
                e.done.extend(written);
            }
            e.failures = failures;
        }
        // Later descriptors may be on their way when an error comes back.
        if over {
            break;
        }
    }
    e
}

struct Memory {
    bytes: BTreeMap<u64, u8>,
    /// Bursts whose address is here: next word, words to come, whether one of them is at fault.
    bursts: VecDeque<(u64, usize, u64)>,
    /// Responses and when they may leave.
    replies: VecDeque<(u64, u64)>,
}

fn run(
    s: Shape,
    descriptors: &[Descriptor],
    beats: &[Beat],
    fault: Fault,
    t: &Timing,
    wanted: usize,
) -> Result<(Memory, Channel), TestCaseError> {
    let mut leaf = Leaf::new(s.module)?;
    let mut channel = Channel::new(
        s.bus,
        descriptors,
        t.offer.clone(),
        t.update.clone(),
        t.write_back,
    );
    let mut memory = Memory {
        bytes: BTreeMap::new(),
        bursts: VecDeque::new(),
        replies: VecDeque::new(),
    };
    let mut stream: VecDeque<&Beat> = beats.iter().collect();
    let (mut stream_valid, mut reply_valid) = (false, false);
    let mut quiet = 0;
    leaf.set("halted_i", true)?;
    leaf.reset()?;
    while quiet < 40 {
        let now = leaf.cycle();
        prop_assert!(now < 60_000, "stuck: {:?}", channel.updates);
        channel.drive(&mut leaf)?;
        leaf.set("awready_i", t.address.at(now))?;
        leaf.set("wready_i", t.data.at(now))?;
        // VALID once high stays so until the beat is taken.
        stream_valid |= !stream.is_empty() && t.stream.at(now);
        leaf.set("s_axis_tvalid_i", stream_valid)?;
        if let Some(beat) = stream.front().filter(|_| stream_valid) {
            leaf.set_bits("s_axis_tdata_i", &Bits::from_bytes(&beat.data))?;
            leaf.set("s_axis_tkeep_i", u64::MAX >> (64 - beat.kept))?;
            leaf.set("s_axis_tlast_i", beat.last)?;
        }
        reply_valid |= memory.replies.front().is_some_and(|reply| reply.1 <= now);
        leaf.set("bvalid_i", reply_valid)?;
        if let Some(&(response, _)) = memory.replies.front().filter(|_| reply_valid) {
            leaf.set("bresp_i", response)?;
        }
        leaf.eval()?;
        channel.sample(&leaf)?;
        let mut moved = false;
        if leaf.is("wvalid_o")? {
            let Some(&(address, left, mut response)) = memory.bursts.front() else {
                return Err(TestCaseError::fail("write data before its address"));
            };
            if leaf.is("wready_i")? {
                moved = true;
                let data = leaf.get_bits("wdata_o")?;
                let strobe = leaf.get_bits("wstrb_o")?.field(0, s.bus);
                for i in (0..s.bus).filter(|i| strobe >> i & 1 == 1) {
                    memory.bytes.insert(address + i as u64, data.bytes()[i]);
                }
                if let Some(fault) = fault.filter(|fault| fault.0 == address) {
                    response = fault.1;
                }
                prop_assert_eq!(
                    leaf.is("wlast_o")?,
                    left == 1,
                    "WLAST with {} words to come",
                    left
                );
                memory.bursts[0] = (address + s.bus as u64, left - 1, response);
                if left == 1 {
                    memory.bursts.pop_front();
                    memory.replies.push_back((response, now + 1 + t.latency));
                }
            }
        }
        if leaf.is("awvalid_o")? && leaf.is("awready_i")? {
            moved = true;
            let address = leaf.get("awaddr_o")?;
            let beats = check_burst(address, leaf.get("awlen_o")?, s.bus, s.longest_burst)?;
            memory.bursts.push_back((address, beats, 0));
        }
        if reply_valid && leaf.is("bready_o")? {
            memory.replies.pop_front();
            reply_valid = false;
        }
        if stream_valid && leaf.is("s_axis_tready_o")? {
            moved = true;
            stream.pop_front();
            stream_valid = false;
        }
        // Where the descriptors are not used up the channel waits for more stream, and is not idle.
        let ended = channel.ended(&leaf)? || (!channel.failed() && channel.updates.len() >= wanted);
        quiet = if ended && !moved { quiet + 1 } else { 0 };
        leaf.tick()?;
    }
    prop_assert!(
        memory.bursts.is_empty() && memory.replies.is_empty(),
        "halted or idle with writes under way"
    );
    Ok((memory, channel))
}

fn check(
    s: Shape,
    descriptors: &[Descriptor],
    packets: &[usize],
    fault: Option<(usize, u64, u64)>,
    t: &Timing,
) -> Result<(), TestCaseError> {
    let beats = beats(packets, s.bus);
    let fault = fault.map(|(n, word, response)| {
        let d = descriptors[n % descriptors.len()];
        let words = u64::from(d.length).div_ceil(s.bus as u64).max(1);
        (d.address + word % words * s.bus as u64, response)
    });
    let mut e = reference(descriptors, &beats, fault, s.bus);
    let fails = !e.failures.is_empty();
    let wanted = if fails || e.sg_error != 0 {
        usize::MAX
    } else {
        e.updates.len()
    };
    let (memory, channel) = run(s, descriptors, &beats, fault, t, wanted)?;

    if fails {
        prop_assert!(
            e.failures.contains(&channel.dma_error),
            "error {} of {:?}",
            channel.dma_error,
            e.failures
        );
        if let Some(update) = e.updates.last_mut() {
            update.status = CMPLT | (channel.dma_error as u32) << 28;
            update.eof = false;
        }
        for (address, byte) in &memory.bytes {
            prop_assert_eq!(Some(byte), e.memory.get(address), "byte at {:#x}", address);
        }
        for (address, byte) in &e.done {
            prop_assert_eq!(
                Some(byte),
                memory.bytes.get(address),
                "byte at {:#x}",
                address
            );
        }
    } else {
        prop_assert_eq!(channel.dma_error, 0);
        let bytes = memory.bytes.iter().zip(&e.memory);
        for (written, expected) in bytes {
            prop_assert_eq!(written, expected);
        }
        prop_assert_eq!(memory.bytes.len(), e.memory.len(), "bytes written");
    }
    prop_assert_eq!(channel.updates, e.updates);
    prop_assert_eq!((channel.sg_error, channel.marked), (e.sg_error, e.marked));
    Ok(())
}

/// Descriptors, packet lengths, a fault (descriptor, word, response), timing.
type Case = (
    Vec<Descriptor>,
    Vec<usize>,
    Option<(usize, u64, u64)>,
    Timing,
);

/// Buffers mostly of whole bus words, and packets of any length.
fn case(bus: usize) -> impl Strategy<Value = Case> {
    let word = bus as u32;
    let whole =
        (descriptors(bus, 12), prop::bool::weighted(0.8)).prop_map(move |(mut list, whole)| {
            if whole {
                list.iter_mut()
                    .for_each(|d| d.length = d.length.next_multiple_of(word));
            }
            list
        });
    let length = prop_oneof![3 => 1..12 * bus, 1 => 1usize..5000];
    let fault = prop::option::weighted(0.25, (0usize..12, any::<u64>(), 2u64..4));
    (whole, prop::collection::vec(length, 0..12), fault, timing())
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn bus_of_8_bytes((descriptors, packets, fault, timing) in case(8)) {
        check(NARROW, &descriptors, &packets, fault, &timing)?;
    }

    #[test]
    fn bus_of_16_bytes((descriptors, packets, fault, timing) in case(16)) {
        check(DEFAULT, &descriptors, &packets, fault, &timing)?;
    }

    #[test]
    fn bus_of_64_bytes((descriptors, packets, fault, timing) in case(64)) {
        check(WIDE, &descriptors, &packets, fault, &timing)?;
    }
}
