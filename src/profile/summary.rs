//! Sums over jobs: by tensor, by layer, by what a tensor is within its layer, by phase.

use std::collections::HashMap;

use serde::Serialize;

use super::attribute::{self, Cycles, Share};
use super::{Job, Phase, Profile, Tensor, layer_of, role_of};

/// What some jobs took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub jobs: u64,
    /// Bytes of the packets in, weights among them.
    pub bytes: u64,
    pub weight_bytes: u64,
    pub answer_bytes: u64,
    /// Multiplications and additions.
    pub operations: u64,
    pub kernel_ns: f64,
    pub driver_ns: f64,
    pub host_ns: f64,
    /// From doorbells to answers, and where they went; 0 without a clock.
    pub cycles: f64,
    pub data_cycles: f64,
    pub wait_input_cycles: f64,
    pub compute_cycles: f64,
    pub idle_cycles: f64,
    pub wait_output_cycles: f64,
}

impl Totals {
    fn add(&mut self, tensor: &Tensor, job: &Job, share: &Share) {
        self.jobs += 1;
        self.bytes += job.bytes;
        self.weight_bytes += job.weight_bytes;
        self.answer_bytes += job.answer_bytes;
        self.operations += 2 * (tensor.k * job.rows * job.cols) as u64;
        self.kernel_ns += share.kernel_ns;
        self.driver_ns += share.driver_ns;
        self.host_ns += share.host_ns;
        let c: &Cycles = &share.cycles;
        self.cycles += c.total;
        self.data_cycles += c.data;
        self.wait_input_cycles += c.wait_input;
        self.compute_cycles += c.compute;
        self.idle_cycles += c.idle;
        self.wait_output_cycles += c.wait_output;
    }

    /// Time of kernel, driver and host.
    pub fn ns(&self) -> f64 {
        self.kernel_ns + self.driver_ns + self.host_ns
    }

    /// Bytes into the kernel over the kernel's time, GB/s.
    pub fn gigabytes_per_second(&self) -> f64 {
        match self.kernel_ns > 0.0 {
            true => self.bytes as f64 / self.kernel_ns,
            false => 0.0,
        }
    }
}

/// A tensor's part, or a layer's, or a role's, in one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub layer: String,
    pub role: String,
    pub r#type: String,
    pub k: usize,
    pub rows: usize,
    #[serde(flatten)]
    pub totals: Totals,
}

/// A phase's steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSummary {
    pub phase: Phase,
    pub steps: usize,
    /// Tokens computed.
    pub tokens: usize,
    pub totals: Totals,
    /// In the order of their first jobs.
    pub tensors: Vec<Row>,
    pub layers: Vec<Row>,
    pub roles: Vec<Row>,
}

/// The phases that there are, prefill first.
pub fn phases(profile: &Profile) -> Vec<PhaseSummary> {
    let phases = [Phase::Prefill, Phase::Decode];
    let summaries = phases.into_iter().map(|phase| summarise(profile, phase));
    summaries.filter(|s| s.steps > 0).collect()
}

fn summarise(profile: &Profile, phase: Phase) -> PhaseSummary {
    let mut totals = Totals::default();
    let mut of_tensor = vec![Totals::default(); profile.tensors.len()];
    let mut order = Vec::new();
    let steps = profile.steps.iter().filter(|s| s.phase == phase);
    for graph in steps.clone().flat_map(|s| &s.graphs) {
        let shares = attribute::graph(graph, profile.bus_bytes, profile.engines);
        for (chain, shares) in graph.chains.iter().zip(shares) {
            for (job, share) in chain.jobs.iter().zip(shares) {
                let tensor = &profile.tensors[job.tensor];
                totals.add(tensor, job, &share);
                let row = &mut of_tensor[job.tensor];
                if row.jobs == 0 {
                    order.push(job.tensor);
                }
                row.add(tensor, job, &share);
            }
        }
    }
    let tensors = order.iter().map(|&n| {
        let Tensor {
            name,
            r#type,
            k,
            rows,
        } = &profile.tensors[n];
        Row {
            layer: layer_of(name).into(),
            role: role_of(name).into(),
            name: name.clone(),
            r#type: r#type.clone(),
            k: *k,
            rows: *rows,
            totals: of_tensor[n],
        }
    });
    let tensors: Vec<Row> = tensors.collect();
    PhaseSummary {
        phase,
        steps: steps.clone().count(),
        tokens: steps.map(|s| s.columns).sum(),
        totals,
        layers: grouped(&tensors, |row| &row.layer),
        roles: grouped(&tensors, |row| &row.role),
        tensors,
    }
}

/// The sums of the rows that have the same `key`, in the order of the first of each.
fn grouped(rows: &[Row], key: fn(&Row) -> &String) -> Vec<Row> {
    let mut groups: Vec<Row> = Vec::new();
    let mut index: HashMap<&String, usize> = HashMap::new();
    for row in rows {
        let name = key(row);
        let at = *index.entry(name).or_insert_with(|| {
            groups.push(Row {
                name: name.clone(),
                totals: Totals::default(),
                ..row.clone()
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.totals = group.totals + row.totals;
        if group.r#type != row.r#type {
            group.r#type = "mixed".into();
        }
        if (group.k, group.rows) != (row.k, row.rows) {
            (group.k, group.rows) = (0, 0);
        }
    }
    groups
}

impl std::ops::Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            jobs: self.jobs + other.jobs,
            bytes: self.bytes + other.bytes,
            weight_bytes: self.weight_bytes + other.weight_bytes,
            answer_bytes: self.answer_bytes + other.answer_bytes,
            operations: self.operations + other.operations,
            kernel_ns: self.kernel_ns + other.kernel_ns,
            driver_ns: self.driver_ns + other.driver_ns,
            host_ns: self.host_ns + other.host_ns,
            cycles: self.cycles + other.cycles,
            data_cycles: self.data_cycles + other.data_cycles,
            wait_input_cycles: self.wait_input_cycles + other.wait_input_cycles,
            compute_cycles: self.compute_cycles + other.compute_cycles,
            idle_cycles: self.idle_cycles + other.idle_cycles,
            wait_output_cycles: self.wait_output_cycles + other.wait_output_cycles,
        }
    }
}
