//! Exact dot products of weight rows with the held activation columns.

mod exact;
mod formats;
mod portable;

use super::Simd;
use crate::quant::{WeightType, q8_0_row_bytes};

/// Activation columns, prepared once for all rows of the jobs that use them, and what multiplies
/// them.
pub struct Dot {
    /// k and the number of columns held.
    held: Option<(usize, usize)>,
    columns: portable::Columns,
}

impl Dot {
    pub fn new(_simd: Simd) -> Dot {
        Dot {
            held: None,
            columns: portable::Columns::default(),
        }
    }

    /// Holds `cols` columns of `k` activations, Q8_0 blocks one column after the other.
    pub fn hold(&mut self, bytes: &[u8], k: usize, cols: usize) {
        self.columns.load(bytes, q8_0_row_bytes(k));
        self.held = Some((k, cols));
    }

    /// Holds nothing any more.
    pub fn forget(&mut self) {
        self.held = None;
    }

    /// k and the number of columns held.
    pub fn held(&self) -> Option<(usize, usize)> {
        self.held
    }

    /// The results of whole weight rows with every column held, [rows][columns].
    pub fn rows(&self, ty: WeightType, rows: &[u8], row_bytes: usize, out: &mut [f32]) {
        self.columns.rows(ty, rows, row_bytes, out);
    }
}
