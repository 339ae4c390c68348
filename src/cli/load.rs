//! `weightstream load`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use weightstream::gguf::Gguf;
use weightstream::loader::{self, Loaded};
use weightstream::target::TargetSpec;

use super::options::SimulationArgs;
use super::out::{OutputFile, write_json};
use super::report::{bytes_bar, gigabytes_per_second, megabytes, peak_resident};

/// Load a model's weights into DMA buffers, without inference.
///
/// Loads every matrix whose type the target's kernel streams, and shows where each one lies.
#[derive(ClapArgs)]
pub struct Args {
    /// The model.
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: PathBuf,
    /// Target to load for: model, rtl or rtl:CONFIGURATION.
    #[arg(short, long, value_name = "T", default_value_t = TargetSpec::Model)]
    target: TargetSpec,
    /// Compare what the device would read with the file, by SHA-256 of each tensor.
    #[arg(long)]
    verify: bool,
    /// Take the SHA-256 of each tensor's bytes as they come, and show it.
    #[arg(long)]
    checksum: bool,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

#[derive(Serialize)]
struct Report {
    target: String,
    tensors: Vec<TensorReport>,
    bytes: u64,
    seconds: f64,
    gigabytes_per_second: f64,
    /// Bytes of the file's tensors that are not for the kernel.
    bytes_left: u64,
    /// Bytes read past the page cache, by O_DIRECT and io_uring.
    bytes_read_directly: u64,
    /// Bytes read by pread(2).
    bytes_read_plainly: u64,
    /// Why the latter were not read directly.
    why_plainly: Option<String>,
    peak_resident_bytes: Option<u64>,
    verified: bool,
}

#[derive(Serialize)]
struct TensorReport {
    name: String,
    r#type: &'static str,
    shape: Vec<u64>,
    bytes: u64,
    device_address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let gguf = Arc::new(Gguf::open(&args.model)?);
    let accelerator = args.simulation.open(&args.target)?;
    let types = accelerator.capabilities().types;
    let total: u64 = loader::streamable(&gguf, types).map(|t| t.bytes).sum();
    let all: u64 = gguf.tensors().iter().map(|t| t.bytes).sum();

    let bar = bytes_bar("loading", total);
    let load = loader::load(gguf, accelerator.heap(), types, args.checksum, |bytes| {
        bar.inc(bytes);
    })?;
    bar.finish_and_clear();
    let peak = peak_resident();
    if args.verify {
        let bar = bytes_bar("verifying", total);
        load.verify(|bytes| bar.inc(bytes))?;
        bar.finish_and_clear();
    }

    let report = Report {
        target: args.target.to_string(),
        tensors: load.tensors.iter().map(TensorReport::from).collect(),
        bytes: load.bytes(),
        seconds: load.time.as_secs_f64(),
        gigabytes_per_second: gigabytes_per_second(load.bytes(), load.time),
        bytes_left: all - total,
        bytes_read_directly: load.reads.direct,
        bytes_read_plainly: load.reads.plain,
        why_plainly: load.reads.why_plain.clone(),
        peak_resident_bytes: peak,
        verified: args.verify,
    };
    print(&report);
    write_json(json, &report)?;
    Ok(ExitCode::SUCCESS)
}

impl From<&Loaded> for TensorReport {
    fn from(loaded: &Loaded) -> Self {
        TensorReport {
            name: loaded.tensor.name.clone(),
            r#type: loaded.tensor.type_name(),
            shape: loaded.tensor.shape.clone(),
            bytes: loaded.tensor.bytes,
            device_address: format!("0x{:012x}", loaded.device_addr()),
            sha256: loaded.sha256.clone(),
        }
    }
}

fn print(report: &Report) {
    let mut table = Table::new();
    table
        .load_style(comfy_table::TableStyle::new())
        .set_header(["tensor", "type", "shape", "bytes", "device address"]);
    for tensor in &report.tensors {
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        table.add_row([
            tensor.name.clone(),
            tensor.r#type.to_string(),
            shape.join("×"),
            tensor.bytes.to_string(),
            tensor.device_address.clone(),
        ]);
    }
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}\n");
    println!(
        "{} tensors, {} in DMA buffers in {:.3} s, {:.2} GB/s",
        report.tensors.len(),
        megabytes(report.bytes),
        report.seconds,
        report.gigabytes_per_second
    );
    for tensor in &report.tensors {
        if let Some(sha256) = &tensor.sha256 {
            println!("sha256 {sha256} {}", tensor.name);
        }
    }
    if report.bytes_read_directly > 0 {
        println!(
            "{} read with O_DIRECT through io_uring",
            megabytes(report.bytes_read_directly)
        );
    }
    if let Some(why) = &report.why_plainly {
        println!(
            "{} read with pread, for {why}",
            megabytes(report.bytes_read_plainly)
        );
    }
    if report.bytes_left > 0 {
        println!(
            "{} of the file stay with the CPU (norms, and types the kernel lacks)",
            megabytes(report.bytes_left)
        );
    }
    if let Some(peak) = report.peak_resident_bytes {
        println!("peak resident memory {}", megabytes(peak));
    }
    if report.verified {
        println!("verified: the device reads the file's bytes");
    }
}
