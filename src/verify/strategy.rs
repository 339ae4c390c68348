//! Random scenarios within a target's capabilities, as proptest strategies, so that one that fails
//! shrinks: to fewer and smaller jobs, and to a memory that stalls less.

use proptest::array::uniform15;
use proptest::collection::vec;
use proptest::prelude::*;

use super::content::{self, Scales};
use crate::driver::Capabilities;
use crate::quant::WeightType;
use crate::regs::job::{FOOTER_BYTES, PART_ALIGN};
use crate::target::{Conditions, Stalls};
use crate::vectors::{BusResponse, Chain, Event, Flaw, Job, PartKind, Scenario};

/// Most products of a job, which bound the time that one takes in simulation.
const MOST_PRODUCTS: usize = 200_000;
/// Most columns that are tried beside a kernel's most.
const SOME_COLUMNS: usize = 16;

/// What a scenario is built from. Its parts shrink on their own.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) stall_seed: u32,
    pub(super) conditions: Conditions,
    pub(super) length_width: u32,
    pub(super) chains: Vec<ChainPlan>,
}

#[derive(Clone, Debug)]
pub(super) struct ChainPlan {
    pub jobs: Vec<JobPlan>,
    pub event: Option<EventPlan>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum EventPlan {
    /// At the job of that number, or the last.
    BusError(usize, PartKind, BusResponse),
    Reset(u32),
}

#[derive(Clone, Debug)]
pub(super) struct JobPlan {
    /// Index among the target's types.
    pub ty: usize,
    /// Blocks in a row: of 32, or of 256 where the type has these.
    pub blocks: usize,
    /// k is the largest that the target takes.
    pub longest: bool,
    pub rows: usize,
    pub cols: usize,
    pub offset: usize,
    pub reuse: Reuse,
    pub flaw: Option<Flaw>,
    pub scales: [usize; 2],
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    No,
    /// With the shape of the activations held.
    Fitting,
    /// As it comes: mostly to be refused.
    Any,
}

/// A scenario, and for each job the classes of its scales: weights', activations'.
#[derive(Clone, Debug)]
pub struct Built {
    pub scenario: Scenario,
    pub scales: Vec<[Scales; 2]>,
}

/// All scenarios for a target.
pub fn plans(capabilities: &Capabilities) -> impl Strategy<Value = Plan> + use<> {
    let length_width = prop_oneof![3 => Just(26u32), 1 => 8..=14u32];
    (
        any::<u32>().no_shrink(),
        conditions(),
        length_width,
        vec(chain(capabilities), 1..=3),
    )
        .prop_map(|(stall_seed, conditions, length_width, chains)| Plan {
            stall_seed,
            conditions,
            length_width,
            chains,
        })
}

/// The first of several alternatives is the one that shrinking tries: the mildest.
fn conditions() -> impl Strategy<Value = Conditions> {
    let mild = Conditions::default();
    let percent = || prop_oneof![4 => Just(0u8), 2 => 1..=40u8, 1 => 41..=95u8];
    let stalls = prop_oneof![
        2 => Just([0; 15]),
        3 => uniform15(percent()),
        1 => (1..=95u8).prop_map(|percent| [percent; 15]),
    ];
    let latency = prop_oneof![2 => Just(mild.latency), 2 => 1..=8u32, 1 => 9..=200u32];
    let outstanding = prop_oneof![3 => Just(mild.max_outstanding), 1 => 1..=4u32, 1 => 5..=64u32];
    let bandwidth = prop_oneof![4 => Just(None), 1 => (1..=8u32, 1..=16u32).prop_map(Some)];
    let refresh = prop_oneof![
        4 => Just(None),
        1 => (20..=400u32, 1..=19u32).prop_map(Some),
    ];
    (stalls, latency, outstanding, bandwidth, refresh).prop_map(
        |(stalls, latency, max_outstanding, bandwidth, refresh)| Conditions {
            latency,
            max_outstanding,
            bandwidth,
            refresh,
            dram: None,
            stalls: Stalls(stalls),
        },
    )
}

fn chain(capabilities: &Capabilities) -> impl Strategy<Value = ChainPlan> + use<> {
    let part = prop::sample::select(vec![
        PartKind::Weights,
        PartKind::Activations,
        PartKind::Header,
        PartKind::Answer,
    ]);
    let response = prop::sample::select(vec![BusResponse::Slave, BusResponse::Decode]);
    let event = prop_oneof![
        17 => Just(None),
        2 => (0..4usize, part, response).prop_map(|(n, p, r)| Some(EventPlan::BusError(n, p, r))),
        1 => (0..300u32).prop_map(|reads| Some(EventPlan::Reset(reads))),
    ];
    (vec(job(capabilities), 1..=4), event).prop_map(|(jobs, event)| ChainPlan { jobs, event })
}

fn job(capabilities: &Capabilities) -> impl Strategy<Value = JobPlan> + use<> {
    let types = types(capabilities).len();
    let (most_cols, some_cols) = (
        capabilities.max_cols,
        capabilities.max_cols.min(SOME_COLUMNS),
    );
    let blocks = prop_oneof![8 => 1..=4usize, 4 => 5..=12usize, 1 => 13..=60usize];
    let rows = prop_oneof![6 => 1..=5usize, 4 => 6..=24usize, 1 => 25..=100usize];
    let cols = prop_oneof![2 => Just(1), 2 => 1..=some_cols, 1 => Just(most_cols)];
    let offset = prop_oneof![2 => Just(0usize), 5 => 0..64usize];
    let reuse = prop_oneof![
        6 => Just(Reuse::No),
        4 => Just(Reuse::Fitting),
        1 => Just(Reuse::Any),
    ];
    let flaw = prop_oneof![9 => Just(None), 1 => flaw().prop_map(Some)];
    let class = || prop_oneof![3 => Just(0), 4 => 0..Scales::ALL.len()];
    let longest = proptest::bool::weighted(0.005);
    (
        (0..types, blocks, longest, rows, cols, offset),
        (reuse, flaw, [class(), class()], any::<u64>().no_shrink()),
    )
        .prop_map(
            |((ty, blocks, longest, rows, cols, offset), (reuse, flaw, scales, seed))| JobPlan {
                ty,
                blocks,
                longest,
                rows,
                cols,
                offset,
                reuse,
                flaw,
                scales,
                seed,
            },
        )
}

fn flaw() -> impl Strategy<Value = Flaw> {
    let header = prop::sample::select(vec![
        Flaw::Magic,
        Flaw::Version,
        Flaw::Type,
        Flaw::K,
        Flaw::Rows,
        Flaw::Cols,
        Flaw::Skip,
        Flaw::Flags,
        Flaw::Reserved,
    ]);
    let bytes = || prop_oneof![2 => 1..=64usize, 1 => 65..=1000usize];
    prop_oneof![
        4 => header,
        3 => bytes().prop_map(Flaw::Short),
        3 => bytes().prop_map(Flaw::Long),
    ]
}

/// The types that a target computes.
pub fn types(capabilities: &Capabilities) -> Vec<WeightType> {
    let types = WeightType::all();
    types
        .filter(|ty| capabilities.types & ty.mask() != 0)
        .collect()
}

impl Plan {
    /// The scenario of this plan; the same each time.
    pub fn build(&self, capabilities: &Capabilities) -> Built {
        let mut scales = Vec::new();
        let mut held = None;
        let chains = self.chains.iter();
        let chains = chains
            .map(|plan| {
                let jobs = plan.jobs.iter().map(|plan| {
                    scales.push(plan.scales.map(|n| Scales::ALL[n]));
                    plan.build(capabilities, &mut held)
                });
                let jobs: Vec<Job> = jobs.collect();
                let event = plan.event.map(|event| match event {
                    EventPlan::Reset(reads) => Event::Reset { reads },
                    EventPlan::BusError(number, part, response) => Event::BusError {
                        job: number.min(jobs.len() - 1),
                        part,
                        response,
                    },
                });
                Chain { jobs, event }
            })
            .collect();
        let mut scenario = Scenario {
            stall_seed: self.stall_seed.into(),
            conditions: self.conditions.clone(),
            length_width: self.length_width,
            chains,
        };
        widen(&mut scenario);
        Built { scenario, scales }
    }
}

/// Makes the length fields so wide that no answer that may end early is spread over several
/// descriptors: the next answer would begin in those left over.
fn widen(scenario: &mut Scenario) {
    let may_be_refused = |job: &&Job| job.flaw.is_some() || job.reuse;
    let answers = scenario.jobs().filter(may_be_refused);
    let longest = answers
        .map(|job| job.rows * job.cols * 4 + FOOTER_BYTES)
        .max();
    let fits = |width: u32| longest.unwrap_or(0).next_multiple_of(PART_ALIGN) < 1 << width;
    while scenario.length_width < 26 && !fits(scenario.length_width) {
        scenario.length_width += 1;
    }
}

/// Activations that the kernel may hold.
#[derive(Clone)]
struct Held {
    k: usize,
    cols: usize,
    bytes: std::sync::Arc<[u8]>,
}

impl JobPlan {
    fn build(&self, capabilities: &Capabilities, held: &mut Option<Held>) -> Job {
        let types = types(capabilities);
        let mut ty = types[self.ty % types.len()];
        let block = ty.block_len();
        let longest = capabilities.max_k / block;
        let blocks = match self.longest {
            true => longest,
            false => self.blocks.min(longest),
        };
        let (mut k, mut cols) = (blocks.max(1) * block, self.cols.min(capabilities.max_cols));
        let fitting = held.clone().filter(|_| self.reuse == Reuse::Fitting);
        if let Some(held) = &fitting {
            (k, cols) = (held.k, held.cols);
            // A type of 256 does not fit each k; one of 32 does.
            if !k.is_multiple_of(block) {
                ty = types
                    .iter()
                    .copied()
                    .find(|t| k.is_multiple_of(t.block_len()))
                    .unwrap_or(ty);
            }
            if !k.is_multiple_of(ty.block_len()) {
                k = ty.block_len();
            }
        }
        let reuse = self.reuse != Reuse::No && (fitting.is_some() || self.reuse == Reuse::Any);
        let rows = self.rows.min((MOST_PRODUCTS / (k * cols)).max(1));
        let [of_weights, of_activations] = self.scales.map(|n| Scales::ALL[n]);
        let fits = |held: &&Held| reuse && held.k == k && held.cols == cols;
        let activations = match held.as_ref().filter(fits) {
            Some(held) => held.bytes.clone(),
            None => content::activations(ty, k, cols, of_activations, self.seed).into(),
        };
        if !reuse {
            *held = Some(Held {
                k,
                cols,
                bytes: activations.clone(),
            });
        }
        Job {
            ty,
            k,
            rows,
            cols,
            offset: self.offset,
            reuse,
            flaw: self.flaw,
            weights: content::weights(ty, k, rows, of_weights, self.seed).into(),
            activations,
        }
    }
}
