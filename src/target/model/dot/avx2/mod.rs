//! Exact dot products with AVX2, FMA and F16C.
//!
//! Weights are taken in groups of 256. The integer products of each 32 are summed in integers; the
//! scales multiply those sums in f64, where every product is exact; the sums of these are kept
//! exact in two levels ([`sum`]). One file holds a family of types: how the bytes of a group become
//! 8-bit quants and scales ([`Kernel::load`]), and how they meet a column ([`Kernel::dot`]).

mod columns;
mod halves;
mod lanes;
mod q8_0;
mod sum;
mod superblocks;

pub use columns::Columns;

use columns::Group;
use sum::Sum;

use crate::quant::WeightType;

/// Blocks of 32 weights in a group.
const BLOCKS: usize = 8;

/// How many bytes ahead of their use weights are asked for: less than a page, more than the
/// memory's latency lets through meanwhile.
const PREFETCH: usize = 2048;

/// Columns that a group's weights meet once they are in registers.
const TILE: usize = 4;

/// A weight type's part in the dot product.
///
/// # Safety
/// Of both methods: the processor has AVX2, FMA and F16C.
trait Kernel {
    /// Bytes of 32 weights, or of 256 in the types that have no smaller block.
    const BLOCK_BYTES: usize;
    /// Blocks of `BLOCK_BYTES` in a group.
    const BLOCKS: usize;
    /// The integer sum of 32 products with their integer scales, that of the minima added, is less
    /// than 2^TERM_BITS.
    const TERM_BITS: u32;
    /// A group's weights in registers.
    type Weights;

    /// Loads the `N` blocks (1 to [`Kernel::BLOCKS`]) that `bytes` holds.
    unsafe fn load<const N: usize>(bytes: &[u8]) -> Self::Weights;

    /// Adds the products of a group with a column's. Weights that are not there count 0.
    unsafe fn dot<const N: usize>(weights: &Self::Weights, x: &Group, sum: &mut Sum);
}

/// Whether this machine has what the code here needs.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

/// The most that a type's [`Kernel::TERM_BITS`] are.
const MOST_TERM_BITS: u32 = 24;

/// Whether columns with scales up to `largest` in magnitude keep every term within what [`Sum`]
/// takes: with fp16 scales of the weights, less than 2^16, and integer sums of `term_bits` bits.
fn fits(term_bits: u32, largest: f64) -> bool {
    largest * 2f64.powi(16 + term_bits as i32) <= sum::LARGEST_TERM
}

impl Columns {
    /// Writes the results of whole weight rows, [rows][columns], and gives true; or gives false
    /// where the columns' scales are too large for this type.
    pub fn rows(&self, ty: WeightType, rows: &[u8], row_bytes: usize, out: &mut [f32]) -> bool {
        let run = match ty {
            WeightType::Q4_0 => Columns::run::<halves::Q4_0>,
            WeightType::Q4_1 => Columns::run::<halves::Q4_1>,
            WeightType::Q5_0 => Columns::run::<halves::Q5_0>,
            WeightType::Q5_1 => Columns::run::<halves::Q5_1>,
            WeightType::Q8_0 => Columns::run::<q8_0::Q8_0>,
            WeightType::Q2_K => Columns::run::<superblocks::Q2K>,
            WeightType::Q3_K => Columns::run::<superblocks::Q3K>,
            WeightType::Q4_K => Columns::run::<superblocks::Q4K>,
            WeightType::Q5_K => Columns::run::<superblocks::Q5K>,
            WeightType::Q6_K => Columns::run::<superblocks::Q6K>,
        };
        run(self, rows, row_bytes, out)
    }

    /// Whether [`Columns::rows`] gives true for every type.
    pub fn take_every_type(&self) -> bool {
        fits(MOST_TERM_BITS, self.largest_scale())
    }

