//! Exact dot products in plain integers: the reference that the fast paths are held to.

use super::exact::{NAN, fixed, round};
use super::formats::{self, Block, GROUP};
use crate::quant::{Q8_0_BLOCK_BYTES, Q8_0_BLOCK_LEN, WeightType};

/// The activation columns of a job.
#[derive(Default)]
pub struct Columns(Vec<Column>);

struct Column {
    /// k quants.
    quants: Vec<i8>,
    /// One for each 32 quants, in units of 2^-24; `None` if one is not finite.
    scales: Option<Vec<i64>>,
}

impl Columns {
    /// Reads columns of `row_bytes` bytes of Q8_0 blocks each.
    pub fn load(&mut self, bytes: &[u8], row_bytes: usize) {
        self.0.clear();
        self.0.extend(bytes.chunks_exact(row_bytes).map(|column| {
            let blocks = column.chunks_exact(Q8_0_BLOCK_BYTES);
            let scale = |block: &[u8]| fixed(u16::from_le_bytes([block[0], block[1]]));
            Column {
                scales: blocks.clone().map(scale).collect(),
                quants: blocks
                    .flat_map(|block| block[2..].iter().map(|q| *q as i8))
                    .collect(),
            }
        }));
    }

    /// One result for each column, of one weight row.
    fn row(&self, ty: WeightType, row: &[u8], sums: &mut Vec<i128>, out: &mut [f32]) {
        sums.clear();
        sums.resize(self.0.len(), 0);
        let decode = formats::decoder(ty);
        let mut block = Block::default();
        let mut finite = true;
        for (i, bytes) in row.chunks_exact(ty.block_bytes()).enumerate() {
            decode(bytes, &mut block);
            let (Some(d), Some(m)) = (fixed(block.d), fixed(block.m)) else {
                finite = false;
                break;
            };
            for (column, sum) in self.0.iter().zip(sums.iter_mut()) {
                if let Some(scales) = &column.scales {
                    let at = i * ty.block_len();
                    let quants = &column.quants[at..at + ty.block_len()];
                    *sum += dot_block(&block, d, m, quants, &scales[at / Q8_0_BLOCK_LEN..]);
                }
            }
        }
        for ((column, sum), out) in self.0.iter().zip(sums).zip(out) {
            *out = match finite && column.scales.is_some() {
                true => round(*sum),
                false => NAN,
            };
        }
    }

    /// `rows` of `row_bytes` bytes; `out` is [rows][columns].
    pub fn rows(&self, ty: WeightType, rows: &[u8], row_bytes: usize, out: &mut [f32]) {
        let mut sums = Vec::new();
        let results = out.chunks_exact_mut(self.0.len());
        for (row, out) in rows.chunks_exact(row_bytes).zip(results) {
            self.row(ty, row, &mut sums, out);
        }
    }
}

/// The block's part of a sum, in units of 2^-48. `scales`: of the column, from this block on.
fn dot_block(block: &Block, d: i64, m: i64, quants: &[i8], scales: &[i64]) -> i128 {
    let groups = quants.chunks_exact(GROUP).zip(block.q.chunks_exact(GROUP));
    let mut sum = 0;
    for (g, (x, q)) in groups.enumerate() {
        let products = x.iter().zip(q).map(|(x, q)| i64::from(*x) * i64::from(*q));
        let dot = products.sum::<i64>() * i64::from(block.scales[g]);
        let total = x.iter().map(|x| i64::from(*x)).sum::<i64>() * i64::from(block.mins[g]);
        let weighted = i128::from(d) * i128::from(dot) + i128::from(m) * i128::from(total);
        sum += i128::from(scales[g * GROUP / Q8_0_BLOCK_LEN]) * weighted;
    }
    sum
}
