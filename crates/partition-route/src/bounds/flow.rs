//! Flow bounds: lengths of links and cells such that no routes can be short everywhere.
//!
//! Assign any *length* to every link. A word between two cells travels at least the shortest
//! distance by these lengths, on any route; and in one clock all links together carry words over at
//! most the sum of their lengths. So words times distances over the sum of the lengths bounds the
//! time from below. Equal lengths everywhere give the average-link bound; lengths on the links of a
//! cut alone give the cut bound. The best lengths give the time of the best division of every
//! connection over all its routes, which no schedule beats (linear programming duality).
//!
//! Lengths of cells bound the phases in the same way: a phase has capacity for routes of the total
//! length of all cells, times the channels of each.
//!
//! Lengths of links *and* cells bound the time of schedules with a given number of phases. The
//! length of a route is that of its links, times the words, plus that of its cells. All routes
//! together are no longer than clocks times the lengths of all links plus phases times the channels
//! of all cells times their lengths. Routes that share all links evenly are often longer than the
//! shortest ones, and take channels that a schedule with few phases does not have; only these
//! lengths see that. A connection on several routes takes channels for each, so it is at least as
//! long as on the shortest of them. A schedule may have more phases than it needs, which gives it
//! more channels and costs switches, so the bound is the least over all numbers of phases
//! ([`Tradeoff`]).
//!
//! The search for lengths is in module `search`.

mod search;

use conset_ir::convert::to_u32;
use conset_ir::{Binding, CellId, ConnectionSet, LinkId, Machine, Witness};

use super::{Bound, LoadBound, cuts, saturate};
use crate::network::Network;
use crate::wide::wide_to_f64;
use search::{Aim, LengthBound, LengthSearch};

/// The time of the words on the links, if it exceeds `known`.
pub(super) fn clocks(
    machine: &Machine,
    network: &Network,
    set: &ConnectionSet,
    known: u128,
) -> Option<LoadBound> {
    let [link_clocks, _] = machine.link_clocks_range().map(u128::from);
    let mut flow = LengthSearch::new(machine, network, set, Aim::Words)?;
    let found = flow.search(known / link_clocks.max(1))?;
    let clocks = (found.needed * link_clocks).div_ceil(found.capacity);
    (clocks > known).then(|| {
        let explanation = format!(
            "for these link lengths, all words travel at least {}, and all links together are {} \
             long; {}",
            found.needed,
            found.capacity,
            longest_links(network, &found)
        );
        let witness = Witness::LinkPrices(link_prices(machine, network, &found.lengths));
        LoadBound::new(Binding::LinkFlow, clocks, explanation, witness)
    })
}

/// The length of each link: that of its edge, which parallel links share; 0 for dead links.
fn link_prices(machine: &Machine, network: &Network, lengths: &[u32]) -> Vec<u32> {
    let mut prices = vec![0; machine.link_count()];
    for cell in machine.cells() {
        for &link in machine.outgoing(cell) {
            let edge = network.next.edge(cell.0, machine.link(link).target.0);
            prices[link.index()] = lengths[edge];
        }
    }
    prices
}

/// The phases that the channels of cells in narrow places need, if they exceed `known`.
pub(super) fn phases(
    machine: &Machine,
    network: &Network,
    set: &ConnectionSet,
    known: u64,
) -> Option<Bound> {
    let mut flow = LengthSearch::new(machine, network, set, Aim::Phases)?;
    let found = flow.search(u128::from(known))?;
    let phases = saturate(found.needed.div_ceil(found.capacity));
    (phases > known).then(|| {
        let cells = found.lengths[network.next.edge_count()..].to_vec();
        let explanation = format!(
            "for these cell lengths, all routes are at least {} long, and the channels of all cells \
             {}; {}",
            found.needed,
            found.capacity,
            longest(&cells, |cell| CellId(to_u32(cell)).to_string())
        );
        let witness = Some(Witness::CellPrices(cells));
        Bound { binding: Binding::ChannelFlow, value: phases, ramp: 0, explanation, witness }
    })
}

