//! `weightstream coverage`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, thread};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;
use weightstream::coverage::{Counts, Share, Shares, Waivers, write_lcov};
use weightstream::target::rtl::dut::{Dut, Part};

use super::out::{OutputFile, write_json};

/// What a process that runs the object is told.
const COUNTS: &str = "WEIGHTSTREAM_COVERAGE";
/// The object, for the command that the user adds.
const OBJECT: &str = "WEIGHTSTREAM_SIM_DUT";

/// Count which lines of the RTL run and which bits toggle.
///
/// The RTL is built for that, the golden vectors and random jobs run on it, and a command of your
/// own. Written are coverage.info (lcov) and html/. Exit status: 0 every line and branch ran or is
/// waived with a reason, 1 one is not, 2 bad usage, or something that ran failed.
#[derive(ClapArgs)]
pub struct Args {
    /// The RTL: a folder with weightstream.f and coverage-waivers.toml.
    #[arg(long, value_name = "DIR", default_value = "rtl")]
    rtl: PathBuf,
    /// A parameter of the module `weightstream`. May be repeated.
    #[arg(long, value_name = "K=V", value_parser = super::dut::parameter)]
    param: Vec<(String, String)>,
    /// Golden vectors to replay.
    #[arg(long, value_name = "DIR", default_value = "vectors")]
    vectors: PathBuf,
    /// Random cases to check.
    #[arg(long, value_name = "N", default_value_t = 100)]
    cases: u64,
    /// The folder for the object, the counts and the report.
    #[arg(short, long, value_name = "DIR", default_value = "target/coverage")]
    out: PathBuf,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A command that runs on the object, too, which it finds in WEIGHTSTREAM_SIM_DUT.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    total: Shares,
    files: BTreeMap<&'a str, Shares>,
    missed: Vec<Missed<'a>>,
}

/// A line or branch that did not run and is not waived.
#[derive(Serialize)]
struct Missed<'a> {
    file: &'a str,
    line: u32,
    what: &'a str,
    text: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let waivers = Waivers::read(&args.rtl.join("coverage-waivers.toml"), &args.rtl)?;
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let folder = args.out.join("counts");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize()?;
    let object = build(&args)?;
    stimulate(&args, &object, &folder)?;

    let counts = Counts::read(&folder, &args.rtl)?;
    let info = args.out.join("coverage.info");
    let file = File::create(&info).with_context(|| info.display().to_string())?;
    let mut out = BufWriter::new(file);
    write_lcov(&counts, &args.rtl.canonicalize()?, &mut out)
        .and_then(|()| out.flush())
        .with_context(|| info.display().to_string())?;
    let html = args.out.join("html");
    genhtml(&info, &html)?;

    let (files, total) = counts.shares();
    let missed = waivers.judge(counts.missed())?;
    println!("{}", table(&files, &total));
    for (point, text) in &missed {
        println!(
            "never ran: {}:{}: {} of `{text}`",
            args.rtl.join(&point.file).display(),
            point.line,
            point.what
        );
    }
    println!("{}, {}", info.display(), html.join("index.html").display());
    let report = Report {
        total,
        files,
        missed: (missed.into_iter())
            .map(|(point, text)| Missed {
                file: &point.file,
                line: point.line,
                what: &point.what,
                text,
            })
            .collect(),
    };
    write_json(json, &report)?;
    Ok(ExitCode::from(u8::from(!report.missed.is_empty())))
}

/// The object, at an absolute path.
fn build(args: &Args) -> anyhow::Result<PathBuf> {
    let output = args.out.join("weightstream.so");
    let dut = Dut {
        part: Part::Accelerator,
        top: "weightstream",
        filelists: &[args.rtl.join("weightstream.f")],
        parameters: &args.param,
        output: &output,
        build_dir: &args.out.join("build"),
        coverage: true,
        quick: false,
        jobs: thread::available_parallelism().map_or(1, |n| n.get()),
    };
    dut.build(|text| eprint!("{text}"))
        .with_context(|| format!("cannot build {}", output.display()))?;
    Ok(output.canonicalize()?)
}

/// Runs everything that counts.
fn stimulate(args: &Args, object: &Path, counts: &Path) -> anyhow::Result<()> {
    let this = env::current_exe().context("cannot tell where this program is")?;
    let target = format!("dut:{}", object.display());
    let cases = args.cases.to_string();
    let vectors: [&OsStr; 5] = [
        "regress".as_ref(),
        "--target".as_ref(),
        target.as_ref(),
        "--vectors".as_ref(),
        args.vectors.as_ref(),
    ];
    let random = ["verify", "--target", &target, "--cases", &cases].map(OsStr::new);
    let mut commands = vec![
        (this.clone().into_os_string(), vectors.to_vec()),
        (this.into_os_string(), random.to_vec()),
    ];
    if let Some((program, arguments)) = args.command.split_first() {
        let arguments = arguments.iter().map(OsStr::new).collect();
        commands.push((program.into(), arguments));
    }
    for (program, arguments) in commands {
        let status = Command::new(&program)
            .args(&arguments)
            .env(COUNTS, counts)
            .env(OBJECT, object)
            .status()
            .with_context(|| program.to_string_lossy().into_owned())?;
        if !status.success() {
            let arguments: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
            bail!(
                "{} {}: {status}",
                program.to_string_lossy(),
                arguments.join(" ")
            );
        }
    }
    Ok(())
}

fn genhtml(info: &Path, html: &Path) -> anyhow::Result<()> {
    let output = Command::new("genhtml")
        .args(["--quiet", "--branch-coverage", "--legend"])
        .args(["--title", "weightstream RTL", "--output-directory"])
        .args([html, info])
        .output()
        .context("cannot run genhtml (Debian: apt-get install lcov)")?;
    if !output.status.success() {
        bail!(
            "genhtml {}: {}",
            info.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

fn table(files: &BTreeMap<&str, Shares>, total: &Shares) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["file", "lines", "branches", "toggles"]);
    let share = |s: Share| format!("{} of {}, {:.1} %", s.met, s.all, s.percent());
    let total = ("all", total);
    for (file, s) in files.iter().map(|(f, s)| (*f, s)).chain([total]) {
        table.add_row([
            file.to_owned(),
            share(s.lines),
            share(s.branches),
            share(s.toggles),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
