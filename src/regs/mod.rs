//! What stands in registers, descriptors and packets: layouts and nothing else.

pub mod axi_dma;
pub mod job;
pub mod kernel;
