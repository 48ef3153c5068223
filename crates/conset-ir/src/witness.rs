//! Witnesses: certificates from which the checker proves the lower bounds of a schedule.
//!
//! A lower bound states that *no* schedule is better. Finding a good bound takes a search; checking
//! it takes only the result of that search, the witness, and a pass over the set. A schedule has a
//! witness for its bound of phases and one for its bound of clocks. The checker proves the bounds
//! from them (`conset-verify`, module `claims`) and refuses a bound that it cannot prove.
//!
//! | witness | proves a number of phases | proves a number of clocks (without switches) |
//! |---|---|---|
//! | [`Witness::Cell`] | the connections that end at the cell, divided by its channels | the words and set-ups of its agent |
//! | [`Witness::Hops`] | the channels of shortest routes, divided by all channels | the word-hops of shortest routes, divided by all links; or the time of a word over the longest route of each phase |
//! | [`Witness::Cut`] | | the words that leave a set of cells, divided by the live links that leave it |
//! | [`Witness::CellPrices`] | the price of cheapest routes, divided by the price of all channels | |
//! | [`Witness::LinkPrices`] | | the price of cheapest routes of all words, divided by the price of all links |
//! | [`Witness::Prices`] | | the price of cheapest routes of all words, less that of all channels of all phases, divided by the price of all links |
//! | [`Witness::Chain`] | | the clocks of connections that are ordered one after the other |
//! | [`Witness::Window`] | | chains before and after some connections, and the load of these |
//!
//! Prices are integers, so the check is exact.

use serde::{Deserialize, Serialize};

use crate::ids::{CellId, ConnectionId};

/// Cells from the first to the last, both included.
pub type CellRange = (CellId, CellId);

/// A certificate of a lower bound.
///
/// The enum is exhaustive: a new witness needs a new proof in the checker and a new format version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Witness {
    /// The busiest cell.
    Cell(CellId),
    /// The distances of all connections.
    Hops,
    /// One side of a cut, as ranges of cells in ascending order. Words that leave it count.
    Cut(Vec<CellRange>),
    /// The price of a channel of each cell.
    CellPrices(Vec<u32>),
    /// The price of a word on each link, by link id.
    LinkPrices(Vec<u32>),
    /// Connections, each ordered before the next.
    Chain(Vec<ConnectionId>),
    /// The connections with a chain of at least `head` clocks before them and one of at least
    /// `tail` clocks after them. Between the chains there must be time for the load of their
    /// busiest agent and for their word-hops or, if `side` is not empty, for their words that leave
    /// `side`.
    Window {
        /// Clocks of the chains before.
        head: u64,
        /// Clocks of the chains after.
        tail: u64,
        /// One side of a cut; empty to count agents and word-hops.
        side: Vec<CellRange>,
    },
    /// Prices of both: a route costs the price of a channel of each of its cells, and for each word
    /// the price of its links. A schedule with more phases has more channels; the proof is of the
    /// number of phases that takes the fewest clocks.
    Prices {
        /// The price of a channel of each cell.
        cells: Vec<u32>,
        /// The price of a word on each link, by link id.
        links: Vec<u32>,
        /// The same where channels have no price, which bounds the clocks of any number of phases.
        alone: Vec<u32>,
    },
}

/// The witnesses of the bounds of a set, as far as its schedule has them. A record with public
/// fields: these are claims, and the checker proves or refuses them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The witness of the bound of phases.
    pub phases: Option<Witness>,
    /// The witness of the bound of clocks.
    pub clocks: Option<Witness>,
}

impl Proof {
    /// Whether there is no witness.
    pub fn is_empty(&self) -> bool {
        self.phases.is_none() && self.clocks.is_none()
    }
}

/// The cells for which `inside` is true, as the ranges of [`Witness::Cut`].
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
    fn adjacent_cells_are_merged_into_one_range() {
        let c = CellId;
        assert_eq!(ranges([false; 3]), []);
        assert_eq!(ranges([true, true, false, true]), [(c(0), c(1)), (c(3), c(3))]);
    }
}
