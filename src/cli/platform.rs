//! Which board and which configuration of the accelerator `predict` is asked about.

use std::path::PathBuf;

use clap::Args;
use weightstream::boards::Board;
use weightstream::predict::{Platform, sweep};
use weightstream::timing::Config;

/// Without a board, a memory of 60 cycles' latency that gives a beat in every cycle.
#[derive(Args)]
pub struct BoardArgs {
    /// The board, as in boards/. The options that follow change it.
    #[arg(short, long, value_name = "FILE")]
    board: Option<PathBuf>,
    /// MHz of the fabric.
    #[arg(long, value_name = "MHZ", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clock: Option<u32>,
    /// Bits of the bus: 64, 128, 256 or 512.
    #[arg(long, value_name = "BITS", value_parser = width)]
    width: Option<usize>,
    /// Blocks of 32 weights a cycle, 1, 2 or 4; those that go with the width if only that is given.
    #[arg(long, value_name = "N", value_parser = blocks)]
    blocks: Option<usize>,
    /// Engines side by side, 1 to 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    engines: Option<u8>,
    /// Most columns of a job.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cols: Option<u16>,
    /// Largest k of a job.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(256..=1 << 24))]
    max_k: Option<u32>,
}

fn width(text: &str) -> Result<usize, String> {
    one_of(text, &[64, 128, 256, 512])
}

fn blocks(text: &str) -> Result<usize, String> {
    one_of(text, &[1, 2, 4])
}

fn one_of(text: &str, values: &[usize]) -> Result<usize, String> {
    let value = text.parse().ok().filter(|v| values.contains(v));
    value.ok_or_else(|| format!("not one of {values:?}"))
}

impl BoardArgs {
    /// The platform, its part's name, and the GB/s at which the host reads, where the board says.
    pub fn platform(&self) -> anyhow::Result<(Platform, String, Option<f64>)> {
        let board = self.board.as_deref().map(Board::read).transpose()?;
        let mut platform = match &board {
            Some(board) => Platform::of(board),
            None => Platform {
                config: Config::new(16, 1),
                dram: None,
                clock_mhz: 200,
                engines: 1,
                dma_bytes: 4 << 30,
            },
        };
        let config = &mut platform.config;
        if let Some(width) = self.width {
            config.bus_bytes = width / 8;
            config.blocks_per_cycle = sweep::blocks_of(width);
        }
        config.blocks_per_cycle = self.blocks.unwrap_or(config.blocks_per_cycle);
        config.max_cols = self.cols.map_or(config.max_cols, usize::from);
        config.max_k = self.max_k.map_or(config.max_k, |k| k as usize);
        platform.clock_mhz = self.clock.unwrap_or(platform.clock_mhz);
        platform.engines = self.engines.map_or(platform.engines, usize::from);
        let host = board.as_ref().and_then(|b| b.host.as_ref());
        let rate = host.and_then(|h| h.gb_per_s);
        let part = board.map_or("no part".into(), |b| b.part);
        Ok((platform, part, rate))
    }
}
