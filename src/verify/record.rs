//! A failing scenario as a vector.

use std::path::PathBuf;

use super::Checked;
use super::reference::exact_results;
use crate::vectors::{Case, Outcome, Recorded};

/// The case of the first job that is wrong, or of the first in a chain that is. `exact` are the
/// outcomes that should have come.
pub(super) fn case(checked: &Checked, exact: Vec<Outcome>, seed: u64, number: u64) -> Case {
    let scenario = checked.built.scenario.clone();
    let wrong = checked.mismatches.first();
    let (chain, job) = wrong.map_or((0, 0), |m| (m.chain, m.job.unwrap_or(0)));
    let before: usize = scenario.chains[..chain].iter().map(|c| c.jobs.len()).sum();
    let own = scenario.chains[chain].jobs[job].clone();
    let expected: Vec<Vec<u32>> = scenario.jobs().map(exact_results).collect();
    let what = wrong.map_or(String::new(), |m| m.kind.to_string());
    let notes = [
        ("source", format!("weightstream verify, case {number}")),
        ("seed", seed.to_string()),
        ("note", what),
    ];
    Case {
        path: PathBuf::new(),
        ty: own.ty,
        k: own.k,
        rows: own.rows,
        cols: own.cols,
        weights: own.weights.to_vec(),
        activations: own.activations.to_vec(),
        expected: expected[before + job].clone(),
        x: None,
        notes: notes.map(|(key, value)| (key.to_string(), value)).into(),
        recorded: Some(Recorded {
            scenario,
            case: before + job,
            outcomes: exact,
            expected,
        }),
    }
}
