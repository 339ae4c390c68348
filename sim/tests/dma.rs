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
