//! Words: the numbers of up to 64 bits that programs can send.
//!
//! A word of the machine has `word_bytes` bytes, for which schedules are priced. The emulated
//! machine carries 64 bits in each, so a program can compute in any precision. Values keep their
//! bits, NaN payloads and the sign of zero included.

mod sealed {
    pub trait Sealed {}
}

/// A number that travels as one word.
pub trait Word: Copy + sealed::Sealed {
    /// The bits that travel.
    fn to_bits(self) -> u64;
    /// The number of the bits that arrived; bits beyond its size are ignored.
    fn from_bits(bits: u64) -> Self;
}

/// The lower 32 bits. A number of 32 bits has its bits there, whatever the upper half is.
#[inline]
#[allow(
    clippy::as_conversions,
    reason = "drops the upper half, which a checked conversion refuses"
)]
pub(crate) fn lower_half(bits: u64) -> u32 {
    bits as u32
}

macro_rules! word {
    ($($number:ty: $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $number {}
        impl Word for $number {
            #[inline]
            fn to_bits(self) -> u64 {
                let to: fn($number) -> u64 = $to;
                to(self)
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                let from: fn(u64) -> $number = $from;
                from(bits)
            }
        }
    )*};
}

word! {
    u64: |x| x, |bits| bits;
    i64: i64::cast_unsigned, u64::cast_signed;
    f64: f64::to_bits, f64::from_bits;
    u32: u64::from, lower_half;
    i32: |x| u64::from(x.cast_unsigned()), |bits| lower_half(bits).cast_signed();
    f32: |x| u64::from(x.to_bits()), |bits| f32::from_bits(lower_half(bits));
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn numbers_keep_their_bits() {
        assert_eq!(<i32 as Word>::from_bits((-7i32).to_bits()), -7);
        assert_eq!(<i64 as Word>::from_bits(i64::MIN.to_bits()), i64::MIN);
        let zero: f32 = Word::from_bits(Word::to_bits(-0.0f32));
        assert!(zero.is_sign_negative());
        let nan = f64::from_bits(0x7ff8_dead_beef_0001);
        assert_eq!(f64::to_bits(Word::from_bits(Word::to_bits(nan))), 0x7ff8_dead_beef_0001);
    }
}
