//! What is done with a value that arrives where one is already.
//!
//! The results are the same bits on every transport and in every run: the order of operations is
//! fixed by layout and tree, and each operation by its operands. Integers wrap. The least and the
//! greatest of floating point numbers know that -0 is below +0, and a NaN is never lost: where one
//! operand is a NaN, the result is it. (Which bits the *sum* of two NaNs has, no machine promises.)

use crate::word::Word;

/// What becomes of a value at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// It replaces what is there.
    Copy,
    /// It is added to what is there.
    Add,
    /// The lesser of the two stays.
    Min,
    /// The greater of the two stays.
    Max,
}

/// A word that can be added and compared.
pub trait Number: Word {
    /// The sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The lesser; -0 is below +0, a NaN stays.
    #[must_use]
    fn least(self, other: Self) -> Self;
    /// The greater; -0 is below +0, a NaN stays.
    #[must_use]
    fn greatest(self, other: Self) -> Self;
}

impl Op {
    /// Applies the operation: `there` is what is there, `arrived` what arrived.
    #[inline]
    pub fn apply<W: Number>(self, there: W, arrived: W) -> W {
        match self {
            Op::Copy => arrived,
            Op::Add => there.plus(arrived),
            Op::Min => there.least(arrived),
            Op::Max => there.greatest(arrived),
        }
    }
}

macro_rules! integers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn least(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline]
            fn greatest(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }
    )*};
}

macro_rules! floats {
    ($($number:ty)*) => {$(
        impl Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline]
            fn least(self, other: Self) -> Self {
                let below = other < self || (other == self && other.is_sign_negative());
                if !self.is_nan() && (below || other.is_nan()) { other } else { self }
            }
            #[inline]
            fn greatest(self, other: Self) -> Self {
                let above = other > self || (other == self && other.is_sign_positive());
                if !self.is_nan() && (above || other.is_nan()) { other } else { self }
            }
        }
    )*};
}

integers! { u64 i64 u32 i32 }
floats! { f64 f32 }

#[cfg(test)]
mod tests {
    use super::{Number, Op};

    #[test]
    fn extremes_do_not_depend_on_the_order() {
        let values = [-1.5f64, -0.0, 0.0, 2.0, f64::INFINITY, f64::NEG_INFINITY];
        for a in values {
            for b in values {
                assert_eq!(a.least(b).to_bits(), b.least(a).to_bits(), "{a} {b}");
                assert_eq!(a.greatest(b).to_bits(), b.greatest(a).to_bits(), "{a} {b}");
                assert_eq!(a.least(b), a.min(b));
                assert_eq!(a.greatest(b), a.max(b));
            }
            for f in [Number::least, Number::greatest] {
                assert!(f(a, f64::NAN).is_nan() && f(f64::NAN, a).is_nan());
            }
        }
        assert_eq!(0.0f32.least(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!((-0.0f32).greatest(0.0).to_bits(), 0);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(Op::Add.apply(u32::MAX, 2), 1);
        assert_eq!(Op::Add.apply(i64::MIN, -1), i64::MAX);
        assert_eq!((Op::Min.apply(-3i32, 2), Op::Max.apply(-3i32, 2)), (-3, 2));
        assert_eq!(Op::Copy.apply(1.0, 2.0), 2.0);
    }
}
