//! Tokens a second with the matrix products on the behavioural model, against llama.cpp's own CPU
//! backend with as many threads. Both take turns in one run, so that what else the machine does
//! falls on both.
//!
//! `cargo bench --bench decode -- MODEL.gguf`

mod support;

use std::time::Instant;

use support::{Outcome, THREADS, model_path, with_both};
use weightstream::llama::{Context, Outputs, Token};

const ROUNDS: usize = 9;
const PROMPT: usize = 128;
const DECODED: usize = 64;

/// Tokens a second of one side in one round.
struct Speed {
    prefill: f64,
    decode: f64,
}

fn main() -> Outcome<()> {
    let Some(path) = model_path() else {
        return Ok(());
    };
    with_both(
        &path,
        (PROMPT + DECODED) as u32,
        Outputs::Last,
        |cpu, streamed, tokens| {
            println!("{}, {THREADS} threads each", path.display());
            measure(cpu, tokens)?;
            measure(streamed, tokens)?;
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push((measure(cpu, tokens)?, measure(streamed, tokens)?));
            }
            report("prefill", &rounds, |s| s.prefill);
            report("decode", &rounds, |s| s.decode);
            Ok(())
        },
    )
}

/// One prompt and the tokens after it, one by one.
fn measure(context: &mut Context<'_>, tokens: &[Token]) -> Outcome<Speed> {
    context.clear();
    let (prompt, rest) = tokens.split_at(PROMPT);
    let start = Instant::now();
    context.decode(prompt, |_, _| {})?;
    let prefill = PROMPT as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for token in &rest[..DECODED] {
        context.decode(std::slice::from_ref(token), |_, _| {})?;
    }
    let decode = DECODED as f64 / start.elapsed().as_secs_f64();
    Ok(Speed { prefill, decode })
}

fn report(what: &str, rounds: &[(Speed, Speed)], of: impl Fn(&Speed) -> f64) {
    let cpu = spread(rounds.iter().map(|r| of(&r.0)));
    let streamed = spread(rounds.iter().map(|r| of(&r.1)));
    let ratio = spread(rounds.iter().map(|r| of(&r.1) / of(&r.0)));
    println!(
        "{what}: CPU backend {} tokens/s, streamed {} tokens/s, ratio {}",
        show(cpu, 1),
        show(streamed, 1),
        show(ratio, 3)
    );
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
