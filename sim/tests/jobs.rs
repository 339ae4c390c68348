//! Jobs through DMA engine and kernel: golden vectors, bit for bit, and how well the bus is used.

mod rig;

use std::{fs, path::Path};

use rig::{
    jobs::{TYPES, Type, Vector, header},
    *,
};
use weightstream_sim::{Channel, Lines, SimOptions};

const CONFIG: &str = "w128b1";
const MAX_COLS: usize = 4;

/// Descriptors of MM2S and S2MM, headers, activations, results and weights, from these offsets.
const MM2S_RING: usize = 0;
const S2MM_RING: usize = 0x1_0000;
const HEADERS: usize = 0x2_0000;
const ACTIVATIONS: usize = 0x3_0000;
const RESULTS: usize = 0x10_0000;
const WEIGHTS: usize = 0x40_0000;

struct Job<'a> {
    ty: Type,
    k: usize,
    rows: usize,
    cols: usize,
    skip: usize,
    activations: &'a [u8],
    weights: &'a [u8],
}

impl Job<'_> {
    fn answer_bytes(&self) -> usize {
        self.rows * self.cols * 4 + 16
    }
}

/// Lays jobs into memory, runs them all in one chain, and returns their answers and the cycles
/// from the first tail write to the last interrupt.
fn run(rig: &mut Rig, jobs: &[Job]) -> (Vec<Vec<u8>>, u64) {
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

fn footer(answer: &[u8]) -> (u32, u32) {
    let footer = &answer[answer.len() - 16..];
    let word = |at: usize| u32::from_le_bytes(footer[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}

/// Every golden vector that this configuration takes, a chain for each file: alone, and again
/// with a skip right behind.
fn golden(options: &SimOptions, filter: impl Fn(&str) -> bool) {
    let mut rig = Rig::new(CONFIG, 8 << 20, options);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let mut run_files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "safetensors") || !filter(&name) {
            continue;
        }
        let vector = Vector::read(&path);
        if vector.cols > MAX_COLS {
            continue;
        }
        let job = |skip| Job {
            ty: vector.ty,
            k: vector.k,
            rows: vector.rows,
            cols: vector.cols,
            skip,
            activations: &vector.activations,
            weights: &vector.weights,
        };
        let (answers, _) = run(&mut rig, &[job(0), job(5)]);
        for (i, answer) in answers.iter().enumerate() {
            let (tag, status) = footer(answer);
            assert_eq!((tag, status & !1), (i as u32, 0), "{name}");
            assert!(
                answer[..answer.len() - 16] == vector.results[..],
                "{name}, job {i}"
            );
        }
        run_files += 1;
    }
    assert!(run_files > 0);
}

#[test]
fn golden_vectors_are_bit_exact() {
    golden(&SimOptions::default(), |_| true);
}

#[test]
fn golden_vectors_are_bit_exact_with_stalls() {
    let options = SimOptions {
        refresh: Some((500, 40)),
        bandwidth: Some((2, 3)),
        seed: 7,
        ..SimOptions::default().stall_all(0.2)
    };
    golden(&options, |name| {
        name.contains("columns") || name.contains("rows")
    });
}

/// How much of the time the bus carries a beat: layer shapes of small models, one column, a chain
/// of several jobs, a memory of 60 cycles' latency.
#[test]
fn the_bus_is_used() {
    for (rows, k) in [(576, 576), (192, 576), (1536, 576), (576, 1536)] {
        for ty in TYPES {
            // 32 weights in less than a bus word need more than one block a cycle.
            if k % ty.weights != 0 || ty.bytes * 32 < 16 * ty.weights {
                continue;
            }
            let mut rig = Rig::new(CONFIG, 32 << 20, &SimOptions::default());
            let activations = vec![0x11; k / 32 * 34];
            let weights = vec![0x11; rows * k / ty.weights * ty.bytes];
            let jobs: Vec<Job> = (0..6)
                .map(|_| Job {
                    ty,
                    k,
                    rows,
                    cols: 1,
                    skip: 0,
                    activations: &activations,
                    weights: &weights,
                })
                .collect();
            let (_, one) = run(&mut rig, &jobs[..1]);
            let before = rig.sim.beats(Channel::Mm2sR);
            let (_, all) = run(&mut rig, &jobs);
            let beats = rig.sim.beats(Channel::Mm2sR) - before;
            let used = beats as f64 / all as f64;
            println!(
                "{} {rows}x{k}: {beats} beats in {all} cycles, {:.2} %; alone {} cycles more than beats; {:.1} idle between jobs",
                ty.name,
                used * 100.0,
                one - beats / 6,
                (all - one) as f64 / 5.0 - beats as f64 / 6.0,
            );
            assert!(used >= 0.98 || beats < 10_000, "{} {rows}x{k}", ty.name);
        }
    }
}
