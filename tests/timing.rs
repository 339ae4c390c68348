//! The timing model against the RTL: a sample of what `benches/timing.rs` measures.

#[allow(dead_code)] // its bench uses more
#[path = "../benches/support/timing.rs"]
mod support;

use support::{Bounds, Measured, draw, measure, median_and_worst};
use weightstream::driver::{Accelerator, Input, MatMul};
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::target::{Conditions, TargetOptions, TargetSpec, open};
use weightstream::timing::{self, Job};

fn targets() -> Vec<TargetSpec> {
    let built = TargetSpec::built();
    built
        .into_iter()
        .filter(|t| *t != TargetSpec::Model)
        .collect()
}

/// The median error of some random jobs.
fn median(jobs: u64, seed: u64, bounds: Bounds) -> f64 {
    let measured: Vec<Measured> = (0..jobs)
        .map(|index| measure(&draw(seed, index, &targets(), bounds)))
        .collect();
    let (median, worst) = median_and_worst(measured.iter().map(Measured::error));
    println!(
        "median {:.3} %, worst {:.2} %",
        100.0 * median,
        100.0 * worst
    );
    median
}

#[test]
fn random_jobs_take_what_the_model_says() {
    let bounds = Bounds {
        products: 1 << 18,
        stalls: true,
        dram: None,
    };
    assert!(median(60, 7, bounds) < 0.01);
}

#[test]
fn without_stalls_the_model_is_all_but_exact() {
    for dram in [None, Some("ddr4-2400"), Some("ddr3-1050")] {
        let bounds = Bounds {
            products: 1 << 17,
            stalls: false,
            dram,
        };
        assert!(median(20, 8, bounds) < 0.001);
    }
}

#[test]
fn chains_take_what_the_model_says() {
    for target in targets() {
        let options = TargetOptions {
            heap_bytes: 64 << 20,
            ..TargetOptions::default()
        };
        let opened = open(&target, &options).expect("the target opens");
        let mut accelerator = Accelerator::new(opened).expect("the driver starts");
        let config = support::config(&target);
        let weights = accelerator.heap().alloc(8 << 20).expect("it has room");
        weights.sync_for_device(0, 8 << 20).expect("it is ours");
        let column = vec![1; q8_0_row_bytes(576)];
        // Of the first input three products, of the second one, so that activations are reused.
        let jobs = [
            (WeightType::Q4_1, 576, 0),
            (WeightType::Q4_1, 192, 0),
            (WeightType::Q8_0, 192, 0),
            (WeightType::Q5_0, 1000, 1),
        ];
        let mut results: Vec<Vec<f32>> = jobs.iter().map(|(_, rows, _)| vec![0.0; *rows]).collect();
        let chain: Vec<Job> = jobs
            .iter()
            .enumerate()
            .map(|(n, &(ty, rows, _))| Job {
                reuse: n == 1 || n == 2,
                ..Job::new(ty, 576, rows, 1)
            })
            .collect();
        let mut matmuls: Vec<MatMul> = jobs
            .iter()
            .zip(&mut results)
            .map(|(&(ty, rows, input), out)| MatMul {
                weights: weights.device_addr(),
                ty,
                k: 576,
                rows,
                input,
                out: vec![out],
            })
            .collect();
        let inputs = [Input::Q8_0(vec![&column]), Input::Q8_0(vec![&column])];
        let before = accelerator.activity().expect("a clock").cycles;
        accelerator.run(&inputs, &mut matmuls).expect("it runs");
        let rtl = accelerator.activity().expect("a clock").cycles - before;
        let model = timing::Accelerator::new(&config, &Conditions::default());
        let cycles = model.chain(&chain).expect("the configuration can do it");
        let error = cycles.total as f64 / rtl as f64 - 1.0;
        assert!(error.abs() < 0.005, "{target}: {rtl} cycles, {cycles:?}");
        assert_eq!(cycles.total, cycles.by_cause.total());
    }
}

#[test]
fn long_jobs_are_extrapolated_and_what_cannot_be_is_refused() {
    let config = timing::Config::new(16, 1);
    let model = timing::Accelerator::new(&config, &Conditions::default());
    let cycles = |rows| {
        model
            .job(&Job::new(WeightType::Q4_0, 4096, rows, 1))
            .unwrap()
            .total
    };
    // A row of 2304 bytes is 144 beats.
    let (short, long) = (cycles(1000), cycles(1_001_000));
    assert!((long - short).abs_diff(144_000_000) <= 10, "{short} {long}");

    let two = [Job::new(WeightType::Q4_0, 4096, 1000, 1)];
    let engines = model.engines(&[&two, &two]).unwrap();
    assert_eq!(
        engines[0].total, engines[1].total,
        "nothing is shared but latency"
    );

    for (job, field) in [
        (Job::new(WeightType::Q4_0, 48, 1, 1), "k"),
        (Job::new(WeightType::Q4_K, 32, 1, 1), "k"),
        (Job::new(WeightType::Q4_0, 1 << 20, 1, 1), "k"),
        (Job::new(WeightType::Q4_0, 32, 0, 1), "rows"),
        (Job::new(WeightType::Q4_0, 32, 1, 5), "cols"),
    ] {
        assert_eq!(model.job(&job).unwrap_err().field, field);
    }
}

#[test]
fn engines_share_the_bandwidth_of_their_memory() {
    let conditions = Conditions {
        dram: Some("ddr4-2400@300".parse().unwrap()),
        ..Conditions::default()
    };
    let config = timing::Config::new(64, 4);
    let model = timing::Accelerator::new(&config, &conditions);
    let jobs = [Job::new(WeightType::Q8_0, 4096, 4096, 1)];
    let one = model.engines(&[&jobs]).unwrap()[0].total;
    let two = model.engines(&[&jobs, &jobs]).unwrap()[1].total;
    // One port of 64 bytes at 300 MHz takes all of DDR4-2400's 19.2 GB/s.
    let ratio = two as f64 / one as f64;
    assert!((1.8..2.2).contains(&ratio), "{one} and {two} cycles");
}
