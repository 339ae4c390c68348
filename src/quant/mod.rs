//! GGUF's block formats: which there are and how large their blocks are.

mod activations;

pub use activations::{Q8_0_BLOCK_BYTES, Q8_0_BLOCK_LEN, q8_0_row_bytes, quantize_q8_0};

use std::fmt;
use std::str::FromStr;

/// A weight type of the streaming kernel.
///
/// The discriminant is ggml's number of the type (`enum ggml_type`), which is also what a GGUF
/// file and the job header hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(non_camel_case_types)]
pub enum WeightType {
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
}

/// One row a type: the type, its name in GGUF, weights in a block, bytes of a block
/// (`docs/stream.md`; source: the block structs of ggml).
const TYPES: [(WeightType, &str, usize, usize); 10] = [
    (WeightType::Q4_0, "Q4_0", 32, 18),
    (WeightType::Q4_1, "Q4_1", 32, 20),
    (WeightType::Q5_0, "Q5_0", 32, 22),
    (WeightType::Q5_1, "Q5_1", 32, 24),
    (WeightType::Q8_0, "Q8_0", 32, 34),
    (WeightType::Q2_K, "Q2_K", 256, 84),
    (WeightType::Q3_K, "Q3_K", 256, 110),
    (WeightType::Q4_K, "Q4_K", 256, 144),
    (WeightType::Q5_K, "Q5_K", 256, 176),
    (WeightType::Q6_K, "Q6_K", 256, 210),
];

impl WeightType {
    /// All types, by number.
    pub fn all() -> impl Iterator<Item = WeightType> {
        TYPES.iter().map(|t| t.0)
    }

    /// The type with ggml's number `n`, if the kernel's contract knows it.
    pub fn from_ggml(n: u32) -> Option<WeightType> {
        Self::all().find(|t| t.ggml() == n)
    }

    /// ggml's number of this type.
    pub const fn ggml(self) -> u32 {
        self as u32
    }

    /// This type's bit in the kernel's `CAP_TYPES` register.
    pub const fn mask(self) -> u32 {
        1 << self.ggml()
    }

    fn row(self) -> &'static (WeightType, &'static str, usize, usize) {
        TYPES
            .iter()
            .find(|t| t.0 == self)
            .expect("every variant has its row in TYPES")
    }

    /// The name GGUF tools use, such as `Q4_K`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Weights in one block.
    pub fn block_len(self) -> usize {
        self.row().2
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        self.row().3
    }

    /// Bytes of a row of `k` weights, or `None` if `k` is not a whole number of blocks.
    pub fn row_bytes(self, k: usize) -> Option<usize> {
        k.is_multiple_of(self.block_len())
            .then(|| k / self.block_len() * self.block_bytes())
    }
}

impl fmt::Display for WeightType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WeightType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        TYPES
            .iter()
            .find(|t| t.1 == s)
            .map(|t| t.0)
            .ok_or_else(|| format!("unknown weight type {s:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_found_by_name_and_number() {
        for t in WeightType::all() {
            assert_eq!(WeightType::from_ggml(t.ggml()), Some(t));
            assert_eq!(t.name().parse(), Ok(t));
        }
        assert_eq!(WeightType::from_ggml(1), None);
        assert!("Q9_9".parse::<WeightType>().is_err());
    }

    #[test]
    fn row_bytes_wants_whole_blocks() {
        assert_eq!(WeightType::Q4_1.row_bytes(576), Some(360));
        assert_eq!(WeightType::Q6_K.row_bytes(512), Some(420));
        assert_eq!(WeightType::Q6_K.row_bytes(576), None);
    }
}
