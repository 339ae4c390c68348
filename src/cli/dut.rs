//! `weightstream dut`.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Context;
use clap::{Args, Subcommand};
use weightstream::target::rtl::dut::{Dut, Part};

/// The module that stands for a whole accelerator.
const ACCELERATOR: &str = "weightstream";
/// Of the stream into a kernel, bits.
const BUS_WIDTH: u32 = 128;

/// RTL of your own in the harness, as `--target dut:FILE`.
#[derive(Subcommand)]
pub enum Command {
    Build(BuildArgs),
}

/// Verilate a design and compile it with the harness into a shared object, which every command
/// takes as `--target dut:FILE`.
///
/// The design is a streaming kernel with the ports in docs/dut.md, which is put behind the DMA
/// engine; or, called `weightstream`, a whole accelerator with the ports of rtl/weightstream.sv.
#[derive(Args)]
pub struct BuildArgs {
    /// The design's top module.
    #[arg(long, value_name = "NAME")]
    top: String,
    /// A file of sources and arguments for Verilator; paths in it count from its folder. May be
    /// repeated.
    #[arg(short = 'F', long, value_name = "FILE.f", required = true)]
    filelist: Vec<PathBuf>,
    /// A parameter of the top module. May be repeated.
    #[arg(long, value_name = "K=V", value_parser = parameter)]
    param: Vec<(String, String)>,
    /// Width of a kernel's streams in bits: 64, 128, 256 or 512 [default: 128].
    #[arg(long, value_name = "BITS")]
    bus_width: Option<u32>,
    /// The shared object; the default is NAME.so.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where intermediate files are kept, so that the next build is quicker; the default is the
    /// shared object's name and `.build`.
    #[arg(long, value_name = "DIR")]
    build_dir: Option<PathBuf>,
    /// Count which lines run and which bits toggle: a process that ran the object writes its counts
    /// into the folder that WEIGHTSTREAM_COVERAGE names. Some 20 times slower.
    #[arg(long)]
    coverage: bool,
    /// Compilers at a time; the default is one a core.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
}

pub fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err("not of the form K=V".into()),
    }
}

pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    let Command::Build(args) = command;
    let part = if args.top == ACCELERATOR {
        anyhow::ensure!(
            args.bus_width.is_none(),
            "--bus-width is of a kernel; a whole accelerator takes --param BusWidth=BITS"
        );
        Part::Accelerator
    } else {
        Part::Kernel {
            bus_width: args.bus_width.unwrap_or(BUS_WIDTH),
        }
    };
    let output = args
        .output
        .unwrap_or_else(|| format!("{}.so", args.top).into());
    let build_dir = args
        .build_dir
        .unwrap_or_else(|| format!("{}.build", output.display()).into());
    let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let dut = Dut {
        part,
        top: &args.top,
        filelists: &args.filelist,
        parameters: &args.param,
        output: &output,
        build_dir: &build_dir,
        coverage: args.coverage,
        quick: false,
        jobs: args.jobs.unwrap_or_else(cores).get(),
    };
    dut.build(|text| eprint!("{text}"))
        .with_context(|| format!("cannot build {}", output.display()))?;
    println!("dut:{}", output.display());
    Ok(ExitCode::SUCCESS)
}
