//! Random descriptor chains through the DMA engine and back: every byte of the memory is what it
//! should be, in buffers, around them, and in the descriptors.

mod rig;

use proptest::prelude::*;
use rig::*;
use weightstream_sim::SimOptions;

const BUS: usize = 16;
const MEMORY: usize = 256 << 10;
const MM2S_DESCS: usize = 0;
const S2MM_DESCS: usize = 0x4000;
const BUFFERS: usize = 0x8000;

/// A packet: the lengths of its pieces in memory, and of the buffers that take it.
#[derive(Debug, Clone)]
struct Packet {
    from: Vec<usize>,
    to: Vec<usize>,
}

fn words(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![1..9usize, 1..most].prop_map(|n| n * BUS)
}

fn packet() -> impl Strategy<Value = Packet> {
    let from = (
        prop::collection::vec(words(300), 0..4),
        prop_oneof![1..40usize, 1..6000usize],
    );
    (from, prop::collection::vec(words(200), 0..4), 0..3usize).prop_map(
        |((mut from, last), cuts, slack)| {
            from.push(last);
            let mut left: usize = from.iter().sum();
            let mut to = Vec::new();
            for cut in cuts {
                if cut < left {
                    to.push(cut);
                    left -= cut;
                }
            }
            to.push(left + [0, 1, 5000][slack]);
            Packet { from, to }
        },
    )
}

fn options() -> impl Strategy<Value = SimOptions> {
    let chance = prop_oneof![Just(0.0), Just(0.1), Just(0.6)];
    let bandwidth = prop_oneof![Just(None), Just(Some((1, 2))), Just(Some((3, 7)))];
    let refresh = prop_oneof![Just(None), Just(Some((200, 30)))];
    (1..90u32, 1..17u32, chance, bandwidth, refresh, any::<u64>()).prop_map(
        |(latency, max_outstanding, chance, bandwidth, refresh, seed)| SimOptions {
            latency,
            max_outstanding,
            bandwidth,
            refresh,
            watchdog: 20_000,
            seed,
            ..SimOptions::default().stall_all(chance)
        },
    )
}

/// Lays buffers into memory with gaps in between, none on a round address.
struct Layout {
    at: usize,
}

