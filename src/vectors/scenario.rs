//! Jobs as they go over the bus: in chains, under conditions, with things that go wrong between.
//!
//! `verify` makes scenarios at random and keeps those that fail in a vector file, whose metadata
//! `scenario` holds this module's types as JSON (`docs/vectors.md`).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::quant::WeightType;
use crate::regs::job::{Status, status};
use crate::target::Conditions;

/// Chains of jobs that go down one after the other, from a target's reset on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seeds the stalls, the fill of fresh memory and registers without a reset.
    pub stall_seed: u64,
    #[serde(default)]
    pub conditions: Conditions,
    /// Width of the DMA's length fields in bits, 8 to 26: what is longer goes in several
    /// descriptors.
    pub length_width: u32,
    pub chains: Vec<Chain>,
}

/// Jobs that are queued together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    pub jobs: Vec<Job>,
    /// What goes wrong while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    #[serde(rename = "type", with = "type_name")]
    pub ty: WeightType,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    /// Bytes from a boundary of 64 bytes to the first row, 0 to 63. The job's `skip` is what of
    /// it is within a bus word.
    pub offset: usize,
    /// It brings no activations and asks for those held.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reuse: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<Flaw>,
    /// `rows` rows of native blocks.
    #[serde(skip)]
    pub weights: Arc<[u8]>,
    /// `cols` columns of Q8_0 blocks. With `reuse` those that should be held.
    #[serde(skip)]
    pub activations: Arc<[u8]>,
}

fn is_false(value: &bool) -> bool {
    !value
}

mod type_name {
    use super::WeightType;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(ty: &WeightType, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(ty.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WeightType, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// How a job's packet breaks the contract (`docs/stream.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    Magic,
    Version,
    /// A type number that is none of ours.
    Type,
    /// A k of one more than whole blocks.
    K,
    /// No rows.
    Rows,
    /// No columns.
    Cols,
    /// A skip of a whole bus word.
    Skip,
    /// An undefined flag.
    Flags,
    /// A reserved byte that is not 0.
    Reserved,
    /// The packet ends so many bytes early; its first byte is sent in any case.
    Short(usize),
    /// So many bytes follow the last weight byte.
    Long(usize),
}

/// What goes wrong in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The bus answers with an error where a job's part lies. The driver resets the engine.
    BusError {
        job: usize,
        part: PartKind,
        response: BusResponse,
    },
    /// The driver resets the engine after so many reads of a register, without waiting for
    /// answers.
    Reset { reads: u32 },
}

/// A part of a job that lies in memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    Header,
    /// The activations; the header of a job that reuses them.
    Activations,
    Weights,
    Answer,
}

/// An error response of AXI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusResponse {
    /// SLVERR.
    Slave,
    /// DECERR.
    Decode,
}

/// How a chain ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// With an answer to every job.
    Answers(Vec<Answer>),
    /// A channel of the DMA halted with these error bits.
    Halted {
        channel: String,
        errors: String,
        /// The descriptor it is about; not kept in files.
        #[serde(skip)]
        descriptor: Option<u64>,
    },
    /// With the reset that was to come.
    Reset,
    /// In another way: an answer that never came, a violated protocol.
    Failed(String),
}

/// A job's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Bits as in the footer.
    pub status: u32,
    /// The bits of the f32 results that came, in the kernel's order: row 0 of every column, then
    /// row 1, and so on. Files hold them as a tensor.
    #[serde(skip)]
    pub results: Vec<u32>,
    /// Device address of the first result; 0 in an answer that is expected.
    #[serde(skip)]
    pub addr: u64,
}

impl Answer {
    /// The answer that a good job with these exact results must give.
    pub fn good(results: Vec<u32>) -> Answer {
        let nan = results.iter().any(|&b| f32::from_bits(b).is_nan());
        Answer {
            status: if nan { status::NONFINITE } else { 0 },
            results,
            addr: 0,
        }
    }

    pub fn status(&self) -> Status {
        Status(self.status)
    }
}

/// A scenario as a vector file keeps it: how it is run, and how it is to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub scenario: Scenario,
    /// Which of all its jobs is the file's case: its tensors are the file's own.
    pub case: usize,
    /// One a chain. Their results are in `expected`.
    pub outcomes: Vec<Outcome>,
    /// For each job the bits of its exact results: all rows of column 0, then of column 1, and so
    /// on.
    #[serde(skip)]
    pub expected: Vec<Vec<u32>>,
}

