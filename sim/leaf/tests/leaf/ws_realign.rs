//! Beats in, runs of bytes from any position out.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf};

#[derive(Clone)]
struct Beat {
    data: Vec<u8>,
    keep: u64,
}

#[derive(Debug, Clone)]
struct Packet {
    beats: Vec<Beat>,
}

impl std::fmt::Debug for Beat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} keep {:#x}",
            Bits::from_bytes(&self.data),
            self.keep
        )
    }
}

impl Packet {
    /// Bytes of the packet in its first `words` beats: the last beat ends at the first byte that
    /// TKEEP leaves out.
    fn bytes(&self, words: usize, bus: usize) -> usize {
        let all = self.beats.len();
        let last = self.beats[all - 1].keep.trailing_ones() as usize;
        if words == all {
            (all - 1) * bus + last
        } else {
            words * bus
        }
    }

    /// Whether one of the first `words` beats breaks the rules of TKEEP.
    fn bad_keep(&self, words: usize, bus: usize) -> bool {
        let full = u64::MAX >> (64 - bus);
        self.beats[..words].iter().enumerate().any(|(i, beat)| {
            let last = i + 1 == self.beats.len();
            if last {
                beat.keep & beat.keep.wrapping_add(1) != 0
            } else {
                beat.keep != full
            }
        })
    }

    fn byte(&self, at: usize, bus: usize) -> u8 {
        self.beats[at / bus].data[at % bus]
    }
}

/// What the parser does in a cycle, as far as what is held allows it.
#[derive(Debug, Clone, Copy)]
enum Move {
    Wait,
    /// By so many of 256 parts of what is held, at least a byte.
    Take(u8),
    /// By the bytes of the output, where they are there.
    Extract,
    Word,
    All,
}

#[derive(Debug, Clone, Copy)]
struct Cycle {
    offer: bool,
    ready: bool,
    push: bool,
    step: Move,
}

fn cycle() -> impl Strategy<Value = Cycle> {
    let step = prop_oneof![
        2 => Just(Move::Wait),
        4 => any::<u8>().prop_map(Move::Take),
        4 => Just(Move::Extract),
        2 => Just(Move::Word),
        1 => Just(Move::All),
    ];
    (
        prop::bool::weighted(0.7),
        prop::bool::weighted(0.7),
        any::<bool>(),
        step,
    )
        .prop_map(|(offer, ready, push, step)| Cycle {
            offer,
            ready,
            push,
            step,
        })
}

/// Packets of full beats and a partial last one; now and then with a hole in TKEEP.
fn packets(bus: usize) -> impl Strategy<Value = Vec<Packet>> {
    let full = u64::MAX >> (64 - bus);
    let packet = (1usize..24).prop_flat_map(move |beats| {
        let data = prop::collection::vec(prop::collection::vec(any::<u8>(), bus), beats);
        let hole = prop::option::weighted(0.1, (0..beats, 1..bus));
        (data, 1..=bus, hole).prop_map(move |(data, last, hole)| {
            let mut beats: Vec<Beat> = data
                .into_iter()
                .map(|data| Beat { data, keep: full })
                .collect();
            let end = beats.len() - 1;
            beats[end].keep = full >> (bus - last);
            if let Some((beat, byte)) = hole {
                beats[beat].keep &= !(1 << byte);
            }
            Packet { beats }
        })
    });
    prop::collection::vec(packet, 1..4)
}

struct Out {
    bytes: Vec<u8>,
    user: u64,
}

