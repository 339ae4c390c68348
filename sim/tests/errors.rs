//! Every error halts its channel in order: the descriptors before it complete, its own tells of
//! it, those after it are left alone, and after a reset the engine works as new.

mod rig;

use rig::*;
use weightstream_sim::{Channel, ErrorResponse, SimOptions};

const RINGS: [(u16, usize); 2] = [(MM2S, 0), (S2MM, 0x4000)];
const FROM: usize = 0x1_0000;
const TO: usize = 0x4_0000;
const LENGTH: usize = 1024;

/// Three descriptors a ring, a packet of a KiB each; `break_it` spoils something.
fn run(break_it: impl FnOnce(&mut Rig)) -> Rig {
    let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
    lay(&mut rig);
    break_it(&mut rig);
    go(&mut rig);
    rig.sim.run(5000).unwrap();
    rig
}

fn lay(rig: &mut Rig) {
    for i in 0..3 {
        let at = i * 0x40;
        let control = LENGTH as u32 | SOF | EOF;
        rig.put_desc(at, at + 0x40, BASE + (FROM + i * 0x1000) as u64, control);
        rig.put_desc(
            0x4000 + at,
            0x4040 + at,
            BASE + (TO + i * 0x1000) as u64,
            LENGTH as u32,
        );
    }
}

fn go(rig: &mut Rig) {
    for (channel, ring) in RINGS.into_iter().rev() {
        rig.start(channel, ring);
        rig.tail(channel, ring + 0x80);
    }
}

/// What the channel says, after an error at its second descriptor with `status` written to it.
#[track_caller]
fn halted(rig: &mut Rig, (channel, ring): (u16, usize), error: u32, status: u32) {
    let sr = rig.read(channel, DMASR);
    assert_eq!(
        sr & (ERRORS | HALTED | IDLE | ERR),
        error | HALTED | ERR,
        "{sr:#010x}"
    );
    assert_eq!(rig.read(channel, DMACR) & RS, 0);
    assert_eq!(
        rig.read(channel, CURDESC),
        (BASE + ring as u64 + 0x40) as u32
    );
    assert_eq!(rig.read(channel, CURDESC + 4), (BASE >> 32) as u32);
    let done = LENGTH as u32 | CMPLT | if channel == S2MM { SOF | EOF } else { 0 };
    assert_eq!(rig.status(ring), done, "the one before");
    assert_eq!(rig.status(ring + 0x40), status, "its own");
    assert_eq!(rig.status(ring + 0x80), 0, "the one after");
    let lines = rig.sim.lines();
    assert!(if channel == MM2S {
        lines.mm2s
    } else {
        lines.s2mm
    });
    // RS cannot be set again, and clearing the interrupt does not clear the error.
    rig.write(channel, DMACR, RS | ERR | 1 << 16);
    rig.write(channel, DMASR, ERR | IOC);
    assert_eq!(rig.read(channel, DMACR) & RS, 0);
    assert_eq!(
        rig.read(channel, DMASR) & (ERRORS | HALTED | ERR),
        error | HALTED
    );
    works_after_reset(rig);
}

/// After a reset of the engine and of what stands behind it, all three packets go round.
#[track_caller]
fn works_after_reset(rig: &mut Rig) {
    rig.sim.clear_errors();
    assert!(rig.soft_reset(2000));
    rig.sim.write32(LOOP, 4).unwrap();
    rig.sim.write32(LOOP, 0).unwrap();
    lay(rig);
    go(rig);
    rig.sim.run(5000).unwrap();
    for (channel, _) in RINGS {
        assert_eq!(rig.read(channel, DMASR) & (ERRORS | HALTED | IDLE), IDLE);
    }
    for i in 0..3 {
        let data = rig.arena.bytes()[FROM + i * 0x1000..][..LENGTH].to_vec();
        assert_eq!(&rig.arena.bytes()[TO + i * 0x1000..][..LENGTH], &data[..]);
    }
}

#[test]
fn a_stale_descriptor() {
    for ring in RINGS {
        let mut rig = run(|rig| rig.put_word(ring.1 + 0x40 + 0x1C, CMPLT | 77));
        halted(&mut rig, ring, SG_INT, CMPLT | 77);
    }
}

#[test]
fn a_descriptor_of_no_length() {
    for ring in RINGS {
        let mut rig = run(|rig| rig.put_word(ring.1 + 0x40 + 0x18, SOF | EOF));
        halted(&mut rig, ring, DMA_INT, CMPLT | 1 << 28);
    }
}

#[test]
fn a_buffer_off_the_bus_word() {
    for ring in RINGS {
        let mut rig = run(|rig| {
            let address = rig.word(ring.1 + 0x40 + 0x08);
            rig.put_word(ring.1 + 0x40 + 0x08, address + 8);
        });
        halted(&mut rig, ring, DMA_INT, CMPLT | 1 << 28);
    }
}

