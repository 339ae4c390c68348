//! Compares what a target answered with what it should have.

use std::fmt;

use crate::regs::job::status;
use crate::vectors::{Answer, Job, Outcome, Scenario};

/// Wrong results kept of one job; all are counted.
const KEPT: usize = 64;

/// What is wrong with one chain or one of its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub chain: usize,
    /// Index of the job in the chain, where it is about one.
    pub job: Option<usize>,
    pub kind: MismatchKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MismatchKind {
    /// The chain ended in another way.
    Outcome { expected: String, actual: String },
    /// The footer's status.
    Status { expected: u32, actual: u32 },
    /// Fewer or more results than a good job has.
    Length { expected: usize, actual: usize },
    Results {
        /// The first ones, in the order they leave the kernel.
        first: Vec<WrongResult>,
        /// How many there are.
        wrong: usize,
        of: usize,
    },
}

/// A result that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongResult {
    pub row: usize,
    pub col: usize,
    /// The bits of the exact f32.
    pub expected: u32,
    /// The bits that the target gave.
    pub actual: u32,
    /// Device address it was written to.
    pub addr: u64,
}

/// What differs between the outcomes of `scenario`; nothing if all is as expected.
///
/// Cycles are not compared, nor how many results a malformed job gives.
pub fn judge(scenario: &Scenario, expected: &[Outcome], actual: &[Outcome]) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let chains = scenario.chains.iter().zip(expected.iter().zip(actual));
    for (chain, (of_chain, (expected, actual))) in chains.enumerate() {
        let mut found = |job, kind| mismatches.push(Mismatch { chain, job, kind });
        match (expected, actual) {
            (Outcome::Answers(expected), Outcome::Answers(actual)) => {
                let answers = expected.iter().zip(actual).zip(&of_chain.jobs);
                for (n, ((expected, actual), job)) in answers.enumerate() {
                    if let Some(kind) = judge_answer(job, expected, actual) {
                        found(Some(n), kind);
                    }
                }
            }
            (expected, actual) if same_end(expected, actual) => {}
            (expected, actual) => found(
                None,
                MismatchKind::Outcome {
                    expected: expected.to_string(),
                    actual: actual.to_string(),
                },
            ),
        }
    }
    mismatches
}

fn same_end(expected: &Outcome, actual: &Outcome) -> bool {
    match (expected, actual) {
        (
            Outcome::Halted {
                channel,
                errors,
                descriptor,
            },
            Outcome::Halted {
                channel: actual_channel,
                errors: actual_errors,
                descriptor: actual_descriptor,
            },
        ) => {
            let same_descriptor = descriptor.is_none()
                || actual_descriptor.is_none()
                || descriptor == actual_descriptor;
            channel == actual_channel && errors == actual_errors && same_descriptor
        }
        (Outcome::Reset, Outcome::Reset) => true,
        _ => false,
    }
}

fn judge_answer(job: &Job, expected: &Answer, actual: &Answer) -> Option<MismatchKind> {
    let of = expected.results.len();
    let pairs = expected.results.iter().zip(&actual.results).enumerate();
    let wrong: Vec<WrongResult> = pairs
        .filter(|(_, (e, a))| e != a)
        .map(|(n, (e, a))| WrongResult {
            row: n / job.cols,
            col: n % job.cols,
            expected: *e,
            actual: *a,
            addr: actual.addr + 4 * n as u64,
        })
        .collect();
    // The beats of such a packet are not what its bytes say.
    let any_results = expected.status & status::BAD_KEEP != 0;
    if !wrong.is_empty() && !any_results {
        return Some(MismatchKind::Results {
            wrong: wrong.len(),
            first: wrong.into_iter().take(KEPT).collect(),
            of,
        });
    }
    // Of a malformed job's results nobody knows how many come, so neither whether a NaN is among
    // them; that the status says so is checked against what came.
    let mut wanted = expected.status;
    if !expected.status().is_good() {
        let nan = actual.results.iter().any(|&b| f32::from_bits(b).is_nan());
        wanted = wanted & !status::NONFINITE | u32::from(nan);
    }
    if wanted != actual.status {
        return Some(MismatchKind::Status {
            expected: wanted,
            actual: actual.status,
        });
    }
    let found = actual.results.len();
    (expected.status().is_good() && found != of).then_some(MismatchKind::Length {
        expected: of,
        actual: found,
    })
}

impl Mismatch {
    /// Counts the columns of wrong results from another one.
    pub(super) fn move_columns(&mut self, by: usize) {
        if let MismatchKind::Results { first, .. } = &mut self.kind {
            first.iter_mut().for_each(|w| w.col += by);
        }
    }
}

impl fmt::Display for WrongResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |b: u32| format!("0x{b:08x} ({:e})", f32::from_bits(b));
        let (expected, actual) = (shown(self.expected), shown(self.actual));
        write!(
            f,
            "row {}, col {}: expected {expected}, actual {actual}",
            self.row, self.col
        )
    }
}

impl fmt::Display for MismatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::regs::job::Status;
        match self {
            MismatchKind::Outcome { expected, actual } => {
                write!(f, "expected {expected}, actual: {actual}")
            }
            MismatchKind::Status { expected, actual } => {
                let (expected, actual) = (Status(*expected), Status(*actual));
                write!(f, "expected status {expected}, actual {actual}")
            }
            MismatchKind::Length { expected, actual } => {
                write!(f, "expected {expected} results, actual {actual}")
            }
            MismatchKind::Results { wrong, of, .. } => write!(f, "{wrong} of {of} results wrong"),
        }
    }
}
