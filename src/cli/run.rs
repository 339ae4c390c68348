//! `weightstream run`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args as ClapArgs;
use indicatif::ProgressBar;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;
use weightstream::ggml::Registration;
use weightstream::llama::{
    Context, ContextOptions, Model, Outputs, Sampler, TextStream, Token, register,
};
use weightstream::target::{Activity, TargetSpec};

use super::options::SimulationArgs;
use super::out::{OutputFile, write_json};
use super::report::{count_bar, megabytes, peak_resident};

/// The model that is used when none is named.
static DEFAULT_MODEL: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/models/weightstream-tiny.gguf"
));

/// Most prompt tokens computed at once.
const BATCH: u32 = 512;
/// As much on a cycle-accurate target, where progress should show sooner.
const CYCLE_ACCURATE_BATCH: u32 = 32;

/// Generate text with llama.cpp, its matrix products on a target.
///
/// The text goes to stdout as it comes, a summary to stderr when it ends.
#[derive(ClapArgs)]
pub struct Args {
    /// The model; the default is a tiny one that is built in.
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
    /// Text to go on from, as it is: no chat template is put around it.
    #[arg(short, long, default_value = "Once upon a time")]
    prompt: String,
    /// Most tokens to generate.
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    n_predict: u32,
    /// Target for the matrix products: model, rtl or rtl:CONFIGURATION.
    #[arg(short, long, value_name = "T", default_value_t = TargetSpec::Model)]
    target: TargetSpec,
    /// Leave weights to the CPU whose names match this glob, as in 'blk.*.attn_*'; can be repeated.
    /// By itself the CPU gets what has no room in DMA memory, in whole layers.
    #[arg(long, value_name = "GLOB")]
    leave_to_cpu: Vec<glob::Pattern>,
    /// Tell how much of the time is the kernel's, the driver's and the CPU's.
    #[arg(long)]
    profile: bool,
    /// Temperature of the draw; 0 takes the most likely token.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temp: f32,
    /// Seed of the draw.
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Write the logits from which each token was chosen to this file: safetensors, `logits` F32
    /// [steps, vocabulary] and `tokens` I32 [steps].
    #[arg(long, value_name = "FILE")]
    logits: Option<PathBuf>,
    /// Write the summary as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    ensure!(
        args.temp.is_finite(),
        "--temp {} is not a temperature",
        args.temp
    );
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let logits = OutputFile::create("--logits", args.logits.as_deref())?;
    let accelerator = args.simulation.open(&args.target)?;
    let cycle_accurate = accelerator.activity().is_some();
    let backend = register("weightstream", accelerator)?;
    backend.leave_to_cpu(args.leave_to_cpu.clone());

    let file = ModelFile::open(args.model.as_deref())?;
    let bar = count_bar("loading", 100);
    let start = Instant::now();
    let model = Model::load(&file.path, Some(backend), |done| {
        bar.set_position((done * 100.0) as u64)
    })
    .context("cannot load the model")?;
    let load_time = start.elapsed();
    bar.finish_and_clear();

    let prompt = model.tokenise(&args.prompt)?;
    ensure!(!prompt.is_empty(), "--prompt holds no token to go on from");
    let n_ctx = prompt.len() as u32 + args.n_predict;
    ensure!(
        n_ctx <= model.n_ctx_train(),
        "{} tokens of prompt and {} to generate are more than the model's context of {}",
        prompt.len(),
        args.n_predict,
        model.n_ctx_train()
    );
    let threads = args.simulation.options()?.threads;
    let options = ContextOptions {
        n_ctx,
        n_batch: match cycle_accurate {
            true => CYCLE_ACCURATE_BATCH,
            false => BATCH,
        },
        outputs: Outputs::Last,
        threads: 1,
        threads_batch: threads,
    };
    let mut context = Context::new(&model, Some(backend), options)?;
    let bar = match cycle_accurate {
        true => count_bar("prompt", prompt.len() as u64),
        false => ProgressBar::hidden(),
    };
    let generation = generate(&args, &model, &mut context, backend, &prompt, &bar)?;

    if let Some(file) = logits {
        write_logits(file, &generation, model.n_vocab())?;
    }
    let report = Report::new(&args, backend, load_time, &generation);
    report.print();
    if args.profile {
        eprintln!("{}", backend.profile());
    }
    write_json(json, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// A model's file, or the built-in model as a file in memory, so that both are read in one way.
struct ModelFile {
    path: PathBuf,
    /// Keeps `path` valid.
    _memory: Option<File>,
}

impl ModelFile {
    fn open(path: Option<&Path>) -> anyhow::Result<ModelFile> {
        if let Some(path) = path {
            return Ok(ModelFile {
                path: path.into(),
                _memory: None,
            });
        }
        let mut file = File::from(memfd_create("weightstream-tiny", MemfdFlags::CLOEXEC)?);
        file.write_all(DEFAULT_MODEL)?;
        Ok(ModelFile {
            path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            _memory: Some(file),
        })
    }
}

/// What a generation came to.
struct Generation {
    tokens: Vec<Token>,
    /// Of each token, if they are to be written.
    logits: Vec<f32>,
    prefill: Phase,
    decode: Phase,
}

/// What a part of the work took.
#[derive(Clone, Copy, Default, Serialize)]
struct Phase {
    /// Tokens computed.
    tokens: usize,
    seconds: f64,
    jobs: u64,
    /// On a cycle-accurate target.
    simulated: Option<Simulated>,
}

/// What a cycle-accurate target did meanwhile.
#[derive(Clone, Copy, Serialize)]
struct Simulated {
    /// Of the engine that took most.
    cycles: u64,
    /// Of all engines, on the bus that weights come in by.
    mm2s_beats: u64,
    /// The part of all engines' cycles that had such a beat.
    bus_use: f64,
    /// Simulated cycles a second of the simulator's own time.
    cycles_per_second: f64,
}

impl Simulated {
    fn between(start: Activity, end: Activity, engines: usize) -> Simulated {
        let (cycles, mm2s_beats) = (end.cycles - start.cycles, end.mm2s_beats - start.mm2s_beats);
        Simulated {
            cycles,
            mm2s_beats,
            bus_use: mm2s_beats as f64 / (cycles.max(1) * engines as u64) as f64,
            cycles_per_second: cycles as f64 / (end.seconds - start.seconds).max(1e-9),
        }
    }
}

/// Measures phases one after the other.
struct Meter {
    backend: Registration,
    start: Instant,
    jobs: u64,
    activity: Option<Activity>,
}

impl Meter {
    fn start(backend: Registration) -> Meter {
        Meter {
            backend,
            start: Instant::now(),
            jobs: backend.stats().jobs,
            activity: backend.activity(),
        }
    }

    fn stop(self, tokens: usize) -> Phase {
        let simulated = self.activity.zip(self.backend.activity());
        Phase {
            tokens,
            seconds: self.start.elapsed().as_secs_f64(),
            jobs: self.backend.stats().jobs - self.jobs,
            simulated: simulated
                .map(|(start, end)| Simulated::between(start, end, self.backend.engines())),
        }
    }
}

fn generate(
    args: &Args,
    model: &Model,
    context: &mut Context<'_>,
    backend: Registration,
    prompt: &[Token],
    bar: &ProgressBar,
) -> anyhow::Result<Generation> {
    let mut sampler = Sampler::new(args.temp, args.seed);
    let mut kept = Vec::new();
    let mut keep = |logits: &[f32]| {
        if args.logits.is_some() {
            kept.extend_from_slice(logits);
        }
    };

    let meter = Meter::start(backend);
    context.decode(prompt, |done, logits| {
        bar.set_position(done as u64);
        keep(logits);
    })?;
    let prefill = meter.stop(prompt.len());
    bar.finish_and_clear();

    let mut stdout = io::stdout().lock();
    let mut text = TextStream::default();
    let mut show = |text: &str| {
        let written = stdout.write_all(text.as_bytes());
        written
            .and_then(|()| stdout.flush())
            .context("cannot write to stdout")
    };
    show(&args.prompt)?;
    let meter = Meter::start(backend);
    let mut tokens = Vec::new();
    let mut decoded = 0;
    loop {
        let token = sampler.sample(context);
        tokens.push(token);
        if model.is_end(token) {
            break;
        }
        show(&text.push(&model.piece(token)?))?;
        if tokens.len() == args.n_predict as usize {
            break;
        }
        context.decode(&[token], |_, logits| keep(logits))?;
        decoded += 1;
    }
    let decode = meter.stop(decoded);
    show(&text.finish())?;
    show("\n")?;
    Ok(Generation {
        tokens,
        logits: kept,
        prefill,
        decode,
    })
}

fn write_logits(file: OutputFile, generation: &Generation, n_vocab: usize) -> anyhow::Result<()> {
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
            TensorView::new(Dtype::F32, vec![steps, n_vocab], &logits)?,
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
    fn new(
        args: &Args,
        backend: Registration,
        load_time: Duration,
        generation: &Generation,
    ) -> Report {
        let stats = backend.stats();
        let heap = backend.heap();
        Report {
            target: args.target.to_string(),
            load_seconds: load_time.as_secs_f64(),
            prompt: generation.prefill,
            decode: generation.decode,
            dma_bytes: heap.total() - heap.free(),
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
    }
}