impl Layout {
    fn take(&mut self, length: usize) -> usize {
        let at = self.at;
        self.at = (at + length).next_multiple_of(BUS) + BUS * (1 + length % 5);
        at
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_in_its_place(
        packets in prop::collection::vec(packet(), 1..6),
        options in options(),
        stalls in prop_oneof![Just(0u32), Just(0x40_40_00), Just(0xC0_00_00), Just(0x00_C0_00)],
        tails in 1..4usize,
        s2mm_late in any::<bool>(),
    ) {
        let mut rig = Rig::new("loop128", MEMORY, &options);
        let mut layout = Layout { at: BUFFERS + 3 * BUS };
        let mut expected = rig.arena.bytes().to_vec();
        let mut set = |rig: &mut Rig, at: usize, next: usize, buffer: usize, control: u32, status: u32| {
            rig.put_desc(at, next, BASE + buffer as u64, control);
            let desc = rig.arena.bytes()[at..at + 0x20].to_vec();
            expected[at..at + 0x20].copy_from_slice(&desc);
            expected[at + 0x1C..at + 0x20].copy_from_slice(&status.to_le_bytes());
        };

        // MM2S: descriptors lie in a row, but every second one is skipped.
        let mut data = Vec::new();
        let mut mm2s = Vec::new();
        for packet in &packets {
            let mut bytes = Vec::new();
            for (i, &length) in packet.from.iter().enumerate() {
                let (at, buffer) = (MM2S_DESCS + mm2s.len() * 0x80, layout.take(length));
                let last = i + 1 == packet.from.len();
                let control = length as u32 | if i == 0 { SOF } else { 0 } | if last { EOF } else { 0 };
                set(&mut rig, at, at + 0x80, buffer, control, length as u32 | CMPLT);
                bytes.extend_from_slice(&rig.arena.bytes()[buffer..buffer + length]);
                mm2s.push(at);
            }
            data.push(bytes);
        }
        // S2MM: descriptors lie in a row, last first.
        let count: usize = packets.iter().map(|p| p.to.len()).sum();
        let mut s2mm = Vec::new();
        let mut results = Vec::new();
        for (packet, bytes) in packets.iter().zip(&data) {
            let mut rest = &bytes[..];
            for (i, &length) in packet.to.iter().enumerate() {
                let at = S2MM_DESCS + (count - 1 - s2mm.len()) * 0x40;
                let buffer = layout.take(length);
                let (now, later) = rest.split_at(length.min(rest.len()));
                rest = later;
                let status = now.len() as u32
                    | if i == 0 { SOF } else { 0 }
                    | if rest.is_empty() { EOF } else { 0 }
                    | CMPLT;
                set(&mut rig, at, at.wrapping_sub(0x40), buffer, length as u32, status);
                results.push((buffer, now));
                s2mm.push(at);
            }
            assert!(rest.is_empty());
        }
        prop_assume!(layout.at < MEMORY);
        for (buffer, bytes) in &results {
            expected[*buffer..buffer + bytes.len()].copy_from_slice(bytes);
        }

        rig.sim.write32(LOOP, stalls).unwrap();
        // The tail moves on in steps, while the engine runs.
        let mut channels = [(MM2S, &mm2s), (S2MM, &s2mm)];
        if s2mm_late {
            channels.reverse();
        }
        for (channel, descs) in channels {
            rig.start(channel, descs[0]);
        }
        for step in 1..=tails {
            for (channel, descs) in channels {
                let (old, new) = (descs.len() * (step - 1) / tails, descs.len() * step / tails);
                if new != old {
                    rig.tail(channel, descs[new - 1]);
                }
            }
            rig.sim.run(step as u64 * 100).unwrap();
        }
        rig.run_until(2_000_000, |rig| {
            (rig.read(S2MM, DMASR) & rig.read(MM2S, DMASR) & IDLE) != 0
        })
        .unwrap();
        for channel in [MM2S, S2MM] {
            prop_assert_eq!(rig.read(channel, DMASR) & (ERRORS | HALTED | IOC), IOC);
        }
        prop_assert_eq!(rig.read(MM2S, CURDESC), (BASE as usize + mm2s[mm2s.len() - 1]) as u32);
        prop_assert_eq!(rig.read(S2MM, CURDESC), (BASE as usize + s2mm[s2mm.len() - 1]) as u32);
        if let Some(at) = expected.iter().zip(rig.arena.bytes().iter()).position(|(a, b)| a != b) {
            prop_assert!(false, "memory differs at offset {at:#x}");
        }
    }

    /// A reset at any time ends, nothing is written after it, and the engine then works as new.
    #[test]
    fn a_reset_at_any_time(
        when in 0..1500u64,
        options in options(),
        stalls in prop_oneof![Just(0u32), Just(0x40_40_00), Just(0x00_00_01), Just(0x00_00_02)],
        by in prop_oneof![Just(MM2S), Just(S2MM)],
    ) {
        let mut rig = Rig::new("loop128", MEMORY, &options);
        let (from, to, length) = (0x1_0000, 0x2_0000, 20_000u32);
        let chain = |rig: &mut Rig| {
            for i in 0..4 {
                let at = i * 0x40;
                let flags = [SOF, EOF, SOF, EOF][i];
                rig.put_desc(at, (at + 0x40) % 0x100, BASE + (from + i * 0x10) as u64, 4992 | flags);
                let at = S2MM_DESCS + i * 0x40;
                rig.put_desc(at, at + 0x40, BASE + (to + i * 0x4000) as u64, length);
            }
            rig.start(S2MM, S2MM_DESCS);
            rig.tail(S2MM, S2MM_DESCS + 0xC0);
            rig.start(MM2S, 0);
            rig.tail(MM2S, 0xC0);
        };
        rig.sim.write32(LOOP, stalls).unwrap();
        chain(&mut rig);
        rig.sim.run(when).unwrap();
        rig.write(by, DMACR, RESET | RS);
        rig.run_until(100_000, |rig| rig.read(MM2S, DMACR) & RESET == 0).unwrap();
        for channel in [MM2S, S2MM] {
            prop_assert_eq!(rig.read(channel, DMACR), 0x0001_0002);
            prop_assert_eq!(rig.read(channel, DMASR), 0x0001_0009);
        }
        prop_assert!(!rig.sim.lines().any());
        let before = rig.arena.bytes().to_vec();
        rig.sim.run(1000).unwrap();
        prop_assert!(before == rig.arena.bytes(), "something was written after the reset");

        // The loop forgets what it held, as a kernel does in its own reset.
        rig.sim.write32(LOOP, 4).unwrap();
        rig.sim.write32(LOOP, 0).unwrap();
        let data = rig.arena.bytes()[from..from + 20_000].to_vec();
        chain(&mut rig);
        rig.run_until(100_000, |rig| rig.status(S2MM_DESCS + 0x40) & CMPLT != 0).unwrap();
        for packet in 0..2 {
            let (a, b) = (packet * 0x20, packet * 0x20 + 0x10);
            let bytes = [&data[a..a + 4992], &data[b..b + 4992]].concat();
            let to = to + packet * 0x4000;
            prop_assert!(rig.arena.bytes()[to..to + 9984] == bytes[..]);
            prop_assert_eq!(rig.status(S2MM_DESCS + packet * 0x40), 9984 | SOF | EOF | CMPLT);
        }
    }
}
