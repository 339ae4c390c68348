//! Exact dot products of weight rows with the held activation columns.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod exact;
mod formats;
mod portable;
#[cfg(test)]
mod tests;

use super::Simd;
use crate::quant::{WeightType, q8_0_row_bytes};

/// Activation columns, prepared once for all rows of the jobs that use them, and what multiplies
/// them.
pub struct Dot {
    /// k and the number of columns held.
    held: Option<(usize, usize)>,
    portable: portable::Columns,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<avx2::Columns>,
}

impl Dot {
    pub fn new(simd: Simd) -> Dot {
        Dot {
            held: None,
            portable: portable::Columns::default(),
            #[cfg(target_arch = "x86_64")]
            avx2: match simd {
                Simd::Auto => avx2::Columns::new(),
                Simd::Off => None,
            },
        }
    }

    /// Holds `cols` columns of `k` activations, Q8_0 blocks one column after the other.
    pub fn hold(&mut self, bytes: &[u8], k: usize, cols: usize) {
        let row_bytes = q8_0_row_bytes(k);
        self.held = Some((k, cols));
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = &mut self.avx2 {
            avx2.load(bytes, row_bytes);
            if avx2.take_every_type() {
                return;
            }
        }
        self.portable.load(bytes, row_bytes);
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
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = &self.avx2
            && avx2.rows(ty, rows, row_bytes, out)
        {
            return;
        }
        self.portable.rows(ty, rows, row_bytes, out);
    }
}
