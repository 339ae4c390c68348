//! `weightstream profile`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table};
use weightstream::profile::diff::{self, Change, Diff, Measure};
use weightstream::profile::summary::{self, PhaseSummary, Row, Totals};
use weightstream::profile::{Profile, html, perfetto, table};

use super::generation::{GenerationArgs, Keep};
use super::out::{OutputFile, write_json};

/// MHz that the cycles of a simulated target count as, if nothing is said.
const CLOCK_MHZ: f64 = 200.0;

/// Tell what each job and tensor took: cycles, stalls, bandwidth, driver, host.
///
/// Generates as `run` does and notes each job, or takes a profile that was kept with `--json`. Shows
/// a table; the options write reports. On a target without a clock there are times and no cycles.
#[derive(ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Take this profile (JSON) and run nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["GenerationArgs", "SimulationArgs"])]
    from: Option<PathBuf>,
    /// MHz that cycles count as; 200, or as in the profile, if not given.
    #[arg(long, value_name = "MHZ", value_parser = clock)]
    clock: Option<f64>,
    /// Rows of the table.
    #[arg(long, value_enum, default_value_t = By::Role)]
    by: By,
    /// Write the profile as JSON to this file; `--from` and `diff` read it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a report as HTML to this file, which needs nothing beside it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev to this file.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write a line for each job, as CSV, to this file.
    #[arg(long, value_name = "FILE")]
    csv_jobs: Option<PathBuf>,
    /// Write a line for each tensor and phase, as CSV, to this file.
    #[arg(long, value_name = "FILE")]
    csv_tensors: Option<PathBuf>,
    #[command(flatten)]
    generation: GenerationArgs,
}

#[derive(Subcommand)]
enum Command {
    Diff(DiffArgs),
}

/// Compare two profiles: what got slower?
///
/// Cycles are compared where both have some, else times; a step's, in each phase. The exit status
/// is 1 if a phase or a row got slower by more than the tolerance.
#[derive(ClapArgs)]
struct DiffArgs {
    /// The earlier profile, JSON.
    a: PathBuf,
    /// The later one.
    b: PathBuf,
    /// What is compared.
    #[arg(long, value_enum, default_value_t = By::Tensor)]
    by: By,
    /// What does not count as slower, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,
    /// Most rows to show; those that changed most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    rows: usize,
    /// Write the comparison as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Each tensor.
    Tensor,
    /// Each layer.
    Layer,
    /// What tensors are within their layers: attn_q, ffn_down and so on.
    Role,
}

fn clock(text: &str) -> Result<f64, String> {
    let clock: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    match clock.is_finite() && clock > 0.0 {
        true => Ok(clock),
        false => Err("not more than 0".into()),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Command::Diff(args)) = args.command {
        return compare(args);
    }
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let html = OutputFile::create("--html", args.html.as_deref())?;
    let perfetto = OutputFile::create("--perfetto", args.perfetto.as_deref())?;
    let csv_jobs = OutputFile::create("--csv-jobs", args.csv_jobs.as_deref())?;
    let csv_tensors = OutputFile::create("--csv-tensors", args.csv_tensors.as_deref())?;
    let profile = match &args.from {
        Some(file) => {
            let mut profile = Profile::read(file)?;
            if let Some(clock) = args.clock {
                ensure!(
                    profile.clock_mhz.is_some(),
                    "--clock: {} is of a target without a clock",
                    file.display()
                );
                profile.set_clock(clock);
            }
            profile
        }
        None => record(&args)?,
    };

    let phases = summary::phases(&profile);
    write_json(json, &profile)?;
    if let Some(file) = html {
        file.write(html::render(&profile)?.as_bytes())?;
    }
    if let Some(file) = perfetto {
        file.write(&perfetto::encode(&profile))?;
    }
    if let Some(file) = csv_jobs {
        file.write(&table::jobs_csv(&profile)?)?;
    }
    if let Some(file) = csv_tensors {
        file.write(&table::tensors_csv(&profile, &phases)?)?;
    }
    for phase in &phases {
        print(&profile, phase, args.by);
    }
    Ok(ExitCode::SUCCESS)
}

fn record(args: &Args) -> anyhow::Result<Profile> {
    let keep = Keep {
        jobs: true,
        ..Keep::default()
    };
    let generation = args.generation.generate(keep, &mut |_| Ok(()))?;
    let target = args.generation.target.to_string();
    let model = args.generation.model_name();
    generation
        .backend
        .take_recording(&target, &model, args.clock.unwrap_or(CLOCK_MHZ))
        .context("nothing was recorded")
}

fn rows(phase: &PhaseSummary, by: By) -> &[Row] {
    match by {
        By::Tensor => &phase.tensors,
        By::Layer => &phase.layers,
        By::Role => &phase.roles,
    }
}

