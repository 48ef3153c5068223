//! Conversions of 128-bit numbers, in which bounds and placement costs are summed.

use conset_ir::convert::to_u64;

/// A number as `f64`: exact up to 2^53, the nearest number above.
#[allow(clippy::as_conversions, reason = "cannot fail; `convert::to_f64` takes 64 bits")]
pub(crate) fn wide_to_f64(number: u128) -> f64 {
    number as f64
}

/// A size as a 128-bit number.
pub(crate) fn wide(size: usize) -> u128 {
    u128::from(to_u64(size))
}
