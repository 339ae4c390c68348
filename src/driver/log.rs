//! What the driver notes of each chain while it is asked to: how long its parts took, and what the
//! kernel counted.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::target::Activity;

/// A point in time, at which a simulator had taken `simulator` of it for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    at: Instant,
    simulator: Duration,
    /// The simulated clock, where there is one.
    cycle: Option<u64>,
}

impl Moment {
    pub fn now(activity: Option<Activity>) -> Moment {
        Moment {
            at: Instant::now(),
            simulator: activity.map_or(Duration::ZERO, |a| Duration::from_secs_f64(a.seconds)),
            cycle: activity.map(|a| a.cycles),
        }
    }

    /// The time since `earlier` without the simulator's.
    pub fn since(&self, earlier: &Moment) -> Duration {
        let simulator = self.simulator.saturating_sub(earlier.simulator);
        (self.at - earlier.at).saturating_sub(simulator)
    }

    fn cycles_since(&self, earlier: &Moment) -> Option<u64> {
        Some(self.cycle? - earlier.cycle?)
    }
}

/// The kernel's counters (`docs/registers.md`), as far as they counted during a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// 0 where the kernel has no clock, and so are the three that follow.
    pub cycles: u64,
    pub busy: u64,
    pub stall_in: u64,
    pub stall_out: u64,
    pub beats_in: u64,
    pub beats_out: u64,
}

impl Counters {
    pub(super) fn since(&self, earlier: &Counters) -> Counters {
        // A kernel that was reset or cleared meanwhile counts from 0.
        let since = |f: fn(&Counters) -> u64| f(self).saturating_sub(f(earlier));
        Counters {
            cycles: since(|c| c.cycles),
            busy: since(|c| c.busy),
            stall_in: since(|c| c.stall_in),
            stall_out: since(|c| c.stall_out),
            beats_in: since(|c| c.beats_in),
            beats_out: since(|c| c.beats_out),
        }
    }
}

/// A chain that an engine has sent and that has answered.
pub(super) struct Sent {
    pub packets: usize,
    pub doorbell: Moment,
    pub answered: Moment,
    pub counters: Counters,
}

impl Sent {
    /// From the doorbell to the last answer: the simulated clock's cycles, or as the kernel's own
    /// clock says; none without a clock.
    pub fn cycles(&self) -> Option<u64> {
        let counted = (self.counters.cycles > 0).then_some(self.counters.cycles);
        self.answered.cycles_since(&self.doorbell).or(counted)
    }
}

/// A chain of jobs. Times are without the simulator's.
#[derive(Clone, Debug)]
pub struct ChainLog {
    /// The engine's number.
    pub engine: usize,
    /// From the end of the chain before, or the start of the call, to the doorbell.
    pub prepare: Duration,
    /// From the doorbell to the last answer.
    pub kernel: Duration,
    /// From there until the results are where they belong.
    pub results: Duration,
    /// From the doorbell to the last answer, on a target with a clock.
    pub cycles: Option<u64>,
    pub counters: Counters,
    pub jobs: Vec<JobLog>,
}

/// A job of a chain.
#[derive(Clone, Debug)]
pub struct JobLog {
    /// Index of its product among those of the call.
    pub matmul: usize,
    pub rows: usize,
    pub cols: usize,
    /// Bytes of its packet: header, activations it brought, weights with what is skipped.
    pub bytes: u64,
    pub weight_bytes: u64,
    pub answer_bytes: u64,
    /// From its first beat in to its footer, as the footer says; none without a clock.
    pub cycles: Option<u64>,
    /// Quantising the activations it brought, and its descriptors.
    pub prepare: Duration,
    /// Bringing its results to their places.
    pub results: Duration,
}

/// What is noted of the chains.
pub(super) struct Log {
    /// What came before this belongs to the chain before.
    since: Moment,
    chains: Vec<ChainLog>,
}

impl Log {
    pub fn new(now: Moment) -> Log {
        Log {
            since: now,
            chains: Vec::new(),
        }
    }

    /// A call begins.
    pub fn begin(&mut self, now: Moment) {
        self.since = now;
    }

    pub fn take(&mut self) -> Vec<ChainLog> {
        std::mem::take(&mut self.chains)
    }

    /// Takes in the chains `sent` with their `jobs`, the results of which are all in place `now`.
    pub fn add(&mut self, sent: Vec<Sent>, jobs: Vec<JobLog>, now: Moment) {
        let mut jobs = jobs.into_iter();
        for sent in sent {
            self.chains.push(ChainLog {
                engine: 0,
                prepare: sent.doorbell.since(&self.since),
                kernel: sent.answered.since(&sent.doorbell),
                results: Duration::ZERO,
                cycles: sent.cycles(),
                counters: sent.counters,
                jobs: jobs.by_ref().take(sent.packets).collect(),
            });
            self.since = sent.answered;
        }
        if let Some(last) = self.chains.last_mut() {
            last.results = now.since(&self.since);
        }
        self.since = now;
    }
}
