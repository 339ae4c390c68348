//! The table of `docs/predictions.md`: what was published, what the model says of it, and what this
//! accelerator would reach on the same board.
//!
//! A published design is taken as what it is bound by: its bytes a token through its ports from its
//! memory, with nothing else. Nothing is fitted.

use std::collections::VecDeque;
use std::path::Path;

use serde::Deserialize;
use weightstream::boards::Board;
use weightstream::memory::{Dram, Setting};
use weightstream::predict::arch::Arch;
use weightstream::predict::host::Host;
use weightstream::predict::model::Model;
use weightstream::predict::{Platform, Request, predict};

#[derive(Deserialize)]
struct Published {
    design: Vec<Design>,
}

#[derive(Deserialize)]
struct Design {
    name: String,
    source: String,
    model: String,
    board: String,
    /// Of our run: the type that is nearest.
    layers: String,
    /// A weight of the design.
    bits: f64,
    /// Tokens a second, from and to.
    published: [f64; 2],
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    preset: String,
    ports: usize,
    bits: usize,
    clock_mhz: u32,
    /// Bytes that lie one after the other and are split among the ports.
    page: u64,
}

/// Bursts that a port has under way: more than its latency needs.
const OUTSTANDING: usize = 16;
/// An AXI burst crosses no more.
const MOST_BURST: u64 = 4096;
/// Read for the measurement.
const BYTES: u64 = 8 << 20;

impl Stream {
    /// GB/s of its ports reading what is theirs of one page after the other, and of the memory at
    /// its best.
    fn rate(&self) -> (f64, f64) {
        let setting = Setting::new(&self.preset, self.clock_mhz).expect("a preset");
        let mut dram = Dram::new(&setting);
        let (ports, beat) = (self.ports as u64, self.bits as u64 / 8);
        let share = self.page / ports;
        let burst = share.min(MOST_BURST);
        let bursts_of = |port: u64| {
            let pages = (0..BYTES / self.page).map(move |page| page * self.page + port * share);
            pages.flat_map(move |start| (0..share / burst).map(move |n| start + n * burst))
        };
        let mut addresses: Vec<_> = (0..ports).map(bursts_of).map(Iterator::peekable).collect();
        let mut waiting: Vec<VecDeque<Vec<u64>>> = vec![VecDeque::new(); self.ports];
        let mut ready = vec![0; (burst / beat) as usize];
        let mut now = 0;
        while addresses.iter_mut().any(|a| a.peek().is_some())
            || waiting.iter().any(|w| !w.is_empty())
        {
            for (addresses, waiting) in addresses.iter_mut().zip(&mut waiting) {
                if waiting.len() < OUTSTANDING
                    && let Some(address) = addresses.next()
                {
                    dram.read(now, address, beat as u32, &mut ready);
                    waiting.push_back(ready.iter().rev().copied().collect());
                }
                if let Some(first) = waiting.front_mut() {
                    if first.last().is_some_and(|ready| *ready <= now) {
                        first.pop();
                    }
                    if first.is_empty() {
                        waiting.pop_front();
                    }
                }
            }
            now += 1;
        }
        let ns = now as f64 * 1e3 / f64::from(self.clock_mhz);
        (BYTES as f64 / ns, setting.preset.peak() / 1e9)
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = include_str!("published.toml");
    let Published { design } = toml::from_str(text).expect("the table is ours");
    println!(
        "| design, source | model, board | GB a token | published, tokens/s | memory gives, GB/s | predicted, tokens/s | off | this accelerator, tokens/s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for d in design {
        let arch = Arch::read(&root.join(&d.model)).expect("a description of ours");
        let board = Board::read(&root.join(&d.board)).expect("a board of ours");
        let ours = arch
            .model(Some(d.layers.parse().expect("a type")))
            .expect("a type that fits");
        let gigabytes = weights(&ours) * d.bits / 8.0 / 1e9;
        let rates: Vec<(f64, f64)> = d.streams.iter().map(Stream::rate).collect();
        let part = gigabytes / rates.len() as f64;
        let slowest = rates.iter().map(|r| part / r.0).fold(0.0, f64::max);
        let (rate, peak) = rates
            .iter()
            .fold((0.0, 0.0), |(a, b), r| (a + r.0, b + r.1));
        let predicted = 1.0 / slowest;
        let off = |published: f64| 100.0 * (predicted / published - 1.0);
        let [from, to] = d.published;
        let range = |f: &dyn Fn(f64) -> String| match from == to {
            true => f(from),
            false => format!("{} to {}", f(from), f(to)),
        };
        println!(
            "| {}, {} | {}, {} | {gigabytes:.3} | {} | {rate:.1} of {peak:.1} | {predicted:.2} | {} | {} |",
            d.name,
            d.source,
            arch.name,
            board.name,
            range(&|v| format!("{v}")),
            range(&|v| format!("{:+.0} %", off(v))),
            here(&ours, &board),
        );
    }
}

/// Weights of products that a token uses.
fn weights(model: &Model) -> f64 {
    let used = model.products.iter().map(|p| p.k * p.rows * p.used);
    used.sum::<usize>() as f64
}

/// This accelerator on the board.
fn here(model: &Model, board: &Board) -> String {
    let platform = Platform::of(board);
    let request = Request {
        context: 512,
        batch: 512,
    };
    let p = predict(model, &platform, &Host::default(), request).expect("jobs that it takes");
    let c = &platform.config;
    format!(
        "{:.2} ({}w{}b{}, {} MHz, {:.0} % of the peak{})",
        p.decode.tokens_per_s,
        if platform.engines == 1 {
            String::new()
        } else {
            format!("{} × ", platform.engines)
        },
        c.bus_bytes * 8,
        c.blocks_per_cycle,
        platform.clock_mhz,
        100.0 * p.decode.use_of_peak,
        if p.fit.fits { "" } else { "; does not fit" },
    )
}
