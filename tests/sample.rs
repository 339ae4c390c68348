//! Sampled simulation: chains on the RTL beside the model.

mod common;
#[allow(dead_code)] // each test binary uses its part
mod faulty;

use std::sync::Arc;

use common::{accelerator, options};
use weightstream::dma::{Buffer, Heap, SimMemory};
use weightstream::driver::{Accelerator, DriverError, Input, MatMul};
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::sample::{Sampling, Tally};
use weightstream::target::model::{ModelConfig, ModelDevice};
use weightstream::target::{Sample, Target, TargetError, TargetOptions, TargetSpec, open};

const RTL: TargetSpec = TargetSpec::Rtl(None);

fn sampled(rate: f64, seed: u64) -> TargetOptions {
    TargetOptions {
        sampling: Some(Sampling { rate, seed }),
        ..options()
    }
}

fn weights(accelerator: &Accelerator) -> Buffer {
    let weights = accelerator.heap().alloc(1 << 20).unwrap();
    let bytes: Vec<u8> = (0..weights.len()).map(|n| (n * 7 % 61) as u8).collect();
    weights.write(0, &bytes).unwrap();
    weights.sync_for_device(0, bytes.len()).unwrap();
    weights
}

/// Chains of two shapes, by turns, from all over the weights.
fn run(accelerator: &mut Accelerator, chains: usize) -> Result<Vec<Vec<f32>>, DriverError> {
    let weights = weights(accelerator);
    let column = vec![3; q8_0_row_bytes(256)];
    let mut all = Vec::new();
    for n in 0..chains {
        let rows = [40, 60][n % 2];
        let mut out = vec![0.0; rows];
        let matmul = MatMul {
            weights: weights.device_addr() + (n * 144 % 4096) as u64,
            ty: WeightType::Q4_K,
            k: 256,
            rows,
            input: 0,
            out: vec![&mut out],
        };
        accelerator.run(&[Input::Q8_0(vec![&column])], &mut [matmul])?;
        all.push(out);
    }
    Ok(all)
}

#[test]
fn a_sample_computes_the_same_and_its_interval_holds_the_whole() {
    let mut full = accelerator(&RTL, &options());
    let before = full.activity().unwrap().cycles;
    let results = run(&mut full, 60).unwrap();
    let cycles = full.activity().unwrap().cycles - before;

    let bits =
        |all: &[Vec<f32>]| -> Vec<u32> { all.iter().flatten().map(|y| y.to_bits()).collect() };
    let mut all = accelerator(&RTL, &sampled(1.0, 0));
    assert_eq!(bits(&run(&mut all, 60).unwrap()), bits(&results));
    let estimate = all.take_sample().unwrap().estimate();
    assert_eq!((estimate.chains, estimate.sampled), (60, 60));
    assert_eq!(estimate.cycles, cycles as f64);

    let mut some = accelerator(&RTL, &sampled(0.2, 3));
    assert_eq!(bits(&run(&mut some, 60).unwrap()), bits(&results));
    let tally: Tally = some.take_sample().unwrap();
    let estimate = tally.estimate();
    assert_eq!(estimate.chains, 60);
    assert!((4..40).contains(&estimate.sampled), "{estimate:?}");
    assert!(estimate.holds(cycles), "{estimate:?} against {cycles}");
    assert_eq!(tally.report().len(), 2);
    assert_eq!(some.take_sample().unwrap().estimate().chains, 0);
}

#[test]
fn an_answer_that_differs_is_told() {
    let options = options();
    let memory = SimMemory::new(
        options.heap_bytes,
        options.heap_base,
        options.coherence,
        options.seed,
    );
    let memory = Arc::new(memory.unwrap());
    let config = ModelConfig {
        max_cols: 4,
        max_k: 16384,
        ..ModelConfig::default()
    };
    let sampling = Sampling { rate: 1.0, seed: 0 };
    let target = Target {
        spec: TargetSpec::Model,
        heap: Heap::new(memory.clone()).unwrap(),
        devices: vec![Box::new(ModelDevice::new(memory.clone(), config))],
        sample: Some(Sample {
            sampling,
            refresh_cycles: 0,
            devices: vec![faulty::device(memory, &options, |header| header.rows == 60)],
        }),
        length_width: options.length_width,
    };
    let mut accelerator = Accelerator::new(target).unwrap();
    match run(&mut accelerator, 2) {
        Err(DriverError::Differs { tag: 2, at: 0, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    for (spec, rate) in [
        (TargetSpec::Model, 0.5),
        (RTL, 0.0),
        (RTL, 1.5),
        (RTL, f64::NAN),
    ] {
        match open(&spec, &sampled(rate, 0)) {
            Err(TargetError::Option {
                option: "sampling", ..
            }) => {}
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{spec} opened with a rate of {rate}"),
        }
    }
}
