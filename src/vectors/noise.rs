//! Random numbers that stay the same from version to version, since vectors name their seeds.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators").
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// The numbers of `seed` and whatever tells this sequence from others of the same seed.
    pub fn new(seed: u64, key: &[u64]) -> Noise {
        let mut noise = Noise(seed);
        for part in key {
            noise = Noise(noise.next() ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        }
        noise
    }

    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// One of `items`, of which there is one.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// `k` activations as large as a model's: each 32 have a magnitude of their own.
    pub fn activations(&mut self, k: usize) -> Vec<f32> {
        let mut exponent = 0;
        let value = |i: usize| {
            if i.is_multiple_of(32) {
                exponent = 118 + self.below(12) as u32;
            }
            let bits = self.next();
            let lower = (bits >> 24 & 7) as u32;
            let fraction = (bits & 0x7F_FFFF) as u32;
            let sign = (bits >> 63) as u32;
            f32::from_bits((sign << 31) + ((exponent - lower) << 23) + fraction)
        };
        (0..k).map(value).collect()
    }
}