fn check(
    module: &str,
    bus: usize,
    extract: usize,
    packets: &[Packet],
    cycles: &[Cycle],
) -> Result<(), TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    let (mut sent_packet, mut sent_beat) = (0, 0);
    let (mut current, mut position, mut seen_words) = (0, 0, 0);
    let mut starts = vec![None; packets.len()];
    let mut outputs: VecDeque<Out> = VecDeque::new();
    let mut pushed = 0u64;
    while current < packets.len() || !outputs.is_empty() {
        let now = leaf.cycle();
        prop_assert!(now < 20_000, "stuck in packet {} at {}", current, position);
        let c = cycles[now as usize % cycles.len()];

        // The stream.
        let beat = packets
            .get(sent_packet)
            .map(|packet| &packet.beats[sent_beat])
            .filter(|_| c.offer);
        let last = packets
            .get(sent_packet)
            .is_some_and(|packet| sent_beat + 1 == packet.beats.len());
        leaf.set("s_axis_tvalid", beat.is_some())?;
        if let Some(beat) = beat {
            leaf.set_bits("s_axis_tdata", &Bits::from_bytes(&beat.data))?;
            leaf.set("s_axis_tkeep", beat.keep)?;
            leaf.set("s_axis_tlast", last)?;
        }
        leaf.set("now_i", now)?;
        leaf.set("raw_ready_i", c.ready)?;
        for port in ["take_i", "word_i", "all_i", "next_i", "push_i"] {
            leaf.set(port, false)?;
        }
        leaf.eval()?;

        // What is held.
        let words = leaf.get("words_o")? as usize;
        let available = leaf.get("avail_o")? as usize;
        let ended = leaf.is("ended_o")?;
        if let Some(packet) = packets.get(current) {
            let accepted = match sent_packet == current {
                true => sent_beat,
                false => packet.beats.len(),
            };
            let within = position / bus + words;
            prop_assert!(
                within <= accepted && within >= seen_words,
                "{} words of {}",
                within,
                accepted
            );
            seen_words = within;
            let expected = packet.bytes(within, bus).saturating_sub(position);
            prop_assert_eq!(available, expected, "bytes held at {}", position);
            prop_assert_eq!(ended, within == packet.beats.len());
            prop_assert_eq!(leaf.is("bad_keep_o")?, packet.bad_keep(within, bus));
            prop_assert_eq!(leaf.is("partial_o")?, position % bus != 0);
            prop_assert_eq!(leaf.is("aligned_o")?, position % 64 == 0, "at {}", position);
            if within > 0 {
                prop_assert_eq!(Some(leaf.get("start_o")?), starts[current]);
            }
            if words > 0 {
                let word = &packet.beats[position / bus].data;
                prop_assert_eq!(leaf.get_bits("head_o")?, Bits::from_bytes(word));
            }
        } else {
            prop_assert_eq!((words, available), (0, 0));
        }

        // The move. A packet that is used up is left.
        let mut step = c.step;
        if ended && available == 0 {
            step = Move::All;
        }
        let take = match step {
            Move::Take(part) if available > 0 => (usize::from(part) * available / 256).max(1),
            Move::Extract if available >= extract || ended => available.min(extract),
            _ => 0,
        };
        let before = position;
        let mut next = false;
        if take > 0 {
            leaf.set("take_i", true)?;
            leaf.set("take_bytes_i", take as u64)?;
            position += take;
        } else if matches!(step, Move::Word) && words > 0 {
            leaf.set("word_i", true)?;
            position = (position / bus + 1) * bus;
        } else if matches!(step, Move::All) && current < packets.len() {
            next = ended;
            leaf.set("all_i", true)?;
            leaf.set("next_i", next)?;
            position = (position / bus + words) * bus;
        }

        // The output.
        if c.push && current < packets.len() && leaf.is("push_ready_o")? {
            pushed += 1;
            let user = pushed & 0xFF;
            leaf.set("push_i", true)?;
            leaf.set("user_i", user)?;
            let known = before..before + available.min(extract);
            let bytes = known.map(|at| packets[current].byte(at, bus)).collect();
            outputs.push_back(Out { bytes, user });
        }
        if c.ready && leaf.is("raw_valid_o")? {
            let Some(out) = outputs.pop_front() else {
                return Err(TestCaseError::fail("an output that nobody pushed"));
            };
            let raw = leaf.get_bits("raw_o")?;
            prop_assert_eq!(&raw.bytes()[..out.bytes.len()], &out.bytes[..]);
            prop_assert_eq!(leaf.get("raw_user_o")?, out.user);
        }
        if beat.is_some() && leaf.is("s_axis_tready")? {
            if sent_beat == 0 {
                starts[sent_packet] = Some(now);
            }
            sent_beat += 1;
            if last {
                (sent_packet, sent_beat) = (sent_packet + 1, 0);
            }
        }
        leaf.tick()?;
        if next {
            (current, position, seen_words) = (current + 1, 0, 0);
        }
    }
    Ok(())
}

/// A stream without pauses, taken as soon as the output's bytes are there: how many cycles TREADY
/// was low before the last beat.
fn waits(module: &str, bus: usize, extract: usize) -> Result<usize, TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    leaf.set("s_axis_tkeep", u64::MAX >> (64 - bus))?;
    leaf.set("s_axis_tvalid", true)?;
    leaf.set("raw_ready_i", true)?;
    let mut waits = 0;
    for _ in 0..500 {
        leaf.eval()?;
        waits += usize::from(!leaf.is("s_axis_tready")?);
        let take = leaf.get("avail_o")? as usize >= extract;
        leaf.set("take_i", take)?;
        leaf.set("push_i", take)?;
        leaf.set("take_bytes_i", extract as u64)?;
        leaf.tick()?;
    }
    Ok(waits)
}

fn moves() -> impl Strategy<Value = Vec<Cycle>> {
    prop::collection::vec(cycle(), 1..40).prop_map(|mut cycles| {
        // Something moves, whatever the others do.
        cycles.push(Cycle {
            offer: true,
            ready: true,
            push: false,
            step: Move::Extract,
        });
        cycles
    })
}

proptest! {
    #[test]
    fn bus_of_8_bytes(packets in packets(8), cycles in moves()) {
        check("ws_realign_8", 8, 34, &packets, &cycles)?;
    }

    #[test]
    fn bus_of_16_bytes(packets in packets(16), cycles in moves()) {
        check("ws_realign_16", 16, 34, &packets, &cycles)?;
    }

    #[test]
    fn bus_of_64_bytes(packets in packets(64), cycles in moves()) {
        check("ws_realign_64", 64, 96, &packets, &cycles)?;
    }
}

#[test]
fn a_beat_a_cycle() -> Result<(), TestCaseError> {
    assert_eq!(waits("ws_realign_8", 8, 34)?, 0);
    assert_eq!(waits("ws_realign_16", 16, 34)?, 0);
    assert_eq!(waits("ws_realign_64", 64, 96)?, 0);
    Ok(())
}
