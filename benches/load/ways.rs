//! The ways to load, each run in a process of its own.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};
use weightstream::dma::{Buffer, Heap};
use weightstream::driver::Accelerator;
use weightstream::gguf::Gguf;
use weightstream::llama::{Context, ContextOptions, Model, Outputs, Sampler, register};
use weightstream::target::{Target, TargetOptions, TargetSpec, open};

use crate::Outcome;

/// What a process measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub seconds: f64,
    pub bytes: u64,
    pub peak_resident_bytes: u64,
    /// From the load's start to the first token, where it was asked for and there is one.
    #[serde(default)]
    pub first_token_seconds: Option<f64>,
}

/// A way to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// O_DIRECT into DMA memory, whole, and nothing else.
    Raw,
    /// `weightstream load`.
    Load,
    /// llama.cpp into DMA buffers, as `weightstream run` has it.
    Run,
    /// llama.cpp by itself, as it is set by default.
    Llama,
    /// Into ordinary memory, then copied into DMA buffers.
    Copy,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::Raw, Way::Load, Way::Run, Way::Llama, Way::Copy];

    pub fn name(self) -> &'static str {
        match self {
            Way::Raw => "raw O_DIRECT read into DMA memory",
            Way::Load => "weightstream load",
            Way::Run => "llama.cpp into DMA buffers (weightstream run)",
            Way::Llama => "llama.cpp by itself",
            Way::Copy => "into ordinary memory, then copied",
        }
    }

    /// Loads `model` so in a new process, and with `generate` computes a first token.
    pub fn measure(self, model: &Path, generate: bool) -> Outcome<Measured> {
        let out = match self {
            Way::Load => {
                let report = tempfile::NamedTempFile::new()?;
                let mut command = Command::new(env!("CARGO_BIN_EXE_weightstream"));
                command.args(["load", "--json"]).arg(report.path());
                let out = command.arg("-m").arg(model).output()?;
                if !out.status.success() {
                    return Err(String::from_utf8_lossy(&out.stderr).into());
                }
                std::fs::read_to_string(report.path())?
            }
            _ => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--way", self.name()]).arg(model);
                if generate {
                    command.arg("--generate");
                }
                let out = command.output()?;
                if !out.status.success() {
                    return Err(String::from_utf8_lossy(&out.stderr).into());
                }
                String::from_utf8(out.stdout)?
            }
        };
        Ok(serde_json::from_str(&out)?)
    }

    /// Loads `model` so in this process, and prints what it took.
    pub fn perform(self, model: &Path, generate: bool) -> Outcome<()> {
        let measured = match self {
            Way::Raw => raw(model)?,
            Way::Run => run(model, generate)?,
            Way::Llama => llama(model, generate)?,
            Way::Copy => copy(model)?,
            Way::Load => return Err("the command measures itself".into()),
        };
        println!("{}", serde_json::to_string(&measured)?);
        Ok(())
    }
}

impl Measured {
    /// A load begun at `start` has ended.
    fn now(start: Instant, bytes: u64) -> Outcome<Measured> {
        Ok(Measured {
            seconds: start.elapsed().as_secs_f64(),
            bytes,
            peak_resident_bytes: peak_resident()?,
            first_token_seconds: None,
        })
    }
}

/// Threads that compute.
const THREADS: usize = 2;
/// What the first token follows.
const PROMPT: &str = "The capital of France is";

fn target() -> Outcome<Target> {
    Ok(open(&TargetSpec::Model, &TargetOptions::default())?)
}

/// Threads that read, each a piece at a time.
const READERS: u64 = 8;
const PIECE: u64 = 2 << 20;

fn raw(model: &Path) -> Outcome<Measured> {
    let target = target()?;
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(model)?;
    let bytes = direct.metadata()?.len();
    let buffer = target.heap.alloc(bytes.next_multiple_of(PIECE) as usize)?;
    let next = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let read = || -> std::io::Result<()> {
            loop {
                let offset = next.fetch_add(PIECE, Ordering::Relaxed);
                if offset >= bytes {
                    return Ok(());
                }
                // SAFETY: each piece is one thread's.
                let to = unsafe { buffer.slice_mut(offset as usize, PIECE as usize) };
                let to = to.map_err(std::io::Error::other)?;
                let n = direct.read_at(to, offset)? as u64;
                assert_eq!(n, PIECE.min(bytes - offset), "a short read");
            }
        };
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        let mut readers = readers.into_iter();
        readers.try_for_each(|r| r.join().expect("a reader panicked"))
    })?;
    Measured::now(start, bytes)
}

