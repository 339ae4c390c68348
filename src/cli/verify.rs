//! `weightstream verify`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args as ClapArgs;
use serde::Serialize;
use weightstream::regress::{Mismatch, MismatchKind, in_order};
use weightstream::target::{TargetOptions, TargetSpec, open};
use weightstream::verify::{CrossReport, Failure, Verifier};

use super::options::SimulationArgs;
use super::out::{OutputFile, write_json};
use super::report::{count_bar, spinner};

/// Cases if neither their number nor a time is given.
const DEFAULT_CASES: u64 = 1000;
/// Holes of a cross shown on the screen; the JSON report holds all.
const SHOWN: usize = 8;
/// Wrong results shown.
const WRONG: usize = 4;

/// Check a target against the model with random jobs, bit for bit.
///
/// Cases are random chains of jobs of every type and shape, with stalls, latencies, malformed
/// packets, bus errors and resets. The first that fails is shrunk to the smallest job and the mildest
/// stalls that still fail, and kept as a vector for `regress`. Exit status: 0 all cases agree, 1 one
/// fails, 2 bad usage.
#[derive(ClapArgs)]
pub struct Args {
    /// Target to check: rtl, rtl:CONFIGURATION, or model, which is compared with exact results.
    #[arg(short, long, value_name = "T")]
    target: TargetSpec,
    /// Cases to run; 1000 if no time is given either.
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Begin no case after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Seed. Case n of a seed is the same on every machine.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Number of the first case.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Cases run side by side.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Most seconds to shrink a failing case.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    shrink_time: u64,
    /// The folder for the vector of a failing case.
    #[arg(short, long, value_name = "DIR", default_value = "verify-failures")]
    out: PathBuf,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

#[derive(Serialize)]
struct Report {
    target: String,
    seed: u64,
    first_case: u64,
    cases: u64,
    jobs: u64,
    /// Simulated, on a target that has cycles.
    cycles: u64,
    seconds: f64,
    coverage: Vec<CrossReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureReport>,
}

#[derive(Serialize)]
struct FailureReport {
    case: u64,
    /// What was wrong with the case as it came.
    first: Vec<String>,
    /// What is wrong with the smallest one.
    smallest: Vec<String>,
    jobs: Vec<String>,
    shrinks_tried: usize,
    shrinks_taken: usize,
    model_is_wrong: bool,
    vector: String,
    repeat: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let SimulationArgs { trace, record, .. } = &args.simulation;
    anyhow::ensure!(
        trace.is_none() && record.is_none(),
        "--trace and --record are for one case: give them to the `regress` of a saved one"
    );
    let options = args.simulation.options()?;
    let opener = |options: &TargetOptions| open(&args.target, options);
    let is_model = args.target == TargetSpec::Model;
    let verifier = Verifier::new(&opener, &options, args.seed, is_model)
        .with_context(|| format!("cannot start target {}", args.target))?;

