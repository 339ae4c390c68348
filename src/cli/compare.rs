//! `weightstream compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use weightstream::target::recording::{Channel, Difference, compare};

/// Compare two recordings: the jobs that were sent, and their answers, without times.
///
/// Exit status: 0 they are the same, 1 they differ, 2 a file is no recording.
#[derive(ClapArgs)]
pub struct Args {
    #[arg(value_name = "RECORDING")]
    first: PathBuf,
    #[arg(value_name = "RECORDING")]
    second: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(difference) = compare(&args.first, &args.second)? else {
        println!("the same jobs and the same answers");
        return Ok(ExitCode::SUCCESS);
    };
    let Difference {
        session,
        engine,
        channel,
        packet,
        packets,
    } = difference;
    let what = match channel {
        Channel::Mm2s => "job",
        Channel::S2mm => "answer",
    };
    println!("first difference: {what} {packet} of engine {engine}, session {session}");
    for (file, packet) in [&args.first, &args.second].into_iter().zip(packets) {
        match packet {
            Some(packet) => {
                let cycle = packet
                    .cycle
                    .map_or(String::new(), |c| format!(", cycle {c}"));
                println!(
                    "  {}, line {}{cycle}: {}",
                    file.display(),
                    packet.line,
                    packet.what
                );
            }
            None => println!("  {}: no more", file.display()),
        }
    }
    Ok(ExitCode::from(1))
}
