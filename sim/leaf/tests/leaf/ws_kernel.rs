//! The whole kernel on its streams: whatever packets come, each gets its answer, nothing hangs,
//! and the next good job is right; after a reset in the middle as well.

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

use crate::{
    axi_lite::{Around, Delays, Write, transfer},
    cases,
    channel::{Pattern, pattern},
    jobs::{Beat, Packet, Reference, Shape, beats, full, packet, spec},
};

const CTRL: u32 = 0x18;
const SOFT_RESET: u32 = 1;
/// Cycles without a beat after which the kernel counts as stuck, or as done.
const PATIENCE: u64 = 2000;
const QUIET: u64 = 200;

const fn shape(module: &'static str, bus: usize) -> Shape {
    Shape {
        module,
        bus,
        max_k: 512,
        max_cols: 3,
    }
}

#[derive(Debug, Clone)]
struct Timing {
    input: Pattern,
    output: Pattern,
}

fn timing() -> impl Strategy<Value = Timing> {
    (pattern(), pattern()).prop_map(|(input, output)| Timing { input, output })
}

/// Both streams: beats on their way in, packets that have come out.
struct Streams {
    bus: usize,
    timing: Timing,
    input: Vec<Beat>,
    taken: usize,
    in_valid: bool,
    packets: Vec<Vec<u8>>,
    packet: Vec<u8>,
    /// A beat that waits: data, TKEEP, TLAST.
    held: Option<(Bits, u64, bool)>,
    /// During a reset a beat that waits may be withdrawn.
    in_reset: bool,
    last_move: u64,
}

impl Around for Streams {
    fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
        let now = leaf.cycle();
        let next = self.input.get(self.taken);
        // VALID once high stays so until the beat is taken.
        self.in_valid |= next.is_some() && self.timing.input.at(now);
        leaf.set("s_axis_tvalid", self.in_valid)?;
        if let Some(beat) = next.filter(|_| self.in_valid) {
            leaf.set_bits("s_axis_tdata", &Bits::from_bytes(&beat.data))?;
            leaf.set("s_axis_tkeep", beat.keep)?;
            leaf.set("s_axis_tlast", beat.last)?;
        }
        leaf.set("m_axis_tready", self.timing.output.at(now))
    }

    fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError> {
        if self.in_valid && leaf.is("s_axis_tready")? {
            self.taken += 1;
            self.in_valid = false;
            self.last_move = leaf.cycle();
        }
        let valid = leaf.is("m_axis_tvalid")?;
        let beat = (
            leaf.get_bits("m_axis_tdata")?,
            leaf.get("m_axis_tkeep")?,
            leaf.is("m_axis_tlast")?,
        );
        if let Some(held) = self.held.take().filter(|_| !self.in_reset) {
            prop_assert!(valid, "TVALID fell before TREADY");
            prop_assert!(held == beat, "a beat changed before TREADY");
        }
        if !valid {
            return Ok(());
        }
        if !leaf.is("m_axis_tready")? {
            self.held = Some(beat);
            return Ok(());
        }
        self.last_move = leaf.cycle();
        let (data, keep, last) = beat;
        prop_assert!(keep & (keep + 1) == 0 && keep != 0, "TKEEP is {:#x}", keep);
        prop_assert!(last || keep == full(self.bus), "a hole in TKEEP");
        let kept = keep.count_ones() as usize;
        self.packet.extend_from_slice(&data.bytes()[..kept]);
        if last {
            self.packets.push(std::mem::take(&mut self.packet));
        }
        Ok(())
    }
}

struct Bench {
    leaf: Leaf,
    streams: Streams,
}

impl Bench {
    fn new(shape: Shape, timing: Timing) -> Result<Bench, TestCaseError> {
        let mut leaf = Leaf::new(shape.module)?;
        leaf.reset()?;
        let streams = Streams {
            bus: shape.bus,
            timing,
            input: Vec::new(),
            taken: 0,
            in_valid: false,
            packets: Vec::new(),
            packet: Vec::new(),
            held: None,
            in_reset: false,
            last_move: leaf.cycle(),
        };
        Ok(Bench { leaf, streams })
    }

    fn cycle(&mut self) -> Result<(), TestCaseError> {
        self.streams.drive(&mut self.leaf)?;
        self.leaf.eval()?;
        self.streams.sample(&self.leaf)?;
        Ok(self.leaf.tick()?)
    }

    fn queue(&mut self, beats: &[Beat]) {
        self.streams.input.extend_from_slice(beats);
        self.streams.last_move = self.leaf.cycle();
    }

    fn all_taken(&self) -> bool {
        self.streams.taken == self.streams.input.len()
    }

    /// Runs until all is taken and nothing comes any more; returns the packets that came.
    fn finish(&mut self, answers: usize) -> Result<Vec<Vec<u8>>, TestCaseError> {
        loop {
            let idle = self.leaf.cycle() - self.streams.last_move;
            let done = self.all_taken() && self.streams.packets.len() >= answers;
            if done && idle > QUIET {
                break;
            }
            prop_assert!(
                idle < PATIENCE,
                "stuck: {} of {} beats taken, {} of {} answers",
                self.streams.taken,
                self.streams.input.len(),
                self.streams.packets.len(),
                answers
            );
            self.cycle()?;
        }
        prop_assert!(self.streams.packet.is_empty(), "an answer without an end");
        Ok(std::mem::take(&mut self.streams.packets))
    }

