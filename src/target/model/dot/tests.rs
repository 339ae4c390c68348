//! The fast paths against the portable one, bit for bit.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::*;
use crate::quant::Q8_0_BLOCK_BYTES;

/// What the scales and quants of a case are like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Any finite scales.
    Random,
    /// Scales as of real models.
    Real,
    /// Any 16 bits as scales, so that some are not finite.
    Wild,
    /// The largest scales and quants there are, of one sign or of both.
    Largest,
    /// Few quants that are not 0, with scales of 1 and of the smallest: sums that are fp32 ties,
    /// or miss one by 2^-48.
    Ties,
    /// Blocks that cancel each other, and a last one with the smallest scales.
    Cancel,
}

const KINDS: [Kind; 6] = [
    Kind::Random,
    Kind::Real,
    Kind::Wild,
    Kind::Largest,
    Kind::Ties,
    Kind::Cancel,
];

/// Where a block's fp16 scales are.
fn scales_at(ty: WeightType) -> &'static [usize] {
    match ty {
        WeightType::Q4_0 | WeightType::Q5_0 | WeightType::Q8_0 => &[0],
        WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4_K | WeightType::Q5_K => &[0, 2],
        WeightType::Q2_K => &[80, 82],
        WeightType::Q3_K => &[108],
        WeightType::Q6_K => &[208],
    }
}

fn finite(bits: u16) -> u16 {
    if bits & 0x7C00 == 0x7C00 {
        bits & !0x0400
    } else {
        bits
    }
}

