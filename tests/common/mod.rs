//! What the integration tests share: targets to run on, golden cases as material.

#![allow(dead_code)] // each test binary uses its part

use std::path::Path;

use weightstream::dma::{Buffer, Coherence};
use weightstream::driver::{Accelerator, DriverError, Input, MatMul};
use weightstream::target::{Fault, TargetOptions, TargetSpec, open};
use weightstream::vectors::{self, Case};

/// Options of a small target, with memory in strict mode.
pub fn options() -> TargetOptions {
    TargetOptions {
        heap_bytes: 256 << 20,
        coherence: Coherence::Strict,
        threads: 2,
        ..TargetOptions::default()
    }
}

pub fn with_fault(fault: Fault) -> TargetOptions {
    TargetOptions {
        faults: vec![fault],
        ..options()
    }
}

pub fn accelerator(spec: &TargetSpec, options: &TargetOptions) -> Accelerator {
    let target = open(spec, options).unwrap_or_else(|e| panic!("{spec}: {e}"));
    Accelerator::new(target).unwrap_or_else(|e| panic!("{spec}: {e}"))
}

/// Runs `test` on every target of this build.
pub fn on_all(test: impl Fn(&TargetSpec)) {
    for spec in TargetSpec::built() {
        println!("target {spec}");
        test(&spec);
    }
}

/// The golden case of that name.
pub fn case(name: &str) -> Case {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(format!("{name}.safetensors"));
    Case::read(path).unwrap_or_else(|e| panic!("{e}"))
}

/// All golden cases that `accelerator`'s kernel can run.
pub fn cases(accelerator: &Accelerator) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let files = vectors::files(&folder).unwrap_or_else(|e| panic!("{e}"));
    let cases = files
        .iter()
        .map(|f| Case::read(f).unwrap_or_else(|e| panic!("{e}")));
    cases
        .filter(|c| accelerator.capabilities().supports(c.ty, c.k))
        .collect()
}

/// Puts `bytes` into DMA memory, `at` bytes from a bus word, for the device to read.
pub fn place(accelerator: &Accelerator, bytes: &[u8], at: usize) -> Buffer {
    let buffer = accelerator.heap().alloc(at + bytes.len()).unwrap();
    buffer.write(at, bytes).unwrap();
    buffer.sync_for_device(0, buffer.len()).unwrap();
    buffer
}

/// Runs one case as it is, with its weights where they were placed.
pub fn run_case(
    accelerator: &mut Accelerator,
    case: &Case,
    weights: u64,
) -> Result<Vec<f32>, DriverError> {
    let mut results = vec![0f32; case.rows * case.cols];
    let matmul = MatMul {
        weights,
        ty: case.ty,
        k: case.k,
        rows: case.rows,
        input: 0,
        out: results.chunks_exact_mut(case.rows).collect(),
    };
    accelerator.run(&[columns(case)], &mut [matmul])?;
    Ok(results)
}

pub fn columns(case: &Case) -> Input<'_> {
    Input::Q8_0((0..case.cols).map(|c| case.column(c)).collect())
}

/// The bits of `results`, to compare with `Case::expected`.
pub fn bits(results: &[f32]) -> Vec<u32> {
    results.iter().map(|y| y.to_bits()).collect()
}

/// Shows that `accelerator` still computes: a good job gives the right bits.
pub fn assert_works(accelerator: &mut Accelerator) {
    let case = case("q4_1_small");
    let weights = place(accelerator, &case.weights, 5);
    let results = run_case(accelerator, &case, weights.device_addr() + 5);
    assert_eq!(bits(&results.expect("a good job runs")), case.expected);
}
