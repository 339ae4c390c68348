//! The ten weight formats, weight by weight.

/// A weight type: ggml's number, bytes in a block, where its fp16 fields lie, and its weights.
#[derive(Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    pub number: u64,
    pub bytes: usize,
    pub scales: &'static [usize],
    /// Weight `i` of a block as its factors of `d` and of `m`.
    pub weight: fn(&[u8], usize) -> (i128, i128),
}

impl Format {
    /// Weights in a block.
    pub fn weights(&self) -> usize {
        if self.bytes > 34 { 256 } else { 32 }
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The formats as ggml defines them (`ggml-common.h`, `dequantize_row_*`), weight by weight.
#[rustfmt::skip]
pub const FORMATS: [Format; 10] = [
    Format { name: "Q4_0", number: 2, bytes: 18, scales: &[0], weight: |b, i| (nibble(&b[2..], i) - 8, 0) },
    Format { name: "Q4_1", number: 3, bytes: 20, scales: &[0, 2], weight: |b, i| (nibble(&b[4..], i), 1) },
    Format { name: "Q5_0", number: 6, bytes: 22, scales: &[0],
        weight: |b, i| (nibble(&b[6..], i) + 16 * bits(b[2 + i / 8], i % 8, 1) - 16, 0) },
    Format { name: "Q5_1", number: 7, bytes: 24, scales: &[0, 2],
        weight: |b, i| (nibble(&b[8..], i) + 16 * bits(b[4 + i / 8], i % 8, 1), 1) },
    Format { name: "Q8_0", number: 8, bytes: 34, scales: &[0], weight: |b, i| (i128::from(b[2 + i] as i8), 0) },
    Format { name: "Q2_K", number: 10, bytes: 84, scales: &[80, 82], weight: |b, i| {
        let q = bits(b[16 + 32 * (i / 128) + i % 32], 2 * (i % 128 / 32), 2);
        (q * bits(b[i / 16], 0, 4), -bits(b[i / 16], 4, 4))
    } },
    Format { name: "Q3_K", number: 11, bytes: 110, scales: &[108], weight: |b, i| {
        let low = bits(b[32 + 32 * (i / 128) + i % 32], 2 * (i % 128 / 32), 2);
        let q = low - 4 * (1 - bits(b[i % 32], i / 32, 1));
        let j = i / 16;
        let scale = bits(b[96 + j % 8], 4 * (j / 8), 4) + 16 * bits(b[104 + j % 4], 2 * (j / 4), 2);
        (q * (scale - 32), 0)
    } },
    Format { name: "Q4_K", number: 12, bytes: 144, scales: &[0, 2], weight: |b, i| {
        let (scale, minimum) = scale_min(&b[4..16], i / 32);
        (bits(b[16 + 32 * (i / 64) + i % 32], 4 * (i % 64 / 32), 4) * scale, -minimum)
    } },
    Format { name: "Q5_K", number: 13, bytes: 176, scales: &[0, 2], weight: |b, i| {
        let (scale, minimum) = scale_min(&b[4..16], i / 32);
        let low = bits(b[48 + 32 * (i / 64) + i % 32], 4 * (i % 64 / 32), 4);
        ((low + 16 * bits(b[16 + i % 32], i / 32, 1)) * scale, -minimum)
    } },
    Format { name: "Q6_K", number: 14, bytes: 210, scales: &[208], weight: |b, i| {
        let j = i % 128 / 32;
        let low = bits(b[64 * (i / 128) + 32 * (j % 2) + i % 32], 4 * (j / 2), 4);
        let high = bits(b[128 + 32 * (i / 128) + i % 32], 2 * j, 2);
        ((low + 16 * high - 32) * i128::from(b[192 + i / 16] as i8), 0)
    } },
];

fn bits(byte: u8, low: usize, width: usize) -> i128 {
    i128::from(byte >> low) & ((1 << width) - 1)
}

/// Of 16 bytes: weights 0 to 15 in the low nibbles, 16 to 31 in the high ones.
fn nibble(bytes: &[u8], i: usize) -> i128 {
    bits(bytes[i % 16], 4 * (i / 16), 4)
}

/// ggml's `get_scale_min_k4`.
fn scale_min(b: &[u8], j: usize) -> (i128, i128) {
    if j < 4 {
        return (bits(b[j], 0, 6), bits(b[j + 4], 0, 6));
    }
    (
        bits(b[j + 4], 0, 4) + 16 * bits(b[j - 4], 6, 2),
        bits(b[j + 4], 4, 4) + 16 * bits(b[j], 6, 2),
    )
}
