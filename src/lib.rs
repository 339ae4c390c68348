//! weightstream loads the weights of a GGUF model straight into DMA buffers and streams them, in
//! their native quantised blocks, through a dot-product kernel.
//!
//! The way of the data: [`quant`] (block formats), [`dma`] (buffers), [`regs`] (what stands in
//! registers and packets), [`target`] (what is behind them).

pub mod dma;
pub mod quant;
pub mod regs;
pub mod target;
