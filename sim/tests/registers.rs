//! The registers of the whole accelerator, as software meets them while a job runs.

mod rig;

use rig::{
    BASE, CURDESC, DLY, DMACR, DMASR, EOF, HALTED, IDLE, IOC, MM2S, RS, Rig, S2MM, SOF, TAILDESC,
    jobs::{TYPES, header},
};
use weightstream_sim::{Lines, SimOptions};

/// Byte offsets in memory: the rings, the packet, the answer.
const MM2S_RING: usize = 0;
const S2MM_RING: usize = 0x1000;
const PACKET: usize = 0x2000;
const ANSWER: usize = 0x8000;

const ROWS: usize = 200;

/// The kernel's window, and registers in it (`docs/registers.md`).
const KERNEL: u16 = 0x1000;
const ERROR: u16 = 0x20;
const CYCLES: u16 = 0x40;
const BEATS_OUT: u16 = 0x68;
const JOBS: u16 = 0x70;

/// A job of zeros, laid out for channels that are halted.
fn job(options: &SimOptions) -> Rig {
    let mut rig = Rig::new("w128b1", 1 << 16, options);
    let ty = TYPES[4];
    let head = header(ty, ty.weights, ROWS, 1, 0, 7);
    let bytes = 64 + 64 + ROWS * ty.bytes;
    let memory = rig.arena.bytes();
    memory[PACKET..PACKET + bytes].fill(0);
    memory[PACKET..PACKET + 64].copy_from_slice(&head);
    let control = bytes as u32 | SOF | EOF;
    rig.put_desc(MM2S_RING, MM2S_RING + 64, BASE + PACKET as u64, control);
    let answer = (ROWS * 4 + 16) as u32;
    rig.put_desc(S2MM_RING, S2MM_RING + 64, BASE + ANSWER as u64, answer);
    rig
}

fn go(rig: &mut Rig, control: u32) {
    rig.start_with(S2MM, S2MM_RING, RS | control);
    rig.tail(S2MM, S2MM_RING);
    rig.start_with(MM2S, MM2S_RING, RS);
    rig.tail(MM2S, MM2S_RING);
}

fn done(rig: &mut Rig) -> bool {
    rig.read(S2MM, DMASR) & IDLE != 0
}

#[test]
fn what_is_written_is_read_but_the_place_in_the_ring_while_running() {
    let mut rig = job(&SimOptions::default());
    go(&mut rig, IOC | 1 << 16);
    for (channel, ring) in [(MM2S, MM2S_RING), (S2MM, S2MM_RING)] {
        let at = BASE + ring as u64;
        for register in [CURDESC, TAILDESC] {
            assert_eq!(rig.read(channel, register), at as u32);
            assert_eq!(rig.read(channel, register + 4), (at >> 32) as u32);
        }
        rig.write(channel, CURDESC, 0x1240);
        rig.write(channel, CURDESC + 4, 0x99);
        assert_eq!(rig.read(channel, CURDESC), at as u32);
        assert_eq!(rig.read(channel, CURDESC + 4), (at >> 32) as u32);
    }
    rig.run_until(10_000, done).unwrap();
    assert_eq!(&rig.arena.bytes()[ANSWER + ROWS * 4..][..4], [7, 0, 0, 0]);
    rig.write(MM2S, DMACR, 0);
    rig.run_until(1000, |rig| rig.read(MM2S, DMASR) & HALTED != 0)
        .unwrap();
    rig.write(MM2S, CURDESC, 0x1240);
    assert_eq!(rig.read(MM2S, CURDESC), 0x1240);
}

#[test]
fn an_interrupt_comes_by_time_where_too_few_packets_come() {
    let mut rig = job(&SimOptions::default());
    go(&mut rig, DLY | 200 << 16 | 3 << 24);
    rig.run_until(10_000, done).unwrap();
    let begin = rig.sim.now();
    let lines = rig.sim.run_until_irq(Lines::ALL, 10_000).unwrap();
    assert!(lines.s2mm && !lines.mm2s);
    // Three units of 125 cycles after the packet, less what the polls took.
    let waited = rig.sim.now() - begin;
    assert!((250..=375).contains(&waited), "{waited}");
    assert_eq!(rig.read(S2MM, DMASR) & (IOC | DLY), DLY);
    rig.write(S2MM, DMASR, DLY);
    assert_eq!(rig.read(S2MM, DMASR) & DLY, 0);
    rig.sim.run(2).unwrap();
    assert!(!rig.sim.lines().any());
}

#[test]
fn a_counters_high_word_is_of_the_time_of_its_low_word() {
    let mut rig = job(&SimOptions::default());
    go(&mut rig, IOC | 1 << 16);
    rig.run_until(10_000, done).unwrap();
    let count = |rig: &mut Rig, register| {
        let low = rig.read(KERNEL, register);
        u64::from(rig.read(KERNEL, register + 4)) << 32 | u64::from(low)
    };
    assert_eq!(count(&mut rig, JOBS), 1);
    assert_eq!(count(&mut rig, BEATS_OUT), (ROWS as u64 * 4 + 16) / 16);
    let (first, now) = (count(&mut rig, CYCLES), rig.sim.now());
    let second = count(&mut rig, CYCLES);
    assert!(second > first && second - first <= rig.sim.now() - now);
}

#[test]
fn where_no_register_is_zeros_are_read_and_writes_are_lost() {
    let mut rig = job(&SimOptions::default());
    for hole in [
        0x18,
        0x2C,
        0x48,
        0x800,
        KERNEL + 0x24,
        KERNEL + 0x78,
        0x2000,
        0xFFFC,
    ] {
        assert_eq!(rig.read(hole, 0), 0, "{hole:#x}");
        rig.write(hole, 0, 0xFFFF_FFFF);
        assert_eq!(rig.read(hole, 0), 0, "{hole:#x}");
    }
    go(&mut rig, IOC | 1 << 16);
    rig.run_until(10_000, done).unwrap();
    assert_eq!(&rig.arena.bytes()[ANSWER + ROWS * 4..][..4], [7, 0, 0, 0]);
}

#[test]
fn an_error_stays_until_it_is_cleared() {
    let bad_magic: fn(&mut Rig) = |rig| rig.arena.bytes()[PACKET] = 0;
    let no_whole_header: fn(&mut Rig) = |rig| {
        let control = 40 | SOF | EOF;
        rig.put_desc(MM2S_RING, MM2S_RING + 64, BASE + PACKET as u64, control);
    };
    for (spoil, status) in [(bad_magic, 1 << 8), (no_whole_header, 1 << 17)] {
        let mut rig = job(&SimOptions::default());
        spoil(&mut rig);
        go(&mut rig, IOC | 1 << 16);
        rig.run_until(10_000, done).unwrap();
        assert_eq!(rig.read(KERNEL, ERROR), status);
        rig.write(KERNEL, ERROR, !status);
        assert_eq!(rig.read(KERNEL, ERROR), status);
        rig.write(KERNEL, ERROR, status);
        assert_eq!(rig.read(KERNEL, ERROR), 0);
    }
}
