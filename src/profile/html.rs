//! A profile as a page of HTML that holds all it needs: no network, no files beside it.

use serde::Serialize;

use super::summary::{self, PhaseSummary};
use super::table::{self, JobRow};
use super::timeline::{self, Bandwidth};
use super::{Phase, Profile};

/// The page, with [`PLACEHOLDER`] where its data goes.
const TEMPLATE: &str = include_str!("report.html");
const PLACEHOLDER: &str = "\"DATA\"";
/// Parts of the timeline in the chart of bandwidth.
const BINS: usize = 400;
/// Most jobs in the page: those that took most.
const JOBS: usize = 2000;

/// What the page shows.
#[derive(Serialize)]
struct Data<'a> {
    version: &'static str,
    target: &'a str,
    model: &'a str,
    engines: usize,
    bus_bytes: usize,
    blocks_per_cycle: usize,
    clock_mhz: Option<f64>,
    simulator_seconds: Option<f64>,
    phases: Vec<PhaseSummary>,
    steps: Vec<StepSpan>,
    bandwidth: Bandwidth,
    jobs: Vec<JobRow<'a>>,
    jobs_in_all: usize,
}

/// ns on the timeline.
#[derive(Serialize)]
struct StepSpan {
    phase: Phase,
    start: f64,
    end: f64,
}

/// The report's HTML.
pub fn render(profile: &Profile) -> Result<String, serde_json::Error> {
    let placed = timeline::place(profile);
    let mut jobs = table::jobs(profile);
    let jobs_in_all = jobs.len();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.kernel_ns + job.driver_ns));
    jobs.truncate(JOBS);
    let steps = placed.iter().map(|s| StepSpan {
        phase: s.phase,
        start: s.span.start,
        end: s.span.end,
    });
    let data = Data {
        version: env!("CARGO_PKG_VERSION"),
        target: &profile.target,
        model: &profile.model,
        engines: profile.engines,
        bus_bytes: profile.bus_bytes,
        blocks_per_cycle: profile.blocks_per_cycle,
        clock_mhz: profile.clock_mhz,
        simulator_seconds: profile.simulator_seconds,
        phases: summary::phases(profile),
        steps: steps.collect(),
        bandwidth: timeline::bandwidth(&placed, BINS),
        jobs,
        jobs_in_all,
    };
    // Inside a script element only `<` could end it.
    let json = serde_json::to_string(&data)?.replace('<', "\\u003c");
    Ok(TEMPLATE.replacen(PLACEHOLDER, &json, 1))
}
