//! Sampled simulation and the timing model against a full run of a model on the RTL, and a token of
//! a synthetic model of 7 B from a sample.
//!
//! Every chain of some tokens runs on the RTL once. Then twenty samples are drawn from these chains
//! with different seeds, as `--sample` draws them, each with its estimate and interval.
//!
//! `cargo bench --bench sample -- MODEL.gguf [MEMORY]`, where MEMORY is a DRAM (`ddr4-2400@300`) or
//! stalls (`all=10`) in place of a fixed latency; without a model, the synthetic one.

#[allow(dead_code)] // each bench uses its part
mod support;

use std::path::Path;
use std::time::Instant;

use support::{Outcome, model_path};
use weightstream::driver::{Accelerator, Input, MatMul};
use weightstream::llama::{Context, ContextOptions, Model, Outputs, register};
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::sample::{Sampling, Tally};
use weightstream::target::{Conditions, TargetOptions, TargetSpec, open};
use weightstream::timing::{self, Config, Job};

/// Tokens of the full run.
const TOKENS: usize = 3;
const SEEDS: u64 = 20;

fn main() -> Outcome<()> {
    let Some(path) = model_path() else {
        return synthetic();
    };
    let mut conditions = Conditions::default();
    let memory = std::env::args().skip(2).find(|word| !word.starts_with('-'));
    match &memory {
        Some(stalls) if stalls.contains('=') => conditions.stalls = stalls.parse()?,
        Some(dram) => conditions.dram = Some(dram.parse()?),
        None => {}
    }
    let name = memory.as_deref().unwrap_or("fixed latency");
    println!("{}, {name}, {TOKENS} tokens", path.display());
    let full = full_run(&path, &conditions)?;
    timing_model(&full, &conditions)?;
    for rate in [0.02, 0.1] {
        samples(&full, &conditions, rate);
    }
    Ok(())
}

/// All chains of some tokens on the RTL.
fn full_run(path: &Path, conditions: &Conditions) -> Outcome<Tally> {
    let accelerator = sampled(1.0, conditions)?;
    let backend = register("sampled", accelerator)?;
    let model = Model::load(path, Some(backend), |_| {})?;
    let prompt = model.tokenise("The capital of France is")?;
    let options = ContextOptions {
        n_ctx: 64,
        n_batch: 32,
        outputs: Outputs::Last,
        threads: 1,
        threads_batch: 2,
    };
    let mut context = Context::new(&model, Some(backend), options)?;
    context.decode(&prompt[..1], |_, _| {})?;
    backend.take_sample();
    let start = Instant::now();
    for token in prompt.iter().cycle().take(TOKENS) {
        context.decode(std::slice::from_ref(token), |_, _| {})?;
    }
    let tally = backend.take_sample().ok_or("nothing was sampled")?;
    let estimate = tally.estimate();
    println!(
        "{} chains, {} cycles, all on the RTL in {:.0} s",
        estimate.chains,
        estimate.sampled_cycles,
        start.elapsed().as_secs_f64()
    );
    Ok(tally)
}

fn sampled(rate: f64, conditions: &Conditions) -> Outcome<Accelerator> {
    let options = TargetOptions {
        conditions: conditions.clone(),
        sampling: Some(Sampling { rate, seed: 1 }),
        ..TargetOptions::default()
    };
    Ok(Accelerator::new(open(&TargetSpec::Rtl(None), &options)?)?)
}