/// The clocks of words on links beside the switches of at least `phases` phases, if they exceed
/// those that are `known`; the first of these are the agents'.
pub(super) fn clocks_in_phases(
    machine: &Machine,
    network: &Network,
    set: &ConnectionSet,
    phases: u64,
    known: &[LoadBound],
) -> Option<LoadBound> {
    let [link_clocks, _] = machine.link_clocks_range().map(u128::from);
    let most = known.iter().map(|bound| bound.clocks).max().unwrap_or(0);
    let mut flow = LengthSearch::new(machine, network, set, Aim::WordsInPhases(phases))?;
    let found = flow.search(most / link_clocks.max(1))?;
    let edges = network.next.edge_count();
    let of_links = known.iter().filter(|bound| bound.binding != Binding::AgentLoad);
    let alone = of_links.max_by_key(|bound| bound.clocks).map(|bound| &bound.witness);
    let alone = edge_lengths(machine, network, alone.unwrap_or(&Witness::Hops))?;
    let words = LengthSearch::new(machine, network, set, Aim::Words)?.proved_by(&alone);
    let tradeoff = Tradeoff {
        needed: found.needed * link_clocks,
        a_phase: found.fixed * link_clocks / u128::from(phases),
        links: found.capacity,
        // Lengths that are all 0 prove nothing.
        any: (words.needed * link_clocks).div_ceil(words.capacity.max(1)).max(known[0].clocks),
        switch: machine.parameters().switch_clocks().into(),
    };
    let clocks = tradeoff.least();
    // Otherwise these are only slightly better lengths of links.
    let least = wide_to_f64(most) * (1.0 + search::TOLERANCE);
    (wide_to_f64(clocks) > least).then(|| {
        let explanation = format!(
            "for these lengths of links and cells, all routes are at least {} longer than the \
             channels of {phases} phases, and all links together are {} long; {}",
            found.needed,
            found.capacity,
            longest_links(network, &found)
        );
        let links = link_prices(machine, network, &found.lengths);
        let cells = found.lengths[edges..].to_vec();
        let alone = link_prices(machine, network, &alone);
        let witness = Witness::Prices { cells, links, alone };
        LoadBound::new(Binding::ChannelLinkFlow, clocks, explanation, witness)
    })
}

/// The lengths of edges by which a witness bounds the words on links; `None` if it bounds something
/// else.
fn edge_lengths(machine: &Machine, network: &Network, witness: &Witness) -> Option<Vec<u32>> {
    let price: Box<dyn Fn(LinkId) -> u32> = match witness {
        Witness::Hops => Box::new(|_| 1),
        Witness::LinkPrices(prices) => Box::new(|link| prices[link.index()]),
        Witness::Cut(side) => {
            let inside = cuts::inside(machine, side);
            Box::new(move |link| {
                let link = machine.link(link);
                u32::from(inside[link.source.index()] && !inside[link.target.index()])
            })
        }
        _ => return None,
    };
    let mut lengths = vec![0; network.next.edge_count()];
    for &link in machine.cells().flat_map(|cell| machine.outgoing(cell)) {
        let of = machine.link(link);
        lengths[network.next.edge(of.source.0, of.target.0)] = price(link);
    }
    Some(lengths)
}

/// Clocks beside the switches of the fewest phases, as phases are added to these.
struct Tradeoff {
    /// What all routes are longer than the channels of the fewest phases, times link clocks.
    needed: u128,
    /// The length of the channels of one phase, times link clocks.
    a_phase: u128,
    /// The length of all links.
    links: u128,
    /// The clocks of any number of phases.
    any: u128,
    /// The clocks of a switch.
    switch: u128,
}

impl Tradeoff {
    fn clocks(&self, added: u128) -> u128 {
        let needed = self.needed.saturating_sub(added * self.a_phase);
        added * self.switch + needed.div_ceil(self.links).max(self.any)
    }

    /// The least clocks. They are linear until `any` binds, so one of the ends is the least.
    fn least(&self) -> u128 {
        let excess = self.needed.saturating_sub(self.any * self.links);
        let last = excess.checked_div(self.a_phase).unwrap_or(0);
        [0, last, last + 1].map(|added| self.clocks(added)).into_iter().min().unwrap_or(0)
    }
}

/// A text that names the links with the greatest lengths.
fn longest_links(network: &Network, found: &LengthBound) -> String {
    let edges = |cell: u32| network.next.edges(cell).map(move |edge| (cell, edge));
    let ends: Vec<(u32, usize)> = (0..to_u32(network.cells)).flat_map(edges).collect();
    longest(&found.lengths[..ends.len()], |edge| {
        format!("{} to {}", CellId(ends[edge].0), CellId(network.next.head(edge)))
    })
}

/// A text that names the places with the greatest lengths.
fn longest(lengths: &[u32], name: impl Fn(usize) -> String) -> String {
    let most = lengths.iter().copied().max().unwrap_or(0);
    let near = |&(_, &length): &(usize, &u32)| length >= most - most / 4;
    let places = || lengths.iter().enumerate().filter(near).map(|(place, _)| place);
    let count = places().count();
    let names: Vec<String> = places().take(4).map(name).collect();
    let more = if count > 4 { format!(" and {} more", count - 4) } else { String::new() };
    format!("the longest are {}{more}", names.join(", "))
}
