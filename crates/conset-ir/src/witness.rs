//! Witnesses: what makes a claimed lower bound checkable by who did not find it.
//!
//! A bound says that *no* schedule is better. To find a good one takes a search; to check it takes
//! the one thing that the search found, and a pass over the set. A schedule carries that thing for
//! the bound of its phases and for the bound of its clocks, and the checker proves the bound from
//! it anew (`conset-verify`, module `claims`); what it cannot prove it refuses.
//!
//! | witness | proves, of phases | proves, of clocks (beside the switches) |
//! |---|---|---|
//! | [`Witness::Cell`] | the connections that end at the cell, over its channels | the words and set-ups of its agent |
//! | [`Witness::Hops`] | the channels of shortest routes, over all channels | the word-hops of shortest routes, over all links |
//! | [`Witness::Cut`] | | the words that leave the cells, over the live links that do |
//! | [`Witness::CellPrices`] | the price of cheapest routes, over the price of all channels | |
//! | [`Witness::LinkPrices`] | | the price of cheapest ways, over the price of all links |
//! | [`Witness::Chain`] | | the clocks of connections that come one after the other |
//! | [`Witness::Window`] | | what comes before, between and after some connections |
//!
//! Prices are whole numbers, so a check is exact.

use serde::{Deserialize, Serialize};

use crate::ids::{CellId, ConnectionId};

/// Cells from the first to the last, both included.
pub type CellRange = (CellId, CellId);

/// What proves a lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Witness {
    /// A busy cell.
    Cell(CellId),
    /// The distances of all connections.
    Hops,
    /// One side of a cut, as ranges of cells in ascending order; what leaves it counts.
    Cut(Vec<CellRange>),
    /// The price of a channel of each cell.
    CellPrices(Vec<u32>),
    /// The price of a word on each link, by link id.
    LinkPrices(Vec<u32>),
    /// Connections, each ordered before the next.
    Chain(Vec<ConnectionId>),
    /// Connections that start after chains of `head` clocks and are followed by chains of `tail`
    /// clocks: the busiest of their agents, their word-hops, or (where `side` has cells) what of
    /// them leaves `side` has to fit between.
    Window {
        /// Clocks before.
        head: u64,
        /// Clocks behind.
        tail: u64,
        /// One side of a cut; without cells, agents and word-hops.
        side: Vec<CellRange>,
    },
}

/// What proves the bounds of a set, where its schedule says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// What proves the bound of phases.
    pub phases: Option<Witness>,
    /// What proves the bound of clocks.
    pub clocks: Option<Witness>,
}

impl Proof {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.phases.is_none() && self.clocks.is_none()
    }
}

/// The ranges of the cells of which `inside` is true, as [`Witness::Cut`] has them.
pub fn ranges(inside: impl IntoIterator<Item = bool>) -> Vec<CellRange> {
    let mut ranges: Vec<CellRange> = Vec::new();
    for (cell, _) in inside.into_iter().enumerate().filter(|(_, inside)| *inside) {
        let cell = CellId::from_index(cell);
        match ranges.last_mut() {
            Some((_, last)) if last.0 + 1 == cell.0 => *last = cell,
            _ => ranges.push((cell, cell)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_long_as_can_be() {
        let c = CellId;
        assert_eq!(ranges([false; 3]), []);
        assert_eq!(ranges([true, true, false, true]), [(c(0), c(1)), (c(3), c(3))]);
    }
}
