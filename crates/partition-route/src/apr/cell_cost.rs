//! The cost of a cell for routes through it.
//!
//! In the paper every node starts at cost 1 and the cost is updated with each route; the update is
//! not specified. Here the cost grows with the square of the share of channels in use, from 1 to
//! just below 2. The square keeps routes straight while cells are empty and spreads them before
//! cells are full, so that all layers of the graph fill evenly and completely. On all-to-all over
//! 8x8 cells a constant cost needs 35 phases after the first pass (routes pile up in the first
//! layers and block one another), a linear cost 28 phases at twice the time, and this cost 28
//! phases (lower bound 27).

use conset_ir::convert::to_u32;

use super::a_star::UNIT;

/// The cost of a cell without a free channel.
pub(crate) const FULL: u32 = u32::MAX;

/// The costs by the number of channels in use.
pub(crate) fn table(capacity: u32) -> Vec<u32> {
    let square = |number: u32| u64::from(number) * u64::from(number);
    // The quotient is less than `UNIT`.
    let cost = |used: u32| UNIT + to_u32(u64::from(UNIT) * square(used) / square(capacity));
    (0..capacity).map(cost).chain([FULL]).collect()
}
