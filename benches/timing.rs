//! The timing model's error against the RTL, on random jobs.
//!
//! Prints the tables of `docs/timing.md`: `cargo bench --features rtl-configs --bench timing`, with
//! `-- JOBS SEED` for other than 600 jobs of seed 1.

#[path = "support/timing.rs"]
mod support;

use std::time::Instant;

use support::{Bounds, Draw, Measured, draw, measure, median_and_worst};
use weightstream::memory::PRESETS;
use weightstream::target::TargetSpec;

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let jobs = numbers.first().copied().unwrap_or(600);
    let seed = numbers.get(1).copied().unwrap_or(1);
    let targets: Vec<TargetSpec> = TargetSpec::built()
        .into_iter()
        .filter(|t| *t != TargetSpec::Model)
        .collect();

    println!("| jobs | number | median | worst | worst of more than 2,000 cycles | of one seed |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut all = series(jobs, seed, &targets, None);
    let stalled = |m: &Measured| !m.draw.conditions.stalls.is_empty();
    row("fixed latency: all", all.iter());
    row("without stalls", all.iter().filter(|m| !stalled(m)));
    row("with stalls", all.iter().filter(|m| stalled(m)));
    for target in &targets {
        let of_target = all.iter().filter(|m| m.draw.target == *target);
        row(&target.to_string(), of_target);
    }
    for (n, preset) in PRESETS.iter().enumerate() {
        let dram = series(jobs / 4, seed + 1 + n as u64, &targets, Some(preset.name));
        row(&format!("`{}`: all", preset.name), dram.iter());
        row("without stalls", dram.iter().filter(|m| !stalled(m)));
        all.extend(dram);
    }

    all.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    eprintln!("\nthe worst of more than 2,000 cycles");
    for m in all.iter().filter(|m| m.rtl() > 2000.0).take(12) {
        let Draw {
            target,
            conditions,
            job,
            ..
        } = &m.draw;
        eprintln!(
            "{:+.2} % {target} {job:?} {conditions:?}: RTL {} model {:?}",
            100.0 * m.error(),
            m.rtl(),
            m.model
        );
    }
}

fn series(
    jobs: u64,
    seed: u64,
    targets: &[TargetSpec],
    dram: Option<&'static str>,
) -> Vec<Measured> {
    let bounds = Bounds {
        products: 1 << 20,
        stalls: true,
        dram,
    };
    let start = Instant::now();
    let draws = (0..jobs).map(|index| draw(seed, index, targets, bounds));
    let measured: Vec<Measured> = draws.map(|draw| measure(&draw)).collect();
    let cycles: u64 = measured.iter().flat_map(|m| &m.runs).sum();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{jobs} jobs, {cycles} cycles in {seconds:.0} s");
    measured
}

fn row<'a>(name: &str, of: impl Iterator<Item = &'a Measured> + Clone) {
    let (median, worst) = median_and_worst(of.clone().map(Measured::error));
    let long = of.clone().filter(|m| m.rtl() > 2000.0);
    let (_, worst_long) = median_and_worst(long.clone().map(Measured::error));
    let (_, worst_of_one) = median_and_worst(long.map(Measured::error_of_one));
    println!(
        "| {name} | {} | {:.3} % | {:.2} % | {:.2} % | {:.2} % |",
        of.count(),
        100.0 * median,
        100.0 * worst,
        100.0 * worst_long,
        100.0 * worst_of_one
    );
}
