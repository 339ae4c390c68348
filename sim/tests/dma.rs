//! The DMA engine through the whole top level, with a loop in place of the kernel.

mod rig;

use rig::*;
use weightstream_sim::{Lines, SimOptions};

#[test]
fn registers_have_their_reset_values() {
    let mut rig = Rig::new("loop128", 4096, &SimOptions::default());
    for channel in [MM2S, S2MM] {
        assert_eq!(rig.read(channel, DMACR), 0x0001_0002);
        assert_eq!(rig.read(channel, DMASR), 0x0001_0009);
        for register in [CURDESC, CURDESC + 4, TAILDESC, TAILDESC + 4] {
            assert_eq!(rig.read(channel, register), 0);
        }
    }
    // No register, and no window.
    for address in [0x18, 0x2C, 0x48, 0x800, 0x2000, 0xF000] {
        rig.sim.write32(address, 0xFFFF_FFFF).unwrap();
        assert_eq!(rig.sim.read32(address).unwrap(), 0, "{address:#x}");
    }
}

#[test]
fn a_packet_goes_round() {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    let (from, to, len) = (0x1_0000, 0x8_0000, 100_000);
    rig.put_desc(0, 0x40, BASE + from as u64, len as u32 | SOF | EOF);
    rig.put_desc(0x1000, 0x1040, BASE + to as u64, 200_000);
    let data = rig.arena.bytes()[from..from + len].to_vec();
    let around = rig.arena.bytes()[to + len..to + len + 64].to_vec();
    rig.start(S2MM, 0x1000);
    rig.tail(S2MM, 0x1000);
    rig.start(MM2S, 0);
    rig.tail(MM2S, 0);
    let begin = rig.sim.now();
    let s2mm = Lines {
        s2mm: true,
        ..Lines::default()
    };
    let lines = rig.sim.run_until_irq(s2mm, 100_000).unwrap();
    let cycles = rig.sim.now() - begin;
    assert!(lines.mm2s && lines.s2mm);
    assert_eq!(&rig.arena.bytes()[to..to + len], &data[..]);
    assert_eq!(&rig.arena.bytes()[to + len..to + len + 64], &around[..]);
    assert_eq!(rig.status(0), len as u32 | CMPLT);
    assert_eq!(rig.status(0x1000), len as u32 | SOF | EOF | CMPLT);
    for channel in [MM2S, S2MM] {
        assert_eq!(rig.read(channel, DMASR), 0x0001_0008 | IOC | IDLE);
    }
    println!("{} beats in {cycles} cycles", len / 16);
}

/// Descriptors of `count` packets of 64 bytes each, in both rings, and both channels started.
fn small_packets(rig: &mut Rig, count: usize, control: u32) {
    for i in 0..count {
        let (at, buffer) = (i * 0x40, 0x1_0000 + i * 0x40);
        rig.put_desc(at, at + 0x40, BASE + buffer as u64, 64 | SOF | EOF);
        let (at, buffer) = (0x4000 + i * 0x40, 0x2_0000 + i * 0x40);
        rig.put_desc(at, at + 0x40, BASE + buffer as u64, 64);
    }
    rig.start_with(S2MM, 0x4000, control);
    rig.start_with(MM2S, 0, RS | 1 << 16);
}

#[test]
fn interrupts_are_coalesced_by_count() {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    small_packets(&mut rig, 7, RS | IOC | 3 << 16);
    assert_eq!(rig.read(S2MM, DMASR) >> 16, 3);
    rig.tail(S2MM, 0x4000 + 6 * 0x40);
    for (packets, left) in [(1, 2), (2, 1), (3, 3), (5, 1), (6, 3), (7, 2)] {
        rig.tail(MM2S, (packets - 1) * 0x40);
        rig.sim.run(2000).unwrap();
        let status = rig.read(S2MM, DMASR);
        assert_eq!(status >> 16, left, "{packets} packets");
        let event = packets == 3 || packets == 5 || packets == 6;
        // The fifth packet is not an event, but the third's was not cleared before it.
        assert_eq!(status & IOC != 0, event, "{packets} packets");
        assert_eq!(rig.sim.lines().s2mm, event);
        if packets == 5 {
            // Other bits, and zeros, clear nothing.
            rig.write(S2MM, DMASR, DLY | ERR);
            assert_eq!(rig.read(S2MM, DMASR) & IOC, IOC);
        }
        if packets != 3 {
            rig.write(S2MM, DMASR, IOC);
            rig.sim.run(4).unwrap();
            assert!(!rig.sim.lines().s2mm);
        }
    }
    // The other channel's events are its own, and its line stays low without the enable bit.
    assert_eq!(rig.read(MM2S, DMASR) & IOC, IOC);
    assert!(!rig.sim.lines().mm2s);
}

