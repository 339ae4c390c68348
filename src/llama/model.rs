//! A model in memory and its vocabulary.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_sys_2 as sys;

use super::stream::Stream;
use super::{LlamaError, log, quiet};
use crate::ggml::Registration;
use crate::gguf::Gguf;
use crate::loader::Reads;

/// A token's number in the vocabulary.
pub type Token = sys::llama_token;

/// A loaded model.
pub struct Model {
    pub(super) model: NonNull<sys::llama_model>,
    vocab: *const sys::llama_vocab,
    reads: Reads,
}

impl Model {
    /// Loads the GGUF file at `path`: with `backend`, the weights of matrix products into DMA
    /// memory; without one, as llama.cpp does by itself. `progress` gets the part that is done, 0
    /// to 1.
    ///
    /// Each tensor in DMA memory is read once, straight to where it stays, as [`crate::loader`]
    /// reads: a [`Stream`] leaves it to the backend. A model in several files llama.cpp reads by
    /// itself. `llama_model_init_from_user`, which would leave the reading to us, is no way to do
    /// it: it takes every optional tensor that an architecture knows as present, whether the file
    /// holds it or not.
    ///
    /// # Errors
    /// [`LlamaError::Gguf`] if the file is not a sound GGUF file, before llama.cpp sees it, or
    /// cannot be read; [`LlamaError::Load`] if llama.cpp cannot load it, with the reason.
    pub fn load(
        path: &Path,
        backend: Option<Registration>,
        mut progress: impl FnMut(f32),
    ) -> Result<Model, LlamaError> {
        /// Two at once would share the backend's plan and file.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        quiet();
        let gguf = Arc::new(Gguf::open(path)?);
        let stream = match backend {
            Some(backend) if gguf.parts().len() == 1 => Some(Stream::open(gguf.clone(), backend)?),
            _ => None,
        };
        if let Some(backend) = backend {
            // Without an output matrix of its own the model uses the embeddings' for both.
            let tied = gguf.tensor("output.weight").is_none();
            backend.set_gather(tied);
            let weights = gguf.tensors().iter();
            let weights = weights.filter(|t| is_multiplied(&t.name, &t.shape, tied));
            backend.plan(Some(
                weights.map(|t| (t.name.as_str(), t.ggml_type, t.bytes)),
            ));
            backend.take_error();
        }
        log::take_error();
        let c_path =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| LlamaError::Path(path.into()))?;

