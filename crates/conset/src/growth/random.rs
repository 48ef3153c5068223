//! Random numbers as functions of a counter: number `i` of a stream is the same whoever asks for
//! it.
//!
//! Cells that draw a random number for a bond between two of them must draw the same number, and
//! the number must not depend on what was drawn before. So there is no state: number `i` is the
//! output of SplitMix64 (Steele, Lea and Flood, 2014) after `i` steps from the state that the seed
//! and the stream select.

use conset_ir::convert::to_f64;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// Stream `number` of a seed.
    #[must_use]
    pub fn new(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed ^ GAMMA) ^ number.wrapping_mul(GAMMA)))
    }

    fn bits(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// A number in 0..1.
    #[must_use]
    pub fn uniform(self, number: u64) -> f64 {
        to_f64(self.bits(number) >> 11) / to_f64(1_u64 << 53)
    }

    /// A whole number below `limit`; 0 if that is 0.
    #[must_use]
    pub fn below(self, number: u64, limit: u32) -> u32 {
        // The upper half of a product with 32 random bits is below the limit.
        let product = (self.bits(number) >> 32) * u64::from(limit);
        u32::try_from(product >> 32).unwrap_or(0)
    }
}

/// The finaliser of `SplitMix64`: a hash of 64 bits.
#[must_use]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