#[test]
fn interrupts_are_coalesced_by_time() {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    small_packets(&mut rig, 2, RS | DLY | 200 << 16 | 4 << 24);
    rig.tail(S2MM, 0x4040);
    rig.tail(MM2S, 0x40);
    rig.run_until(2000, |rig| rig.read(S2MM, DMASR) & IDLE != 0)
        .unwrap();
    let done = rig.sim.now();
    let s2mm = Lines {
        s2mm: true,
        ..Lines::default()
    };
    assert!(rig.sim.run_until_irq(s2mm, 10_000).unwrap().s2mm);
    let waited = rig.sim.now() - done;
    assert!((300..=500).contains(&waited), "{waited}");
    assert_eq!(rig.read(S2MM, DMASR) & (IOC | DLY), DLY);
    assert_eq!(rig.read(S2MM, DMASR) >> 16, 200);
    rig.write(S2MM, DMASR, DLY);
    rig.sim.run(2000).unwrap();
    assert!(!rig.sim.lines().any(), "one event for the packets");
}

#[test]
fn a_channel_stops_and_starts_again() {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    small_packets(&mut rig, 4, RS | IOC | 1 << 16);
    // A tail written while halted is no reason to run.
    for round in 0..2 {
        let (mm2s, s2mm) = (round * 0x80, 0x4000 + round * 0x80);
        if round > 0 {
            for (channel, desc) in [(MM2S, mm2s), (S2MM, s2mm)] {
                rig.tail(channel, desc + 0x40);
                rig.start(channel, desc);
                assert_eq!(rig.read(channel, DMASR) & (HALTED | IDLE), 0);
            }
        }
        // CURDESC is kept while the channel runs.
        rig.write(MM2S, CURDESC, 0xDEAD_BEC0);
        assert_eq!(rig.read(MM2S, CURDESC), BASE as u32 + mm2s as u32);
        rig.tail(S2MM, s2mm + 0x40);
        rig.tail(MM2S, mm2s + 0x40);
        rig.run_until(2000, |rig| rig.read(S2MM, DMASR) & IDLE != 0)
            .unwrap();
        for channel in [MM2S, S2MM] {
            rig.write(channel, DMACR, 0);
            rig.run_until(100, |rig| rig.read(channel, DMASR) & HALTED != 0)
                .unwrap();
            assert_eq!(rig.read(channel, DMASR) & (IDLE | ERRORS), 0);
        }
    }
    for i in 0..4 {
        assert_eq!(rig.status(0x4000 + i * 0x40), 64 | SOF | EOF | CMPLT);
    }
    let data = rig.arena.bytes()[0x1_0000..0x1_0100].to_vec();
    assert_eq!(&rig.arena.bytes()[0x2_0000..0x2_0100], &data[..]);
}

#[test]
fn a_stop_in_mid_transfer_ends_what_is_out() {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    rig.put_desc(0, 0, BASE + 0x1_0000, 100_000 | SOF | EOF);
    rig.put_desc(0x4000, 0, BASE + 0x8_0000, 100_000);
    rig.start(S2MM, 0x4000);
    rig.tail(S2MM, 0x4000);
    rig.start(MM2S, 0);
    rig.tail(MM2S, 0);
    rig.sim.run(1000).unwrap();
    for channel in [MM2S, S2MM] {
        rig.write(channel, DMACR, 0);
        rig.run_until(1000, |rig| rig.read(channel, DMASR) & HALTED != 0)
            .unwrap();
        assert_eq!(rig.read(channel, DMASR) & ERRORS, 0);
    }
    assert_eq!((rig.status(0), rig.status(0x4000)), (0, 0));
    let before = rig.arena.bytes().to_vec();
    rig.sim.run(1000).unwrap();
    assert!(before == rig.arena.bytes());
}
