//! How far the logits with streamed matrix products are from those of llama.cpp's CPU backend, and
//! what the difference does to a text's perplexity.
//!
//! `cargo bench --bench accuracy -- MODEL.gguf`

mod support;

use support::{Outcome, model_path, with_both};
use weightstream::llama::{Context, Outputs, Token};

/// Tokens whose logits are compared.
const COMPARED: usize = 128;

fn main() -> Outcome<()> {
    let Some(path) = model_path() else {
        return Ok(());
    };
    with_both(&path, 1024, Outputs::All, |cpu, streamed, tokens| {
        println!("{}", path.display());
        let (a, b) = (logits(cpu, tokens)?, logits(streamed, tokens)?);
        let n_vocab = a.len() / tokens.len();
        let compared = ..COMPARED * n_vocab;
        println!(
            "logit NMSE over {COMPARED} tokens: {:.3e}",
            nmse(&b[compared], &a[compared])
        );
        let agree = (0..tokens.len())
            .filter(|t| {
                let row = t * n_vocab..(t + 1) * n_vocab;
                most_likely(&a[row.clone()]) == most_likely(&b[row])
            })
            .count();
        println!("same most likely token: {agree} of {}", tokens.len());
        println!(
            "perplexity of {} tokens: CPU backend {:.4}, streamed {:.4}",
            tokens.len(),
            perplexity(&a, tokens),
            perplexity(&b, tokens)
        );
        Ok(())
    })
}

/// The logits after each of `tokens`.
fn logits(context: &mut Context<'_>, tokens: &[Token]) -> Outcome<Vec<f32>> {
    let mut all = Vec::new();
    context.clear();
    context.decode(tokens, |_, logits| all.extend_from_slice(logits))?;
    Ok(all)
}

/// Mean squared error over the mean square of what is expected.
fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let pairs = found.iter().zip(expected);
    let error: f64 = pairs
        .map(|(a, b)| square(f64::from(*a) - f64::from(*b)))
        .sum();
    error / expected.iter().map(|b| square(f64::from(*b))).sum::<f64>()
}

fn most_likely(logits: &[f32]) -> Option<usize> {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
}

/// e to the mean negative log-likelihood of each token after the first, given those before it.
fn perplexity(logits: &[f32], tokens: &[Token]) -> f64 {
    let n_vocab = logits.len() / tokens.len();
    let predicted = logits.chunks_exact(n_vocab).zip(&tokens[1..]);
    let loss: f64 = predicted
        .map(|(logits, &token)| {
            let most = logits.iter().fold(f32::NEG_INFINITY, |m, &l| m.max(l));
            let sum: f64 = logits.iter().map(|&l| f64::from(l - most).exp()).sum();
            sum.ln() - f64::from(logits[token as usize] - most)
        })
        .sum();
    (loss / (tokens.len() - 1) as f64).exp()
}
