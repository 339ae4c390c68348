//! Jobs for the kernel, as bytes in memory (`docs/stream.md`).
#![allow(dead_code, reason = "every test file uses its own part")]

use std::{fs, path::Path};

use safetensors::SafeTensors;
use weightstream_sim::Lines;

use super::*;

/// A weight type: its number, and weights and bytes of a block.
#[derive(Debug, Clone, Copy)]
pub struct Type {
    pub name: &'static str,
    pub number: u32,
    pub weights: usize,
    pub bytes: usize,
}

#[rustfmt::skip]
pub const TYPES: [Type; 10] = [
    Type { name: "Q4_0", number: 2, weights: 32, bytes: 18 },
    Type { name: "Q4_1", number: 3, weights: 32, bytes: 20 },
    Type { name: "Q5_0", number: 6, weights: 32, bytes: 22 },
    Type { name: "Q5_1", number: 7, weights: 32, bytes: 24 },
    Type { name: "Q8_0", number: 8, weights: 32, bytes: 34 },
    Type { name: "Q2_K", number: 10, weights: 256, bytes: 84 },
    Type { name: "Q3_K", number: 11, weights: 256, bytes: 110 },
    Type { name: "Q4_K", number: 12, weights: 256, bytes: 144 },
    Type { name: "Q5_K", number: 13, weights: 256, bytes: 176 },
    Type { name: "Q6_K", number: 14, weights: 256, bytes: 210 },
];

/// The header of a job.
pub fn header(ty: Type, k: usize, rows: usize, cols: usize, skip: usize, tag: u32) -> [u8; 64] {
    let mut header = [0; 64];
    let fields = [
        0x314A_5357,
        1,
        ty.number,
        k as u32,
        rows as u32,
        cols as u32,
        skip as u32,
        0,
        tag,
    ];
    for (to, field) in header.chunks_exact_mut(4).zip(fields) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    header
}

/// A golden vector: its shape and its bytes.
pub struct Vector {
    pub ty: Type,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    pub weights: Vec<u8>,
    pub activations: Vec<u8>,
    /// The results in the kernel's order: row 0 of every column, then row 1, and so on.
    pub results: Vec<u8>,
}

impl Vector {
    pub fn read(path: &Path) -> Vector {
        let bytes = fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = metadata.metadata().as_ref().unwrap();
        let number = |name: &str| metadata[name].parse::<usize>().unwrap();
        let (k, rows, cols) = (number("k"), number("rows"), number("cols"));
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |name: &str| tensors.tensor(name).unwrap().data().to_vec();
        let expected = tensor("expected");
        let results = (0..rows)
            .flat_map(|row| (0..cols).map(move |col| (col * rows + row) * 4))
            .flat_map(|at| expected[at..at + 4].to_vec())
            .collect();
        Vector {
            ty: *TYPES
                .iter()
                .find(|t| t.name == metadata["type"])
                .expect("a known type"),
            k,
            rows,
            cols,
            weights: tensor("weights"),
            activations: tensor("activations"),
            results,
        }
    }
}

/// Descriptors of MM2S and S2MM, headers, activations, results and weights, from these offsets.
const MM2S_RING: usize = 0;
const S2MM_RING: usize = 0x1_0000;
const HEADERS: usize = 0x2_0000;
const ACTIVATIONS: usize = 0x3_0000;
const RESULTS: usize = 0x10_0000;
const WEIGHTS: usize = 0x40_0000;

/// A job, as the host has it.
pub struct Job<'a> {
    pub ty: Type,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    pub skip: usize,
    pub activations: &'a [u8],
    pub weights: &'a [u8],
}

impl Job<'_> {
    pub fn answer_bytes(&self) -> usize {
        self.rows * self.cols * 4 + 16
    }
}

/// Lays jobs into memory, runs them all in one chain, and returns their answers and the cycles
/// from the first tail write to the last interrupt.
pub fn run(rig: &mut Rig, jobs: &[Job]) -> (Vec<Vec<u8>>, u64) {
    let (mut activations, mut results, mut weights) = (ACTIVATIONS, RESULTS, WEIGHTS);
    let mut places = Vec::new();
    for (i, job) in jobs.iter().enumerate() {
        let head = HEADERS + i * 64;
        let mm2s = MM2S_RING + i * 0xC0;
        let packed = job.activations.len().next_multiple_of(64);
        let bytes = job.skip + job.weights.len();
        let answer = job.answer_bytes();
        let memory = rig.arena.bytes();
        memory[head..head + 64].copy_from_slice(&header(
            job.ty, job.k, job.rows, job.cols, job.skip, i as u32,
        ));
        memory[activations..][..job.activations.len()].copy_from_slice(job.activations);
        memory[weights + job.skip..][..job.weights.len()].copy_from_slice(job.weights);
        rig.put_desc(mm2s, mm2s + 0x40, BASE + head as u64, 64 | SOF);
        rig.put_desc(
            mm2s + 0x40,
            mm2s + 0x80,
            BASE + activations as u64,
            packed as u32,
        );
        rig.put_desc(
            mm2s + 0x80,
            mm2s + 0xC0,
            BASE + weights as u64,
            bytes as u32 | EOF,
        );
        let s2mm = S2MM_RING + i * 0x40;
        rig.put_desc(s2mm, s2mm + 0x40, BASE + results as u64, answer as u32);
        places.push(results);
        activations += packed;
        results += answer.next_multiple_of(64);
        weights += bytes.next_multiple_of(64);
    }
    let last = jobs.len() - 1;
    let begin = rig.sim.now();
    let on = RS | IOC | ERR | (jobs.len() as u32) << 16;
    rig.start_with(S2MM, S2MM_RING, on);
    rig.tail(S2MM, S2MM_RING + last * 0x40);
    rig.start_with(MM2S, MM2S_RING, RS | ERR | 1 << 16);
    rig.tail(MM2S, MM2S_RING + last * 0xC0 + 0x80);
    let lines = rig.sim.run_until_irq(Lines::ALL, 10_000_000).unwrap();
    let cycles = rig.sim.now() - begin;
    assert!(lines.s2mm && !lines.mm2s, "{lines:?}");
    assert_eq!(rig.read(S2MM, DMASR) & ERRORS, 0);
    let answers = places
        .iter()
        .zip(jobs)
        .map(|(&at, job)| rig.arena.bytes()[at..at + job.answer_bytes()].to_vec())
        .collect();
    // Both channels stop, so that the next chain can begin at the rings' start.
    for channel in [MM2S, S2MM] {
        rig.write(channel, DMASR, IOC);
        rig.write(channel, DMACR, 0);
        rig.run_until(1000, |rig| rig.read(channel, DMASR) & HALTED != 0)
            .unwrap();
    }
    (answers, cycles)
}