    let cases = match (args.cases, args.time) {
        (Some(cases), _) => cases,
        (None, None) => DEFAULT_CASES,
        (None, Some(_)) => u64::MAX - args.from,
    };
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let in_time = || {
        args.time
            .is_none_or(|s| start.elapsed() < Duration::from_secs(s))
    };
    let numbers = (args.from..args.from.saturating_add(cases))
        .take_while(|_| in_time() && !stop.load(Ordering::Relaxed));
    let bar = match args.time.is_none() || args.cases.is_some() {
        true => count_bar("verifying", cases),
        false => spinner("verifying"),
    };
    let mut coverage = verifier.coverage();
    let mut failed = None;
    let mut broken = None;
    let (mut done, mut jobs, mut cycles) = (0, 0, 0);
    in_order(
        numbers,
        args.jobs.into(),
        |number| (number, verifier.check(number)),
        |(number, checked)| match checked {
            _ if failed.is_some() || broken.is_some() => {}
            Ok(checked) => {
                coverage.count(
                    &checked.built.scenario,
                    &checked.built.scales,
                    &checked.ended,
                );
                done += 1;
                jobs += checked.built.scenario.jobs().count() as u64;
                cycles += checked.ended.last().and_then(|e| e.cycle).unwrap_or(0);
                bar.inc(1);
                if !checked.mismatches.is_empty() {
                    failed = Some(number);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => {
                broken = Some((number, error));
                stop.store(true, Ordering::Relaxed);
            }
        },
    );
    bar.finish_and_clear();
    if let Some((number, error)) = broken {
        return Err(error).with_context(|| format!("case {number} of seed {}", args.seed));
    }
    let failure = match failed {
        Some(number) => Some(shrink(&args, &verifier, number)?),
        None => None,
    };
    let report = Report {
        target: args.target.to_string(),
        seed: args.seed,
        first_case: args.from,
        cases: done,
        jobs,
        cycles,
        seconds: start.elapsed().as_secs_f64(),
        coverage: coverage.report(),
        failure,
    };
    print(&report);
    write_json(json, &report)?;
    Ok(ExitCode::from(u8::from(report.failure.is_some())))
}

/// Shrinks a failing case and writes it as a vector.
fn shrink(args: &Args, verifier: &Verifier<'_>, number: u64) -> anyhow::Result<FailureReport> {
    let bar = spinner("shrinking");
    let time = Duration::from_secs(args.shrink_time);
    let failure = verifier.shrink(number, time, || bar.inc(1))?;
    bar.finish_and_clear();
    let failure = failure.with_context(|| {
        format!("case {number} failed and did not fail again: the target is not the same each time")
    })?;
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make --out {}", args.out.display()))?;
    let target = args.target.to_string().replace([':', '/'], "-");
    let name = format!("{target}-seed{}-case{number}.safetensors", args.seed);
    let path = args.out.join(name);
    failure.case.write(&path)?;
    let mut words: Vec<String> = ["weightstream", "regress", "--target"]
        .map(String::from)
        .into();
    words.extend([
        args.target.to_string(),
        "--vectors".into(),
        path.display().to_string(),
    ]);
    words.extend(args.simulation.words());
    let repeat = shlex::try_join(words.iter().map(String::as_str));
    let Failure {
        first,
        mismatches,
        case,
        tried,
        taken,
        model_is_wrong,
        ..
    } = failure;
    let scenario = case.recorded.as_ref().map(|r| &r.scenario);
    let jobs = scenario.into_iter().flat_map(|s| s.jobs());
    let mut told: Vec<String> = jobs.map(|job| format!("job {job}")).collect();
    if let Some(scenario) = scenario {
        let conditions = &scenario.conditions;
        told.push(match conditions.stalls.is_empty() {
            true => format!("no stalls, latency {}", conditions.latency),
            false => format!(
                "stalls in % {}, latency {}",
                conditions.stalls, conditions.latency
            ),
        });
    }
    Ok(FailureReport {
        case: number,
        first: first.iter().flat_map(lines).collect(),
        smallest: mismatches.iter().flat_map(lines).collect(),
        jobs: told,
        shrinks_tried: tried,
        shrinks_taken: taken,
        model_is_wrong,
        vector: path.display().to_string(),
        repeat: repeat.unwrap_or_else(|_| words.join(" ")),
    })
}

/// What is wrong, with the first wrong results.
fn lines(mismatch: &Mismatch) -> Vec<String> {
    let job = mismatch.job.map_or(String::new(), |n| format!(", job {n}"));
    let mut lines = vec![format!("chain {}{job}: {}", mismatch.chain, mismatch.kind)];
    if let MismatchKind::Results { first, .. } = &mismatch.kind {
        lines.extend(first.iter().take(WRONG).map(|w| format!("  {w}")));
    }
    lines
}

fn print(report: &Report) {
    for cross in &report.coverage {
        let CrossReport {
            name,
            dimensions,
            met,
            of,
            holes,
        } = cross;
        let percent = 100.0 * *met as f64 / (*of).max(1) as f64;
        println!(
            "{name} ({}): {met} of {of} met, {percent:.1} %",
            dimensions.join(" × ")
        );
        for hole in holes.iter().take(SHOWN) {
            println!("  not met: {} ({})", hole.what, hole.combinations);
        }
        if let Some(more @ 1..) = holes.len().checked_sub(SHOWN) {
            println!("  and {more} more holes");
        }
    }
    if let Some(failure) = &report.failure {
        let FailureReport {
            case,
            shrinks_tried,
            shrinks_taken,
            ..
        } = failure;
        println!("FAILED: case {case} of seed {}", report.seed);
        failure.first.iter().for_each(|line| println!("  {line}"));
        println!("shrunk, {shrinks_taken} of {shrinks_tried} smaller cases failed too, to");
        failure.jobs.iter().for_each(|line| println!("  {line}"));
        failure
            .smallest
            .iter()
            .for_each(|line| println!("  {line}"));
        if failure.model_is_wrong {
            println!("  the exact results are not the model's: the model is wrong here");
        }
        println!("  repeat: {}", failure.repeat);
    }
    let Report {
        target,
        cases,
        jobs,
        seconds,
        ..
    } = report;
    let verdict = if report.failure.is_some() {
        "FAILED"
    } else {
        "PASSED"
    };
    let cycles = match report.cycles {
        0 => String::new(),
        cycles => format!(", {:.1} M cycles", cycles as f64 / 1e6),
    };
    println!("{target}: {verdict}, {cases} cases, {jobs} jobs{cycles} in {seconds:.1} s");
}
