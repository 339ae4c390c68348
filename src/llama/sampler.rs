//! Choosing the next token.

use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;

use super::{Context, Token};

/// llama.cpp's sampler chain: temperature and a seeded draw, or the most likely token.
pub struct Sampler(NonNull<sys::llama_sampler>);

impl Sampler {
    /// With a temperature of 0 or less the most likely token, else a draw seeded with `seed`.
    pub fn new(temperature: f32, seed: u32) -> Sampler {
        // SAFETY: the chain owns the samplers added to it.
        unsafe {
            let chain = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            if temperature > 0.0 {
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_temp(temperature));
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_dist(seed));
            } else {
                sys::llama_sampler_chain_add(chain, sys::llama_sampler_init_greedy());
            }
            Sampler(NonNull::new(chain).expect("llama.cpp allocates or aborts"))
        }
    }

    /// A token to follow the text in `context`, which has had one decoded.
    pub fn sample(&mut self, context: &Context<'_>) -> Token {
        // SAFETY: both are live; -1 is the last token with logits.
        unsafe { sys::llama_sampler_sample(self.0.as_ptr(), context.as_ptr(), -1) }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: the chain is live.
        unsafe { sys::llama_sampler_free(self.0.as_ptr()) };
    }
}
