//! Generating text: what `run` and `profile` share.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
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
use weightstream::loader::Reads;
use weightstream::sample::{Estimate, StratumReport};
use weightstream::target::{Activity, TargetSpec};

use super::options::SimulationArgs;
use super::report::count_bar;

/// The model that is used when none is named.
static DEFAULT_MODEL: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/models/weightstream-tiny.gguf"
));

/// Most prompt tokens computed at once.
const BATCH: u32 = 512;
/// As much on a cycle-accurate target, where progress should show sooner.
const CYCLE_ACCURATE_BATCH: u32 = 32;

/// A model, a text and a target.
#[derive(ClapArgs)]
pub struct GenerationArgs {
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
    pub target: TargetSpec,
    /// Leave weights to the CPU whose names match this glob, as in 'blk.*.attn_*'; can be repeated.
    /// By itself the CPU gets what has no room in DMA memory, in whole layers.
    #[arg(long, value_name = "GLOB")]
    leave_to_cpu: Vec<glob::Pattern>,
    /// Temperature of the draw; 0 takes the most likely token.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temp: f32,
    /// Seed of the draw.
    #[arg(long, default_value_t = 0)]
    seed: u32,
    #[command(flatten)]
    simulation: SimulationArgs,
}

/// What is to be kept of a generation.
#[derive(Clone, Copy, Default)]
pub struct Keep {
    pub logits: bool,
    /// What each job takes, in the backend's recording.
    pub jobs: bool,
}

impl GenerationArgs {
    /// The model as it is called in reports: its file's name.
    pub fn model_name(&self) -> String {
        let file = self.model.as_deref().map(Path::file_name);
        file.map_or("the built-in model".into(), |name| {
            name.unwrap_or_default().to_string_lossy().into_owned()
        })
    }

    /// Loads the model and generates; `show` gets the text as it comes.
    pub fn generate(
        &self,
        keep: Keep,
        show: &mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Generation> {
        ensure!(
            self.temp.is_finite(),
            "--temp {} is not a temperature",
            self.temp
        );
        let accelerator = self.simulation.open(&self.target)?;
        let cycle_accurate = accelerator.activity().is_some();
        let backend = register("weightstream", accelerator)?;
        backend.leave_to_cpu(self.leave_to_cpu.clone());

        let file = ModelFile::open(self.model.as_deref())?;
        let bar = count_bar("loading", 100);
        let start = Instant::now();
        let model = Model::load(&file.path, Some(backend), |done| {
            bar.set_position((done * 100.0) as u64)
        })
        .context("cannot load the model")?;
        let load_time = start.elapsed();
        bar.finish_and_clear();

        let prompt = model.tokenise(&self.prompt)?;
        ensure!(!prompt.is_empty(), "--prompt holds no token to go on from");
        let mut context = self.context(&model, backend, prompt.len(), cycle_accurate)?;
        let bar = match cycle_accurate {
            true => count_bar("prompt", prompt.len() as u64),
            false => ProgressBar::hidden(),
        };
        if keep.jobs {
            backend.record();
        }
        let mut logits = Vec::new();
        let mut take = |of_batch: &[f32]| {
            if keep.logits {
                logits.extend_from_slice(of_batch);
            }
        };

        let meter = Meter::start(backend);
        context.decode(&prompt, |done, logits| {
            bar.set_position(done as u64);
            take(logits);
        })?;
        let prefill = meter.stop(prompt.len());
        bar.finish_and_clear();

        show(&self.prompt)?;
        let mut sampler = Sampler::new(self.temp, self.seed);
        let mut text = TextStream::default();
        let meter = Meter::start(backend);
        let mut tokens = Vec::new();
        let mut decoded = 0;
        loop {
            let token = sampler.sample(&context);
            tokens.push(token);
            if model.is_end(token) {
                break;
            }
            show(&text.push(&model.piece(token)?))?;
            if tokens.len() == self.n_predict as usize {
                break;
            }
            context.decode(&[token], |_, logits| take(logits))?;
            decoded += 1;
        }
        let decode = meter.stop(decoded);
        show(&text.finish())?;
        show("\n")?;
        let heap = backend.heap();
        Ok(Generation {
            backend,
            load_time,
            dma_bytes: heap.total() - heap.free(),
            reads: model.reads().clone(),
            n_vocab: model.n_vocab(),
            tokens,
            logits,
            prefill,
            decode,
        })
    }

    /// A context for the prompt and what is to be generated.
    fn context<'m>(
        &self,
        model: &'m Model,
        backend: Registration,
        prompt: usize,
        cycle_accurate: bool,
    ) -> anyhow::Result<Context<'m>> {
        let n_ctx = prompt as u32 + self.n_predict;
        ensure!(
            n_ctx <= model.n_ctx_train(),
            "{prompt} tokens of prompt and {} to generate are more than the model's context of {}",
            self.n_predict,
            model.n_ctx_train()
        );
        let options = ContextOptions {
            n_ctx,
            n_batch: match cycle_accurate {
                true => CYCLE_ACCURATE_BATCH,
                false => BATCH,
            },
            outputs: Outputs::Last,
            threads: 1,
            threads_batch: self.simulation.options()?.threads,
        };
        Ok(Context::new(model, Some(backend), options)?)
    }
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
pub struct Generation {
    pub backend: Registration,
    pub load_time: Duration,
    /// DMA memory in use: weights, ggml's computations, the driver's own buffers.
    pub dma_bytes: u64,
    /// How the model's tensors got into memory.
    pub reads: Reads,
    pub n_vocab: usize,
    pub tokens: Vec<Token>,
    /// Of each token, if they are kept.
    pub logits: Vec<f32>,
    pub prefill: Phase,
    pub decode: Phase,
}

/// What a part of the work took.
#[derive(Clone, Default, Serialize)]
pub struct Phase {
    /// Tokens computed.
    pub tokens: usize,
    pub seconds: f64,
    pub jobs: u64,
    /// On a cycle-accurate target.
    pub simulated: Option<Simulated>,
    /// On one of which chains are sampled.
    pub sampled: Option<Sampled>,
}

/// What a sample says of all chains.
#[derive(Clone, Serialize)]
pub struct Sampled {
    pub estimate: Estimate,
    pub strata: Vec<StratumReport>,
}

/// What a cycle-accurate target did meanwhile.
#[derive(Clone, Copy, Serialize)]
pub struct Simulated {
    /// Of the engine that took most.
    pub cycles: u64,
    /// Of all engines, on the bus that weights come in by.
    pub mm2s_beats: u64,
    /// The part of all engines' cycles that had such a beat.
    pub bus_use: f64,
    /// Simulated cycles a second of the simulator's own time.
    pub cycles_per_second: f64,
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
        let sampled = self.backend.take_sample().map(|tally| Sampled {
            estimate: tally.estimate(),
            strata: tally.report(),
        });
        Phase {
            tokens,
            seconds: self.start.elapsed().as_secs_f64(),
            jobs: self.backend.stats().jobs - self.jobs,
            simulated: simulated
                .map(|(start, end)| Simulated::between(start, end, self.backend.engines())),
            sampled,
        }
    }
}
