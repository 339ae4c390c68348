//! The ten block decoders, through the module that picks a lane's share of a group.

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf};

use crate::{
    formats::{FORMATS, Format},
    fp16::{any_bits, fixed},
};

/// A lane of the kernel.
#[derive(Debug, Clone, Copy)]
struct Lane {
    module: &'static str,
    /// Bytes of a piece, as the realignment takes them out of the stream.
    extract: usize,
    lanes: usize,
    lane: usize,
}

impl Lane {
    /// Where the lane's block lies in the group, and its first weight in that block.
    fn share(&self, format: &Format, step: usize) -> (usize, usize) {
        if format.weights() == 256 {
            return (0, 32 * (step * self.lanes + self.lane));
        }
        // A piece has whole blocks from its start on, as many as the lanes halve into.
        let in_piece = [4, 2, 1]
            .into_iter()
            .find(|n| *n <= self.lanes && n * format.bytes <= self.extract)
            .unwrap_or(1);
        let piece = self.lane / in_piece;
        let block = self.lane % in_piece;
        (piece * self.extract + block * format.bytes, 0)
    }
}

/// A group of random bytes whose fp16 fields, where the lane looks, are often odd numbers.
fn check(
    lane: Lane,
    format: Format,
    mut group: Vec<u8>,
    step: usize,
    scales: [u16; 2],
) -> Result<(), TestCaseError> {
    let (at, first) = lane.share(&format, step);
    let block = &mut group[at..at + format.bytes];
    for (&offset, scale) in format.scales.iter().zip(scales) {
        block[offset..offset + 2].copy_from_slice(&scale.to_le_bytes());
    }
    let block = block.to_vec();

    let mut leaf = Leaf::new(lane.module)?;
    group.resize(leaf.width("group_i")? / 8, 0);
    leaf.set_bits("group_i", &Bits::from_bytes(&group))?;
    leaf.set("type_i", format.number)?;
    leaf.set("step_i", step as u64)?;
    leaf.eval()?;

    // dec_t: 32 q, d, m, and for each half of 16 a scale and a minimum.
    let dec = leaf.get_bits("dec_o")?;
    let d = fixed(dec.field(256, 16) as u16);
    let m = fixed(dec.field(272, 16) as u16);
    for i in 0..32 {
        let (scale, minimum) = match i / 16 {
            0 => (dec.signed(288, 8), dec.field(304, 6) as i128),
            _ => (dec.signed(296, 8), dec.field(310, 6) as i128),
        };
        let decoded = dec.signed(8 * i, 8) * scale * d + minimum * m;

        let (of_d, of_m) = (format.weight)(&block, first + i);
        let field = |n: usize| {
            format
                .scales
                .get(n)
                .map_or(0, |&o| fixed(u16::from_le_bytes([block[o], block[o + 1]])))
        };
        let expected = of_d * field(0) + of_m * field(1);
        prop_assert_eq!(decoded, expected, "{} weight {}", format.name, first + i);
    }
    Ok(())
}

fn inputs(steps: usize) -> impl Strategy<Value = (Format, Vec<u8>, usize, [u16; 2])> {
    (
        prop::sample::select(FORMATS.to_vec()),
        prop::collection::vec(any::<u8>(), 288),
        0..steps,
        [any_bits(), any_bits()],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_only_lane((format, group, step, scales) in inputs(8)) {
        let lane = Lane { module: "ws_decode_lane0of1", extract: 34, lanes: 1, lane: 0 };
        check(lane, format, group, step, scales)?;
    }

    #[test]
    fn second_of_two_lanes((format, group, step, scales) in inputs(4)) {
        let lane = Lane { module: "ws_decode_lane1of2", extract: 48, lanes: 2, lane: 1 };
        check(lane, format, group, step, scales)?;
    }

    #[test]
    fn last_of_four_lanes((format, group, step, scales) in inputs(2)) {
        let lane = Lane { module: "ws_decode_lane3of4", extract: 96, lanes: 4, lane: 3 };
        check(lane, format, group, step, scales)?;
    }
}

/// Each weight of each format depends on its own bits: a group of one bit set, for every bit.
#[test]
fn every_bit() {
    let lane = Lane {
        module: "ws_decode_lane0of1",
        extract: 34,
        lanes: 1,
        lane: 0,
    };
    for format in FORMATS {
        let steps = if format.weights() == 256 { 8 } else { 1 };
        for bit in 0..8 * format.bytes {
            for step in 0..steps {
                let mut group = vec![0; 34 * 7];
                group[bit / 8] |= 1 << (bit % 8);
                check(lane, format, group, step, [0x3C00; 2]).unwrap();
            }
        }
    }
}
