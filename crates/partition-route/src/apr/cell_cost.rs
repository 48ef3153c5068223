//! What it costs a route to pass a cell.
//!
//! The paper starts every node at cost 1 and updates it with each route; how, it leaves open.
//! Here the cost grows with the square of the share of channels in use, from 1 to just below 2. The
//! square keeps routes straight while cells are empty and spreads them before cells are full, so
//! that all graph of the graph fill evenly and to the brim. On all-to-all over 8x8 cells a flat
//! cost needs 35 phases after the first pass (routes pile into the first graph and block one
//! another), a linear one 28 at twice the time, this one 28 (lower bound 27).

use super::a_star::UNIT;

/// The cost of a cell without a free channel.
pub(crate) const FULL: u32 = u32::MAX;

/// Costs by the number of channels in use.
pub(crate) fn table(capacity: u16) -> Vec<u32> {
    let capacity = u32::from(capacity);
    (0..capacity)
        .map(|used| UNIT + UNIT * used * used / (capacity * capacity))
        .chain([FULL])
        .collect()
}