fn print(profile: &Profile, phase: &PhaseSummary, by: By) {
    let steps = phase.steps as f64;
    let t = &phase.totals;
    let part = |ns: f64| 100.0 * ns / t.ns().max(f64::MIN_POSITIVE);
    let clock = profile
        .clock_mhz
        .map_or(String::new(), |mhz| format!(", cycles at {mhz} MHz"));
    println!(
        "{}: {} steps, {} tokens{clock}; a step {:.3} ms, {:.0} jobs, {:.2} MB: kernel {:.1} %, driver {:.1} %, host {:.1} %",
        phase.phase.name(),
        phase.steps,
        phase.tokens,
        t.ns() / steps / 1e6,
        t.jobs as f64 / steps,
        t.bytes as f64 / steps / 1e6,
        part(t.kernel_ns),
        part(t.driver_ns),
        part(t.host_ns),
    );
    let mut table = Table::new();
    let mut header = vec![
        "a step",
        "type",
        "jobs",
        "MB",
        "kernel, us",
        "GB/s",
        "driver, us",
        "host, us",
    ];
    let with_cycles = ["cycles", "data", "wait in", "compute", "idle", "wait out"];
    if profile.clock_mhz.is_some() {
        header.extend(with_cycles);
    }
    table.set_header(header);
    for row in rows(phase, by) {
        let t = &row.totals;
        let mut cells = vec![
            row.name.clone(),
            row.r#type.clone(),
            format!("{:.0}", t.jobs as f64 / steps),
            format!("{:.3}", t.bytes as f64 / steps / 1e6),
            format!("{:.1}", t.kernel_ns / steps / 1e3),
            format!("{:.2}", t.gigabytes_per_second()),
            format!("{:.1}", t.driver_ns / steps / 1e3),
            format!("{:.1}", t.host_ns / steps / 1e3),
        ];
        if profile.clock_mhz.is_some() {
            cells.push(format!("{:.0}", t.cycles / steps));
            cells.extend(shares(t).map(|share| format!("{share:.1} %")));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}\n");
}

/// Where the cycles went, in percent.
fn shares(t: &Totals) -> [f64; 5] {
    let all = t.cycles.max(f64::MIN_POSITIVE);
    [
        t.data_cycles,
        t.wait_input_cycles,
        t.compute_cycles,
        t.idle_cycles,
        t.wait_output_cycles,
    ]
    .map(|cycles| 100.0 * cycles / all)
}

fn compare(args: DiffArgs) -> anyhow::Result<ExitCode> {
    ensure!(
        args.tolerance >= 0.0,
        "--tolerance {} is not a percentage of at least 0",
        args.tolerance
    );
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let (a, b) = (Profile::read(&args.a)?, Profile::read(&args.b)?);
    let by = match args.by {
        By::Tensor => diff::By::Tensor,
        By::Layer => diff::By::Layer,
        By::Role => diff::By::Role,
    };
    let diff = diff::diff(&a, &b, by)?;
    print_diff(&diff, &args);
    write_json(json, &diff)?;
    let slower = |change: &Change| change.is_slower(args.tolerance);
    let all = diff.totals.iter().chain(&diff.rows);
    let slower = all.filter(|change| slower(change)).count();
    Ok(match slower {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn print_diff(diff: &Diff, args: &DiffArgs) {
    let (unit, scale) = match diff.measure {
        Measure::Cycles => ("cycles", 1.0),
        Measure::Time => ("us", 1e3),
    };
    let mut table = Table::new();
    let header = ["phase", "a step", "A", "B", "difference", "", ""];
    table.set_header(header.map(|h| match h {
        "A" | "B" | "difference" => format!("{h}, {unit}"),
        _ => h.to_string(),
    }));
    let mut most: Vec<&Change> = diff.rows.iter().collect();
    most.sort_by(|x, y| y.difference().abs().total_cmp(&x.difference().abs()));
    most.truncate(args.rows);
    most.sort_by(|x, y| y.difference().total_cmp(&x.difference()));
    for change in diff.totals.iter().chain(most) {
        let value = |v: Option<f64>| v.map_or("–".into(), |v| format!("{:.1}", v / scale));
        table.add_row([
            change.phase.name().to_string(),
            change.name.clone(),
            value(change.a),
            value(change.b),
            format!("{:+.1}", change.difference() / scale),
            change
                .percent()
                .map_or(String::new(), |p| format!("{p:+.2} %")),
            match change.is_slower(args.tolerance) {
                true => "slower".into(),
                false => String::new(),
            },
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    let hidden = diff.rows.len().saturating_sub(args.rows);
    if hidden > 0 {
        println!("{hidden} rows that changed less are not shown");
    }
}
