//! Values of any width.

use std::fmt;

/// A value of some number of bits, as a port carries it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Bits {
    width: usize,
    /// Little-endian; bits above the width are 0.
    bytes: Vec<u8>,
}

impl Bits {
    /// `width` bits, all 0.
    pub fn zero(width: usize) -> Bits {
        Bits {
            width,
            bytes: vec![0; width.div_ceil(8)],
        }
    }

    /// Eight bits a byte, the first byte lowest.
    pub fn from_bytes(bytes: &[u8]) -> Bits {
        Bits {
            width: 8 * bytes.len(),
            bytes: bytes.to_vec(),
        }
    }

    /// With the low `width` (at most 128) bits of `value` in the bits from `low` on.
    ///
    /// # Panics
    /// Where the field is not inside the value.
    pub fn with(mut self, low: usize, width: usize, value: u128) -> Bits {
        assert!(
            width <= 128 && low + width <= self.width,
            "bits {low} to {} of {}",
            low + width - 1,
            self.width
        );
        for i in 0..width {
            let mask = 1 << ((low + i) % 8);
            let byte = &mut self.bytes[(low + i) / 8];
            if value >> i & 1 == 1 {
                *byte |= mask;
            } else {
                *byte &= !mask;
            }
        }
        self
    }

    /// The `width` (at most 128) bits from `low` on.
    ///
    /// # Panics
    /// Where the field is not inside the value.
    pub fn field(&self, low: usize, width: usize) -> u128 {
        assert!(
            width <= 128 && low + width <= self.width,
            "bits {low} to {} of {}",
            low + width - 1,
            self.width
        );
        (0..width).fold(0, |value, i| {
            let bit = self.bytes[(low + i) / 8] >> ((low + i) % 8) & 1;
            value | u128::from(bit) << i
        })
    }

    /// The `width` bits from `low` on, as a two's complement number.
    pub fn signed(&self, low: usize, width: usize) -> i128 {
        let above = 128 - width;
        (self.field(low, width) << above) as i128 >> above
    }

    /// The low `width` bits, not more than there are.
    pub(crate) fn cut(mut self, width: usize) -> Bits {
        self.width = width;
        self
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// As Verilog writes it, so that a failing value can be pasted.
impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}'h", self.width)?;
        self.bytes
            .iter()
            .rev()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
