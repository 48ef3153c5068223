//! Ramps: clocks in which links and agents are idle because the words have not been sent yet or are
//! all but received. With timed starts a bound of clocks counts them beside a load.
//!
//! A phase with a word takes at least its set-up, an access at both ends and the links between them;
//! this is the *shortest phase*. Let a set need `P` phases.
//!
//! * An agent with one stream at a time cannot send while the last of its words is on its *way* to
//!   the target (its links and the access there), and cannot receive while the first is on its way.
//!   That adds to its load in each phase in which it sends or receives. Other phases are as long as
//!   the shortest.
//! * A word is on one link at a time. Until the `n`-th word is sent, and after the last `n` are all
//!   that is left to be received, fewer than `n` links are busy. So the link that is the `n`-th in
//!   the order of prices may count as idle for these clocks, or for the whole phase if that is
//!   shorter. Of the links' prices times the clocks of the phase, that is *lost*. What is lost grows
//!   with the phase. So each phase loses what the shortest does, and the longest of `P` phases what
//!   a phase with a `P`-th of the load does. A schedule with more than `P` phases may have no such
//!   phase, but has another switch.

use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionSet, Duplex, LinkId, Machine};

use super::distances::ConnectionDistances;
use crate::live::Live;

/// The ramps of a set that needs a number of phases.
pub(super) struct Ramps<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    hops: &'a [u32],
    phases: u128,
    setup: u128,
    access: u128,
    /// The least clocks of a word on a link.
    link: u128,
    /// The links of the shortest route.
    fewest_hops: u32,
    /// The number of cells that send words over links, and of those that receive them; at least 1.
    ends: [u128; 2],
}

impl<'a> Ramps<'a> {
    /// `None` if there are none to count: without timed starts, phases or connections.
    pub(super) fn new(
        machine: &'a Machine,
        set: &'a ConnectionSet,
        distances: &'a mut ConnectionDistances<'_>,
        phases: u128,
    ) -> Option<Self> {
        let parameters = machine.parameters();
        let [link, _] = machine.link_clocks_range();
        let counted = parameters.has_timed_starts() && phases > 0 && !set.is_empty();
        counted.then(|| {
            let hops = distances.hops();
            Self {
                machine,
                set,
                hops,
                phases,
                setup: parameters.stream_setup.into(),
                access: parameters.access_clocks_per_word.into(),
                link: link.into(),
                fewest_hops: hops.iter().copied().min().unwrap_or(0),
                ends: ends(machine, set, hops),
            }
        })
    }

    /// The clocks from when a word is sent until it is received, over this number of links.
    fn way(&self, hops: u32) -> u128 {
        self.access + u128::from(hops) * self.link
    }

    fn shortest_way(&self) -> u128 {
        self.way(self.fewest_hops)
    }

    fn shortest_phase(&self) -> u128 {
        self.setup + self.access + self.shortest_way()
    }

    fn counts_agents(&self) -> bool {
        let parameters = self.machine.parameters();
        parameters.streams == 1 && parameters.duplex == Duplex::Full
    }

    /// The clocks of a cell that sends, and of one that receives, beside its load: 0 if it does not.
    pub(super) fn of_agent(&self, cell: CellId) -> [u128; 2] {
        let mut nearest = [None; 2];
        for (connection, &hops) in self.set.connections().iter().zip(self.hops) {
            for (end, nearest) in [connection.source, connection.target].iter().zip(&mut nearest) {
                if *end == cell {
                    *nearest = Some(nearest.map_or(hops, |least: u32| least.min(hops)));
                }
            }
        }
        nearest.map(|hops| match hops.filter(|_| self.counts_agents()) {
            Some(hops) => {
                let elsewhere = self.way(hops).min(self.shortest_phase());
                self.way(hops) + (self.phases - 1) * elsewhere
            }
            None => 0,
        })
    }

    /// The clocks of any agent beside its load.
    pub(super) fn of_any_agent(&self) -> u128 {
        if self.counts_agents() { self.phases * self.shortest_way() } else { 0 }
    }

    /// The clocks of links beside a load of `load` clocks.
    pub(super) fn of_links(&self, prices: &LinkPrices, load: u128) -> u128 {
        let short = self.lost(prices, self.shortest_phase());
        let long = self.lost(prices, self.shortest_phase().max(load / self.phases));
        let switch = u128::from(self.machine.parameters().switch_clocks());
        let instead = short.saturating_mul(2).saturating_add(switch.saturating_mul(prices.sum));
        let all = (self.phases - 1).saturating_mul(short).saturating_add(long.min(instead));
        all.checked_div(prices.sum).unwrap_or(0)
    }

    /// The clocks of links in as many phases beside any load.
    pub(super) fn of_any_load(&self, prices: &LinkPrices) -> u128 {
        let lost = self.lost(prices, self.shortest_phase());
        self.phases.saturating_mul(lost).checked_div(prices.sum).unwrap_or(0)
    }

    /// The clocks that links are idle in a phase, times their prices.
    fn lost(&self, prices: &LinkPrices, clocks: u128) -> u128 {
        let [sending, receiving] = self.ends;
        let mut lost = 0u128;
        for (row, &price) in prices.descending.iter().enumerate() {
            let words = u128::from(to_u64(row)) + 1;
            let sent = self.setup + self.access * words.div_ceil(sending);
            let left = self.access * words.div_ceil(receiving);
            lost = lost.saturating_add(price * clocks.min(sent + left));
        }
        lost
    }
}

/// The ends of [`Ramps`].
fn ends(machine: &Machine, set: &ConnectionSet, hops: &[u32]) -> [u128; 2] {
    let mut counts = [0u128; 2];
    let mut seen = vec![[false; 2]; machine.cell_count()];
    for (connection, &hops) in set.connections().iter().zip(hops) {
        for (end, cell) in [connection.source, connection.target].into_iter().enumerate() {
            let seen = &mut seen[cell.index()][end];
            counts[end] += u128::from(hops > 0 && !*seen);
            *seen |= hops > 0;
        }
    }
    counts.map(|cells| cells.max(1))
}

/// The prices of all live links, the greatest first.
pub(super) struct LinkPrices {
    descending: Vec<u128>,
    pub(super) sum: u128,
}

impl LinkPrices {
    pub(super) fn new(live: &Live<'_>, price: impl Fn(LinkId) -> u128) -> Self {
        let links = (0..live.machine().link_count()).map(LinkId::from_index);
        let alive = links.filter(|&link| live.is_link_alive(link));
        let mut descending: Vec<u128> = alive.map(price).collect();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        let sum = descending.iter().sum();
        Self { descending, sum }
    }
}
