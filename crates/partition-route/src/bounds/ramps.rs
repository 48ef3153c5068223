//! Ramps: clocks at the beginning and at the end of a phase in which links and agents cannot all be
//! busy.
//!
//! A load is the time of the words if all links, or the busiest agent, were never idle. They are idle
//! when a phase begins, because all words are still with the agents, and when it ends, because all
//! words have been received:
//!
//! * The last word of an agent has its way to the target before it when it has been sent, and the
//!   first one its way from the source before it can be received.
//! * In `t` clocks an agent sends at most `(t - set-up) / access` words. A word is on one link at a
//!   time, so at most as many links are busy as words have been sent; if links have prices, these
//!   are the dearest ones at best. The same holds backwards from the end, with the words that are yet
//!   to be received.
//!
//! The clocks that a phase loses in this way grow with its length. No phase is shorter than a word
//! takes over the shortest route, so each loses at least what such a phase loses; and one of `P`
//! phases has at least a `P`-th of the load. (A schedule may have one phase more and none so long,
//! but then it has another switch.)
//!
//! Like latencies, ramps are there on every machine, but are counted only with timed starts.

use std::cmp::Reverse;

use conset_ir::{Binding, CellId, ConnectionSet, Duplex, Machine, Witness};

use super::{LoadBound, cuts};
use crate::wide::wide;

/// What words take beside the loads of a set on a machine with timed starts.
pub(super) struct Ramps<'a> {
    machine: &'a Machine,
    /// The distance of each connection.
    pub(super) hops: &'a [u32],
    /// The fewest phases.
    phases: u128,
    /// Cells that send words over links, and cells that receive them.
    ends: [u128; 2],
    /// The links of the shortest route.
    fewest_hops: u32,
}

impl<'a> Ramps<'a> {
    /// `None` without timed starts. `hops` has the distance of each connection; there is at least one.
    pub(super) fn new(
        machine: &'a Machine,
        set: &ConnectionSet,
        hops: &'a [u32],
        phases: u64,
    ) -> Option<Self> {
        if !machine.parameters().has_timed_starts() {
            return None;
        }
        let mut is_end = vec![[false; 2]; machine.cell_count()];
        for (connection, _) in set.connections().iter().zip(hops).filter(|&(_, &hops)| hops > 0) {
            is_end[connection.source.index()][0] = true;
            is_end[connection.target.index()][1] = true;
        }
        let ends = [0, 1].map(|end| wide(is_end.iter().filter(|is_end| is_end[end]).count()));
        let fewest_hops = hops.iter().copied().min().unwrap_or(0);
        Some(Self { machine, hops, phases: phases.into(), ends, fewest_hops })
    }

    /// The clocks of an agent beside its load in all phases, if none of its routes has fewer than
    /// `hops` links. A phase in which it has no word is as long as that of another word.
    ///
    /// None are counted if the agent has several streams, whose set-ups can overlap with words that
    /// are on their way, or half duplex, with which it may send the first word and receive the last.
    pub(super) fn of_agent(&self, hops: u32) -> u128 {
        let parameters = self.machine.parameters();
        if parameters.streams > 1 || parameters.duplex == Duplex::Half {
            return 0;
        }
        self.way(hops) + (self.phases - 1) * self.way(hops).min(self.shortest_phase())
    }

    /// The clocks of links beside a load.
    pub(super) fn of_links(&self, bound: &LoadBound) -> u128 {
        let links = || self.machine.cells().flat_map(|cell| self.machine.outgoing(cell));
        let by = |prices: &[u32]| Prices::new(links().map(|link| prices[link.index()].into()));
        match &bound.witness {
            Witness::Hops if bound.binding == Binding::AverageLink => {
                self.beside(&Prices::new(links().map(|_| 1)), bound.clocks)
            }
            Witness::LinkPrices(prices) => self.beside(&by(prices), bound.clocks),
            Witness::Cut(side) => {
                let inside = cuts::inside(self.machine, side);
                let leaves = |&(from, to, _): &(CellId, CellId, u128)| {
                    inside[from.index()] && !inside[to.index()]
                };
                let crossing = cuts::live_links(self.machine).filter(leaves);
                self.beside(&Prices::new(crossing.map(|(_, _, words)| words)), bound.clocks)
            }
            // The routes of the words, the words alone and the busiest agent have these clocks or
            // more beside them, whichever binds.
            Witness::Prices { links, alone, .. } => {
                let lost = |prices| {
                    let prices = by(prices);
                    self.phases * self.lost(&prices, self.shortest_phase()) / prices.sum.max(1)
                };
                lost(links).min(lost(alone)).min(self.of_agent(self.fewest_hops))
            }
            _ => 0,
        }
    }

    /// The clocks of a word after it has been sent, until it has been received.
    fn way(&self, hops: u32) -> u128 {
        let [link, _] = self.machine.link_clocks_range().map(u128::from);
        u128::from(self.machine.parameters().access_clocks_per_word) + u128::from(hops) * link
    }

    /// The clocks of a phase that has a word.
    fn shortest_phase(&self) -> u128 {
        let parameters = self.machine.parameters();
        let sent =
            u128::from(parameters.stream_setup) + u128::from(parameters.access_clocks_per_word);
        sent + self.way(self.fewest_hops)
    }

    /// What links of these prices lose in the phases of this load.
    fn beside(&self, prices: &Prices, load: u128) -> u128 {
        let (shortest, phases) = (self.shortest_phase(), self.phases);
        let in_shortest = self.lost(prices, shortest);
        let in_longest = self.lost(prices, shortest.max(load / phases));
        // With another phase none need be so long.
        let switch = u128::from(self.machine.parameters().switch_clocks());
        let last = in_longest.min(2 * in_shortest + switch * prices.sum);
        ((phases - 1) * in_shortest + last) / prices.sum.max(1)
    }

    /// The clocks of a phase in which links are idle, times their prices: the dearest link waits for
    /// the first word, the next one for another.
    fn lost(&self, prices: &Prices, clocks: u128) -> u128 {
        let parameters = self.machine.parameters();
        let setup = u128::from(parameters.stream_setup);
        let access = u128::from(parameters.access_clocks_per_word);
        let [senders, receivers] = self.ends.map(|cells| cells.max(1));
        let words = (1..).zip(&prices.dearest_first);
        let idle = |(word, price): (u128, &u128)| {
            let words = word.div_ceil(senders) + word.div_ceil(receivers);
            price * clocks.min(setup + access * words)
        };
        words.map(idle).sum()
    }
}

/// The prices of the live links that have one.
struct Prices {
    dearest_first: Vec<u128>,
    sum: u128,
}

impl Prices {
    fn new(prices: impl Iterator<Item = u128>) -> Self {
        let mut dearest_first: Vec<u128> = prices.collect();
        dearest_first.sort_unstable_by_key(|&price| Reverse(price));
        let sum = dearest_first.iter().sum();
        Self { dearest_first, sum }
    }
}
