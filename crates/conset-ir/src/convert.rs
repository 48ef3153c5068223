//! Conversions between number types that are exact or checked.
//!
//! Ids and counts are stored in 32 bits, because arrays of them are large; they index slices as
//! `usize`, are added up in 64 bits, and are combined with costs in `f64`. An `as` cast between
//! these types compiles whether or not it preserves the value. These functions either preserve
//! every value or panic at the line of the caller. Only this module has such casts; elsewhere the
//! lint `clippy::as_conversions` reports them. A typed id ([`crate::ids`]) is converted by its
//! methods `index` and `from_index` instead.

#![allow(clippy::as_conversions)]

const _: () = assert!(usize::BITS >= 32, "arrays are indexed by 32-bit numbers");
const _: () = assert!(usize::BITS <= 64, "sizes are added up in 64 bits");

/// A 32-bit number as an index. Preserves every value.
///
/// ```
/// let row = [10, 20, 30];
/// assert_eq!(row[conset_ir::convert::index(2)], 30);
/// ```
#[inline]
pub const fn index(number: u32) -> usize {
    number as usize
}

/// A number as `u32`.
///
/// # Panics
/// If it is negative or above `u32::MAX`.
#[inline]
#[track_caller]
pub fn to_u32<N: TryInto<u32>>(number: N) -> u32 {
    number.try_into().unwrap_or_else(|_| lost("u32"))
}

/// A number as `u64`.
///
/// # Panics
/// If it is negative or above `u64::MAX`.
#[inline]
#[track_caller]
pub fn to_u64<N: TryInto<u64>>(number: N) -> u64 {
    number.try_into().unwrap_or_else(|_| lost("u64"))
}

/// A number as `i64`.
///
/// # Panics
/// If it does not fit.
#[inline]
#[track_caller]
pub fn to_i64<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or_else(|_| lost("i64"))
}

/// A number as `usize`.
///
/// # Panics
/// If it is negative or above `usize::MAX`.
#[inline]
#[track_caller]
pub fn to_usize<N: TryInto<usize>>(number: N) -> usize {
    number.try_into().unwrap_or_else(|_| lost("usize"))
}

/// A count as `f64`: exact up to 2^53, the nearest number above.
///
/// # Panics
/// If it is negative or above `u64::MAX`.
#[inline]
#[track_caller]
pub fn to_f64<N: TryInto<u64>>(number: N) -> f64 {
    to_u64(number) as f64
}

/// A cost without its fraction. Call `ceil` or `round` first for another rounding.
///
/// # Panics
/// If it is not a number, negative, or 2^64 or more.
///
/// ```
/// assert_eq!(conset_ir::convert::truncate(2.9), 2);
/// ```
#[inline]
#[track_caller]
pub fn truncate(price: f64) -> u64 {
    if !(0.0..18_446_744_073_709_551_616.0).contains(&price) {
        lost("u64");
    }
    price as u64
}

#[cold]
#[inline(never)]
#[track_caller]
fn lost(type_name: &str) -> ! {
    panic!("a number does not fit into {type_name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept() {
        assert_eq!(to_u32(7usize), 7);
        assert_eq!(to_u32(u32::MAX), u32::MAX);
        assert_eq!(to_u64(7i32), 7);
        assert_eq!(to_usize(7u64), 7);
        assert_eq!(to_i64(7u64), 7);
        assert_eq!(to_f64(1u64 << 53), 9_007_199_254_740_992.0);
        assert_eq!(truncate(0.999), 0);
    }

    #[test]
    fn what_does_not_fit_panics() {
        use std::panic::catch_unwind;
        assert!(catch_unwind(|| to_u32(1u64 << 32)).is_err());
        assert!(catch_unwind(|| to_u64(-1i32)).is_err());
        for price in [f64::NAN, -1.0, f64::INFINITY, 2f64.powi(64)] {
            assert!(catch_unwind(|| truncate(price)).is_err(), "{price}");
        }
    }
}
