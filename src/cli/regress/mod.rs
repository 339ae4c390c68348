//! `weightstream regress`.

mod baseline;
mod junit;
mod report;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args as ClapArgs;
use regex::Regex;
use weightstream::driver::Accelerator;
use weightstream::regress::{Shard, Verdict, Waves, in_order, replay, waves};
use weightstream::target::{TargetOptions, TargetSpec, open};
use weightstream::vectors::{self, Case, exact};

use super::options::{ConditionArgs, SimulationArgs};
use super::out::{OutputFile, write_json};
use super::report::count_bar;
use baseline::Baseline;
use report::{CaseReport, Report, Shape, WavesReport};

/// Replay vectors, bit for bit.
///
/// Each case runs on a fresh target, so it shows the same whatever runs beside it. Exit status: 0
/// all pass, 1 a difference or a failed job, 2 bad usage or a bad file.
#[derive(ClapArgs)]
pub struct Args {
    /// Target to replay on: model, rtl, rtl:CONFIGURATION or replay:RECORDING. May be repeated; the
    /// default is every one in this build (`weightstream targets` lists them).
    #[arg(short, long, value_name = "T")]
    target: Vec<TargetSpec>,
    /// Vector files, folders of them, or patterns such as 'nightly/**/q4_*.safetensors'.
    #[arg(long, value_name = "PATH", default_value = "vectors", num_args = 1..)]
    vectors: Vec<PathBuf>,
    /// Only the cases whose name (the file's, without .safetensors) matches.
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Only the cases of shard I of N. Each case is in exactly one, by a hash of its name.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Cases replayed side by side.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Write a JUnit report to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare each case's cycles with those in this file; a case that takes more fails.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stalls", "stall_seed", "latency", "engines"])]
    cycles: Option<PathBuf>,
    /// So many percent more cycles are no failure.
    #[arg(
        long,
        value_name = "PERCENT",
        requires = "cycles",
        default_value_t = 0.0
    )]
    cycles_tolerance: f64,
    /// Write the cycles of the cases that pass into the --cycles file.
    #[arg(long, requires = "cycles")]
    bless: bool,
    /// Run each failing case of the RTL again, and write an FST trace from shortly before its first
    /// wrong result into this folder.
    #[arg(long, value_name = "DIR")]
    waves_on_failure: Option<PathBuf>,
    #[command(flatten)]
    conditions: ConditionArgs,
    #[command(flatten)]
    simulation: SimulationArgs,
}

/// What all replays share.
struct Session<'a> {
    args: &'a Args,
    options: TargetOptions,
    baseline: Option<Baseline>,
    /// What each target's kernel is called in the baseline.
    kernels: BTreeMap<String, String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let targets = match args.target.is_empty() {
        true => TargetSpec::built(),
        false => args.target.clone(),
    };
    let files = files(&args)?;
    check_usage(&args, &targets, files.len())?;
    let mut options = args.simulation.options()?;
    args.conditions.apply(&mut options);
    // Side by side, cases share the cores.
    options.threads = options.threads.div_ceil(args.jobs.into());
    // What is wrong with a target is said once, and before anything runs.
    let mut kernels = BTreeMap::new();
    for target in &targets {
        let opened =
            open(target, &options).with_context(|| format!("cannot open target {target}"))?;
        let accelerator =
            Accelerator::new(opened).with_context(|| format!("cannot start target {target}"))?;
        let kernel = baseline::kernel(&accelerator.capabilities());
        kernels.insert(target.to_string(), kernel);
    }
    let read = |path: &PathBuf| Baseline::read(path, args.cycles_tolerance, args.bless);
    let baseline = args.cycles.as_ref().map(read).transpose()?;
    if let Some(folder) = &args.waves_on_failure {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make --waves-on-failure {}", folder.display()))?;
    }
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let junit = OutputFile::create("--junit", args.junit.as_deref())?;
    let mut session = Session {
        args: &args,
        options,
        baseline,
        kernels,
    };

    let bar = count_bar("replaying", (targets.len() * files.len()) as u64);
    let start = Instant::now();
    let mut report = Report::new(args.shard);
    let runs = targets
        .iter()
        .flat_map(|target| files.iter().map(move |file| (target, file)));
    in_order(
        runs,
        args.jobs.into(),
        |(target, file)| session.replay_file(target, file),
        |case| {
            bar.suspend(|| report.add(case));
            bar.inc(1);
        },
    );
    bar.finish_and_clear();
    report.seconds = start.elapsed().as_secs_f64();
    session.settle_cycles(&report)?;
    report.print();
    write_json(json, &report)?;
    if let Some(file) = junit {
        file.write(&junit::document(&report)?)?;
    }
    Ok(report.exit_code())
}

/// Refuses what would not do what it seems to.
fn check_usage(args: &Args, targets: &[TargetSpec], files: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.simulation.trace.is_none() || targets.len() * files == 1,
        "--trace holds one case on one target; --waves-on-failure traces those that fail"
    );
    let replayed = targets.iter().any(|t| matches!(t, TargetSpec::Replay(_)));
    anyhow::ensure!(
        args.jobs == 1 || (args.simulation.record.is_none() && !replayed),
        "a recording holds cases one after the other: --jobs must be 1"
    );
    Ok(())
}

