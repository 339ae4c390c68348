//! Shares out what was measured of a chain among its jobs.
//!
//! A chain of one job is that job's: all its cycles, from the doorbell to the answer, and all its
//! time. Among several, each has the beats of its own bytes; the chain's other cycles go by what
//! each took beside its beats from the first beat to its footer, which the footer tells. The sums
//! over the jobs are the chain's figures.

use super::{Chain, Graph};

/// A job's share of time and cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// From the doorbell to the answer, ns.
    pub kernel_ns: f64,
    pub driver_ns: f64,
    /// On the host before the job, ns.
    pub host_ns: f64,
    pub cycles: Cycles,
}

/// Where the cycles between doorbell and answer went. All 0 without a clock, but for the beats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    pub total: f64,
    /// With a beat into the kernel.
    pub data: f64,
    /// The kernel would have taken a beat and none was there: memory, DMA, and after the last beat
    /// the pipeline's end.
    pub wait_input: f64,
    /// The kernel was busy and took no beat: it computes more than it is fed.
    pub compute: f64,
    /// No job was in the kernel: descriptors before the first beat, the answer's way to memory.
    pub idle: f64,
    /// A result beat waited to be taken. It can coincide with all others.
    pub wait_output: f64,
}

impl std::ops::AddAssign for Cycles {
    fn add_assign(&mut self, other: Cycles) {
        self.total += other.total;
        self.data += other.data;
        self.wait_input += other.wait_input;
        self.compute += other.compute;
        self.idle += other.idle;
        self.wait_output += other.wait_output;
    }
}

impl Cycles {
    /// The cycles of a chain.
    pub fn of(chain: &Chain) -> Cycles {
        let c = &chain.counters;
        let data = c.beats_in as f64;
        let Some(total) = chain.cycles else {
            return Cycles {
                data,
                ..Cycles::default()
            };
        };
        let total = total as f64;
        let (busy, wait_input) = (c.busy as f64, c.stall_in as f64);
        Cycles {
            total,
            data,
            wait_input,
            compute: (busy - data - wait_input).max(0.0),
            idle: (total - busy).max(0.0),
            wait_output: c.stall_out as f64,
        }
    }
}

/// The shares of the chain's jobs, in their order; `bus_bytes` is the width of the kernel's bus.
pub fn jobs(chain: &Chain, bus_bytes: usize) -> Vec<Share> {
    let all = Cycles::of(chain);
    let beats = |bytes: u64| bytes.div_ceil(bus_bytes as u64) as f64;
    let beside = |job: &super::Job| (job.cycles.unwrap_or(0) as f64 - beats(job.bytes)).max(0.0);
    let total_beside: f64 = chain.jobs.iter().map(beside).sum();
    let total_beats: f64 = chain.jobs.iter().map(|j| beats(j.bytes)).sum();
    let in_jobs: f64 = chain.jobs.iter().map(|j| j.prepare_ns + j.results_ns).sum();
    let sum = all.data + all.wait_input + all.compute + all.idle;
    let driver = chain.prepare_ns + chain.results_ns;
    let each = (driver - in_jobs).max(0.0) / chain.jobs.len().max(1) as f64;
    let shares = chain.jobs.iter().map(|job| {
        let by_beats = beats(job.bytes) / total_beats.max(1.0);
        let part = match total_beside > 0.0 {
            true => beside(job) / total_beside,
            false => by_beats,
        };
        let mut cycles = Cycles {
            total: 0.0,
            data: all.data * by_beats,
            wait_input: all.wait_input * part,
            compute: all.compute * part,
            idle: all.idle * part,
            wait_output: all.wait_output * part,
        };
        if chain.cycles.is_some() {
            cycles.total = cycles.data + cycles.wait_input + cycles.compute + cycles.idle;
        }
        Share {
            kernel_ns: match cycles.total > 0.0 {
                true => chain.kernel_ns * cycles.total / sum,
                false => chain.kernel_ns * by_beats,
            },
            driver_ns: job.prepare_ns + job.results_ns + each,
            host_ns: 0.0,
            cycles,
        }
    });
    shares.collect()
}

/// As [`jobs`] for all chains of a graph, with the graph's own times: what lies before it is its
/// first job's, what the driver takes beside the chains is shared equally. Of engines side by side
/// each counts with its part, so that the sums are those of time that passes. Chain, then job.
pub fn graph(graph: &Graph, bus_bytes: usize, engines: usize) -> Vec<Vec<Share>> {
    let mut all: Vec<Vec<Share>> = graph.chains.iter().map(|c| jobs(c, bus_bytes)).collect();
    let count: usize = all.iter().map(Vec::len).sum();
    let each = graph.driver_ns / count.max(1) as f64;
    let part = 1.0 / engines as f64;
    for share in all.iter_mut().flatten() {
        let c = &mut share.cycles;
        let cycles = [
            &mut c.total,
            &mut c.data,
            &mut c.wait_input,
            &mut c.compute,
            &mut c.idle,
            &mut c.wait_output,
        ];
        cycles.into_iter().for_each(|value| *value *= part);
        share.kernel_ns *= part;
        share.driver_ns = share.driver_ns * part + each;
    }
    if let Some(first) = all.iter_mut().flatten().next() {
        first.host_ns = graph.host_ns;
    }
    all
}
