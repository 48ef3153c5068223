//! Words: the numbers of up to 64 bits that programs can send.
//!
//! A word of the machine has `word_bytes` bytes, for which schedules are priced. The emulated
//! machine carries 64 bits in each, so a program can compute in any precision. Threads and MPI
//! carry a word in as many bytes as its number has. Values keep their bits, NaN payloads and the
//! sign of zero included.
//!
//! A complex number is two words (a block of 2), which take the same bytes as one word of 16.

mod sealed {
    pub trait Sealed {}
}

/// A number that travels as one word.
pub trait Word: Copy + sealed::Sealed {
    /// The place of the type in the list of all.
    #[doc(hidden)]
    const TYPE: usize;
    /// The bits that travel.
    fn to_bits(self) -> u64;
    /// The number of the bits that arrived; bits beyond its size are ignored.
    fn from_bits(bits: u64) -> Self;
    /// Writes the bytes that travel; there are as many as the number has.
    #[doc(hidden)]
    fn write_to(self, wire: &mut [u8]);
    /// The number of the bytes that arrived; there are as many as it has.
    #[doc(hidden)]
    fn read_from(wire: &[u8]) -> Self;
}

/// The types of words, and their bytes, by [`Word::TYPE`].
pub(crate) const TYPES: [(&str, usize); 10] = [
    ("u64", 8),
    ("i64", 8),
    ("f64", 8),
    ("u32", 4),
    ("i32", 4),
    ("f32", 4),
    ("u16", 2),
    ("i16", 2),
    ("u8", 1),
    ("i8", 1),
];

/// Sizes of words: 1, 2, 4 and 8 bytes.
#[cfg(feature = "mpi")]
pub(crate) const SIZES: u64 = 4;

/// The bytes of numbers.
pub(crate) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: numbers are bytes without gaps, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes of words.
#[inline]
pub(crate) fn bytes_of<W: Word>(words: &[W]) -> &[u8] {
    // SAFETY: the only types of words are numbers, which are bytes without gaps; bytes have no
    // alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The words of bytes of any alignment; bytes that are no whole word are left out.
pub(crate) fn words_from<W: Word>(bytes: &[u8]) -> Vec<W> {
    bytes.chunks_exact(size_of::<W>()).map(W::read_from).collect()
}

/// The bytes of numbers, to be written.
pub(crate) fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as above; any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// Copies bytes to others that are as many.
///
/// `memcpy` moves more than some kilobytes by string instructions. On AMD EPYC these take ten to twenty
/// times as long where the target lies 1 to 31 bytes after the source, counted within their pages. A
/// kilobyte at a time is copied by vector registers, and as fast everywhere.
#[inline]
pub(crate) fn copy_bytes(to: &mut [u8], from: &[u8]) {
    const AT_A_TIME: usize = 1 << 10;
    assert_eq!(to.len(), from.len(), "as many bytes");
    let chunks = to.chunks_mut(AT_A_TIME).zip(from.chunks(AT_A_TIME));
    chunks.for_each(|(to, from)| to.copy_from_slice(from));
}

/// The bits of a word of any size.
pub(crate) fn bits_of(word: &[u8]) -> u64 {
    match word.len() {
        1 => u8::read_from(word).to_bits(),
        2 => u16::read_from(word).to_bits(),
        4 => u32::read_from(word).to_bits(),
        _ => u64::read_from(word),
    }
}

/// Writes the bits of a word of any size.
pub(crate) fn put_bits(word: &mut [u8], bits: u64) {
    match word.len() {
        1 => u8::from_bits(bits).write_to(word),
        2 => u16::from_bits(bits).write_to(word),
        4 => u32::from_bits(bits).write_to(word),
        _ => bits.write_to(word),
    }
}

/// The lower bits, as many as fit.
macro_rules! lower {
    ($name:ident, $number:ty) => {
        #[inline]
        #[allow(
            clippy::as_conversions,
            reason = "drops the upper bits, which a checked conversion refuses"
        )]
        pub(crate) fn $name(bits: u64) -> $number {
            bits as $number
        }
    };
}