/// The files that the arguments choose, each once.
fn files(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in &args.vectors {
        let named = vectors::files(path)?;
        files.extend(named.into_iter().filter(|file| seen.insert(file.clone())));
    }
    let name = |file: &Path| {
        file.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    if let Some(filter) = &args.filter {
        files.retain(|file| filter.is_match(&name(file)));
    }
    if files.is_empty() {
        let paths: Vec<String> = args
            .vectors
            .iter()
            .map(|p| p.display().to_string())
            .collect();
        let filter = args
            .filter
            .as_ref()
            .map_or(String::new(), |f| format!(" that matches --filter {f}"));
        anyhow::bail!("{}: no vector file{filter}", paths.join(", "));
    }
    // A shard without a case is none the worse.
    if let Some(shard) = args.shard {
        files.retain(|file| shard.has(&name(file)));
    }
    Ok(files)
}

impl Session<'_> {
    fn replay_file(&self, target: &TargetSpec, file: &Path) -> CaseReport {
        let start = Instant::now();
        let report = match Case::read(file) {
            Ok(case) => self.replay_case(target, &case),
            Err(error) => CaseReport::unreadable(target, file, error.to_string()),
        };
        report.after(start.elapsed())
    }

    fn replay_case(&self, target: &TargetSpec, case: &Case) -> CaseReport {
        let opener = |options: &TargetOptions| open(target, options);
        let mut report = CaseReport::new(target, case, self.repeat(target, case));
        report.shape = Some(Shape::of(case));
        for engine in 0..self.options.engines {
            let done = replay(&opener, &self.options, engine, case);
            match done {
                Ok((Verdict::Passed, activity)) => report.passed(activity),
                Ok((Verdict::Skipped, _)) => {
                    report.skipped();
                    return report;
                }
                Ok((verdict, _)) => {
                    report.failed(case, &verdict);
                    if !exact::check(case).is_empty() {
                        let why =
                            "the vector itself is not exact; see `weightstream vectors check`";
                        report.why.push(why.into());
                    }
                    if matches!(verdict, Verdict::Failed(_)) {
                        report.waves = self.waves(target, case, &mut report.why);
                    }
                    return report;
                }
                Err(error) => {
                    report.broken(error.to_string());
                    return report;
                }
            }
        }
        if !self.args.bless
            && let (Some(baseline), Some(cycles)) = (&self.baseline, report.cycles)
            && let Some(why) = baseline.judge(self.kernel(&report), &report.case, cycles)
        {
            report.broken(why);
        }
        report
    }

    fn kernel(&self, case: &CaseReport) -> &str {
        &self.kernels[&case.target]
    }

    /// Tells which cases take other cycles than in the baseline, or takes them in.
    fn settle_cycles(&mut self, report: &Report) -> anyhow::Result<()> {
        let Some(mut baseline) = self.baseline.take() else {
            return Ok(());
        };
        let mut changes = Vec::new();
        for case in &report.cases {
            if let Some(cycles) = case.cycles {
                let kernel = self.kernel(case);
                changes.extend(baseline.change(&case.target, kernel, &case.case, cycles));
                if self.args.bless {
                    baseline.bless(kernel, &case.case, cycles);
                }
            }
        }
        if !changes.is_empty() {
            println!("{}", baseline::table(changes));
        }
        if self.args.bless {
            baseline.write()?;
        }
        Ok(())
    }

    /// Traces a failing case, if that is asked for and the target has signals.
    fn waves(
        &self,
        target: &TargetSpec,
        case: &Case,
        why: &mut Vec<String>,
    ) -> Option<WavesReport> {
        let folder = self.args.waves_on_failure.as_ref()?;
        if matches!(target, TargetSpec::Model | TargetSpec::Replay(_)) {
            return None;
        }
        // Cases of the same name in several folders do not share a file.
        let stem = case.path.with_extension("").display().to_string();
        let name = format!("{target}-{stem}.fst").replace([':', '/'], "-");
        let options = TargetOptions {
            engines: 1,
            ..self.options.clone()
        };
        let opener = |options: &TargetOptions| open(target, options);
        match waves(&opener, &options, 0, case, &folder.join(name)) {
            Ok(Some(Waves {
                path,
                cycles,
                cycle,
                group,
            })) => Some(WavesReport {
                file: path.display().to_string(),
                first_cycle: cycles.start,
                end_cycle: cycles.end,
                cycle,
                scope: group.scope.into(),
                why: group.why,
            }),
            Ok(None) => {
                why.push("no waves: it did not fail again".into());
                None
            }
            Err(error) => {
                why.push(format!("no waves: {error}"));
                None
            }
        }
    }

    /// The command line that repeats this case alone.
    fn repeat(&self, target: &TargetSpec, case: &Case) -> String {
        let mut words = vec!["weightstream".to_string(), "regress".into()];
        words.extend(["--target".into(), target.to_string()]);
        words.extend(["--vectors".into(), case.path.display().to_string()]);
        words.extend(self.args.simulation.words());
        words.extend(self.args.conditions.words());
        let quoted = shlex::try_join(words.iter().map(String::as_str));
        quoted.unwrap_or_else(|_| words.join(" "))
    }
}