/// The timing model's cycles beside the RTL's, of each kind of chain and of all.
fn timing_model(full: &Tally, conditions: &Conditions) -> Outcome<()> {
    let start = Instant::now();
    let model = timing::Accelerator::new(&Config::new(16, 1), conditions);
    println!("\n| chain | chains | cycles, RTL, mean | least | most | timing model | error |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut rtl, mut said) = (0, 0);
    for (shapes, chains, cycles) in full.strata() {
        let jobs: Vec<Job> = shapes.iter().copied().map(Job::from).collect();
        let total = model.chain(&jobs)?.total;
        let sum: u64 = cycles.iter().sum();
        let mean = sum as f64 / cycles.len() as f64;
        let names: Vec<String> = shapes.iter().map(ToString::to_string).collect();
        println!(
            "| {} | {chains} | {mean:.1} | {} | {} | {total} | {:+.3} % |",
            names.join("; "),
            cycles.iter().min().unwrap_or(&0),
            cycles.iter().max().unwrap_or(&0),
            100.0 * (total as f64 / mean - 1.0)
        );
        rtl += sum;
        said += total * chains;
    }
    println!(
        "\na token: RTL {}, timing model {}, error {:+.4} %, computed in {:.0} ms\n",
        rtl / TOKENS as u64,
        said / TOKENS as u64,
        100.0 * (said as f64 / rtl as f64 - 1.0),
        1e3 * start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Samples of the recorded chains, each drawn anew.
fn samples(full: &Tally, conditions: &Conditions, rate: f64) {
    let whole = full.estimate().sampled_cycles;
    let (mut held, mut widest, mut share) = (0, 0f64, 0.0);
    for seed in 1..=SEEDS {
        let mut tally = Tally::new(Sampling { rate, seed }, conditions.refresh_cycles());
        for (shapes, _, cycles) in full.strata() {
            for &cycles in cycles {
                if tally.draw(shapes) {
                    tally.measured(shapes, cycles);
                }
            }
        }
        let estimate = tally.estimate();
        held += u64::from(estimate.holds(whole));
        widest = widest.max(estimate.half_width / whole as f64);
        share += estimate.sampled_cycles as f64 / whole as f64 / SEEDS as f64;
    }
    println!(
        "rate {rate}: the interval holds the whole in {held} of {SEEDS} seeds, \
         half its width at most {:.4} % of it, {:.1} % of the cycles simulated",
        100.0 * widest,
        100.0 * share
    );
}

/// The shape of LLaMA2-7B, in Q4_0 with a Q6_K output matrix.
const LAYERS: usize = 32;
const WIDTH: usize = 4096;
const HIDDEN: usize = 11008;
const VOCABULARY: usize = 32000;

/// A token of a model of random weights, which all layers share.
fn synthetic() -> Outcome<()> {
    let mut accelerator = sampled(0.02, &Conditions::default())?;
    let output = WeightType::Q6_K;
    let bytes = VOCABULARY * output.row_bytes(WIDTH).ok_or("whole blocks")?;
    // Fresh memory holds random bytes, which are weights as good as any.
    let weights = accelerator.heap().alloc(bytes)?;
    weights.sync_for_device(0, bytes)?;
    let column: Vec<u8> = (0..q8_0_row_bytes(HIDDEN)).map(|n| n as u8).collect();
    let start = Instant::now();
    let mut chain = |ty: WeightType, k: usize, rows: &[usize]| -> Outcome<()> {
        let mut results: Vec<Vec<f32>> = rows.iter().map(|n| vec![0.0; *n]).collect();
        let mut matmuls: Vec<MatMul> = results
            .iter_mut()
            .map(|out| MatMul {
                weights: weights.device_addr(),
                ty,
                k,
                rows: out.len(),
                input: 0,
                out: vec![out],
            })
            .collect();
        let column = &column[..q8_0_row_bytes(k)];
        Ok(accelerator.run(&[Input::Q8_0(vec![column])], &mut matmuls)?)
    };
    for _ in 0..LAYERS {
        chain(WeightType::Q4_0, WIDTH, &[WIDTH; 3])?;
        chain(WeightType::Q4_0, WIDTH, &[WIDTH])?;
        chain(WeightType::Q4_0, WIDTH, &[HIDDEN; 2])?;
        chain(WeightType::Q4_0, HIDDEN, &[WIDTH])?;
    }
    chain(output, WIDTH, &[VOCABULARY])?;
    let seconds = start.elapsed().as_secs_f64();
    let tally = accelerator.take_sample().ok_or("nothing was sampled")?;
    let estimate = tally.estimate();
    let model = timing::Accelerator::new(&Config::new(16, 1), &Conditions::default());
    let mut said = 0;
    for (shapes, chains, _) in tally.strata() {
        let jobs: Vec<Job> = shapes.iter().copied().map(Job::from).collect();
        said += model.chain(&jobs)?.total * chains;
    }
    println!(
        "\nsynthetic 7B: {:.0} ± {:.0} cycles a token, from {} of {} chains, {} cycles, in {seconds:.0} s; \
         timing model {said}",
        estimate.cycles,
        estimate.half_width,
        estimate.sampled,
        estimate.chains,
        estimate.sampled_cycles
    );
    Ok(())
}
