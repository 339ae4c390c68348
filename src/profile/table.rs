//! A profile as rows: one a job, or one a tensor and phase; and these as CSV.

use serde::Serialize;

use super::summary::PhaseSummary;
use super::{Phase, Profile, attribute, layer_of, timeline};

/// A job. Times in ns; cycles are absent without a clock.
#[derive(Clone, Debug, Serialize)]
pub struct JobRow<'a> {
    pub step: usize,
    pub phase: Phase,
    pub engine: usize,
    /// Number of its chain in the run.
    pub chain: usize,
    pub tensor: &'a str,
    pub expert: Option<usize>,
    pub layer: &'a str,
    pub r#type: &'a str,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    pub bytes: u64,
    pub weight_bytes: u64,
    pub answer_bytes: u64,
    pub start_ns: u64,
    pub kernel_ns: u64,
    pub driver_ns: u64,
    pub host_ns: u64,
    /// Bytes into the kernel over the kernel's time.
    pub gb_per_s: f64,
    pub cycles: Option<u64>,
    pub data_cycles: Option<u64>,
    pub wait_input_cycles: Option<u64>,
    pub compute_cycles: Option<u64>,
    pub idle_cycles: Option<u64>,
    pub wait_output_cycles: Option<u64>,
}

/// A tensor in a phase.
#[derive(Debug, Serialize)]
struct TensorRow<'a> {
    phase: Phase,
    tensor: &'a str,
    layer: &'a str,
    r#type: &'a str,
    k: usize,
    rows: usize,
    jobs: u64,
    bytes: u64,
    weight_bytes: u64,
    answer_bytes: u64,
    kernel_ns: u64,
    driver_ns: u64,
    host_ns: u64,
    gb_per_s: f64,
    cycles: Option<u64>,
    data_cycles: Option<u64>,
    wait_input_cycles: Option<u64>,
    compute_cycles: Option<u64>,
    idle_cycles: Option<u64>,
    wait_output_cycles: Option<u64>,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
        }
    }
}

/// All jobs, in the order of the run.
pub fn jobs(profile: &Profile) -> Vec<JobRow<'_>> {
    let mut rows = Vec::new();
    let mut number = 0;
    let steps = timeline::place(profile).into_iter().zip(&profile.steps);
    for (n, (placed, step)) in steps.enumerate() {
        for (placed, graph) in placed.graphs.into_iter().zip(&step.graphs) {
            let shares = attribute::graph(graph, profile.bus_bytes, profile.engines);
            for (placed, shares) in placed.chains.iter().zip(shares) {
                let chain = placed.chain;
                let cycles = |c: f64| chain.cycles.map(|_| c.round() as u64);
                for (placed, share) in placed.jobs.iter().zip(shares) {
                    let (job, c) = (placed.job, share.cycles);
                    let tensor = &profile.tensors[job.tensor];
                    let kernel_ns = placed.kernel.end - placed.kernel.start;
                    rows.push(JobRow {
                        step: n,
                        phase: step.phase,
                        engine: chain.engine,
                        chain: number,
                        tensor: &tensor.name,
                        expert: job.expert,
                        layer: layer_of(&tensor.name),
                        r#type: &tensor.r#type,
                        k: tensor.k,
                        rows: job.rows,
                        cols: job.cols,
                        bytes: job.bytes,
                        weight_bytes: job.weight_bytes,
                        answer_bytes: job.answer_bytes,
                        start_ns: placed.kernel.start.round() as u64,
                        kernel_ns: kernel_ns.round() as u64,
                        driver_ns: share.driver_ns.round() as u64,
                        host_ns: share.host_ns.round() as u64,
                        gb_per_s: rate(job.bytes, kernel_ns),
                        cycles: cycles(c.total),
                        data_cycles: cycles(c.data),
                        wait_input_cycles: cycles(c.wait_input),
                        compute_cycles: cycles(c.compute),
                        idle_cycles: cycles(c.idle),
                        wait_output_cycles: cycles(c.wait_output),
                    });
                }
                number += 1;
            }
        }
    }
    rows
}

/// GB/s, to three decimals.
fn rate(bytes: u64, ns: f64) -> f64 {
    match ns > 0.0 {
        true => (bytes as f64 / ns * 1e3).round() / 1e3,
        false => 0.0,
    }
}

/// A line a job.
pub fn jobs_csv(profile: &Profile) -> Result<Vec<u8>, csv::Error> {
    write(jobs(profile))
}

/// A line a tensor and phase.
pub fn tensors_csv(profile: &Profile, phases: &[PhaseSummary]) -> Result<Vec<u8>, csv::Error> {
    let rows = phases.iter().flat_map(|phase| {
        phase.tensors.iter().map(|row| {
            let t = &row.totals;
            let cycles = |c: f64| profile.clock_mhz.map(|_| c.round() as u64);
            TensorRow {
                phase: phase.phase,
                tensor: &row.name,
                layer: &row.layer,
                r#type: &row.r#type,
                k: row.k,
                rows: row.rows,
                jobs: t.jobs,
                bytes: t.bytes,
                weight_bytes: t.weight_bytes,
                answer_bytes: t.answer_bytes,
                kernel_ns: t.kernel_ns.round() as u64,
                driver_ns: t.driver_ns.round() as u64,
                host_ns: t.host_ns.round() as u64,
                gb_per_s: rate(t.bytes, t.kernel_ns),
                cycles: cycles(t.cycles),
                data_cycles: cycles(t.data_cycles),
                wait_input_cycles: cycles(t.wait_input_cycles),
                compute_cycles: cycles(t.compute_cycles),
                idle_cycles: cycles(t.idle_cycles),
                wait_output_cycles: cycles(t.wait_output_cycles),
            }
        })
    });
    write(rows)
}

fn write<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))
}