    fn run<K: Kernel>(&self, rows: &[u8], row_bytes: usize, out: &mut [f32]) -> bool {
        const { assert!(K::TERM_BITS <= MOST_TERM_BITS) };
        if !fits(K::TERM_BITS, self.largest_scale()) {
            return false;
        }
        // SAFETY: columns are made only where `is_supported`.
        unsafe { self.run_supported::<K>(rows, row_bytes, out) };
        true
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn run_supported<K: Kernel>(&self, rows: &[u8], row_bytes: usize, out: &mut [f32]) {
        let tiled = self.len() / TILE * TILE;
        // SAFETY: the caller's promise.
        unsafe {
            for first in (0..tiled).step_by(TILE) {
                self.run_tile::<K>(first, rows, row_bytes, out);
            }
            for column in tiled..self.len() {
                self.run_column::<K>(column, rows, row_bytes, out);
            }
        }
    }

    /// Writes the results of column `n`.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn run_column<K: Kernel>(
        &self,
        n: usize,
        rows: &[u8],
        row_bytes: usize,
        out: &mut [f32],
    ) {
        let (column, finite) = (self.column(n), self.is_finite(n));
        let results = out.chunks_exact_mut(self.len());
        for (row, out) in rows.chunks_exact(row_bytes).zip(results) {
            let mut sum = [Sum::ZERO];
            let groups = row.chunks_exact(K::BLOCK_BYTES * K::BLOCKS);
            let tail = groups.remainder();
            // SAFETY: the caller's promise.
            unsafe {
                for (bytes, x) in groups.zip(column) {
                    lanes::prefetch(bytes, PREFETCH);
                    add_group::<K, BLOCKS, 1>(bytes, [x], &mut sum);
                }
                if let (false, Some(x)) = (tail.is_empty(), column.last()) {
                    add_tail::<K, 1>(tail, [x], &mut sum);
                }
            }
            out[n] = sum[0].round(finite);
        }
    }

    /// Writes the results of columns `first..first + TILE`.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn run_tile<K: Kernel>(
        &self,
        first: usize,
        rows: &[u8],
        row_bytes: usize,
        out: &mut [f32],
    ) {
        let columns: [&[Group]; TILE] = std::array::from_fn(|c| self.column(first + c));
        let results = out.chunks_exact_mut(self.len());
        for (row, out) in rows.chunks_exact(row_bytes).zip(results) {
            let mut sums = [Sum::ZERO; TILE];
            let groups = row.chunks_exact(K::BLOCK_BYTES * K::BLOCKS);
            let (tail, whole) = (groups.remainder(), groups.len());
            // SAFETY: the caller's promise.
            unsafe {
                for (g, bytes) in groups.enumerate() {
                    add_group::<K, BLOCKS, TILE>(bytes, columns.map(|c| &c[g]), &mut sums);
                }
                if !tail.is_empty() {
                    add_tail::<K, TILE>(tail, columns.map(|c| &c[whole]), &mut sums);
                }
            }
            for (c, sum) in sums.iter().enumerate() {
                out[first + c] = sum.round(self.is_finite(first + c));
            }
        }
    }
}

/// Adds the products of a group's `N` blocks with one group of each of `C` columns.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_group<K: Kernel, const N: usize, const C: usize>(
    bytes: &[u8],
    columns: [&Group; C],
    sums: &mut [Sum; C],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let weights = K::load::<N>(bytes);
        for (x, sum) in columns.into_iter().zip(sums) {
            K::dot::<N>(&weights, x, sum);
        }
    }
}

/// As [`add_group`], of the fewer blocks at a row's end.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_tail<K: Kernel, const C: usize>(
    bytes: &[u8],
    columns: [&Group; C],
    sums: &mut [Sum; C],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes.len() / K::BLOCK_BYTES {
            1 => add_group::<K, 1, C>(bytes, columns, sums),
            2 => add_group::<K, 2, C>(bytes, columns, sums),
            3 => add_group::<K, 3, C>(bytes, columns, sums),
            4 => add_group::<K, 4, C>(bytes, columns, sums),
            5 => add_group::<K, 5, C>(bytes, columns, sums),
            6 => add_group::<K, 6, C>(bytes, columns, sums),
            _ => add_group::<K, 7, C>(bytes, columns, sums),
        }
    }
}