impl Recorded {
    /// The outcomes with the results that belong to them.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let mut jobs = self.scenario.jobs().zip(&self.expected);
        let mut outcomes = self.outcomes.clone();
        for (outcome, chain) in outcomes.iter_mut().zip(&self.scenario.chains) {
            let jobs: Vec<_> = jobs.by_ref().take(chain.jobs.len()).collect();
            let Outcome::Answers(answers) = outcome else {
                continue;
            };
            for (answer, (job, expected)) in answers.iter_mut().zip(jobs) {
                answer.results = (0..job.rows * job.cols)
                    .map(|n| expected[n % job.cols * job.rows + n / job.cols])
                    .collect();
            }
        }
        outcomes
    }

    /// What breaks the format: the field, its value, what is wanted.
    pub(super) fn fault(&self) -> Option<(String, String, String)> {
        let fault = |field: &str, value: &dyn fmt::Debug, wanted: &str| {
            Some((field.to_string(), format!("{value:?}"), wanted.to_string()))
        };
        let scenario = &self.scenario;
        if !(8..=26).contains(&scenario.length_width) {
            return fault("length_width", &scenario.length_width, "8 to 26");
        }
        let conditions = &scenario.conditions;
        if conditions.latency == 0 {
            return fault("latency", &0, "at least 1");
        }
        if !(1..=64).contains(&conditions.max_outstanding) {
            return fault("max_outstanding", &conditions.max_outstanding, "1 to 64");
        }
        if let Some((beats, cycles)) = conditions.bandwidth
            && (beats == 0 || cycles == 0)
        {
            return fault(
                "bandwidth",
                &(beats, cycles),
                "beats in cycles, none of them 0",
            );
        }
        if let Some((interval, length)) = conditions.refresh
            && length >= interval
        {
            return fault("refresh", &(interval, length), "shorter than its interval");
        }
        let jobs = scenario.jobs().count();
        if self.case >= jobs {
            return fault("case", &self.case, &format!("one of the {jobs} jobs"));
        }
        if self.outcomes.len() != scenario.chains.len() {
            let wanted = format!("one for each of {} chains", scenario.chains.len());
            return fault("outcomes", &self.outcomes.len(), &wanted);
        }
        for (chain, outcome) in scenario.chains.iter().zip(&self.outcomes) {
            let jobs = chain.jobs.len();
            if !(1..=255).contains(&jobs) {
                return fault("jobs of a chain", &jobs, "1 to 255");
            }
            match outcome {
                Outcome::Answers(answers) if answers.len() != jobs => {
                    let wanted = format!("one for each of {jobs} jobs");
                    return fault("answers", &answers.len(), &wanted);
                }
                _ => {}
            }
            match chain.event {
                Some(Event::BusError { job, .. }) if job >= jobs => {
                    return fault("job of bus_error", &job, &format!("one of {jobs} jobs"));
                }
                _ => {}
            }
        }
        for job in scenario.jobs() {
            for (field, value, most) in [
                ("k", job.k, 1 << 24),
                ("rows", job.rows, 1 << 24),
                ("cols", job.cols, 1 << 24),
                ("offset + 1", job.offset.saturating_add(1), 65),
            ] {
                if !(1..most).contains(&value) {
                    return fault(field, &value, &format!("1 to {}", most - 1));
                }
            }
        }
        None
    }
}

impl Scenario {
    /// All jobs, in the order they go down.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.chains.iter().flat_map(|chain| &chain.jobs)
    }

    /// Whether the bus answers SLVERR somewhere.
    pub fn has_slave_error(&self) -> bool {
        self.chains.iter().any(|chain| {
            matches!(
                chain.event,
                Some(Event::BusError {
                    response: BusResponse::Slave,
                    ..
                })
            )
        })
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job {
            ty,
            k,
            rows,
            cols,
            offset,
            ..
        } = self;
        write!(f, "{ty}, k {k}, rows {rows}, cols {cols}, offset {offset}")?;
        if self.reuse {
            f.write_str(", reuses activations")?;
        }
        if let Some(flaw) = self.flaw {
            write!(f, ", malformed: {flaw:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Answers(answers) => write!(f, "{} answers", answers.len()),
            Outcome::Halted {
                channel, errors, ..
            } => write!(f, "{channel} halted with {errors}"),
            Outcome::Reset => f.write_str("a reset"),
            Outcome::Failed(why) => f.write_str(why),
        }
    }
}
