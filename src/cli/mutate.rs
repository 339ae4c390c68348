//! `weightstream mutate`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;
use weightstream::mutation::{
    Bench, Mutant, MutationError, Outcome, Plan, Results, Source, Suite, Verdict, draw,
};

use super::out::{OutputFile, write_json};
use super::report::count_bar;

/// In the folder of the RTL: what is run, and the faults that make no difference.
const PLAN: &str = "mutants.toml";

/// Make small faults in the RTL and see which ones the tests notice.
///
/// Each fault (an operator, a constant, a bit of a width, a term, a branch, an assignment) is built
/// by itself, and the checks that the RTL's mutants.toml names run on it, until one fails. What became
/// of it is added to results.jsonl, and a run that was ended goes on from there. Exit status: 0 every
/// fault was noticed or is argued in mutants.toml, 1 one was not, 2 bad usage, or a check fails on the
/// RTL as it is.
#[derive(ClapArgs)]
pub struct Args {
    /// The RTL: a folder with mutants.toml.
    #[arg(long, value_name = "DIR", default_value = "rtl")]
    rtl: PathBuf,
    /// Faults to make, at least one in each source.
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: usize,
    /// Seed of the draw. Of one seed, more faults begin with the same ones.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Make faults in this source only, as `kernel/ws_acc.sv`. May be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// Faults built and run side by side.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// The folder for the results and for what is built.
    #[arg(short, long, value_name = "DIR", default_value = "target/mutation")]
    out: PathBuf,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Faults, by what became of them.
#[derive(Clone, Copy, Default, Serialize)]
struct Counts {
    killed: usize,
    timed_out: usize,
    survived: usize,
    /// Survived, and argued to make no difference.
    argued: usize,
    /// Built to the same code.
    same: usize,
    refused: usize,
}

#[derive(Serialize)]
struct Report {
    seed: u64,
    total: Counts,
    /// Noticed, of those that make a difference, in percent.
    score: f64,
    files: BTreeMap<String, Counts>,
    killed_by: BTreeMap<String, usize>,
    survivors: Vec<Outcome>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let plan = Plan::read(&args.rtl.join(PLAN))?;
    let mut sources = plan.sources(&args.rtl)?;
    plan.check(&sources)?;
    for file in &args.file {
        let known = sources.iter().any(|s| s.file == *file);
        ensure!(known, "--file {file}: no suite of {PLAN} has such a source");
    }
    if !args.file.is_empty() {
        sources.retain(|s| args.file.contains(&s.file));
    }
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let mut results = Results::open(&args.out.join("results.jsonl"))?;
    let mut outcomes = Vec::new();
    let mut open = Vec::new();
    for mutant in draw(&sources, args.count, args.seed) {
        let fault = fault(&sources, &mutant);
        match results.known(&fault) {
            Some(known) => outcomes.push(known.clone()),
            None => open.push((mutant, fault)),
        }
    }
    judge(&args, &plan, &open, |outcome| {
        results.add(outcome.clone())?;
        outcomes.push(outcome);
        Ok(())
    })?;

    let report = Report::new(args.seed, &plan, outcomes);
    report.print();
    write_json(json, &report)?;
    Ok(ExitCode::from(u8::from(report.total.survived > 0)))
}

/// `mutant` as the results have it, not yet judged.
fn fault(sources: &[Source], mutant: &Mutant) -> Outcome {
    let source = sources.iter().find(|s| s.file == mutant.file);
    let text = &source.expect("mutants are of the sources").text;
    let (before, after) = mutant.lines(text);
    let line = text[..mutant.at.start].rfind('\n').map_or(0, |n| n + 1);
    Outcome {
        file: mutant.file.clone(),
        line: mutant.line,
        column: mutant.at.start - line + 1,
        operator: mutant.operator.into(),
        before,
        after,
        verdict: Verdict::Survived,
        seconds: 0.0,
    }
}

/// Judges the faults `open`, several side by side, and passes on what became of each.
fn judge(
    args: &Args,
    plan: &Plan,
    open: &[(Mutant, Outcome)],
    mut done: impl FnMut(Outcome) -> Result<(), MutationError>,
) -> anyhow::Result<()> {
    let bar = count_bar("faults", open.len() as u64);
    let next = AtomicUsize::new(0);
    let (sender, judged) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..usize::from(args.jobs).min(open.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let work = || -> Result<(), MutationError> {
                    let benches = benches(args, plan, worker)?;
                    while let Some((mutant, fault)) = open.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let start = Instant::now();
                        let verdict = in_all(&benches, mutant)?;
                        let outcome = Outcome {
                            verdict,
                            seconds: start.elapsed().as_secs_f64(),
                            ..fault.clone()
                        };
                        if sender.send(Ok(outcome)).is_err() {
                            break;
                        }
                    }
                    Ok(())
                };
                if let Err(e) = work() {
                    let _ = sender.send(Err(e));
                }
            });
        }
        drop(sender);
        // On an error the receiver goes, and the workers end after the fault that they are at.
        for outcome in judged {
            done(outcome?)?;
            bar.inc(1);
        }
        Ok(())
    })
}