#[test]
fn a_buffer_outside_the_memory() {
    for ring in RINGS {
        let mut rig = run(|rig| rig.put_word(ring.1 + 0x40 + 0x0C, 0xFFFF));
        halted(&mut rig, ring, DMA_DEC, CMPLT | 1 << 30);
    }
}

#[test]
fn a_buffer_that_ends_outside_the_memory() {
    for ring in RINGS {
        let mut rig = run(|rig| {
            let end = BASE + (1 << 20);
            rig.put_word(ring.1 + 0x40 + 0x08, (end - 512) as u32);
            rig.put_word(ring.1 + 0x40 + 0x0C, (end >> 32) as u32);
        });
        halted(&mut rig, ring, DMA_DEC, CMPLT | 1 << 30);
    }
}

#[test]
fn a_buffer_that_fails() {
    let at = BASE + 0x1000 + 700;
    let mut rig = run(|rig| {
        let range = at + FROM as u64..at + FROM as u64 + 1;
        rig.sim
            .inject_error(Channel::Mm2sR, range, ErrorResponse::Slave)
            .unwrap();
    });
    halted(&mut rig, RINGS[0], DMA_SLV, CMPLT | 1 << 29);
    let mut rig = run(|rig| {
        let range = at + TO as u64..at + TO as u64 + 1;
        rig.sim
            .inject_error(Channel::S2mmB, range, ErrorResponse::Slave)
            .unwrap();
    });
    halted(&mut rig, RINGS[1], DMA_SLV, CMPLT | 1 << 29);
}

#[test]
fn a_descriptor_that_cannot_be_read() {
    for ring in RINGS {
        let at = BASE + ring.1 as u64 + 0x44;
        for (response, error) in [
            (ErrorResponse::Slave, SG_SLV),
            (ErrorResponse::Decode, SG_DEC),
        ] {
            let mut rig = run(|rig| {
                rig.sim
                    .inject_error(Channel::SgR, at..at + 1, response)
                    .unwrap()
            });
            halted(&mut rig, ring, error, 0);
        }
    }
}

#[test]
fn a_chain_that_leaves_the_memory() {
    for ring in RINGS {
        let mut rig = run(|rig| rig.put_word(ring.1 + 0x04, 0x7777));
        let (channel, at) = ring;
        assert_eq!(
            rig.read(channel, DMASR) & (ERRORS | HALTED),
            SG_DEC | HALTED
        );
        assert_eq!(rig.read(channel, CURDESC + 4), 0x7777);
        assert_eq!(rig.status(at) & CMPLT, CMPLT);
        works_after_reset(&mut rig);
    }
}

#[test]
fn a_status_that_cannot_be_written() {
    for ring in RINGS {
        let at = BASE + ring.1 as u64 + 0x5C;
        let mut rig = run(|rig| {
            rig.sim
                .inject_error(Channel::SgB, at..at + 4, ErrorResponse::Slave)
                .unwrap();
        });
        let (channel, ring) = ring;
        assert_eq!(
            rig.read(channel, DMASR) & (ERRORS | HALTED),
            SG_SLV | HALTED
        );
        assert_eq!(rig.status(ring + 0x40), 0);
        works_after_reset(&mut rig);
    }
}

#[test]
fn a_packet_that_outruns_an_odd_buffer() {
    // A buffer that ends within a bus word can only take the end of a packet.
    let odd = LENGTH as u32 - 24;
    let mut rig = run(|rig| rig.put_word(0x4000 + 0x40 + 0x18, odd));
    let end = TO + 0x1000 + odd as usize;
    let fresh = Arena::new(1 << 20).bytes()[end..end + 64].to_vec();
    assert_eq!(&rig.arena.bytes()[end..end + 64], &fresh[..]);
    halted(&mut rig, RINGS[1], DMA_INT, CMPLT | 1 << 28);
}

#[test]
fn a_reset_waits_for_a_slow_memory() {
    for channel in [
        Channel::Mm2sR,
        Channel::S2mmW,
        Channel::S2mmB,
        Channel::SgR,
        Channel::SgB,
    ] {
        let mut rig = Rig::new("loop128", 1 << 20, &SimOptions::default());
        lay(&mut rig);
        rig.sim.mute(channel).unwrap();
        go(&mut rig);
        rig.sim.run(1000).unwrap();
        assert!(
            !rig.soft_reset(3000),
            "{channel}: a reset with transfers out"
        );
        rig.sim.unmute();
        rig.run_until(3000, |rig| rig.read(MM2S, DMACR) & RESET == 0)
            .unwrap();
        works_after_reset(&mut rig);
    }
}
