//! Exact results, for vectors' expected values.
//!
//! This shares no code with the model, the driver or the RTL: it decodes blocks weight by weight
//! by code of its own, sums in integers of any size, and rounds once. It is meant to be read, not
//! to be fast. The Python oracle's files hold it to account, and it them.

mod blocks;
mod quantise;

pub use quantise::quantise;

use num_bigint::{BigInt, Sign};

use super::{Case, Outcome};
use crate::quant::WeightType;

/// The quiet NaN that stands for a result with a scale that is inf or NaN.
const NAN: u32 = 0x7FC0_0000;

/// Results are integers of this unit, 2^-48: weights and activations are such of 2^-24.
const UNIT: i64 = -48;

/// The bits of all results: all rows of column 0, then of column 1, and so on. `weights` are whole
/// rows of `k` weights, `activations` whole columns of Q8_0 blocks.
///
/// # Panics
/// If `k` is not whole blocks of `ty`, or the bytes are not whole rows and columns.
pub fn results(ty: WeightType, k: usize, weights: &[u8], activations: &[u8]) -> Vec<u32> {
    let decode = |ty: WeightType, bytes: &[u8]| {
        let line = blocks::line_bytes(ty, k);
        assert_eq!(bytes.len() % line, 0, "{ty}: whole lines of {line} bytes");
        let lines = bytes.chunks_exact(line);
        lines
            .map(|line| blocks::decode(ty, line))
            .collect::<Vec<_>>()
    };
    let rows = decode(ty, weights);
    let columns = decode(WeightType::Q8_0, activations);
    let each = columns
        .iter()
        .flat_map(|x| rows.iter().map(move |w| (w, x)));
    each.map(|(w, x)| dot(w.as_deref(), x.as_deref())).collect()
}

/// One result, from a row and a column in units of 2^-24; `None` is one with a scale that is not
/// finite.
fn dot(row: Option<&[i64]>, column: Option<&[i64]>) -> u32 {
    let (Some(row), Some(column)) = (row, column) else {
        return NAN;
    };
    let products = row.iter().zip(column).map(|(w, x)| BigInt::from(*w) * x);
    round(&products.sum())
}

/// `sum` times 2^-48 rounded to fp32, ties to even.
///
/// By the formats' ranges the result is neither subnormal nor too large.
fn round(sum: &BigInt) -> u32 {
    let (sign, magnitude) = (sum.sign(), sum.magnitude());
    if sign == Sign::NoSign {
        return 0;
    }
    // The mantissa's 24 bits are the first ones; what is behind them decides the rounding.
    let behind = magnitude.bits() as i64 - 24;
    let mantissa = match behind {
        ..=0 => magnitude << -behind,
        _ => {
            let mantissa = magnitude >> behind;
            let rest = magnitude - (&mantissa << behind);
            let half = num_bigint::BigUint::from(1u8) << (behind - 1);
            let up = rest > half || (rest == half && mantissa.bit(0));
            mantissa + u8::from(up)
        }
    };
    let mantissa = u32::try_from(mantissa).expect("24 bits, or 2^24 after a carry");
    // A carry moves on into the exponent, as it should.
    let exponent = (behind + UNIT + 23 + 127) as u32;
    let bits = (exponent << 23) + (mantissa - (1 << 23));
    bits | u32::from(sign == Sign::Minus) << 31
}

/// A value in a vector that is not the exact one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// A byte of `activations` that is not that of the quantised `x`.
    Activations {
        col: usize,
        offset: usize,
        stored: u8,
        exact: u8,
    },
    /// A result; `job` where it is one of a recorded scenario's other jobs.
    Result {
        job: Option<usize>,
        row: usize,
        col: usize,
        stored: u32,
        exact: u32,
    },
    /// The status of a recorded answer.
    Status { job: usize, stored: u32, exact: u32 },
}

