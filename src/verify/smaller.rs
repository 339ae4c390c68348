//! The last part of shrinking: single steps down, until none of them fails any more.
//!
//! Proptest goes through a plan's parts once, in order, and each as far as the others then let it.
//! What is left afterwards is tried here.

use super::strategy::{ChainPlan, EventPlan, JobPlan, Plan, Reuse};
use crate::quant::WeightType;
use crate::target::{Conditions, Stalls};
use crate::vectors::{Flaw, Scenario};

/// Plans that are one step smaller or milder than `plan`, the largest steps of each kind first.
/// `scenario` is what the plan builds for a target of these types.
pub fn smaller(plan: &Plan, scenario: &Scenario, types: &[WeightType]) -> Vec<Plan> {
    let mut found = Vec::new();
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        changed
    };
    for c in 0..plan.chains.len() {
        if plan.chains.len() > 1 {
            found.push(with(&|p| {
                p.chains.remove(c);
            }));
        }
        let chain = &plan.chains[c];
        for j in 0..chain.jobs.len() {
            if chain.jobs.len() > 1 {
                found.push(with(&|p| {
                    p.chains[c].jobs.remove(j);
                }));
            }
        }
        found.extend(
            smaller_events(chain)
                .into_iter()
                .map(|event| with(&|p| p.chains[c].event = event)),
        );
        for j in 0..chain.jobs.len() {
            let built = &scenario.chains[c].jobs[j];
            let mut jobs = smaller_jobs(&chain.jobs[j]);
            if built.reuse {
                // On its own it keeps the shape that the activations held gave it.
                jobs.insert(
                    0,
                    JobPlan {
                        ty: types.iter().position(|t| *t == built.ty).unwrap_or(0),
                        blocks: built.k / built.ty.block_len(),
                        cols: built.cols,
                        longest: false,
                        reuse: Reuse::No,
                        ..chain.jobs[j].clone()
                    },
                );
            }
            found.extend(
                jobs.into_iter()
                    .map(|job| with(&|p| p.chains[c].jobs[j] = job.clone())),
            );
        }
    }
    if plan.length_width != 26 {
        found.push(with(&|p| p.length_width = 26));
    }
    let conditions = milder(&plan.conditions);
    found.extend(
        conditions
            .into_iter()
            .map(|milder| with(&|p| p.conditions = milder.clone())),
    );
    found
}

fn smaller_events(chain: &ChainPlan) -> Vec<Option<EventPlan>> {
    match chain.event {
        None => Vec::new(),
        Some(EventPlan::Reset(reads)) => {
            let reads = below(reads as usize, 0).map(|n| Some(EventPlan::Reset(n as u32)));
            std::iter::once(None).chain(reads).collect()
        }
        Some(EventPlan::BusError(..)) => vec![None],
    }
}

fn smaller_jobs(job: &JobPlan) -> Vec<JobPlan> {
    let mut found = Vec::new();
    let mut try_with = |change: &dyn Fn(&mut JobPlan)| {
        let mut changed = job.clone();
        change(&mut changed);
        found.push(changed);
    };
    if job.longest {
        try_with(&|j| j.longest = false);
    }
    match job.flaw {
        Some(Flaw::Short(bytes)) => {
            below(bytes, 1).for_each(|n| try_with(&|j| j.flaw = Some(Flaw::Short(n))));
        }
        Some(Flaw::Long(bytes)) => {
            below(bytes, 1).for_each(|n| try_with(&|j| j.flaw = Some(Flaw::Long(n))));
        }
        _ => {}
    }
    if job.flaw.is_some() {
        try_with(&|j| j.flaw = None);
    }
    below(job.rows, 1).for_each(|n| try_with(&|j| j.rows = n));
    below(job.cols, 1).for_each(|n| try_with(&|j| j.cols = n));
    below(job.blocks, 1).for_each(|n| try_with(&|j| j.blocks = n));
    below(job.offset, 0).for_each(|n| try_with(&|j| j.offset = n));
    (0..job.ty).for_each(|n| try_with(&|j| j.ty = n));
    for side in 0..2 {
        if job.scales[side] != 0 {
            try_with(&|j| j.scales[side] = 0);
        }
    }
    found
}

fn milder(conditions: &Conditions) -> Vec<Conditions> {
    let mild = Conditions::default();
    let mut found = Vec::new();
    let mut try_with = |change: &dyn Fn(&mut Conditions)| {
        let mut changed = conditions.clone();
        change(&mut changed);
        if changed != *conditions {
            found.push(changed);
        }
    };
    try_with(&|c| *c = mild.clone());
    try_with(&|c| c.stalls = Stalls::default());
    try_with(&|c| c.bandwidth = None);
    try_with(&|c| c.refresh = None);
    try_with(&|c| c.latency = mild.latency);
    try_with(&|c| c.max_outstanding = mild.max_outstanding);
    for (channel, percent) in conditions.stalls.0.into_iter().enumerate() {
        let percents = below(percent.into(), 0);
        percents.for_each(|n| try_with(&|c| c.stalls.0[channel] = n as u8));
    }
    found
}

/// Some numbers from `least` to below `value`; that of the same parity is among them.
fn below(value: usize, least: usize) -> impl Iterator<Item = usize> {
    let half = least + value.saturating_sub(least) / 2;
    let mut numbers = vec![
        least,
        half,
        value.saturating_sub(2),
        value.saturating_sub(1),
    ];
    numbers.dedup();
    numbers
        .into_iter()
        .filter(move |n| (least..value).contains(n))
}
