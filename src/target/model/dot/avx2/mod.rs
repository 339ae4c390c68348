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
        let results = out.chunks_exact_mut(self.len());
        for (row, out) in rows.chunks_exact(row_bytes).zip(results) {
            for (column, out) in out.iter_mut().enumerate() {
                let sum = unsafe { row_sum::<K>(row, self.column(column)) };
                *out = sum.round(self.is_finite(column));
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn row_sum<K: Kernel>(row: &[u8], column: &[Group]) -> Sum {
    let mut sum = Sum::new();
    let groups = row.chunks_exact(K::BLOCK_BYTES * K::BLOCKS);
    let tail = groups.remainder();
    for (bytes, x) in groups.zip(column) {
        lanes::prefetch(bytes, PREFETCH);
        unsafe {
            let weights = K::load::<BLOCKS>(bytes);
            K::dot::<BLOCKS>(&weights, x, &mut sum);
        }
    }
    if let (false, Some(x)) = (tail.is_empty(), column.last()) {
        unsafe {
            match tail.len() / K::BLOCK_BYTES {
                1 => add_tail::<K, 1>(tail, x, &mut sum),
                2 => add_tail::<K, 2>(tail, x, &mut sum),
                3 => add_tail::<K, 3>(tail, x, &mut sum),
                4 => add_tail::<K, 4>(tail, x, &mut sum),
                5 => add_tail::<K, 5>(tail, x, &mut sum),
                6 => add_tail::<K, 6>(tail, x, &mut sum),
                _ => add_tail::<K, 7>(tail, x, &mut sum),
            }
        }
    }
    sum
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_tail<K: Kernel, const N: usize>(bytes: &[u8], x: &Group, sum: &mut Sum) {
    unsafe {
        let weights = K::load::<N>(bytes);
        K::dot::<N>(&weights, x, sum);
    }
}