/// What of `case` is not exact.
pub fn check(case: &Case) -> Vec<Inexact> {
    let mut found = Vec::new();
    let columns = case.x.iter().flat_map(|x| x.chunks_exact(case.k));
    for (col, x) in columns.enumerate() {
        let pairs = case.column(col).iter().zip(quantise(x)).enumerate();
        found.extend(pairs.filter(|(_, (stored, exact))| *stored != exact).map(
            |(offset, (stored, exact))| Inexact::Activations {
                col,
                offset,
                stored: *stored,
                exact,
            },
        ));
    }
    let mut compare = |job, rows: usize, stored: &[u32], exact: &[u32]| {
        let pairs = stored.iter().zip(exact).enumerate();
        found.extend(pairs.filter(|(_, (stored, exact))| stored != exact).map(
            |(n, (stored, exact))| Inexact::Result {
                job,
                row: n % rows,
                col: n / rows,
                stored: *stored,
                exact: *exact,
            },
        ));
    };
    let exact = results(case.ty, case.k, &case.weights, &case.activations);
    compare(None, case.rows, &case.expected, &exact);
    let Some(recorded) = &case.recorded else {
        return found;
    };
    let jobs: Vec<_> = recorded.scenario.jobs().collect();
    let exact: Vec<Vec<u32>> = jobs
        .iter()
        .map(|job| results(job.ty, job.k, &job.weights, &job.activations))
        .collect();
    for (n, job) in jobs.iter().enumerate() {
        if n != recorded.case {
            compare(Some(n), job.rows, &recorded.expected[n], &exact[n]);
        }
    }
    let mut number = 0;
    for (chain, outcome) in recorded.scenario.chains.iter().zip(&recorded.outcomes) {
        if let Outcome::Answers(answers) = outcome {
            for (n, answer) in (number..).zip(answers) {
                let nan = exact[n].contains(&NAN);
                if answer.status().is_good() && answer.status().is_nonfinite() != nan {
                    found.push(Inexact::Status {
                        job: n,
                        stored: answer.status,
                        exact: u32::from(nan),
                    });
                }
            }
        }
        number += chain.jobs.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_python_oracles_files_are_exact() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
        let files = super::super::files(&folder).unwrap();
        assert!(files.len() > 100);
        for file in files {
            assert_eq!(check(&Case::read(&file).unwrap()), [], "{}", file.display());
        }
    }

    #[test]
    fn one_bit_is_found() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
        let good = Case::read(folder.join("q3_k_small.safetensors")).unwrap();
        let mut case = good.clone();
        case.expected[case.rows + 2] ^= 1;
        let [
            Inexact::Result {
                job: None,
                row: 2,
                col: 1,
                ..
            },
        ] = check(&case)[..]
        else {
            panic!("{:?}", check(&case));
        };
        let mut case = good.clone();
        case.activations[34 * case.k / 32 + 3] ^= 1;
        let wanted = |i: &Inexact| {
            matches!(
                i,
                Inexact::Activations {
                    col: 1,
                    offset: 3,
                    ..
                }
            )
        };
        assert!(check(&case).iter().any(wanted));
    }

    #[test]
    fn rounding_is_that_of_ieee() {
        // Up to 2^53 an f64 holds the sum exactly, and its conversion rounds once.
        let cases = [
            0i64,
            1,
            -1,
            (1 << 24) - 1,
            1 << 24,
            (1 << 24) + 1,
            (1 << 24) + 2,
            (1 << 24) + 3,
            (1 << 25) - 1,
            (1 << 25) + 2,
            (1 << 25) + 6,
            (1 << 53) - 1,
            -((1 << 53) - 1),
            0x1F_FFFF_F000_0001,
            -0x10_0000_1000_0000,
            0x10_0000_1000_0001,
        ];
        for sum in cases {
            let wanted = (sum as f64 * 2f64.powi(-48)) as f32;
            assert_eq!(round(&sum.into()), wanted.to_bits(), "{sum:#x}");
        }
    }
}