lower!(lower_half, u32);
lower!(lower_quarter, u16);
lower!(lower_byte, u8);

macro_rules! word {
    ($($place:literal $number:ty: $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $number {}
        impl Word for $number {
            const TYPE: usize = $place;
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
            #[inline]
            fn write_to(self, wire: &mut [u8]) {
                wire.copy_from_slice(&self.to_ne_bytes());
            }
            #[inline]
            fn read_from(wire: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(wire);
                Self::from_ne_bytes(bytes)
            }
        }
    )*};
}

word! {
    0 u64: |x| x, |bits| bits;
    1 i64: i64::cast_unsigned, u64::cast_signed;
    2 f64: f64::to_bits, f64::from_bits;
    3 u32: u64::from, lower_half;
    4 i32: |x| u64::from(x.cast_unsigned()), |bits| lower_half(bits).cast_signed();
    5 f32: |x| u64::from(x.to_bits()), |bits| f32::from_bits(lower_half(bits));
    6 u16: u64::from, lower_quarter;
    7 i16: |x| u64::from(x.cast_unsigned()), |bits| lower_quarter(bits).cast_signed();
    8 u8: u64::from, lower_byte;
    9 i8: |x| u64::from(x.cast_unsigned()), |bits| lower_byte(bits).cast_signed();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_bits() {
        assert_eq!(<i32 as Word>::from_bits((-7i32).to_bits()), -7);
        assert_eq!(<i64 as Word>::from_bits(i64::MIN.to_bits()), i64::MIN);
        assert_eq!(<i16 as Word>::from_bits((-7i16).to_bits()), -7);
        assert_eq!(<i8 as Word>::from_bits((-7i8).to_bits() | 0x100), -7);
        let zero: f32 = Word::from_bits(Word::to_bits(-0.0f32));
        assert!(zero.is_sign_negative());
        let nan = f64::from_bits(0x7ff8_dead_beef_0001);
        assert_eq!(f64::to_bits(Word::from_bits(Word::to_bits(nan))), 0x7ff8_dead_beef_0001);
    }

    #[test]
    fn bytes_are_copied_wherever_they_lie() {
        let from: Vec<u8> = (0..9000u32).map(|i| lower_byte(u64::from(i * i / 7))).collect();
        let mut to = vec![0; 3 * 9000];
        for apart in (0..70).chain([4095, 4096]) {
            // The target lies so many bytes after the source, counted within pages.
            let own = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()) % 4096;
            let start = (4096 + apart - own) % 4096;
            to.fill(1);
            copy_bytes(&mut to[start..start + 8999], &from[..8999]);
            assert_eq!(to[start..start + 8999], from[..8999]);
            assert_eq!(to[start + 8999], 1);
        }
    }

    #[test]
    fn bytes_on_the_wire_are_those_of_the_number() {
        fn check<W: Word + PartialEq + std::fmt::Debug>(words: &[W]) {
            assert_eq!(TYPES[W::TYPE], (std::any::type_name::<W>(), size_of::<W>()));
            for &word in words {
                let mut wire = vec![0; size_of::<W>()];
                word.write_to(&mut wire);
                assert_eq!(W::read_from(&wire), word);
                assert_eq!(bits_of(&wire), word.to_bits());
                let mut again = vec![0xff; size_of::<W>()];
                put_bits(&mut again, word.to_bits());
                assert_eq!(again, wire);
            }
        }
        check(&[0u8, 1, u8::MAX]);
        check(&[i8::MIN, -1, 5]);
        check(&[u16::MAX, 7]);
        check(&[i16::MIN, -2]);
        check(&[u32::MAX, 9]);
        check(&[i32::MIN, -3]);
        check(&[-0.0f32, 1.5]);
        check(&[u64::MAX, 11]);
        check(&[i64::MIN, -4]);
        check(&[-0.0f64, 1.25]);
    }
}