/// `n` values in blocks of the type.
fn blocks(rng: &mut SmallRng, ty: WeightType, n: usize, kind: Kind) -> Vec<u8> {
    let mut bytes = vec![0; n / ty.block_len() * ty.block_bytes()];
    rng.fill_bytes(&mut bytes);
    if let Kind::Ties = kind {
        let sparse = |b: &mut u8| *b &= if rng.random_ratio(1, 8) { 3 } else { 0 };
        bytes.iter_mut().for_each(sparse);
    }
    // The extremes of 8, 6, 5, 4 and 2 bits, as the types bias them.
    let fill = [0x80, 0x7F, 0xFF, 0x00][rng.random_range(0..4)];
    if let Kind::Largest = kind {
        bytes.fill(fill);
    }
    let signs = rng.random::<bool>();
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        for at in scales_at(ty) {
            let bits: u16 = rng.random();
            let scale = match kind {
                Kind::Random | Kind::Cancel => finite(bits),
                Kind::Real => bits & 0x83FF | (0x1C00 + (bits & 0x0C00)),
                Kind::Wild if rng.random_ratio(1, 64) => bits,
                Kind::Wild => finite(bits),
                Kind::Largest => 0x7BFF | if signs { bits & 0x8000 } else { 0 },
                Kind::Ties => [0x3C00, 0x0001, 0xBC00, 0x8001][usize::from(bits % 4)],
            };
            block[*at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
    }
    bytes
}

/// Makes every second block the one before it with its scales negated, and the scales of the last
/// 256 the smallest.
fn cancel(bytes: &mut [u8], ty: WeightType, negate: bool) {
    let size = ty.block_bytes();
    let step = 256 / ty.block_len() * size;
    for pair in bytes.chunks_exact_mut(2 * step) {
        let (first, second) = pair.split_at_mut(step);
        second.copy_from_slice(first);
        for block in second.chunks_exact_mut(size).filter(|_| negate) {
            for at in scales_at(ty) {
                block[at + 1] ^= 0x80;
            }
        }
    }
    let last = bytes.len() - bytes.len().min(step);
    for block in bytes[last..].chunks_exact_mut(size) {
        for at in scales_at(ty) {
            block[*at..at + 2].copy_from_slice(&1u16.to_le_bytes());
        }
    }
}

/// Limits the scales of Q8_0 blocks to 2048, with which the fast paths take every type.
fn limit(blocks: &mut [u8]) {
    for block in blocks.chunks_exact_mut(Q8_0_BLOCK_BYTES) {
        let bits = u16::from_le_bytes([block[0], block[1]]);
        if (0x6800..0x7C00).contains(&(bits & 0x7FFF)) {
            let limited = bits & 0x8000 | 0x6800;
            block[..2].copy_from_slice(&limited.to_le_bytes());
        }
    }
}

struct Case {
    ty: WeightType,
    k: usize,
    cols: usize,
    weights: Vec<u8>,
    activations: Vec<u8>,
}

impl Case {
    fn new(ty: WeightType, k: usize, rows: usize, cols: usize, kind: Kind, seed: u64) -> Case {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut weights = blocks(&mut rng, ty, rows * k, kind);
        let mut activations = blocks(&mut rng, WeightType::Q8_0, cols * k, kind);
        if rng.random::<bool>() {
            limit(&mut activations);
        }
        if let Kind::Cancel = kind {
            for row in weights.chunks_exact_mut(ty.row_bytes(k).unwrap()) {
                cancel(row, ty, true);
            }
            for column in activations.chunks_exact_mut(q8_0_row_bytes(k)) {
                cancel(column, WeightType::Q8_0, false);
            }
        }
        Case {
            ty,
            k,
            cols,
            weights,
            activations,
        }
    }

    fn results(&self, dot: &mut Dot) -> Vec<u32> {
        dot.hold(&self.activations, self.k, self.cols);
        let row_bytes = self.ty.row_bytes(self.k).unwrap();
        let rows = self.weights.len() / row_bytes;
        let mut out = vec![0.5; rows * self.cols];
        dot.rows(self.ty, &self.weights, row_bytes, &mut out);
        out.iter().map(|y| y.to_bits()).collect()
    }

    fn check(&self, fast: &mut Dot) {
        let expected = self.results(&mut Dot::new(Simd::Off));
        assert_eq!(self.results(fast), expected);
    }
}

fn types() -> impl Strategy<Value = WeightType> {
    proptest::sample::select(WeightType::all().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn fast_is_portable(
        ty in types(),
        blocks in 1usize..40,
        rows in 1usize..4,
        cols in 1usize..6,
        kind in proptest::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        let k = match ty.block_len() {
            256 => blocks.div_ceil(8) * 256,
            _ => blocks * 32,
        };
        Case::new(ty, k, rows, cols, kind, seed).check(&mut Dot::new(Simd::Auto));
    }
}

#[test]
fn the_largest_k() {
    for ty in WeightType::all() {
        for (i, kind) in KINDS.into_iter().enumerate() {
            for seed in 0..8 {
                let case = Case::new(ty, 65536, 1, 1, kind, 100 * i as u64 + seed);
                case.check(&mut Dot::new(Simd::Auto));
            }
        }
    }
}

#[test]
fn what_was_held_before_leaves_no_trace() {
    let mut dot = Dot::new(Simd::Auto);
    for (seed, (k, cols)) in [(1024, 3), (32, 5), (288, 1), (2048, 2), (96, 4)]
        .into_iter()
        .enumerate()
    {
        // The scales are not those of the case before, so the path may be another.
        let kind = [Kind::Real, Kind::Random, Kind::Wild][seed % 3];
        let case = Case::new(WeightType::Q4_1, k, 5, cols, kind, seed as u64);
        case.check(&mut dot);
        assert_eq!(dot.held(), Some((k, cols)));
    }
}

#[test]
fn a_tie_goes_to_even_and_the_last_bit_breaks_it() {
    // 1 + 2^-24, half way between two fp32, and one unit of 2^-48 more or less.
    let block = |scale: u16, quant: i8| {
        let mut block = [0u8; Q8_0_BLOCK_BYTES];
        block[..2].copy_from_slice(&scale.to_le_bytes());
        block[2] = quant as u8;
        block
    };
    let (one, least) = (0x3C00, 0x0001);
    for (last, expected) in [(0, 0x3F80_0000), (1, 0x3F80_0001), (-1, 0x3F80_0000)] {
        for simd in [Simd::Off, Simd::Auto] {
            let case = Case {
                ty: WeightType::Q8_0,
                k: 96,
                cols: 1,
                weights: [block(one, 1), block(least, 1), block(least, last)].concat(),
                activations: [block(one, 1), block(one, 1), block(least, 1)].concat(),
            };
            assert_eq!(
                case.results(&mut Dot::new(simd)),
                [expected],
                "{last} {simd:?}"
            );
        }
    }
}
