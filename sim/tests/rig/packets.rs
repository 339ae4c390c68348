//! Packets for the kernel in memory, as bytes of any kind, and the chains that carry them.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::{fs, path::Path, sync::OnceLock};

use super::{
    jobs::{Vector, header},
    *,
};

pub const CTRL: u16 = 0x1018;
pub const SOFT_RESET: u32 = 1;

/// Bytes of memory that a chain needs.
pub const MEMORY: usize = 4 << 20;
pub const MM2S_RING: usize = 0;
pub const S2MM_RING: usize = 0x8000;
pub const PACKETS: usize = 0x2_0000;
pub const ANSWERS: usize = 0x30_0000;
/// Bytes of an answer's buffer.
pub const ANSWER: usize = 0x1000;

pub const FOOTER: usize = 16;

/// Small golden vectors of several weight types.
pub fn vectors() -> &'static [Vector] {
    static VECTORS: OnceLock<Vec<Vector>> = OnceLock::new();
    VECTORS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let mut paths: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with("_small.safetensors"))
            .collect();
        paths.sort();
        let vectors: Vec<Vector> = paths.iter().map(|path| Vector::read(path)).collect();
        assert!(vectors.len() >= 5, "the small golden vectors are there");
        vectors
    })
}

/// The packet of a job, without gaps.
pub fn packet(vector: &Vector, skip: usize, tag: u32) -> Vec<u8> {
    let Vector {
        ty, k, rows, cols, ..
    } = *vector;
    let mut bytes = header(ty, k, rows, cols, skip, tag).to_vec();
    bytes.extend_from_slice(&vector.activations);
    bytes.resize(bytes.len().next_multiple_of(64), 0x5A);
    bytes.resize(bytes.len() + skip, 0xA5);
    bytes.extend_from_slice(&vector.weights);
    bytes
}

/// Packets in memory with their descriptors, and buffers for as many answers and some more.
pub struct Chain {
    /// Descriptors of both rings, in order; the S2MM ones are one an answer.
    pub mm2s: Vec<usize>,
    pub s2mm: Vec<usize>,
}

/// Each packet in so many pieces.
pub fn lay(rig: &mut Rig, packets: &[Vec<u8>], pieces: usize) -> Chain {
    let mut chain = Chain {
        mm2s: Vec::new(),
        s2mm: Vec::new(),
    };
    let mut at = PACKETS;
    for packet in packets {
        rig.arena.bytes()[at..at + packet.len()].copy_from_slice(packet);
        let piece = packet.len().div_ceil(pieces).next_multiple_of(64);
        for from in (0..packet.len()).step_by(piece) {
            let desc = MM2S_RING + chain.mm2s.len() * 0x40;
            let length = piece.min(packet.len() - from);
            let first = if from == 0 { SOF } else { 0 };
            let last = if from + length == packet.len() {
                EOF
            } else {
                0
            };
            let buffer = BASE + (at + from) as u64;
            rig.put_desc(desc, desc + 0x40, buffer, length as u32 | first | last);
            chain.mm2s.push(desc);
        }
        at += packet.len().next_multiple_of(64);
    }
    assert!(at <= ANSWERS);
    for n in 0..packets.len() + 3 {
        let desc = S2MM_RING + n * 0x40;
        let buffer = BASE + (ANSWERS + n * ANSWER) as u64;
        rig.put_desc(desc, desc + 0x40, buffer, ANSWER as u32);
        chain.s2mm.push(desc);
    }
    chain
}

/// Starts both halted channels on a chain.
pub fn go(rig: &mut Rig, chain: &Chain) {
    for (channel, descs) in [(S2MM, &chain.s2mm), (MM2S, &chain.mm2s)] {
        rig.start(channel, descs[0]);
        rig.tail(channel, descs[descs.len() - 1]);
    }
}

/// The packet that the n-th S2MM descriptor has got, if it is complete.
pub fn answer(rig: &mut Rig, chain: &Chain, n: usize) -> Option<Vec<u8>> {
    let status = rig.status(chain.s2mm[n]);
    let at = ANSWERS + n * ANSWER;
    let length = (status & LENGTH) as usize;
    (status & CMPLT != 0).then(|| rig.arena.bytes()[at..at + length].to_vec())
}

/// Tag and status of an answer.
pub fn footer(answer: &[u8]) -> (u32, u32) {
    let footer = &answer[answer.len() - FOOTER..];
    let word = |at: usize| u32::from_le_bytes(footer[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}

/// An answer is that of a good job: its tag, no error, and every bit of the results.
#[track_caller]
pub fn assert_right(answer: &[u8], vector: &Vector, tag: u32) {
    let (got, status) = footer(answer);
    assert_eq!((got, status & !1), (tag, 0), "tag and status");
    assert!(
        answer[..answer.len() - FOOTER] == vector.results[..],
        "results of {} {}x{}",
        vector.ty.name,
        vector.rows,
        vector.k
    );
}

/// Resets the kernel alone.
pub fn reset_kernel(rig: &mut Rig) {
    rig.sim.write32(CTRL, SOFT_RESET).unwrap();
    rig.run_until(1000, |rig| rig.sim.read32(CTRL).unwrap() & SOFT_RESET == 0)
        .unwrap();
}

/// What a driver does after an error: the DMA first, so that nothing old is written any more.
pub fn recover(rig: &mut Rig) {
    assert!(rig.soft_reset(200_000), "the DMA's reset does not end");
    reset_kernel(rig);
}

/// Two good jobs, of the vectors with these numbers, are answered right by an engine that has
/// just been reset.
#[track_caller]
pub fn assert_works(rig: &mut Rig, which: [usize; 2]) {
    let jobs = which.map(|n| &vectors()[n % vectors().len()]);
    let tags = [0x600D_0000, 0x600D_0001];
    let packets = [packet(jobs[0], 0, tags[0]), packet(jobs[1], 3, tags[1])];
    let chain = lay(rig, &packets, 3);
    go(rig, &chain);
    rig.run_until(400_000, |rig| rig.status(chain.s2mm[1]) & CMPLT != 0)
        .unwrap();
    for n in 0..2 {
        let answer = answer(rig, &chain, n).expect("answers come in order");
        assert_right(&answer, jobs[n], tags[n]);
    }
    for channel in [MM2S, S2MM] {
        assert_eq!(rig.read(channel, DMASR) & (ERRORS | HALTED), 0);
    }
}
