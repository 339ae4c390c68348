//! Replays golden vectors on a target, bit for bit.

use crate::dma::DmaError;
use crate::driver::{Accelerator, DriverError, Input, MatMul};
use crate::vectors::Case;

/// Byte offsets at which a case's weights are placed: one on a bus word, one that is on none of any
/// width.
const PLACEMENTS: [usize; 2] = [0, 37];

/// A result that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Byte offset of the weights from a bus word.
    pub placement: usize,
    pub row: usize,
    pub col: usize,
    /// The bits of the f32 in the vector.
    pub expected: u32,
    /// The bits that the target gave.
    pub actual: u32,
}

/// What replaying a case showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every bit is as expected.
    Passed,
    /// The target's kernel has no such weight type, or the case's k is beyond it.
    Skipped,
    /// Quantising `x` gives another byte than the vector's activations.
    Quantiser {
        col: usize,
        offset: usize,
        expected: u8,
        actual: u8,
    },
    /// Results differ; there is at least one.
    Differs(Vec<Difference>),
}

/// Replays `case` on `accelerator`.
pub fn replay(accelerator: &mut Accelerator, case: &Case) -> Result<Outcome, DriverError> {
    if !accelerator.capabilities().supports(case.ty, case.k) {
        return Ok(Outcome::Skipped);
    }
    if let Some((col, offset, expected, actual)) = case.quantisation_difference() {
        return Ok(Outcome::Quantiser {
            col,
            offset,
            expected,
            actual,
        });
    }
    let mut differences = Vec::new();
    for placement in PLACEMENTS {
        let actual = compute(accelerator, case, placement)?;
        let of_placement = case.expected.iter().zip(&actual).enumerate();
        differences.extend(of_placement.filter(|(_, (e, a))| **e != a.to_bits()).map(
            |(n, (e, a))| Difference {
                placement,
                row: n % case.rows,
                col: n / case.rows,
                expected: *e,
                actual: a.to_bits(),
            },
        ));
    }
    Ok(match differences.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Differs(differences),
    })
}

/// The case's results on the target: all rows of column 0, then of column 1, and so on.
fn compute(
    accelerator: &mut Accelerator,
    case: &Case,
    placement: usize,
) -> Result<Vec<f32>, DriverError> {
    let weights = accelerator.heap().alloc(placement + case.weights.len())?;
    let write = || -> Result<(), DmaError> {
        weights.write(placement, &case.weights)?;
        weights.sync_for_device(0, weights.len())
    };
    write()?;
    let mut results = vec![0f32; case.rows * case.cols];
    let matmul = MatMul {
        weights: weights.device_addr() + placement as u64,
        ty: case.ty,
        k: case.k,
        rows: case.rows,
        input: 0,
        out: results.chunks_exact_mut(case.rows).collect(),
    };
    let columns = (0..case.cols).map(|c| case.column(c)).collect();
    accelerator.run(&[Input::Q8_0(columns)], &mut [matmul])?;
    Ok(results)
}