fn run(model: &Path, generate: bool) -> Outcome<Measured> {
    let accelerator = Accelerator::new(target()?)?;
    let backend = register("weightstream", accelerator)?;
    let start = Instant::now();
    let loaded = Model::load(model, Some(backend), |_| {})?;
    let mut measured = Measured::now(start, bytes(model)?)?;
    if generate {
        let prompt = loaded.tokenise(PROMPT)?;
        // As the command has it.
        let options = ContextOptions {
            n_ctx: prompt.len() as u32 + 1,
            n_batch: 512,
            outputs: Outputs::Last,
            threads: 1,
            threads_batch: THREADS,
        };
        let mut context = Context::new(&loaded, Some(backend), options)?;
        context.decode(&prompt, |_, _| {})?;
        Sampler::new(0.0, 0).sample(&context);
        measured.first_token_seconds = Some(start.elapsed().as_secs_f64());
    }
    Ok(measured)
}

fn llama(model: &Path, generate: bool) -> Outcome<Measured> {
    let path = CString::new(model.as_os_str().as_bytes())?;
    unsafe extern "C" fn quiet(_: u32, _: *const std::ffi::c_char, _: *mut std::ffi::c_void) {}
    let start = Instant::now();
    // SAFETY: llama.cpp's plain use; the path is a C string.
    unsafe {
        sys::llama_log_set(Some(quiet), std::ptr::null_mut());
        sys::llama_backend_init();
        let loaded =
            sys::llama_model_load_from_file(path.as_ptr(), sys::llama_model_default_params());
        if loaded.is_null() {
            return Err("llama.cpp does not load the model".into());
        }
        let mut measured = Measured::now(start, bytes(model)?)?;
        if generate {
            let mut tokens = [0; 64];
            let (text, room) = (PROMPT.as_ptr().cast(), tokens.len() as i32);
            let vocab = sys::llama_model_get_vocab(loaded);
            let length = PROMPT.len() as i32;
            let n = sys::llama_tokenize(vocab, text, length, tokens.as_mut_ptr(), room, true, true);
            let mut params = sys::llama_context_default_params();
            params.n_ctx = tokens.len() as u32;
            params.n_threads = THREADS as i32;
            params.n_threads_batch = THREADS as i32;
            let context = sys::llama_init_from_model(loaded, params);
            let batch = sys::llama_batch_get_one(tokens.as_mut_ptr(), n);
            if context.is_null() || n <= 0 || sys::llama_decode(context, batch) != 0 {
                return Err("llama.cpp does not compute the prompt".into());
            }
            let sampler = sys::llama_sampler_init_greedy();
            sys::llama_sampler_sample(sampler, context, -1);
            measured.first_token_seconds = Some(start.elapsed().as_secs_f64());
            sys::llama_sampler_free(sampler);
            sys::llama_free(context);
        }
        sys::llama_model_free(loaded);
        Ok(measured)
    }
}

fn copy(model: &Path) -> Outcome<Measured> {
    let heap: Heap = target()?.heap;
    let gguf = Gguf::open(model)?;
    let start = Instant::now();
    let ordinary = std::fs::read(model)?;
    let mut buffers: Vec<Buffer> = Vec::new();
    for tensor in gguf.tensors() {
        let from = tensor.file_offset as usize;
        let bytes = &ordinary[from..from + tensor.bytes as usize];
        let buffer = heap.alloc(bytes.len())?;
        buffer.write(0, bytes)?;
        buffer.sync_for_device(0, bytes.len())?;
        buffers.push(buffer);
    }
    Measured::now(start, bytes(model)?)
}

/// Bytes of the model's tensors.
pub fn bytes(model: &Path) -> Outcome<u64> {
    Ok(Gguf::open(model)?.tensors().iter().map(|t| t.bytes).sum())
}

fn peak_resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1));
    Ok(kib.ok_or("the kernel tells no VmHWM")?.parse::<u64>()? * 1024)
}

/// Takes `model` out of the page cache, so that the next one reads the disk.
pub fn forget(model: &Path) -> Outcome<()> {
    Ok(crate::synthetic::forget(&File::open(model)?)?)
}
