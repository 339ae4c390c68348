//! A context: the state of one text, and the logits of its tokens.

use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;

use super::model::reason;
use super::{Capture, LlamaError, Model, Token, capture, log};
use crate::ggml::Registration;

/// How a context is set up.
#[derive(Clone, Copy, Debug)]
pub struct ContextOptions {
    /// Most tokens of the text.
    pub n_ctx: u32,
    /// Most tokens computed at once.
    pub n_batch: u32,
    /// Which tokens have logits. Memory is set aside for as many as a batch can have.
    pub outputs: Outputs,
    /// Threads of the CPU backend for a single token, which has little to do there when the
    /// matrix products are elsewhere.
    pub threads: usize,
    /// Threads of the CPU backend for several tokens.
    pub threads_batch: usize,
}

/// Which of the tokens given to [`Context::decode`] have logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// The last one.
    Last,
    All,
}

/// A text's state in a model.
pub struct Context<'m> {
    model: &'m Model,
    context: NonNull<sys::llama_context>,
    backend: Option<Registration>,
    options: ContextOptions,
    /// Tokens in the text.
    position: usize,
    /// They go after the context, which `drop` frees before the fields.
    _pools: [Option<ThreadPool>; 2],
}

impl<'m> Context<'m> {
    /// A context without text. `backend` is the one the model was loaded with.
    pub fn new(
        model: &'m Model,
        backend: Option<Registration>,
        options: ContextOptions,
    ) -> Result<Context<'m>, LlamaError> {
        Self::with_capture(model, backend, options, None)
    }

    /// As [`Context::new`], and `capture` sees the activations of each forward pass.
    pub fn with_capture(
        model: &'m Model,
        backend: Option<Registration>,
        options: ContextOptions,
        capture: Option<&'m mut Capture>,
    ) -> Result<Context<'m>, LlamaError> {
        log::take_error();
        // SAFETY: returns a struct by value.
        let mut params = unsafe { sys::llama_context_default_params() };
        params.n_ctx = options.n_ctx;
        params.n_batch = options.n_batch;
        params.n_ubatch = options.n_batch;
        params.n_outputs_max = match options.outputs {
            Outputs::Last => 1,
            Outputs::All => options.n_batch,
        };
        if let Some(capture) = capture {
            params.cb_eval = Some(capture::on_node);
            params.cb_eval_user_data = (&raw mut *capture).cast();
        }
        params.n_threads = options.threads as i32;
        params.n_threads_batch = options.threads_batch as i32;
        // SAFETY: the model is live and outlives the context.
        let context = unsafe { sys::llama_init_from_model(model.model.as_ptr(), params) };
        let context = NonNull::new(context).ok_or_else(|| LlamaError::Context {
            n_ctx: options.n_ctx,
            reason: reason(backend),
        })?;
        let mut context = Context {
            model,
            context,
            backend,
            options,
            position: 0,
            _pools: [None, None],
        };
        context.attach_pools()?;
        Ok(context)
    }

    /// Gives llama.cpp threads that stay. A graph here is cut into some hundred pieces a token,
    /// and by itself the CPU backend starts and joins its threads for each.
    fn attach_pools(&mut self) -> Result<(), LlamaError> {
        let ContextOptions {
            threads,
            threads_batch,
            ..
        } = self.options;
        // Threads that wait in a loop would take the cores from what computes the products.
        let spin = self.backend.is_none();
        let batch = ThreadPool::new(threads_batch, spin)?;
        let single = match threads == threads_batch {
            true => None,
            false => Some(ThreadPool::new(threads, spin)?),
        };
        let of_single = single.as_ref().unwrap_or(&batch).0.as_ptr();
        // SAFETY: all are live, and the pools outlive the context.
        unsafe {
            sys::llama_attach_threadpool(self.context.as_ptr(), of_single, batch.0.as_ptr());
        }
        self._pools = [single, Some(batch)];
        Ok(())
    }

    /// Adds `tokens` to the text and computes the logits of those that have some; more than
    /// `n_batch` go in several batches. After each batch `on_batch` gets the number of tokens done
    /// and the batch's logits, `n_vocab` a token.
    ///
    /// # Errors
    /// [`LlamaError::TooLong`] if they do not fit, and nothing is changed then.
    /// [`LlamaError::Decode`] with the reason if the computation fails.
    pub fn decode(
        &mut self,
        tokens: &[Token],
        mut on_batch: impl FnMut(usize, &[f32]),
    ) -> Result<(), LlamaError> {
        let n_ctx = self.options.n_ctx;
        if self.position + tokens.len() > n_ctx as usize {
            let tokens = self.position + tokens.len();
            return Err(LlamaError::TooLong { tokens, n_ctx });
        }
        let n_vocab = self.model.n_vocab();
        if let Some(&token) = tokens
            .iter()
            .find(|&&t| !(0..n_vocab as i64).contains(&i64::from(t)))
        {
            return Err(LlamaError::Token { token, n_vocab });
        }
        let mut done = 0;
        for chunk in tokens.chunks(self.options.n_batch as usize) {
            done += chunk.len();
            let wanted = match self.options.outputs {
                Outputs::All => chunk.len(),
                Outputs::Last => usize::from(done == tokens.len()),
            };
            self.decode_batch(chunk, wanted)?;
            on_batch(done, self.logits(wanted));
        }
        Ok(())
    }

    /// Computes one batch and the logits of its last `wanted` tokens.
    fn decode_batch(&mut self, tokens: &[Token], wanted: usize) -> Result<(), LlamaError> {
        let mut tokens = tokens.to_vec();
        let mut outputs = vec![0i8; tokens.len() - wanted];
        outputs.resize(tokens.len(), 1);
        let batch = sys::llama_batch {
            n_tokens: tokens.len() as i32,
            token: tokens.as_mut_ptr(),
            embd: std::ptr::null_mut(),
            // NULL: the positions that follow, in the only sequence.
            pos: std::ptr::null_mut(),
            n_seq_id: std::ptr::null_mut(),
            seq_id: std::ptr::null_mut(),
            logits: outputs.as_mut_ptr(),
        };
        log::take_error();
        // SAFETY: the context is live, and the batch's arrays are as long as it says.
        let status = unsafe { sys::llama_decode(self.context.as_ptr(), batch) };
        if status != 0 {
            return Err(LlamaError::Decode {
                tokens: tokens.len(),
                position: self.position,
                status,
                reason: reason(self.backend),
            });
        }
        self.position += tokens.len();
        Ok(())
    }

    /// The logits of the `n` tokens of the last batch that were to have some.
    fn logits(&self, n: usize) -> &[f32] {
        if n == 0 {
            return &[];
        }
        // SAFETY: llama.cpp holds the logits of the batch's outputs one after the other until the
        // next batch.
        unsafe {
            let logits = sys::llama_get_logits(self.context.as_ptr());
            std::slice::from_raw_parts(logits, n * self.model.n_vocab())
        }
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.position = 0;
        // SAFETY: the context is live.
        unsafe { sys::llama_memory_clear(sys::llama_get_memory(self.context.as_ptr()), true) };
    }

    pub(super) fn as_ptr(&self) -> *mut sys::llama_context {
        self.context.as_ptr()
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is live.
        unsafe { sys::llama_free(self.context.as_ptr()) };
    }
}

/// Threads of ggml's CPU backend.
struct ThreadPool(NonNull<sys::ggml_threadpool>);

impl ThreadPool {
    /// `spin`: between two graphs the threads look for work, as is ggml's default, and do not sleep.
    fn new(threads: usize, spin: bool) -> Result<ThreadPool, LlamaError> {
        // SAFETY: returns a struct by value, which the second call only reads.
        let pool = unsafe {
            let mut params = sys::ggml_threadpool_params_default(threads as i32);
            if !spin {
                params.poll = 0;
            }
            sys::ggml_threadpool_new(&mut params)
        };
        NonNull::new(pool)
            .map(ThreadPool)
            .ok_or(LlamaError::ThreadPool(threads))
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: the context that used it is gone.
        unsafe { sys::ggml_threadpool_free(self.0.as_ptr()) };
    }
}