        // SAFETY: returns a struct by value.
        let mut params = unsafe { sys::llama_model_default_params() };
        params.load_mode = sys::LLAMA_LOAD_MODE_NONE;
        let mut progress: &mut dyn FnMut(f32) = &mut progress;
        params.progress_callback = Some(on_progress);
        params.progress_callback_user_data = (&raw mut progress).cast();
        // SAFETY: the path is a C string, the stream is open; the callback's data lives during the
        // call.
        let model = NonNull::new(unsafe {
            match &stream {
                Some(stream) => {
                    // To read a tensor when it is used, llama.cpp would map the file.
                    params.lazy_mode = sys::LLAMA_LAZY_MODE_OFF;
                    sys::llama_model_load_from_file_ptr(stream.as_ptr().cast(), params)
                }
                None => sys::llama_model_load_from_file(c_path.as_ptr(), params),
            }
        });
        // What is under way has to end before the model's memory is freed.
        let reads = stream.map(Stream::finish);
        let mut model = model.map(|model| Model {
            // SAFETY: the model lives as long as the value.
            vocab: unsafe { sys::llama_model_get_vocab(model.as_ptr()) },
            model,
            reads: Reads::default(),
        });
        let reads = reads.transpose()?.unwrap_or_else(|| Reads {
            direct: 0,
            plain: gguf.tensors().iter().map(|t| t.bytes).sum(),
            why_plain: Some(match backend {
                Some(_) => "llama.cpp reads a model in several files by itself".into(),
                None => "llama.cpp reads it by itself".into(),
            }),
        });
        if let Some(model) = &mut model {
            model.reads = reads;
        }
        model.ok_or_else(|| LlamaError::Load {
            path: path.into(),
            reason: reason(backend),
        })
    }

    /// How the tensors' bytes got into memory.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Tokens in the vocabulary; as many logits has a token.
    pub fn n_vocab(&self) -> usize {
        // SAFETY: the vocabulary is the model's.
        unsafe { sys::llama_vocab_n_tokens(self.vocab) as usize }
    }

    /// Tokens of context the model was trained with.
    pub fn n_ctx_train(&self) -> u32 {
        // SAFETY: the model is live.
        unsafe { sys::llama_model_n_ctx_train(self.model.as_ptr()) as u32 }
    }

    /// The tokens of `text`, with those that the vocabulary wants at its start and end, and with
    /// names of special tokens in it taken as these.
    pub fn tokenise(&self, text: &str) -> Result<Vec<Token>, LlamaError> {
        let error = || LlamaError::Tokenise { bytes: text.len() };
        let len = i32::try_from(text.len()).map_err(|_| error())?;
        let mut tokens = vec![0; text.len() + 16];
        // SAFETY: text and room with their lengths.
        let n = unsafe {
            sys::llama_tokenize(
                self.vocab,
                text.as_ptr().cast(),
                len,
                tokens.as_mut_ptr(),
                tokens.len() as i32,
                true,
                true,
            )
        };
        tokens.truncate(usize::try_from(n).map_err(|_| error())?);
        Ok(tokens)
    }

    /// Whether `token` ends a generation.
    pub fn is_end(&self, token: Token) -> bool {
        // SAFETY: the vocabulary is the model's.
        unsafe { sys::llama_vocab_is_eog(self.vocab, token) }
    }

    /// The bytes that `token` stands for: a part of a text, not always whole characters.
    pub fn piece(&self, token: Token) -> Result<Vec<u8>, LlamaError> {
        let n_vocab = self.n_vocab();
        if !(0..n_vocab as i64).contains(&i64::from(token)) {
            return Err(LlamaError::Token { token, n_vocab });
        }
        let mut bytes = vec![0u8; 32];
        loop {
            let room = bytes.len() as i32;
            // SAFETY: room with its length; the token is one of the vocabulary.
            let n = unsafe {
                sys::llama_token_to_piece(
                    self.vocab,
                    token,
                    bytes.as_mut_ptr().cast(),
                    room,
                    0,
                    false,
                )
            };
            match usize::try_from(n) {
                Ok(n) => {
                    bytes.truncate(n);
                    return Ok(bytes);
                }
                // Too little room: minus the bytes needed.
                Err(_) => bytes.resize(n.unsigned_abs() as usize, 0),
            }
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the model is live, and contexts borrow it.
        unsafe { sys::llama_model_free(self.model.as_ptr()) };
    }
}

// SAFETY: llama.cpp allows a model to be used from any thread, and reading its vocabulary from
// several.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

/// Whether a tensor is the weights of a matrix product: it has rows, and is not the embeddings
/// alone.
fn is_multiplied(name: &str, shape: &[u64], tied: bool) -> bool {
    shape.len() > 1 && (tied || !name.starts_with("token_embd"))
}

/// Why a call failed: the backend's error says more than what llama.cpp logs about it.
pub(super) fn reason(backend: Option<Registration>) -> String {
    let logged = log::take_error();
    backend
        .and_then(Registration::take_error)
        .or(logged)
        .unwrap_or_else(|| "it gave no reason".into())
}

unsafe extern "C" fn on_progress(done: f32, user_data: *mut c_void) -> bool {
    // SAFETY: `load` passes this, and it outlives the call.
    let progress = unsafe { &mut *user_data.cast::<&mut dyn FnMut(f32)>() };
    // A panic must not unwind into C; false ends the loading.
    std::panic::catch_unwind(AssertUnwindSafe(|| progress(done))).is_ok()
}
