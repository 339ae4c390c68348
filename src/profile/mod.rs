//! The profile of a run: what each job took, on the device, in the driver and on the host.
//!
//! [`Profile`] is the one data model, and its JSON the form that is kept; tables, the HTML report
//! and the Perfetto trace are made of it, and two of them are compared ([`diff`]).
//!
//! What is measured and what is apportioned: times of a chain, its cycles and the kernel's counters
//! are measured for the chain as a whole; of each job its bytes and its cycles from the first beat
//! to the footer. Where a chain holds several jobs, [`attribute`] shares out the rest.

pub mod attribute;
pub mod diff;
pub mod html;
pub mod perfetto;
mod record;
pub mod summary;
pub mod table;
pub mod timeline;

#[cfg(test)]
mod tests;

pub use record::{Recorder, Run, WeightId};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use crate::driver::Counters;

/// The version of the JSON that this code writes and reads.
pub const VERSION: u32 = 1;

/// What a run took. Times in ns; those of a simulated device are its cycles at [`Profile::clock_mhz`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`VERSION`].
    pub weightstream_profile: u32,
    pub target: String,
    /// The model's file.
    pub model: String,
    pub engines: usize,
    pub bus_bytes: usize,
    pub blocks_per_cycle: usize,
    /// What a cycle is counted as; none on a target without a clock, whose times are the wall's.
    pub clock_mhz: Option<f64>,
    /// Wall time that the simulation of the device took, which is in none of the other times.
    pub simulator_seconds: Option<f64>,
    pub tensors: Vec<Tensor>,
    /// Passes over the model.
    pub steps: Vec<Step>,
}

/// The weights of a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    pub name: String,
    pub r#type: String,
    pub k: usize,
    pub rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A prompt or a batch: more columns than one.
    Prefill,
    /// One token.
    Decode,
}

/// A pass over the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub phase: Phase,
    /// Most columns of a product: the tokens computed.
    pub columns: usize,
    pub graphs: Vec<Graph>,
}

/// A part of the model's graph that ggml gave us as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Since the graph before: operations of the CPU, sampling, and whatever the program does.
    pub host_ns: f64,
    /// The driver's time beside that of its chains.
    pub driver_ns: f64,
    /// Of one engine after the other; those of different engines run side by side.
    pub chains: Vec<Chain>,
}

/// Jobs that were sent together and waited for once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    pub engine: usize,
    /// The driver's, before the doorbell.
    pub prepare_ns: f64,
    /// From the doorbell to the last answer.
    pub kernel_ns: f64,
    /// The driver's, after the last answer.
    pub results_ns: f64,
    /// From the doorbell to the last answer; none on a target without a clock.
    pub cycles: Option<u64>,
    pub counters: Counters,
    pub jobs: Vec<Job>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Index among [`Profile::tensors`].
    pub tensor: usize,
    /// Of a mixture of experts, which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<usize>,
    pub rows: usize,
    pub cols: usize,
    /// Of the packet: header, activations, weights.
    pub bytes: u64,
    pub weight_bytes: u64,
    pub answer_bytes: u64,
    /// From the first beat in to the footer.
    pub cycles: Option<u64>,
    /// The driver's, before: quantising, descriptors.
    pub prepare_ns: f64,
    /// The driver's, after: results to their places.
    pub results_ns: f64,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a profile: {source}", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: {field} is {value}, expected {expected}", path.display())]
    Field {
        path: PathBuf,
        field: String,
        value: String,
        expected: String,
    },
    #[error("{what} differ: {a} and {b}")]
    Incomparable {
        what: &'static str,
        a: String,
        b: String,
    },
}

/// The field that says that a file is a profile, and of which version.
#[derive(Deserialize)]
struct Marker {
    weightstream_profile: Option<u32>,
}

impl Profile {
    /// Reads a profile's JSON.
    ///
    /// # Errors
    /// If it is another version's, or does not hold together.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let path = || path.to_path_buf();
        let text = fs::read(path()).map_err(|source| ProfileError::Io {
            path: path(),
            source,
        })?;
        let json = |source| ProfileError::Json {
            path: path(),
            source,
        };
        let marker: Marker = serde_json::from_slice(&text).map_err(json)?;
        let field = |field: &str, value: String, expected: String| ProfileError::Field {
            path: path(),
            field: field.into(),
            value,
            expected,
        };
        if marker.weightstream_profile != Some(VERSION) {
            let found = marker.weightstream_profile;
            let found = found.map_or("missing".into(), |v| v.to_string());
            return Err(field("weightstream_profile", found, VERSION.to_string()));
        }
        let profile: Profile = serde_json::from_slice(&text).map_err(json)?;
        profile
            .check()
            .map_err(|(name, value, expected)| field(&name, value, expected))?;
        Ok(profile)
    }

    /// Checks what the types leave open: field, value, what is expected.
    fn check(&self) -> Result<(), (String, String, String)> {
        let bad = |field: &str, value: &dyn ToString, expected: String| {
            Err((field.to_string(), value.to_string(), expected))
        };
        let positive = || "more than 0".to_string();
        let numbers = [
            ("engines", self.engines),
            ("bus_bytes", self.bus_bytes),
            ("blocks_per_cycle", self.blocks_per_cycle),
        ];
        if let Some((name, value)) = numbers.iter().find(|(_, value)| *value == 0) {
            return bad(name, value, positive());
        }
        if let Some(clock) = self.clock_mhz.filter(|c| c.is_nan() || *c <= 0.0) {
            return bad("clock_mhz", &clock, positive());
        }
        for chain in self.chains() {
            if chain.engine >= self.engines {
                let expected = format!("less than engines, {}", self.engines);
                return bad("engine", &chain.engine, expected);
            }
            if let Some(job) = chain.jobs.iter().find(|j| j.tensor >= self.tensors.len()) {
                let expected = format!("an index of the {} tensors", self.tensors.len());
                return bad("tensor", &job.tensor, expected);
            }
        }
        Ok(())
    }

    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        let graphs = self.steps.iter().flat_map(|s| &s.graphs);
        graphs.flat_map(|g| &g.chains)
    }

    /// Counts cycles at another clock. On a target without one there is nothing to change.
    pub fn set_clock(&mut self, mhz: f64) {
        if self.clock_mhz.is_none() {
            return;
        }
        self.clock_mhz = Some(mhz);
        let graphs = self.steps.iter_mut().flat_map(|s| &mut s.graphs);
        for chain in graphs.flat_map(|g| &mut g.chains) {
            if let Some(cycles) = chain.cycles {
                chain.kernel_ns = cycles as f64 * 1e3 / mhz;
            }
        }
    }

    /// ns a cycle, on a target with a clock.
    pub fn cycle_ns(&self) -> Option<f64> {
        self.clock_mhz.map(|mhz| 1e3 / mhz)
    }
}

/// The layer that a tensor belongs to: its block, or its own name if it is in none.
pub fn layer_of(tensor: &str) -> &str {
    match tensor
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
    {
        Some((number, _)) if number.bytes().all(|b| b.is_ascii_digit()) => {
            &tensor[.."blk.".len() + number.len()]
        }
        _ => tensor.strip_suffix(".weight").unwrap_or(tensor),
    }
}

/// What a tensor is within its layer: its name without block and ending.
pub fn role_of(tensor: &str) -> &str {
    let layer = layer_of(tensor);
    let rest = tensor.strip_prefix(layer).unwrap_or(tensor);
    let role = rest.strip_prefix('.').unwrap_or(tensor);
    let role = role.strip_suffix(".weight").unwrap_or(role);
    if role == "weight" || role.is_empty() {
        layer
    } else {
        role
    }
}
