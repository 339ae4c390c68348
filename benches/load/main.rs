//! Loading beside other ways to load: GB/s and peak resident memory, each in a process of its own,
//! all in turns and from the disk. The file is a synthetic model of more than 4 GiB, which is
//! removed at the end (it lies in Cargo's target folder, or in one that is named), or a file that is
//! named; with the latter, the time to the first token as well.
//!
//! `cargo bench --bench load`, `… -- FOLDER`, `… -- MODEL.gguf`

mod synthetic;
mod ways;

use std::error::Error;
use std::path::{Path, PathBuf};

use ways::{Measured, Way};

const ROUNDS: usize = 5;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some("--way") {
        let (name, model) = (arguments.next(), arguments.next());
        let way = Way::ALL
            .into_iter()
            .find(|w| Some(w.name()) == name.as_deref());
        let (Some(way), Some(model)) = (way, model) else {
            return Err("--way WAY MODEL".into());
        };
        let generate = arguments.next().as_deref() == Some("--generate");
        return way.perform(Path::new(&model), generate);
    }
    let path = PathBuf::from(first.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()));
    if path.is_file() {
        return compare(&path, true);
    }
    let file = tempfile::Builder::new().suffix(".gguf").tempfile_in(path)?;
    synthetic::write(file.path())?;
    compare(file.path(), false)
}

fn compare(model: &Path, generate: bool) -> Outcome<()> {
    let weights = ways::bytes(model)?;
    println!("{:.2} GB of weights, {ROUNDS} rounds", weights as f64 / 1e9);
    let mut rounds: Vec<Vec<Measured>> = Vec::new();
    for _ in 0..ROUNDS {
        let measure = |way: Way| {
            ways::forget(model)?;
            way.measure(model, generate)
        };
        rounds.push(Way::ALL.into_iter().map(measure).collect::<Outcome<_>>()?);
    }
    let speed = |m: &Measured| m.bytes as f64 / 1e9 / m.seconds;
    println!(
        "| way | seconds | GB/s | beside the raw read | peak resident, MiB beside the weights |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for (n, way) in Way::ALL.into_iter().enumerate() {
        let of = |f: &dyn Fn(&Measured) -> f64| spread(rounds.iter().map(|r| f(&r[n])));
        let ratio = spread(rounds.iter().map(|r| speed(&r[n]) / speed(&r[0])));
        let over = of(&|m| (m.peak_resident_bytes as f64 - weights as f64) / (1 << 20) as f64);
        println!(
            "| {} | {} | {} | {} | {:+.0} |",
            way.name(),
            show(of(&|m| m.seconds), 2),
            show(of(&speed), 2),
            show(ratio, 2),
            over[1]
        );
    }
    first_tokens(&rounds);
    Ok(())
}

/// Time from a load's start to the first token. With a copy it is that of `run` in the same round,
/// with the time of `load`, which reads the same weights, exchanged for that of reading and copying.
fn first_tokens(rounds: &[Vec<Measured>]) {
    let measured = |round: &[Measured], way: Way| {
        let at = Way::ALL.iter().position(|w| *w == way);
        round[at.expect("one of all")]
    };
    let of_round = |round: &Vec<Measured>| {
        let run_token = measured(round, Way::Run).first_token_seconds?;
        Some([
            run_token,
            measured(round, Way::Llama).first_token_seconds?,
            run_token + measured(round, Way::Copy).seconds - measured(round, Way::Load).seconds,
        ])
    };
    let Some(seconds) = rounds.iter().map(of_round).collect::<Option<Vec<_>>>() else {
        return;
    };
    println!("| way | seconds to the first token |");
    println!("| --- | --- |");
    for (n, way) in [Way::Run, Way::Llama, Way::Copy].into_iter().enumerate() {
        let spread = spread(seconds.iter().map(|round| round[n]));
        println!("| {} | {} |", way.name(), show(spread, 2));
    }
}

/// Least, median, most.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}

fn show([least, median, most]: [f64; 3], digits: usize) -> String {
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}
