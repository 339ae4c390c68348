//! `weightstream run`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use serde::Serialize;
use weightstream::llama::Token;
use weightstream::target::TargetSpec;

use super::generation::{Generation, GenerationArgs, Keep, Phase, Sampled};
use super::out::{OutputFile, write_json};
use super::report::{megabytes, peak_resident};

/// Generate text with llama.cpp, its matrix products on a target.
///
/// The text goes to stdout as it comes, a summary to stderr when it ends.
#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    generation: GenerationArgs,
    /// Write the logits from which each token was chosen to this file: safetensors, `logits` F32
    /// [steps, vocabulary] and `tokens` I32 [steps].
    #[arg(long, value_name = "FILE")]
    logits: Option<PathBuf>,
    /// Write the summary as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let logits = OutputFile::create("--logits", args.logits.as_deref())?;
    let mut stdout = io::stdout().lock();
    let mut show = |text: &str| {
        let written = stdout.write_all(text.as_bytes());
        written
            .and_then(|()| stdout.flush())
            .context("cannot write to stdout")
    };
    let keep = Keep {
        logits: logits.is_some(),
        ..Keep::default()
    };
    let generation = args.generation.generate(keep, &mut show)?;
    if let Some(file) = logits {
        write_logits(file, &generation)?;
    }
    let report = Report::new(&args.generation.target, &generation);
    report.print();
    write_json(json, &report)?;
    Ok(ExitCode::SUCCESS)
}

fn write_logits(file: OutputFile, generation: &Generation) -> anyhow::Result<()> {
    use safetensors::tensor::{Dtype, TensorView, serialize};
    let logits: Vec<u8> = generation
        .logits
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let tokens: Vec<u8> = generation
        .tokens
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let steps = generation.tokens.len();
    let views = [
        (
            "logits",
            TensorView::new(Dtype::F32, vec![steps, generation.n_vocab], &logits)?,
        ),
        ("tokens", TensorView::new(Dtype::I32, vec![steps], &tokens)?),
    ];
    // Written in place: the crate's own writing replaces what stands at the path.
    file.write(&serialize(views, None)?)
}

#[derive(Serialize)]
struct Report {
    target: String,
    load_seconds: f64,
    /// Bytes read past the page cache, by O_DIRECT and io_uring.
    bytes_read_directly: u64,
    /// Bytes read otherwise.
    bytes_read_plainly: u64,
    /// Why the first of the latter were not read directly.
    why_plainly: Option<String>,
    prompt: Phase,
    decode: Phase,
    /// DMA memory in use: weights, ggml's computations, the driver's own buffers.
    dma_bytes: u64,
    weights_left_to_cpu: Vec<LeftWeight>,
    jobs: u64,
    nonfinite_jobs: u64,
    weight_bytes_streamed: u64,
    peak_resident_bytes: Option<u64>,
    tokens: Vec<Token>,
}

#[derive(Serialize)]
struct LeftWeight {
    name: String,
    r#type: String,
    bytes: u64,
    reason: String,
}

impl Report {
    fn new(target: &TargetSpec, generation: &Generation) -> Report {
        let backend = generation.backend;
        let stats = backend.stats();
        Report {
            target: target.to_string(),
            load_seconds: generation.load_time.as_secs_f64(),
            bytes_read_directly: generation.reads.direct,
            bytes_read_plainly: generation.reads.plain,
            why_plainly: generation.reads.why_plain.clone(),
            prompt: generation.prefill.clone(),
            decode: generation.decode.clone(),
            dma_bytes: generation.dma_bytes,
            weights_left_to_cpu: backend
                .left_to_cpu()
                .into_iter()
                .map(|(name, left)| LeftWeight {
                    name,
                    r#type: left.type_name,
                    bytes: left.bytes,
                    reason: left.reason,
                })
                .collect(),
            jobs: stats.jobs,
            nonfinite_jobs: stats.nonfinite_jobs,
            weight_bytes_streamed: stats.weight_bytes,
            peak_resident_bytes: peak_resident(),
            tokens: generation.tokens.clone(),
        }
    }

    fn print(&self) {
        eprintln!();
        self.prompt.print("prompt");
        self.decode.print("decode");
        eprintln!(
            "{} in DMA buffers, loaded in {:.2} s",
            megabytes(self.dma_bytes),
            self.load_seconds
        );
        if self.bytes_read_directly > 0 {
            eprintln!(
                "{} read with O_DIRECT through io_uring",
                megabytes(self.bytes_read_directly)
            );
        }
        if let Some(why) = &self.why_plainly {
            eprintln!(
                "{} read plainly, for {why}",
                megabytes(self.bytes_read_plainly)
            );
        }
        let mut left: BTreeMap<(&str, &str), (usize, u64)> = BTreeMap::new();
        for weight in &self.weights_left_to_cpu {
            let (count, bytes) = left.entry((&weight.r#type, &weight.reason)).or_default();
            *count += 1;
            *bytes += weight.bytes;
        }
        for ((name, reason), (count, bytes)) in left {
            eprintln!(
                "left to the CPU: {count} weights in {name}, {}: {reason}",
                megabytes(bytes)
            );
        }
        eprintln!(
            "{} jobs, {} of weights streamed",
            self.jobs,
            megabytes(self.weight_bytes_streamed)
        );
        if self.nonfinite_jobs > 0 {
            eprintln!(
                "{} jobs with a result that is not a number, because a scale is not",
                self.nonfinite_jobs
            );
        }
        if let Some(peak) = self.peak_resident_bytes {
            eprintln!("peak resident memory {}", megabytes(peak));
        }
    }
}

impl Phase {
    fn print(&self, what: &str) {
        if self.tokens == 0 {
            return;
        }
        let tokens = self.tokens as f64;
        eprintln!(
            "{what}: {} tokens in {:.2} s, {:.1} tokens/s, {:.0} jobs a token",
            self.tokens,
            self.seconds,
            tokens / self.seconds,
            self.jobs as f64 / tokens
        );
        if let Some(simulated) = self.simulated {
            eprintln!(
                "  {:.0} cycles a token, {:.2} % of them with a beat on the weight bus; \
                 {:.3e} cycles/s, {:.2} s a token",
                simulated.cycles as f64 / tokens,
                100.0 * simulated.bus_use,
                simulated.cycles_per_second,
                self.seconds / tokens
            );
        }
        if let Some(Sampled { estimate, .. }) = &self.sampled {
            eprintln!(
                "  {:.0} ± {:.0} cycles a token (95 %), from {} of {} chains on the RTL, all with the \
                 model's answers",
                estimate.cycles / tokens,
                estimate.half_width / tokens,
                estimate.sampled,
                estimate.chains
            );
        }
    }
}
