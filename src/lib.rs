//! weightstream loads the weights of a GGUF model straight into DMA buffers and streams them, in
//! their native quantised blocks, through a dot-product kernel.
//!
//! The way of the data: [`gguf`] (the file), [`dma`] (the buffers it is read into), [`driver`]
//! (jobs and descriptors), [`target`] (what computes them). [`quant`] holds the block formats,
//! [`regs`] what stands in registers, descriptors and packets. [`ggml`] is the backend that brings
//! llama.cpp's matrix products here, [`profile`] what they took. [`timing`] is how long the accelerator
//! takes, [`predict`] what a model reaches with it on one of the [`boards`].

/// Whether llama.cpp, and with it a ggml, is linked in.
pub const LINKS_LLAMA_CPP: bool = cfg!(feature = "llama");

pub mod boards;
#[cfg(feature = "rtl")]
pub mod coverage;
pub mod dma;
pub mod driver;
pub mod ggml;
pub mod gguf;
#[cfg(feature = "llama")]
pub mod llama;
pub mod loader;
#[cfg(feature = "rtl")]
pub mod mutation;
pub mod predict;
pub mod profile;
pub mod quant;
pub mod regress;
pub mod regs;
pub mod sample;
pub mod target;
pub mod timing;
pub mod vectors;
pub mod verify;

pub use weightstream_memory as memory;
