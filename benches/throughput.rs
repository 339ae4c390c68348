//! How much of the bus the RTL uses: for each type and shape the beats used over cycles in the
//! steady state and the fixed cost of a job; what several columns take against the lanes' bound;
//! and the idle beats between the jobs of a chain. Cycles are deterministic, so one run tells.
//!
//! Prints the tables of `docs/measurements.md`:
//! `cargo bench --features rtl-configs --bench throughput`.

use weightstream::dma::Buffer;
use weightstream::driver::{Accelerator, Input, MatMul};
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::regs::kernel;
use weightstream::target::{TargetOptions, TargetSpec, open};

/// k and rows of matrices in SmolLM2, Gemma 3 270M and models of 7 to 8 B.
const SHAPES: [(usize, usize); 5] = [
    (576, 576),
    (1536, 576),
    (640, 2048),
    (4096, 4096),
    (14336, 4096),
];
/// Weight bytes of a measured job; a slice of the rows is enough for the steady state.
const JOB_BYTES: usize = 400_000;
/// Weights of a measured job of several columns.
const COLUMNS_WEIGHTS: usize = 300_000;

struct Bench {
    accelerator: Accelerator,
    weights: Buffer,
    activations: Vec<u8>,
}

impl Bench {
    fn new(target: &TargetSpec) -> Bench {
        let options = TargetOptions {
            heap_bytes: 64 << 20,
            ..TargetOptions::default()
        };
        let opened = open(target, &options).expect("the target opens");
        let accelerator = Accelerator::new(opened).expect("the driver starts");
        let weights = accelerator
            .heap()
            .alloc(4 << 20)
            .expect("the heap has room");
        let random: Vec<u8> = (0..weights.len() as u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        weights
            .write(0, &random)
            .and_then(|()| weights.sync_for_device(0, random.len()))
            .expect("they fit");
        let activations = random[..q8_0_row_bytes(14336)].to_vec();
        Bench {
            accelerator,
            weights,
            activations,
        }
    }

    /// Runs `jobs` equal products as one chain; returns the kernel's busy cycles and the beats in.
    fn run(
        &mut self,
        ty: WeightType,
        k: usize,
        rows: usize,
        cols: usize,
        jobs: usize,
    ) -> (f64, f64) {
        let column = &self.activations[..q8_0_row_bytes(k)];
        let mut results = vec![vec![0f32; rows * cols]; jobs];
        let mut matmuls: Vec<MatMul> = results
            .iter_mut()
            .map(|out| MatMul {
                weights: self.weights.device_addr(),
                ty,
                k,
                rows,
                input: 0,
                out: out.chunks_exact_mut(rows).collect(),
            })
            .collect();
        let before = counters(&mut self.accelerator);
        self.accelerator
            .run(&[Input::Q8_0(vec![column; cols])], &mut matmuls)
            .expect("the chain runs");
        let after = counters(&mut self.accelerator);
        (after.0 - before.0, after.1 - before.1)
    }
}

/// The kernel's busy cycles and its beats in.
fn counters(accelerator: &mut Accelerator) -> (f64, f64) {
    let engine = accelerator.engine(0);
    let mut read = |offset| engine.counter(offset).expect("the counters are read") as f64;
    (read(kernel::BUSY_CYCLES), read(kernel::BEATS_IN))
}

/// Rows of `k` weights that make about [`JOB_BYTES`].
fn slice(ty: WeightType, k: usize, rows: usize) -> Option<usize> {
    let row_bytes = ty.row_bytes(k)?;
    Some(rows.min(JOB_BYTES / row_bytes))
}

fn main() {
    let rtl: Vec<_> = TargetSpec::built()
        .into_iter()
        .filter(|t| *t != TargetSpec::Model)
        .collect();
    for target in &rtl {
        let mut bench = Bench::new(target);
        one_column(target, &mut bench);
        columns(target, &mut bench);
    }
    chains(&mut Bench::new(&rtl[0]));
}

fn one_column(target: &TargetSpec, bench: &mut Bench) {
    println!("\n### {target}: one column, beats used over cycles (fixed cycles a job)\n");
    print!("| type |");
    SHAPES.iter().for_each(|(k, rows)| print!(" {k}×{rows} |"));
    println!("\n| --- |{}", " --- |".repeat(SHAPES.len()));
    for ty in WeightType::all() {
        print!("| {ty} |");
        for (k, rows) in SHAPES {
            let Some(rows) = slice(ty, k, rows) else {
                print!(" – |");
                continue;
            };
            let (half, half_beats) = bench.run(ty, k, rows / 2, 1, 1);
            let (whole, beats) = bench.run(ty, k, rows, 1, 1);
            let steady = (beats - half_beats) / (whole - half);
            let row = (whole - half) / (rows - rows / 2) as f64;
            let fixed = whole - row * rows as f64;
            print!(" {:.2} % ({fixed:.0}) |", 100.0 * steady);
        }
        println!();
    }
}

fn columns(target: &TargetSpec, bench: &mut Bench) {
    let capabilities = bench.accelerator.capabilities();
    let (cols, lanes) = (capabilities.max_cols, capabilities.blocks_per_cycle);
    println!("\n### {target}: {cols} columns, cycles over the bound\n");
    println!(
        "The bound is blocks of 32 weights × columns ÷ {lanes}, or the beats if they are more.\n"
    );
    print!("| type |");
    SHAPES.iter().for_each(|(k, _)| print!(" k {k} |"));
    println!("\n| --- |{}", " --- |".repeat(SHAPES.len()));
    for ty in WeightType::all() {
        print!("| {ty} |");
        for (k, _) in SHAPES {
            if ty.row_bytes(k).is_none() {
                print!(" – |");
                continue;
            }
            let rows = COLUMNS_WEIGHTS / k / 2 * 2;
            let (half, half_beats) = bench.run(ty, k, rows / 2, cols, 1);
            let (whole, beats) = bench.run(ty, k, rows, cols, 1);
            let slots = (rows / 2 * k / 32 * cols) as f64 / lanes as f64;
            let bound = slots.max(beats - half_beats);
            print!(" {:+.2} % |", 100.0 * ((whole - half) / bound - 1.0));
        }
        println!();
    }
}

fn chains(bench: &mut Bench) {
    println!(
        "\n### Chains: cycles without a beat between jobs that share activations, k 576, 192 rows\n"
    );
    println!(
        "| type | a job more in the chain costs, cycles | its beats | idle |\n| --- | --- | --- | --- |"
    );
    for ty in WeightType::all().filter(|ty| ty.row_bytes(576).is_some()) {
        let (few, few_beats) = bench.run(ty, 576, 192, 1, 4);
        let (many, beats) = bench.run(ty, 576, 192, 1, 24);
        let (cycles, beats) = ((many - few) / 20.0, (beats - few_beats) / 20.0);
        println!(
            "| {ty} | {cycles:.1} | {beats:.1} | {:.1} |",
            cycles - beats
        );
    }
}
