//! Result words into bus words: packing, TKEEP, TLAST, backpressure.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Beat {
    /// The bytes that TKEEP keeps, from byte 0 on.
    kept: Vec<u8>,
    last: bool,
}

fn reference(packets: &[Vec<u32>], bus: usize) -> Vec<Beat> {
    let mut beats = Vec::new();
    for packet in packets {
        let bytes: Vec<u8> = packet.iter().flat_map(|word| word.to_le_bytes()).collect();
        let chunks = bytes.chunks(bus);
        let count = chunks.len();
        beats.extend(chunks.enumerate().map(|(i, chunk)| Beat {
            kept: chunk.to_vec(),
            last: i + 1 == count,
        }));
    }
    beats
}

/// The bytes of a beat that are kept; an error where TKEEP is not contiguous from byte 0.
fn kept(data: &Bits, keep: &Bits) -> Result<Vec<u8>, TestCaseError> {
    let bytes = data.bytes().len();
    let keep = keep.field(0, bytes);
    prop_assert!(keep & (keep + 1) == 0, "TKEEP is {:#b}", keep);
    Ok(data.bytes()[..keep.count_ones() as usize].to_vec())
}

/// Sends the packets' words, one a cycle where `offer` says so and the buffer has room, takes beats
/// where `ready` says so, and gives the beats and the cycles it took.
fn run(
    module: &str,
    packets: &[Vec<u32>],
    depth: usize,
    offer: &[bool],
    ready: &[bool],
) -> Result<(Vec<Beat>, usize), TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    let mut words: VecDeque<(u32, bool)> = packets
        .iter()
        .flat_map(|p| {
            p.iter()
                .enumerate()
                .map(move |(i, &word)| (word, i + 1 == p.len()))
        })
        .collect();
    let wanted = packets.len();
    let (mut beats, mut held, mut packets_out) = (Vec::new(), 0, 0);
    for cycle in 0.. {
        let next = words
            .front()
            .copied()
            .filter(|_| held < depth && offer[cycle % offer.len()]);
        leaf.set("valid_i", next.is_some())?;
        if let Some((word, last)) = next {
            words.pop_front();
            held += 1;
            leaf.set("word_i", word)?;
            leaf.set("last_i", last)?;
        }
        let ready = ready[cycle % ready.len()];
        leaf.set("m_axis_tready", ready)?;
        leaf.eval()?;
        if leaf.is("pop_o")? {
            held -= 1;
        }
        if ready && leaf.is("m_axis_tvalid")? {
            let kept = kept(
                &leaf.get_bits("m_axis_tdata")?,
                &leaf.get_bits("m_axis_tkeep")?,
            )?;
            let last = leaf.is("m_axis_tlast")?;
            packets_out += usize::from(last);
            beats.push(Beat { kept, last });
        }
        if packets_out == wanted {
            prop_assert_eq!(held, 0, "words counted as held after all have left");
            return Ok((beats, cycle));
        }
        prop_assert!(cycle < 20_000, "stuck after {:?}", beats);
        leaf.tick()?;
    }
    unreachable!()
}

fn packets() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(any::<u32>(), 1..70), 1..5)
}

/// A pattern of cycles in which one side moves; at least one does.
fn moves() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), 1..12).prop_map(|mut pattern| {
        pattern[0] = true;
        pattern
    })
}

proptest! {
    #[test]
    fn bus_of_8_bytes(packets in packets(), offer in moves(), ready in moves()) {
        let (beats, _) = run("ws_result_8", &packets, 8, &offer, &ready)?;
        prop_assert_eq!(beats, reference(&packets, 8));
    }

    #[test]
    fn bus_of_16_bytes(packets in packets(), offer in moves(), ready in moves()) {
        let (beats, _) = run("ws_result_16", &packets, 64, &offer, &ready)?;
        prop_assert_eq!(beats, reference(&packets, 16));
    }

    #[test]
    fn bus_of_64_bytes(packets in packets(), offer in moves(), ready in moves()) {
        let (beats, _) = run("ws_result_64", &packets, 16, &offer, &ready)?;
        prop_assert_eq!(beats, reference(&packets, 64));
    }

    /// A word a cycle, and the last beat two cycles after the last word.
    #[test]
    fn a_word_a_cycle(packets in packets()) {
        let (_, cycles) = run("ws_result_16", &packets, 64, &[true], &[true])?;
        let words: usize = packets.iter().map(Vec::len).sum();
        prop_assert_eq!(cycles, words - 1 + 2);
    }
}

/// The module's own assertion stops a writer that does not count its words.
#[test]
fn a_word_too_many_is_seen() -> Result<(), LeafError> {
    let mut leaf = Leaf::new("ws_result_8")?;
    leaf.reset()?;
    leaf.set("valid_i", true)?;
    let error = (0..20).find_map(|_| leaf.tick().err());
    assert!(
        matches!(error, Some(LeafError::Stopped { .. })),
        "{error:?}"
    );
    Ok(())
}
