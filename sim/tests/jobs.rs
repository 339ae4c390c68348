//! Jobs through DMA engine and kernel: golden vectors, bit for bit, and how well the bus is used.

mod rig;

use std::{fs, path::Path};

use rig::{
    Rig,
    jobs::{Job, TYPES, Vector, run},
};
use weightstream_sim::{Beat, Channel, SimOptions};

const CONFIG: &str = "w128b1";
const MAX_COLS: usize = 4;

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

#[test]
fn logged_beats_are_those_that_moved_and_name_the_stalls() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let vector = Vector::read(&folder.join("q4_1_small.safetensors"));
    let job = Job {
        ty: vector.ty,
        k: vector.k,
        rows: vector.rows,
        cols: vector.cols,
        skip: 0,
        activations: &vector.activations,
        weights: &vector.weights,
    };
    let log = |options: &SimOptions| {
        let mut rig = Rig::new(CONFIG, 8 << 20, options);
        rig.sim.log_beats(true);
        run(&mut rig, std::slice::from_ref(&job));
        let beats = rig.sim.take_beats();
        for channel in [Channel::Mm2sR, Channel::S2mmW, Channel::SgR, Channel::SgW] {
            let logged = beats.iter().filter(|b| b.channel == channel).count() as u64;
            assert_eq!(logged, rig.sim.beats(channel), "{channel}");
        }
        assert!(beats.is_sorted_by_key(|b| b.cycle));
        beats
    };
    let of = |beats: &[Beat], channel| -> Vec<u64> {
        let beats = beats.iter().filter(|b| b.channel == channel);
        beats.map(|b| b.addr).collect()
    };
    let smooth = log(&SimOptions::default());
    assert!(smooth.iter().all(|b| b.stalled == 0));
    let stalled = log(&SimOptions {
        stalls: vec![(Channel::Mm2sR, 0.5)],
        ..SimOptions::default()
    });
    assert!(
        stalled.iter().any(|b| b.stalled > 0)
            && stalled
                .iter()
                .all(|b| b.stalled == 0 || b.channel == Channel::Mm2sR)
    );
    for channel in [Channel::Mm2sR, Channel::S2mmW] {
        assert_eq!(of(&stalled, channel), of(&smooth, channel), "{channel}");
    }
}
