//! The host's part: what driver and CPU take beside the device.

use serde::Serialize;

use crate::profile::{Phase, Profile};

/// What is known of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// For passes with one token; none where nothing is known.
    pub decode: Option<Costs>,
    /// For passes with more; those of decoding where none were measured.
    pub prefill: Option<Costs>,
    /// At which the CPU reads keys and values, and weights that the kernel does not take.
    pub gb_per_s: Option<f64>,
}

/// Costs of the host, ns.
///
/// What driver and CPU do is done on the vectors that go into products and come out of them
/// (quantising, norms, rotations, activation functions), so it grows with their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Costs {
    /// Of the driver, each chain: descriptors, registers, interrupt.
    pub chain_ns: f64,
    /// Of the driver, each value in or out of a product.
    pub driver_value_ns: f64,
    /// Of the CPU's operations, each value in or out of a product.
    pub host_value_ns: f64,
    /// Beside these, each token, whatever the model.
    pub token_ns: f64,
}

impl Host {
    /// As measured on the machine and model of `profile`.
    pub fn measured(profile: &Profile, gb_per_s: Option<f64>) -> Host {
        let decode = costs(profile, Phase::Decode);
        Host {
            decode,
            prefill: costs(profile, Phase::Prefill).or(decode),
            gb_per_s,
        }
    }

    /// `ms` a token, all in all.
    pub fn given(ms: f64, gb_per_s: Option<f64>) -> Host {
        let costs = Some(Costs {
            token_ns: ms * 1e6,
            ..Costs::default()
        });
        Host {
            decode: costs,
            prefill: costs,
            gb_per_s,
        }
    }
}

fn costs(profile: &Profile, phase: Phase) -> Option<Costs> {
    let steps = profile.steps.iter().filter(|s| s.phase == phase);
    let (mut chains, mut values) = (0.0, 0.0);
    let (mut chain_ns, mut value_ns, mut host_ns) = (0.0, 0.0, 0.0);
    for graph in steps.flat_map(|s| &s.graphs) {
        host_ns += graph.host_ns;
        chain_ns += graph.driver_ns;
        for chain in &graph.chains {
            chains += 1.0;
            let of_jobs: f64 = chain.jobs.iter().map(|j| j.prepare_ns + j.results_ns).sum();
            chain_ns += (chain.prepare_ns + chain.results_ns - of_jobs).max(0.0);
            value_ns += of_jobs;
            let in_and_out = chain.jobs.iter().map(|job| {
                let k = profile.tensors[job.tensor].k;
                ((k + job.rows) * job.cols) as f64
            });
            values += in_and_out.sum::<f64>();
        }
    }
    (chains > 0.0 && values > 0.0).then(|| Costs {
        chain_ns: chain_ns / chains,
        driver_value_ns: value_ns / values,
        host_value_ns: host_ns / values,
        token_ns: 0.0,
    })
}