    fn hardware_reset(&mut self, cycles: u64) -> Result<(), TestCaseError> {
        self.streams.in_reset = true;
        self.leaf.set("aresetn", false)?;
        // A source is in reset as well, and has no beat then.
        self.leaf.set("s_axis_tvalid", false)?;
        self.streams.in_valid = false;
        for _ in 0..cycles + 2 {
            self.leaf.tick()?;
        }
        self.leaf.eval()?;
        prop_assert!(!self.leaf.is("m_axis_tvalid")?, "TVALID in reset");
        self.leaf.set("aresetn", true)?;
        self.streams.held = None;
        self.streams.in_reset = false;
        Ok(())
    }

    /// A soft reset while the streams go on.
    fn soft_reset(&mut self, delays: Delays) -> Result<(), TestCaseError> {
        let begin = Write {
            address: CTRL,
            data: SOFT_RESET,
            strobe: 0xF,
        };
        let mut reads = 0;
        self.streams.in_reset = true;
        let access = |bench: &mut Bench, write, read| {
            transfer(
                &mut bench.leaf,
                "s_axi_ctrl",
                write,
                read,
                delays,
                &mut bench.streams,
            )
        };
        access(self, Some(begin), None)?;
        while access(self, None, Some(CTRL))?
            .1
            .is_some_and(|reply| reply.data & SOFT_RESET != 0)
        {
            reads += 1;
            prop_assert!(reads < 20, "the soft reset does not end");
        }
        self.streams.in_reset = false;
        Ok(())
    }
}

/// Sends packets and a good job, and compares every answer.
fn answers(
    shape: Shape,
    packets: &[Packet],
    good: Packet,
    timing: &Timing,
) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(shape, timing.clone())?;
    let mut reference = Reference::new(shape);
    let mut stream = beats(shape, packets);
    stream.extend(beats(shape, &[good]));
    let expected = reference.answers(&stream);
    prop_assert!(expected.last().is_some_and(|answer| answer.is_good()));
    bench.queue(&stream);
    let got = bench.finish(expected.len())?;
    prop_assert_eq!(got.len(), expected.len(), "answers");
    for (n, (expected, got)) in expected.iter().zip(&got).enumerate() {
        expected
            .check(got)
            .map_err(|error| TestCaseError::fail(format!("packet {n}: {error}")))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Reset {
    /// `aresetn` for so many cycles.
    Hardware(u64),
    Soft(Delays),
}

fn reset() -> impl Strategy<Value = (u64, Reset)> {
    let reset = prop_oneof![
        (1u64..5).prop_map(Reset::Hardware),
        crate::axi_lite::delays().prop_map(Reset::Soft),
    ];
    (prop_oneof![0u64..100, 0u64..2000], reset)
}

/// Sends packets, resets in the middle of them, lets what is left of the packet go in, and then
/// sends a good job.
fn reset_in_the_middle(
    shape: Shape,
    packets: &[Packet],
    good: Packet,
    timing: &Timing,
    resets: &[(u64, Reset)],
) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(shape, timing.clone())?;
    for &(when, reset) in resets {
        bench.queue(&beats(shape, packets));
        for _ in 0..when {
            bench.cycle()?;
        }
        match reset {
            Reset::Hardware(cycles) => bench.hardware_reset(cycles)?,
            Reset::Soft(delays) => bench.soft_reset(delays)?,
        }
    }
    // Packets whose beginning is lost are answered as malformed ones, and answers that were on
    // their way have no end: how many come is open, but what is sent is taken.
    bench.streams.packet.clear();
    bench.finish(0)?;
    bench.streams.packet.clear();

    let stream = beats(shape, &[good]);
    let expected = Reference::new(shape).answers(&stream);
    bench.queue(&stream);
    let got = bench.finish(1)?;
    prop_assert_eq!(got.len(), 1, "answers");
    expected[0].check(&got[0])
}

/// One packet that is a good job.
fn good(shape: Shape) -> impl Strategy<Value = Packet> {
    spec(shape).prop_map(|spec| Packet::Job {
        spec,
        faults: Vec::new(),
    })
}

macro_rules! configuration {
    ($name:ident, $bus:expr) => {
        mod $name {
            use super::*;

            const SHAPE: Shape = shape(concat!("ws_kernel_", stringify!($name)), $bus);

            proptest! {
                #![proptest_config(cases(60))]

                #[test]
                fn every_packet_is_answered(
                    packets in prop::collection::vec(packet(SHAPE), 0..6),
                    good in good(SHAPE),
                    timing in timing(),
                ) {
                    answers(SHAPE, &packets, good, &timing)?;
                }

                #[test]
                fn a_reset_at_any_time(
                    packets in prop::collection::vec(packet(SHAPE), 1..4),
                    good in good(SHAPE),
                    timing in timing(),
                    resets in prop::collection::vec(reset(), 1..3),
                ) {
                    reset_in_the_middle(SHAPE, &packets, good, &timing, &resets)?;
                }
            }
        }
    };
}

configuration!(w64b1, 8);
configuration!(w128b1, 16);
configuration!(w128b2, 16);
configuration!(w256b2, 32);
configuration!(w512b4, 64);
