//! `weightstream regress`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args as ClapArgs;
use regex::Regex;
use serde::Serialize;
use weightstream::driver::Accelerator;
use weightstream::regress::{Difference, Outcome, replay};
use weightstream::target::TargetSpec;
use weightstream::vectors::{self, Case};

use super::options::SimulationArgs;
use super::report::{count_bar, write_json};

/// Differences shown of one case; the JSON report holds all.
const SHOWN: usize = 4;

/// Replay golden vectors, bit for bit.
///
/// Exit status: 0 all pass, 1 a difference or a failed job, 2 bad usage or a bad file.
#[derive(ClapArgs)]
pub struct Args {
    /// Target to replay on: model, rtl or rtl:CONFIGURATION. May be repeated; the default is every one
    /// in this build (`weightstream targets` lists them).
    #[arg(short, long, value_name = "T")]
    target: Vec<TargetSpec>,
    /// A vector file, or a folder of them.
    #[arg(long, value_name = "DIR", default_value = "vectors")]
    vectors: PathBuf,
    /// Only the cases whose name (the file's, without .safetensors) matches.
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Passed,
    Failed,
    Skipped,
    Unreadable,
}

#[derive(Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
    unreadable: usize,
    cases: Vec<CaseReport>,
}

/// One case on one target.
#[derive(Serialize)]
struct CaseReport {
    target: String,
    case: String,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Shape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<DifferenceReport>,
}

#[derive(Serialize)]
struct Shape {
    r#type: String,
    k: usize,
    rows: usize,
    cols: usize,
}

#[derive(Serialize)]
struct DifferenceReport {
    row: usize,
    col: usize,
    placement: usize,
    expected: String,
    actual: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let targets = if args.target.is_empty() {
        TargetSpec::built()
    } else {
        args.target
    };
    let mut files = vectors::files(&args.vectors)?;
    if let Some(filter) = &args.filter {
        files.retain(|f| filter.is_match(&f.file_stem().unwrap_or_default().to_string_lossy()));
    }
    if files.is_empty() {
        let filter = args
            .filter
            .map_or(String::new(), |f| format!(" that matches --filter {f}"));
        anyhow::bail!("{}: no vector file{filter}", args.vectors.display());
    }
    let mut cases = Vec::new();
    for target in &targets {
        let mut accelerator = args.simulation.open(target)?;
        let bar = count_bar("replaying", files.len() as u64);
        let start = Instant::now();
        let first = cases.len();
        for file in &files {
            let report = match Case::read(file) {
                Ok(case) => replay_one(&mut accelerator, target, &case),
                Err(error) => CaseReport {
                    target: target.to_string(),
                    case: file.display().to_string(),
                    verdict: Verdict::Unreadable,
                    shape: None,
                    why: Some(error.to_string()),
                    differences: Vec::new(),
                },
            };
            if matches!(report.verdict, Verdict::Failed | Verdict::Unreadable) {
                bar.suspend(|| print_failure(&report));
            }
            cases.push(report);
            bar.inc(1);
        }
        bar.finish_and_clear();
        println!(
            "{target}: {} in {:.1} s",
            summary(&cases[first..]),
            start.elapsed().as_secs_f64()
        );
    }
    let report = Report {
        passed: count(&cases, Verdict::Passed),
        failed: count(&cases, Verdict::Failed),
        skipped: count(&cases, Verdict::Skipped),
        unreadable: count(&cases, Verdict::Unreadable),
        cases,
    };
    write_json(args.json.as_deref(), &report)?;
    Ok(ExitCode::from(match (report.unreadable, report.failed) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    }))
}

fn count(cases: &[CaseReport], verdict: Verdict) -> usize {
    cases.iter().filter(|c| c.verdict == verdict).count()
}

fn summary(cases: &[CaseReport]) -> String {
    let mut line = format!(
        "{} passed, {} failed",
        count(cases, Verdict::Passed),
        count(cases, Verdict::Failed)
    );
    let others = [
        (Verdict::Skipped, "skipped (not in this kernel)"),
        (Verdict::Unreadable, "unreadable"),
    ];
    for (verdict, name) in others {
        match count(cases, verdict) {
            0 => {}
            n => line += &format!(", {n} {name}"),
        }
    }
    line
}

fn replay_one(accelerator: &mut Accelerator, target: &TargetSpec, case: &Case) -> CaseReport {
    let (verdict, why, differences) = match replay(accelerator, case) {
        Ok(Outcome::Passed) => (Verdict::Passed, None, Vec::new()),
        Ok(Outcome::Skipped) => (Verdict::Skipped, None, Vec::new()),
        Ok(Outcome::Quantiser {
            col,
            offset,
            expected,
            actual,
        }) => {
            let why = format!(
                "quantising x gives 0x{actual:02x} for byte {offset} of column {col}, the activations hold 0x{expected:02x}"
            );
            (Verdict::Failed, Some(why), Vec::new())
        }
        Ok(Outcome::Differs(differences)) => (Verdict::Failed, None, differences),
        Err(error) => (Verdict::Failed, Some(error.to_string()), Vec::new()),
    };
    CaseReport {
        target: target.to_string(),
        case: case.name(),
        verdict,
        shape: Some(Shape {
            r#type: case.ty.to_string(),
            k: case.k,
            rows: case.rows,
            cols: case.cols,
        }),
        why,
        differences: differences.iter().map(DifferenceReport::from).collect(),
    }
}

impl From<&Difference> for DifferenceReport {
    fn from(d: &Difference) -> Self {
        let bits = |b: u32| format!("0x{b:08x} ({:e})", f32::from_bits(b));
        DifferenceReport {
            row: d.row,
            col: d.col,
            placement: d.placement,
            expected: bits(d.expected),
            actual: bits(d.actual),
        }
    }
}

fn print_failure(report: &CaseReport) {
    let CaseReport { target, case, .. } = report;
    match &report.shape {
        Some(Shape {
            r#type,
            k,
            rows,
            cols,
        }) => {
            println!("FAILED on {target}: {case} ({type}, k {k}, rows {rows}, cols {cols})");
        }
        None => println!("UNREADABLE: {case}"),
    }
    if let Some(why) = &report.why {
        println!("  {why}");
    }
    for d in report.differences.iter().take(SHOWN) {
        let DifferenceReport {
            row,
            col,
            placement,
            expected,
            actual,
        } = d;
        println!(
            "  row {row}, col {col}, weights at byte {placement}: expected {expected}, actual {actual}"
        );
    }
    if let Some(more @ 1..) = report.differences.len().checked_sub(SHOWN) {
        println!("  and {more} more");
    }
}
