//! Vectors whose entries are exchanged, as bytes: packing and unpacking at lists of positions.
//!
//! An entry is a block of numbers, which travels as it is. Nothing here depends on the numbers'
//! type, only on the bytes of an entry.

use conset_ir::convert::index;

mod sealed {
    pub trait Sealed {}
}

/// A number that travels as it is: in as many bytes as it has in memory. Complex numbers are pairs
/// (`[f64; 2]`).
///
/// # Safety
/// All bit patterns are values, and there are no padding bytes.
pub unsafe trait Pod: Copy + 'static + sealed::Sealed {}

macro_rules! pod {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}
        // SAFETY: a number.
        unsafe impl Pod for $number {}
    )*};
}
pod!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);

impl<T: Pod, const N: usize> sealed::Sealed for [T; N] {}
// SAFETY: numbers one after the other.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// Positions of a vector, in the order in which their entries travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    /// Contiguous ones.
    Run {
        start: u32,
        len: u32,
    },
    Any(Vec<u32>),
}

impl Positions {
    pub(super) fn new(positions: Vec<u32>) -> Self {
        let is_run = positions.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match positions.first() {
            Some(&start) if is_run => {
                Self::Run { start, len: conset_ir::convert::to_u32(positions.len()) }
            }
            _ => Self::Any(positions),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run { len, .. } => index(*len),
            Self::Any(positions) => positions.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (run, any) = match self {
            Self::Run { start, len } => (*start..start + len, &[][..]),
            Self::Any(positions) => (0..0, &positions[..]),
        };
        run.chain(any.iter().copied())
    }

    /// The first position if they are contiguous.
    pub(super) fn run_start(&self) -> Option<u32> {
        match self {
            Self::Run { start, .. } => Some(*start),
            Self::Any(_) => None,
        }
    }
}

/// A vector: its address and the bytes of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawField {
    pub(super) base: *mut u8,
    pub(super) entry: usize,
}

/// Copies entries between a vector and a buffer, in either direction.
macro_rules! copy_entries {
    ($field:expr, $positions:expr, $buffer:expr, |$place:ident, $packed:ident, $bytes:ident| $copy:expr) => {{
        let (field, buffer) = ($field, $buffer);
        match $positions {
            Positions::Run { start, len } => {
                let $place = field.base.add(index(*start) * field.entry);
                let ($packed, $bytes) = (buffer, index(*len) * field.entry);
                $copy
            }
            Positions::Any(positions) => {
                macro_rules! each {
                    ($size:expr) => {{
                        let $bytes = $size;
                        let mut $packed = buffer;
                        for &position in positions {
                            let $place = field.base.add(index(position) * $bytes);
                            $copy;
                            $packed = $packed.add($bytes);
                        }
                    }};
                }
                // With a size that is known here a copy is one or two instructions.
                match field.entry {
                    1 => each!(1),
                    2 => each!(2),
                    4 => each!(4),
                    8 => each!(8),
                    16 => each!(16),
                    24 => each!(24),
                    32 => each!(32),
                    40 => each!(40),
                    48 => each!(48),
                    other => each!(other),
                }
            }
        }
    }};
}

impl RawField {
    /// Copies entries into a buffer.
    ///
    /// # Safety
    /// The vector has the positions, and the buffer room for their entries; they do not overlap.
    pub(super) unsafe fn pack(self, positions: &Positions, buffer: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            copy_entries!(self, positions, buffer, |place, packed, bytes| {
                std::ptr::copy_nonoverlapping(place.cast_const(), packed, bytes);
            });
        }
    }

    /// Copies entries out of a buffer.
    ///
    /// # Safety
    /// As [`RawField::pack`].
    pub(super) unsafe fn unpack(self, positions: &Positions, buffer: *const u8) {
        // SAFETY: the caller's promise.
        unsafe {
            copy_entries!(self, positions, buffer, |place, packed, bytes| {
                std::ptr::copy_nonoverlapping(packed, place, bytes);
            });
        }
    }
}

/// A vector of several that are exchanged together.
#[derive(Debug)]
pub struct Field<'a> {
    pub(super) raw: RawField,
    /// Numbers of the vector, and of an entry.
    pub(super) numbers: usize,
    pub(super) block: usize,
    vector: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a> Field<'a> {
    /// A vector with `block` numbers for each entry.
    pub fn new<T: Pod>(vector: &'a mut [T], block: usize) -> Self {
        let entry = size_of::<T>().saturating_mul(block);
        Self {
            raw: RawField { base: vector.as_mut_ptr().cast(), entry },
            numbers: vector.len(),
            block,
            vector: std::marker::PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Positions, RawField};

    #[test]
    fn entries_of_any_size_come_back() {
        for entry in 1..60usize {
            let vector: Vec<u8> = (0..20 * entry).map(|i| u8::try_from(i % 251).unwrap()).collect();
            for positions in [vec![3, 4, 5, 6], vec![19, 0, 7], vec![], vec![2]] {
                let positions = Positions::new(positions);
                let (mut from, mut to) = (vector.clone(), vec![0; vector.len()]);
                let mut buffer = vec![0u8; positions.len() * entry];
                // SAFETY: both vectors have 20 entries, the buffer one for each position.
                unsafe {
                    let from = RawField { base: from.as_mut_ptr(), entry };
                    from.pack(&positions, buffer.as_mut_ptr());
                    let to = RawField { base: to.as_mut_ptr(), entry };
                    to.unpack(&positions, buffer.as_ptr());
                }
                for (at, row) in to.chunks(entry).enumerate() {
                    let there = positions.iter().any(|position| position as usize == at);
                    let expected = &vector[at * entry..][..entry];
                    assert!(if there { row == expected } else { row.iter().all(|&b| b == 0) });
                }
            }
        }
    }

    #[test]
    fn contiguous_positions_are_a_run() {
        assert_eq!(Positions::new(vec![5, 6, 7]), Positions::Run { start: 5, len: 3 });
        assert_eq!(Positions::new(vec![5, 7, 6]).run_start(), None);
        assert!(Positions::new(vec![u32::MAX, 0]).run_start().is_none());
        assert_eq!(Positions::new(vec![]).len(), 0);
        assert_eq!(Positions::new(vec![4, 5]).iter().collect::<Vec<_>>(), [4, 5]);
    }
}