/// A worker's copies of the RTL, one a suite.
fn benches<'a>(
    args: &Args,
    plan: &'a Plan,
    worker: usize,
) -> Result<Vec<Bench<'a>>, MutationError> {
    let bench = |(n, suite): (usize, &'a Suite)| {
        let folder = args.out.join(format!("worker-{worker}-{n}"));
        Bench::new(&args.rtl, &folder, suite)
    };
    plan.suites.iter().enumerate().map(bench).collect()
}

/// What becomes of `mutant` in the suites that have it, the first that notices it.
fn in_all(benches: &[Bench<'_>], mutant: &Mutant) -> Result<Verdict, MutationError> {
    let mut verdict = Verdict::Same;
    for bench in benches.iter().filter(|b| b.has(mutant)) {
        match bench.judge(mutant)? {
            Verdict::Same => {}
            Verdict::Survived => verdict = Verdict::Survived,
            noticed => return Ok(noticed),
        }
    }
    Ok(verdict)
}

impl Report {
    fn new(seed: u64, plan: &Plan, outcomes: Vec<Outcome>) -> Report {
        let mut report = Report {
            seed,
            total: Counts::default(),
            score: 0.0,
            files: BTreeMap::new(),
            killed_by: BTreeMap::new(),
            survivors: Vec::new(),
        };
        for outcome in outcomes {
            let file = report.files.entry(outcome.file.clone()).or_default();
            let is_argued = plan.argues(&outcome.file, &outcome.before, &outcome.after);
            for counts in [file, &mut report.total] {
                *match &outcome.verdict {
                    Verdict::Killed { .. } => &mut counts.killed,
                    Verdict::TimedOut { .. } => &mut counts.timed_out,
                    Verdict::Refused => &mut counts.refused,
                    Verdict::Same => &mut counts.same,
                    Verdict::Survived if is_argued => &mut counts.argued,
                    Verdict::Survived => &mut counts.survived,
                } += 1;
            }
            match outcome.verdict {
                Verdict::Killed { by } => *report.killed_by.entry(by).or_default() += 1,
                Verdict::Survived if !is_argued => report.survivors.push(outcome),
                _ => {}
            }
        }
        report.score = report.total.score();
        report
    }

    fn print(&self) {
        println!("{}", self.table());
        for (check, killed) in &self.killed_by {
            println!("{killed} killed by {check}");
        }
        for s in &self.survivors {
            println!("survived: {}:{}: {}", s.file, s.line, s.operator);
            println!("  - {}\n  + {}", s.before, s.after);
        }
        println!("score: {:.1} %", self.score);
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        table.set_header([
            "file",
            "killed",
            "timed out",
            "survived",
            "argued",
            "same code",
            "refused",
        ]);
        let files = self.files.iter().map(|(file, c)| (file.as_str(), c));
        for (file, c) in files.chain([("all", &self.total)]) {
            let counts = [
                c.killed,
                c.timed_out,
                c.survived,
                c.argued,
                c.same,
                c.refused,
            ];
            table.add_row(
                [file.into()]
                    .into_iter()
                    .chain(counts.map(|n| n.to_string())),
            );
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl Counts {
    fn score(self) -> f64 {
        let noticed = self.killed + self.timed_out;
        match noticed + self.survived {
            0 => 100.0,
            all => 100.0 * noticed as f64 / all as f64,
        }
    }
}
