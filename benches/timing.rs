//! The timing model's error against the RTL, on random jobs.
//!
//! Prints the tables of `docs/timing.md`: `cargo bench --features rtl-configs --bench timing`, with
//! `-- JOBS SEED` for other than 600 jobs of seed 1.

#[path = "support/timing.rs"]
mod support;

use std::time::Instant;

use support::{Bounds, Measured, draw, measure, median_and_worst};
use weightstream::target::TargetSpec;

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let (jobs, seed) = (
        numbers.first().copied().unwrap_or(600),
        numbers.get(1).copied().unwrap_or(1),
    );
    let targets: Vec<TargetSpec> = TargetSpec::built()
        .into_iter()
        .filter(|t| *t != TargetSpec::Model)
        .collect();
    let bounds = Bounds {
        products: 1 << 20,
        stalls: true,
    };
    let start = Instant::now();
    let measured: Vec<Measured> = (0..jobs)
        .map(|index| measure(&draw(seed, index, &targets, bounds)))
        .collect();
    let cycles: u64 = measured.iter().map(|m| m.rtl).sum();
    eprintln!(
        "{jobs} jobs, {cycles} cycles in {:.0} s",
        start.elapsed().as_secs_f64()
    );

    println!("| jobs | number | median | worst | worst of those of more than 2,000 cycles |");
    println!("| --- | --- | --- | --- | --- |");
    let stalled = |m: &Measured| !m.draw.conditions.stalls.is_empty();
    let row = |name: &str, select: &dyn Fn(&Measured) -> bool| {
        let of: Vec<&Measured> = measured.iter().filter(|m| select(m)).collect();
        let (median, worst) = median_and_worst(of.iter().map(|m| m.error()));
        let long = of.iter().filter(|m| m.rtl > 2000).map(|m| m.error());
        let (_, worst_long) = median_and_worst(long);
        println!(
            "| {name} | {} | {:.3} % | {:.2} % | {:.2} % |",
            of.len(),
            100.0 * median,
            100.0 * worst,
            100.0 * worst_long
        );
    };
    row("all", &|_| true);
    row("without stalls", &|m| !stalled(m));
    row("with stalls", &stalled);
    for target in &targets {
        row(&target.to_string(), &|m| m.draw.target == *target);
    }

    let mut worst: Vec<&Measured> = measured.iter().collect();
    worst.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    eprintln!("\nthe ten worst");
    for m in worst.iter().take(10) {
        eprintln!(
            "{:+.2} % {} {:?} latency {} stalls {:?}: RTL {} model {:?}",
            100.0 * m.error(),
            m.draw.target,
            m.draw.job,
            m.draw.conditions.latency,
            m.draw.conditions.stalls,
            m.rtl,
            m.model
        );
    }
}
