//! Testbenches of the leaf modules, one file a module: random stimulus against a few lines of
//! reference, which are written from `docs/` and the formats alone.

use proptest::prelude::ProptestConfig;

mod assertions;
mod axi_lite;
mod channel;
mod fifos;
mod formats;
mod fp16;
mod jobs;
mod ws_acc;
mod ws_act_bank;
mod ws_axil_demux;
mod ws_counter64;
mod ws_decode;
mod ws_dma_chan_regs;
mod ws_dma_fetch;
mod ws_dma_irq;
mod ws_dma_mm2s;
mod ws_dma_regs;
mod ws_dma_s2mm;
mod ws_dma_sg;
mod ws_dot;
mod ws_footer;
mod ws_group;
mod ws_issue;
mod ws_job_header;
mod ws_kernel;
mod ws_kernel_csr;
mod ws_mul_shift;
mod ws_realign;
mod ws_result;
mod ws_round;
mod ws_scale;

/// So many cases, or as many as `PROPTEST_CASES` says, for longer runs.
fn cases(count: u32) -> ProptestConfig {
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => count,
    };
    ProptestConfig {
        cases,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    }
}
