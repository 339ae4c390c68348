//! Where the time goes: the kernel, the driver, or whatever is between the graphs.
//!
//! ggml splits a step of a model (the computation of some tokens) into many graphs, and we see
//! ours alone. A step ends where a weight is used that it has used already. What lies between our
//! graphs are the CPU's operations, and the sampling of tokens.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use crate::driver::Stats;
use crate::profile::{Recorder, Run};

/// Where the time of a model's steps went, since the backend was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Steps with one column: each decodes a token.
    pub decode: Steps,
    /// Steps with more columns: prompts, batches.
    pub prefill: Steps,
}

/// Steps of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub steps: u64,
    pub jobs: u64,
    /// Chains of jobs that were sent and waited for.
    pub chains: u64,
    /// From the doorbell to the last answer of each chain.
    pub kernel: Duration,
    /// The rest of our graphs: quantising activations, descriptors, bringing results to their
    /// places.
    pub driver: Duration,
    /// Between our graphs.
    pub elsewhere: Duration,
}

/// A graph's share of a step.
pub struct Visit {
    /// Addresses of its products' weights.
    pub weights: Vec<usize>,
    /// Most columns of a product.
    pub columns: usize,
    pub start: Instant,
    /// The accelerator's totals before and after.
    pub stats: [Stats; 2],
    /// What the driver noted, while a recording is made.
    pub runs: Vec<Run>,
}

/// Adds up what the graphs took.
#[derive(Default)]
pub struct Profiler {
    profile: Profile,
    step: Steps,
    columns: usize,
    seen: HashSet<usize>,
    last_end: Option<Instant>,
    recorder: Option<Recorder>,
}

impl Profiler {
    /// Keeps all there is to know of each job from now on.
    pub fn record(&mut self) {
        self.recorder = Some(Recorder::default());
    }

    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// Ends the recording, if one is made.
    pub fn take_recording(&mut self) -> Option<Recorder> {
        self.end_step();
        self.recorder.take()
    }

    /// Takes in a graph that has just been computed.
    pub fn add(&mut self, visit: Visit) {
        if visit.weights.is_empty() {
            return;
        }
        let end = Instant::now();
        if visit.weights.iter().any(|w| self.seen.contains(w)) {
            self.end_step();
        }
        self.seen.extend(visit.weights);
        self.columns = self.columns.max(visit.columns);
        let [before, after] = visit.stats;
        let kernel = after.kernel_time - before.kernel_time;
        let between = |start: Instant| visit.start.saturating_duration_since(start);
        let step = &mut self.step;
        step.steps = 1;
        step.jobs += after.jobs - before.jobs;
        step.chains += after.chains - before.chains;
        step.kernel += kernel;
        step.driver += (end - visit.start).saturating_sub(kernel);
        let elsewhere = self.last_end.map_or(Duration::ZERO, between);
        step.elsewhere += elsewhere;
        self.last_end = Some(end);
        if let Some(recorder) = &mut self.recorder {
            recorder.graph(elsewhere, end - visit.start, visit.runs);
        }
    }

    fn end_step(&mut self) {
        self.profile = self.profile();
        if let Some(recorder) = &mut self.recorder {
            recorder.end_step(self.columns);
        }
        self.step = Steps::default();
        self.columns = 0;
        self.seen.clear();
    }

    /// What there is so far, with the step that is under way.
    pub fn profile(&self) -> Profile {
        let mut profile = self.profile;
        let kind = match self.columns {
            0 | 1 => &mut profile.decode,
            _ => &mut profile.prefill,
        };
        *kind = *kind + self.step;
        profile
    }
}

impl std::ops::Add for Steps {
    type Output = Steps;

    fn add(self, other: Steps) -> Steps {
        Steps {
            steps: self.steps + other.steps,
            jobs: self.jobs + other.jobs,
            chains: self.chains + other.chains,
            kernel: self.kernel + other.kernel,
            driver: self.driver + other.driver,
            elsewhere: self.elsewhere + other.elsewhere,
        }
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.steps.max(1) as f64;
        let ms = |d: Duration| d.as_secs_f64() * 1e3 / steps;
        let all = ms(self.kernel + self.driver + self.elsewhere);
        let share = |d: Duration| 100.0 * ms(d) / all.max(f64::MIN_POSITIVE);
        write!(
            f,
            "{} steps of {all:.2} ms: kernel {:.1} %, driver {:.1} %, CPU operations {:.1} %; \
             {:.0} jobs in {:.0} chains a step, {:.1} us of driver a job",
            self.steps,
            share(self.kernel),
            share(self.driver),
            share(self.elsewhere),
            self.jobs as f64 / steps,
            self.chains as f64 / steps,
            self.driver.as_secs_f64() * 1e6 / self.jobs.max(1) as f64
        )
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [("prefill", self.prefill), ("decode", self.decode)];
        let mut lines = kinds.iter().filter(|(_, steps)| steps.steps > 0).peekable();
        while let Some((what, steps)) = lines.next() {
            write!(f, "{what}: {steps}")?;
            if lines.peek().is_some() {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(weights: &[usize], columns: usize, jobs: u64) -> Visit {
        let after = Stats {
            jobs,
            ..Stats::default()
        };
        Visit {
            weights: weights.to_vec(),
            columns,
            start: Instant::now(),
            stats: [Stats::default(), after],
            runs: Vec::new(),
        }
    }

    #[test]
    fn a_step_ends_where_a_weight_comes_again() {
        let mut profiler = Profiler::default();
        // A prompt of which the last graph computes the last token alone, then two tokens.
        for columns in [5, 1, 1] {
            profiler.add(visit(&[1, 2], columns, 2));
            profiler.add(visit(&[3], columns, 1));
            profiler.add(visit(&[], 9, 0));
            profiler.add(visit(&[4], 1, 1));
        }
        let Profile { decode, prefill } = profiler.profile();
        assert_eq!((prefill.steps, prefill.jobs), (1, 4));
        assert_eq!((decode.steps, decode.jobs), (2, 8));
    }
}
