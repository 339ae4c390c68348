//! A profile as a Perfetto trace: what ui.perfetto.dev and Perfetto's `trace_processor` read.
//!
//! Source of the format: Perfetto's `protos/perfetto/trace` (`Trace`, `TracePacket`,
//! `TrackDescriptor`, `TrackEvent`, `DebugAnnotation`), of which the messages here hold the fields
//! that are used.

use prost::Message;

use super::timeline::{self, PlacedChain, PlacedGraph, PlacedStep, Span};
use super::{Job, Profile, attribute};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(string, tag = "6")]
    process_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(int64, tag = "2")]
    tid: i64,
    #[prost(string, tag = "5")]
    thread_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, tag = "6")]
    unit_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, tag = "9")]
    pub r#type: i32,
    #[prost(uint64, tag = "11")]
    pub track_uuid: u64,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(string, tag = "10")]
    name: String,
    #[prost(double, optional, tag = "5")]
    double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
}

/// `TrackEvent.Type`.
pub(super) const SLICE_BEGIN: i32 = 1;
pub(super) const SLICE_END: i32 = 2;
const COUNTER: i32 = 4;
/// `TrackDescriptor.ChildTracksOrdering`: as `sibling_order_rank` says.
const EXPLICIT: i32 = 3;

/// The process that all tracks belong to, and its main thread.
const PID: i32 = 1;
const PROCESS: u64 = 1;
const STEPS: u64 = 2;
const HOST: u64 = 3;
/// Tracks of engine `n`: this and [`PER_ENGINE`] times `n`, and the numbers after it.
const ENGINES: u64 = 16;
const PER_ENGINE: u64 = 8;
const DRIVER: u64 = 0;
const MM2S: u64 = 1;
const KERNEL: u64 = 2;
const S2MM: u64 = 3;
const BANDWIDTH: u64 = 4;

/// The trace's bytes. Tracks: the model's steps; the host's thread with what lies between our
/// graphs; and for each engine its driver, the DMA's two channels, the kernel, and the bandwidth
/// into it. A slice of the channels and the kernel is a job, named after its weights.
pub fn encode(profile: &Profile) -> Vec<u8> {
    let mut trace = Writer {
        trace: Trace::default(),
        profile,
    };
    trace.describe();
    for step in &timeline::place(profile) {
        trace.step(step);
    }
    trace.trace.encode_to_vec()
}

struct Writer<'a> {
    trace: Trace,
    profile: &'a Profile,
}

