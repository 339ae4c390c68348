//! Commands. Results go to stdout, logs and progress to stderr.

#[macro_use]
mod out;

mod compare;
#[cfg(feature = "rtl")]
mod coverage;
#[cfg(feature = "rtl")]
mod dut;
#[cfg(feature = "llama")]
mod generation;
mod load;
#[cfg(feature = "rtl")]
mod mutate;
mod options;
mod platform;
mod predict;
#[cfg(feature = "llama")]
mod profile;
mod regress;
mod report;
#[cfg(feature = "llama")]
mod run;
mod vectors;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weightstream::target::TargetSpec;

/// Streams GGUF weights from DMA buffers through a dot-product kernel: on Verilated RTL or on a
/// behavioural model.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// Say more on stderr; twice for debugging.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "llama")]
    Run(run::Args),
    #[cfg(feature = "llama")]
    Profile(profile::Args),
    Predict(predict::Args),
    Regress(regress::Args),
    #[command(subcommand)]
    Vectors(vectors::Command),
    Verify(verify::Args),
    Compare(compare::Args),
    #[cfg(feature = "rtl")]
    #[command(subcommand)]
    Dut(dut::Command),
    #[cfg(feature = "rtl")]
    Coverage(coverage::Args),
    #[cfg(feature = "rtl")]
    Mutate(mutate::Args),
    Load(load::Args),
    /// List the targets of this build.
    Targets,
}

/// An error and its causes; a cause that its error tells already is not told again.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let separator = if text.is_empty() { "" } else { ": " };
            text = text + separator + &cause;
        }
    }
    text
}

pub fn main() -> ExitCode {
    // A reader that has seen enough (`| head`) ends us quietly, as it does other tools.
    // SAFETY: no other thread runs yet, and nothing else handles the signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let cli = Cli::parse();
    let level = match cli.verbose {
        0 => log::LevelFilter::Warn,
        1 => log::LevelFilter::Info,
        _ => log::LevelFilter::Debug,
    };
    env_logger::Builder::new()
        .filter_level(level)
        .format_target(false)
        .format_timestamp(None)
        .init();
    let done = match cli.command {
        #[cfg(feature = "llama")]
        Command::Run(args) => run::run(args),
        #[cfg(feature = "llama")]
        Command::Profile(args) => profile::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Regress(args) => regress::run(args),
        Command::Vectors(command) => vectors::run(command),
        Command::Verify(args) => verify::run(args),
        Command::Compare(args) => compare::run(args),
        #[cfg(feature = "rtl")]
        Command::Dut(command) => dut::run(command),
        #[cfg(feature = "rtl")]
        Command::Coverage(args) => coverage::run(args),
        #[cfg(feature = "rtl")]
        Command::Mutate(args) => mutate::run(args),
        Command::Load(args) => load::run(args),
        Command::Targets => {
            TargetSpec::built()
                .iter()
                .for_each(|target| println!("{target}"));
            Ok(ExitCode::SUCCESS)
        }
    };
    let done = done.and_then(|code| out::finish().map(|()| code));
    done.unwrap_or_else(|error| {
        eprintln!("error: {}", chain(&error));
        ExitCode::from(2)
    })
}
