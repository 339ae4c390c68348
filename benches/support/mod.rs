//! One model twice in a process: on llama.cpp's CPU backend, and with its matrix products on the
//! behavioural model.

use std::error::Error;
use std::path::{Path, PathBuf};

use weightstream::driver::Accelerator;
use weightstream::llama::{Context, ContextOptions, Model, Outputs, Token, register};
use weightstream::target::{TargetOptions, TargetSpec, open};

/// Threads of either side.
pub const THREADS: usize = 2;

/// A text of ours to compute on.
const TEXT: &str = include_str!("text.txt");

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The model to measure: the first argument, or `WEIGHTSTREAM_MODEL`. Says so if there is none.
pub fn model_path() -> Option<PathBuf> {
    let argument = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let path = argument.or_else(|| std::env::var("WEIGHTSTREAM_MODEL").ok());
    if path.is_none() {
        eprintln!("skipped: name a GGUF file as argument or in WEIGHTSTREAM_MODEL");
    }
    path.map(PathBuf::from)
}

/// Runs `body` with a context on the CPU backend, one with the matrix products streamed, and the
/// tokens of the text.
pub fn with_both(
    path: &Path,
    n_ctx: u32,
    outputs: Outputs,
    body: impl FnOnce(&mut Context<'_>, &mut Context<'_>, &[Token]) -> Outcome<()>,
) -> Outcome<()> {
    // llama.cpp gives models and contexts the devices that are registered when they are made, so
    // the CPU's come first.
    let cpu_model = Model::load(path, None, |_| {})?;
    let mut options = ContextOptions {
        n_ctx,
        n_batch: 512,
        outputs,
        threads: THREADS,
        threads_batch: THREADS,
    };
    let mut cpu = Context::new(&cpu_model, None, options)?;

    let target = TargetOptions {
        threads: THREADS,
        ..TargetOptions::default()
    };
    let accelerator = Accelerator::new(open(&TargetSpec::Model, &target)?)?;
    let backend = register("weightstream", accelerator)?;
    let streamed_model = Model::load(path, Some(backend), |_| {})?;
    // As `weightstream run` has it: for one token the second thread is the model's.
    options.threads = 1;
    let mut streamed = Context::new(&streamed_model, Some(backend), options)?;

    for (name, left) in backend.left_to_cpu() {
        println!(
            "left to the CPU: {name}, {} bytes in {}",
            left.bytes, left.type_name
        );
    }
    let tokens = cpu_model.tokenise(TEXT)?;
    body(&mut cpu, &mut streamed, &tokens)
}
