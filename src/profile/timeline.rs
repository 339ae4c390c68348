//! When everything happened: the durations of a profile laid one after the other.
//!
//! A step's graphs follow each other, each after what lies before it on the host. The chains of
//! one engine follow each other within a graph; engines run side by side, and the graph ends with
//! the one that takes most. So a simulated device appears on the timeline with its cycles' time,
//! not with what the simulation took.

use super::{Chain, Graph, Job, Phase, Profile, attribute};

/// A piece of the timeline; ns since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub start: f64,
    pub end: f64,
}

/// A step on the timeline.
pub struct PlacedStep<'a> {
    pub phase: Phase,
    pub columns: usize,
    pub span: Span,
    pub graphs: Vec<PlacedGraph<'a>>,
}

/// A graph on the timeline.
pub struct PlacedGraph<'a> {
    /// What lies before it on the host.
    pub host: Span,
    pub span: Span,
    pub chains: Vec<PlacedChain<'a>>,
}

/// A chain on the timeline.
pub struct PlacedChain<'a> {
    pub chain: &'a Chain,
    pub prepare: Span,
    /// From the doorbell to the last answer.
    pub device: Span,
    pub results: Span,
    pub jobs: Vec<PlacedJob<'a>>,
}

/// A job on the timeline, in the kernel. Where in a chain of several jobs one ends and the next
/// begins follows from their shares ([`attribute`]).
pub struct PlacedJob<'a> {
    pub job: &'a Job,
    pub kernel: Span,
}

/// Lays out all steps of `profile`.
pub fn place(profile: &Profile) -> Vec<PlacedStep<'_>> {
    let mut now = 0.0;
    let mut steps = Vec::new();
    for step in &profile.steps {
        let start = now;
        let mut graphs = Vec::new();
        for graph in &step.graphs {
            let placed = place_graph(graph, profile, now);
            now = placed.span.end;
            graphs.push(placed);
        }
        steps.push(PlacedStep {
            phase: step.phase,
            columns: step.columns,
            span: Span { start, end: now },
            graphs,
        });
    }
    steps
}

fn place_graph<'a>(graph: &'a Graph, profile: &Profile, start: f64) -> PlacedGraph<'a> {
    let host = Span {
        start,
        end: start + graph.host_ns,
    };
    let first = host.end + graph.driver_ns;
    let mut engines = vec![first; profile.engines];
    let mut chains = Vec::new();
    for chain in &graph.chains {
        let now = &mut engines[chain.engine];
        let mut span = |ns: f64| {
            let start = *now;
            *now += ns;
            Span { start, end: *now }
        };
        let (prepare, device, results) = (
            span(chain.prepare_ns),
            span(chain.kernel_ns),
            span(chain.results_ns),
        );
        let jobs = place_jobs(chain, profile.bus_bytes, device);
        chains.push(PlacedChain {
            chain,
            prepare,
            device,
            results,
            jobs,
        });
    }
    let end = engines.into_iter().fold(first, f64::max);
    PlacedGraph {
        host,
        span: Span {
            start: host.end,
            end,
        },
        chains,
    }
}

fn place_jobs(chain: &Chain, bus_bytes: usize, device: Span) -> Vec<PlacedJob<'_>> {
    let shares = attribute::jobs(chain, bus_bytes);
    let mut start = device.start;
    let jobs = chain.jobs.iter().zip(shares).map(|(job, share)| {
        let end = start + share.kernel_ns;
        let kernel = Span { start, end };
        start = end;
        PlacedJob { job, kernel }
    });
    jobs.collect()
}

/// Bandwidth into the kernel over time.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Bandwidth {
    /// Of a bin, ns.
    pub bin_ns: f64,
    /// Of each bin, GB/s.
    pub gigabytes_per_second: Vec<f64>,
}

/// The bandwidth of all engines into the kernel, in `bins` equal parts of the timeline.
pub fn bandwidth(steps: &[PlacedStep<'_>], bins: usize) -> Bandwidth {
    let start = steps.first().map_or(0.0, |s| s.span.start);
    let end = steps.last().map_or(0.0, |s| s.span.end);
    let bin_ns = ((end - start) / bins.max(1) as f64).max(f64::MIN_POSITIVE);
    let mut bytes = vec![0.0; bins];
    let graphs = steps.iter().flat_map(|s| &s.graphs);
    for placed in graphs.flat_map(|g| &g.chains).flat_map(|c| &c.jobs) {
        let Span {
            start: from,
            end: to,
        } = placed.kernel;
        let rate = placed.job.bytes as f64 / (to - from).max(f64::MIN_POSITIVE);
        let first = ((from - start) / bin_ns) as usize;
        let last = (((to - start) / bin_ns) as usize).min(bins.saturating_sub(1));
        for (bin, bytes) in bytes.iter_mut().enumerate().take(last + 1).skip(first) {
            let bin_start = start + bin as f64 * bin_ns;
            let covered = to.min(bin_start + bin_ns) - from.max(bin_start);
            *bytes += rate * covered.max(0.0);
        }
    }
    Bandwidth {
        bin_ns,
        gigabytes_per_second: bytes.into_iter().map(|b| b / bin_ns).collect(),
    }
}
