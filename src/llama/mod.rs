//! llama.cpp with the [`crate::ggml`] backend: loading a model into DMA memory and generating text.
//!
//! Order matters: [`register`] the backend before a [`Model`] is loaded, because llama.cpp asks for
//! its devices then.

mod capture;
mod context;
mod log;
mod model;
mod register;
mod sampler;
mod stream;
mod text;

pub use self::log::quiet;
pub use capture::Capture;
pub use context::{Context, ContextOptions, Outputs};
pub use model::{Model, Token};
pub use register::register;
pub use sampler::Sampler;
pub use text::TextStream;

use std::path::PathBuf;

use crate::ggml::GgmlError;
use crate::gguf::GgufError;

/// What can go wrong between a model file and generated text.
#[derive(Debug, thiserror::Error)]
pub enum LlamaError {
    #[error(transparent)]
    Ggml(#[from] GgmlError),
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// llama.cpp did not load the model; the reason is the backend's or the first error it logged.
    #[error("{}: {reason}", path.display())]
    Load { path: PathBuf, reason: String },
    #[error("llama.cpp cannot make a context of {n_ctx} tokens: {reason}")]
    Context { n_ctx: u32, reason: String },
    #[error("{tokens} tokens do not fit a context of {n_ctx}")]
    TooLong { tokens: usize, n_ctx: u32 },
    #[error("llama_decode of {tokens} tokens at position {position} returned {status}: {reason}")]
    Decode {
        tokens: usize,
        position: usize,
        status: i32,
        reason: String,
    },
    #[error("token {token} is not one of the {n_vocab} of the vocabulary")]
    Token { token: i32, n_vocab: usize },
    #[error("the text of {bytes} bytes cannot be tokenised")]
    Tokenise { bytes: usize },
    #[error("{0} is not a path that llama.cpp can open: it holds a NUL byte")]
    Path(PathBuf),
    #[error("no thread pool of {0} threads")]
    ThreadPool(usize),
}