impl Writer<'_> {
    fn push(&mut self, timestamp: Option<u64>, packet: TracePacket) {
        self.trace.packet.push(TracePacket {
            timestamp,
            trusted_packet_sequence_id: 1,
            ..packet
        });
    }

    fn track(&mut self, descriptor: TrackDescriptor) {
        let packet = TracePacket {
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        };
        self.push(None, packet);
    }

    fn describe(&mut self) {
        let process_name = format!("{} on {}", self.profile.model, self.profile.target);
        self.track(TrackDescriptor {
            uuid: PROCESS,
            process: Some(ProcessDescriptor {
                pid: PID,
                process_name,
            }),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        });
        let mut names = vec![(STEPS, "steps".to_string())];
        for engine in 0..self.profile.engines {
            let track = |n| ENGINES + PER_ENGINE * engine as u64 + n;
            let channels = [
                (track(MM2S), "DMA MM2S"),
                (track(KERNEL), "kernel"),
                (track(S2MM), "DMA S2MM"),
                (track(BANDWIDTH), "bandwidth into the kernel"),
            ];
            let named = channels.map(|(uuid, name)| (uuid, format!("engine {engine}: {name}")));
            names.extend(named);
        }
        for (rank, (uuid, name)) in names.into_iter().enumerate() {
            let is_counter = uuid >= ENGINES && (uuid - ENGINES) % PER_ENGINE == BANDWIDTH;
            let unit_name = "GB/s".into();
            self.track(TrackDescriptor {
                uuid,
                name: Some(name),
                parent_uuid: Some(PROCESS),
                sibling_order_rank: Some(rank as i32),
                counter: is_counter.then_some(CounterDescriptor { unit_name }),
                ..TrackDescriptor::default()
            });
        }
        let drivers = (0..self.profile.engines as u64).map(|engine| {
            let name = format!("driver, engine {engine}");
            (ENGINES + PER_ENGINE * engine + DRIVER, name)
        });
        let host = [(HOST, "host: CPU operations".to_string())];
        let threads: Vec<_> = host.into_iter().chain(drivers).collect();
        for (n, (uuid, thread_name)) in threads.into_iter().enumerate() {
            self.track(TrackDescriptor {
                uuid,
                thread: Some(ThreadDescriptor {
                    pid: PID,
                    tid: i64::from(PID) + n as i64,
                    thread_name,
                }),
                ..TrackDescriptor::default()
            });
        }
    }

    fn slice(&mut self, track_uuid: u64, span: Span, name: &str, notes: Vec<DebugAnnotation>) {
        let event = |r#type| TrackEvent {
            r#type,
            track_uuid,
            ..TrackEvent::default()
        };
        let begin = TrackEvent {
            name: Some(name.into()),
            debug_annotations: notes,
            ..event(SLICE_BEGIN)
        };
        for (at, event) in [(span.start, begin), (span.end, event(SLICE_END))] {
            let packet = TracePacket {
                track_event: Some(event),
                ..TracePacket::default()
            };
            self.push(Some(at.round() as u64), packet);
        }
    }

    fn counter(&mut self, track_uuid: u64, at: f64, value: f64) {
        let packet = TracePacket {
            track_event: Some(TrackEvent {
                r#type: COUNTER,
                track_uuid,
                double_counter_value: Some(value),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        };
        self.push(Some(at.round() as u64), packet);
    }

    fn step(&mut self, step: &PlacedStep<'_>) {
        let notes = vec![number("tokens", step.columns as f64)];
        self.slice(STEPS, step.span, step.phase.name(), notes);
        for graph in &step.graphs {
            self.graph(graph);
        }
    }

    fn graph(&mut self, graph: &PlacedGraph<'_>) {
        if graph.host.end > graph.host.start {
            self.slice(HOST, graph.host, "CPU operations", Vec::new());
        }
        self.slice(HOST, graph.span, "matrix products", Vec::new());
        for chain in &graph.chains {
            self.chain(chain);
        }
    }

    fn chain(&mut self, placed: &PlacedChain<'_>) {
        let chain = placed.chain;
        let track = |n| ENGINES + PER_ENGINE * chain.engine as u64 + n;
        self.slice(track(DRIVER), placed.prepare, "prepare", Vec::new());
        self.slice(track(DRIVER), placed.device, "wait", Vec::new());
        self.slice(track(DRIVER), placed.results, "results", Vec::new());
        let shares = attribute::jobs(chain, self.profile.bus_bytes);
        for (placed, share) in placed.jobs.iter().zip(shares) {
            let (job, span) = (placed.job, placed.kernel);
            let name = self.name(job);
            let rate = job.bytes as f64 / share.kernel_ns.max(f64::MIN_POSITIVE);
            let bytes = |bytes: u64| vec![number("bytes", bytes as f64)];
            self.slice(track(MM2S), span, &name, bytes(job.bytes));
            self.slice(track(S2MM), span, &name, bytes(job.answer_bytes));
            let tensor = &self.profile.tensors[job.tensor];
            let mut notes = vec![
                text("type", &tensor.r#type),
                number("k", tensor.k as f64),
                number("rows", job.rows as f64),
                number("columns", job.cols as f64),
                number("weight bytes", job.weight_bytes as f64),
            ];
            if chain.cycles.is_some() {
                let c = share.cycles;
                notes.extend([
                    number("cycles", c.total),
                    number("cycles with data", c.data),
                    number("cycles waiting for input", c.wait_input),
                    number("cycles computing without data", c.compute),
                    number("cycles idle", c.idle),
                    number("cycles waiting for output", c.wait_output),
                ]);
            }
            self.slice(track(KERNEL), span, &name, notes);
            self.counter(track(BANDWIDTH), span.start, rate);
        }
        self.counter(track(BANDWIDTH), placed.device.end, 0.0);
    }

    fn name(&self, job: &Job) -> String {
        let name = &self.profile.tensors[job.tensor].name;
        match job.expert {
            Some(expert) => format!("{name}, expert {expert}"),
            None => name.clone(),
        }
    }
}

fn number(name: &str, value: f64) -> DebugAnnotation {
    DebugAnnotation {
        name: name.into(),
        double_value: Some(value),
        string_value: None,
    }
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: name.into(),
        double_value: None,
        string_value: Some(value.into()),
    }
}
