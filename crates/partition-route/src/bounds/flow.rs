//! Flow bounds: lengths of links and cells such that no routes can be short everywhere.
//!
//! Assign any *length* to every link. A word between two cells travels at least the shortest
//! distance by these lengths, on any route; and in one clock all links together carry words over at
//! most the sum of their lengths. So words times distances over the sum of the lengths bounds the
//! time from below. Equal lengths everywhere give the average-link bound; lengths on the links of a
//! cut alone give the cut bound. The best lengths give the time of the best division of every
//! connection over all its routes, which no schedule beats (linear programming duality). Lengths of
//! cells bound the phases in the same way: a phase has capacity for routes of the total length of
//! all cells, times the channels of each.
//!
//! The search for good lengths increases the lengths of places on shortest routes (multiplicative
//! weights; routes of equal length share the flow). Every step gives a bound in whole numbers,
//! hence exact, and the best one is kept. The search ends when
//!
//! * the flows sent so far prove that the bound cannot improve, or cannot exceed the bounds that
//!   are known;
//! * the number of steps, or of links visited in total, reaches its limit. A step searches from
//!   each source as far as its farthest target. Large machines with many distant connections are
//!   not searched at all.
//!
//! If a word has several routes of nearly equal length, lengths oscillate around the best ones from
//! step to step. Distances are concave in the lengths, so the mean of some lengths proves no less
//! than they do on average; the mean of the later steps is tried too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use conset_ir::convert::{index, to_f64, to_u32, truncate};
use conset_ir::limits::PRICE_SEARCH;
use conset_ir::{Binding, CellId, ConnectionSet, Lists, Machine, Witness};

use super::{Bound, LoadBound, by_source, saturate};
use crate::network::Network;
use crate::wide::wide_to_f64;

/// What a search may cost.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Links and cells that it may visit in total.
    budget: usize,
    /// The most steps.
    steps: usize,
    /// The growth of the busiest place in the first step.
    growth: f64,
}

/// For a time: links have lengths.
const CLOCKS: Effort = Effort { budget: 1 << 22, steps: 96, growth: 0.5 };
/// For a number of phases: cells have lengths. It is rounded up, so the last hundredths often prove
/// one phase more.
const PHASES: Effort = Effort { budget: 1 << 24, steps: 200, growth: 1.0 };
/// The fewest steps of a search; a search that could make fewer is not started.
const MIN_STEPS: usize = 4;
/// The greatest length; the least is 1 while flows are sent.
const MAX_LENGTH: u32 = 1 << 10;
/// The greatest length of the mean of many steps, which needs finer lengths.
const MAX_MEAN_LENGTH: u32 = 1 << 20;
/// At the end, all lengths below the longest divided by one of these are tried as 0.
const SHORT: [u32; 4] = [2, 4, 8, 16];
/// At the end, the lengths of places with less than one of these shares of the greatest mean load
/// are tried as 0.
const BUSY: [f64; 5] = [0.0, 0.5, 0.75, 0.9, 0.97];
/// A difference between flow and bound that is small enough, relative to the bound.
const TOLERANCE: f64 = 0.002;

/// The time of the words on the links, if it exceeds `known`.
pub(super) fn clocks(machine: &Machine, set: &ConnectionSet, known: u128) -> Option<LoadBound> {
    let [link_clocks, _] = machine.link_clocks_range().map(u128::from);
    let network = Network::new(machine);
    let capacity = network.links.clone();
    let weights = set.connections().iter().map(|c| u64::from(c.words)).collect();
    let mut flow = LengthSearch::new(&network, set, weights, false, capacity)?;
    let found = flow.search(known / link_clocks.max(1))?;
    let clocks = (found.weighted_distance * link_clocks).div_ceil(found.capacity);
    (clocks > known).then(|| {
        let explanation = format!(
            "for these link lengths, all words travel at least {}, and all links together are {} \
             long; {}",
            found.weighted_distance,
            found.capacity,
            flow.longest(&found)
        );
        let witness = link_prices(machine, &network, &found.lengths);
        LoadBound { binding: Binding::LinkFlow, clocks, explanation, witness }
    })
}

/// The length of each link: that of its edge, which parallel links share; 0 for dead links.
fn link_prices(machine: &Machine, network: &Network, lengths: &[u32]) -> Witness {
    let mut prices = vec![0; machine.link_count()];
    for cell in machine.cells() {
        for &link in machine.outgoing(cell) {
            let edge = network.next.edge(cell.0, machine.link(link).target.0);
            prices[link.index()] = lengths[edge];
        }
    }
    Witness::LinkPrices(prices)
}

/// The phases that the channels of cells in narrow places need, if they exceed `known`.
pub(super) fn phases(machine: &Machine, set: &ConnectionSet, known: u64) -> Option<Bound> {
    let network = Network::new(machine);
    let channels = machine.parameters().channels_per_cell;
    let mut capacity = vec![channels; network.cells];
    machine.dead_cells().iter().for_each(|cell| capacity[cell.index()] = 0);
    let mut flow = LengthSearch::new(&network, set, vec![1; set.len()], true, capacity)?;
    let found = flow.search(u128::from(known))?;
    let phases = saturate(found.weighted_distance.div_ceil(found.capacity));
    (phases > known).then(|| {
        let explanation = format!(
            "for these cell lengths, all routes are at least {} long, and the channels of all cells \
             {}; {}",
            found.weighted_distance,
            found.capacity,
            flow.longest(&found)
        );
        let witness = Some(Witness::CellPrices(found.lengths));
        Bound { binding: Binding::ChannelFlow, value: phases, explanation, witness }
    })
}

/// Lengths, and the bound that they prove: `weighted_distance / capacity`.
#[derive(Clone, Debug)]
struct LengthBound {
    weighted_distance: u128,
    capacity: u128,
    lengths: Vec<u32>,
}

impl LengthBound {
    /// The bound, not rounded; not a number if nothing has a capacity.
    fn value(&self) -> f64 {
        wide_to_f64(self.weighted_distance) / wide_to_f64(self.capacity)
    }
}

/// A length as a whole number. What is not a number counts as 0.
fn whole(length: f64) -> u32 {
    to_u32(truncate(length.max(0.0).min(f64::from(MAX_MEAN_LENGTH))))
}

/// The search for lengths.
struct LengthSearch<'a> {
    network: &'a Network,
    set: &'a ConnectionSet,
    by_source: Lists,
    weights: Vec<u64>,
    /// Whether cells have lengths; otherwise edges do.
    of_cells: bool,
    /// The capacity of each place (cell or edge).
    capacity: Vec<u32>,
    lengths: Vec<u32>,
    effort: Effort,
    /// The steps that may be made, and the links and cells visited so far.
    steps: usize,
    expanded: usize,
    // Scratch of one source.
    distance: Vec<u64>,
    touched: Vec<u32>,
    /// Whether a cell is a target that was not reached yet.
    wanted: Vec<bool>,
    order: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    through: Vec<f64>,
    /// Weights times distances so far.
    weighted_distance: u128,
    /// The flow of a step through each place.
    load: Vec<f64>,
}

impl<'a> LengthSearch<'a> {
    fn new(
        network: &'a Network,
        set: &'a ConnectionSet,
        weights: Vec<u64>,
        of_cells: bool,
        capacity: Vec<u32>,
    ) -> Option<Self> {
        let effort = if of_cells { PHASES } else { CLOCKS };
        let by_source = by_source(network.cells, set);
        let sources = (0..to_u32(network.cells)).filter(|&cell| !by_source.of(cell).is_empty());
        // The checker visits the whole machine from each source.
        let links: u32 = network.links.iter().sum();
        let proof = sources.count().saturating_mul(network.cells + index(links));
        let is_possible = proof <= PRICE_SEARCH && capacity.iter().any(|&capacity| capacity > 0);
        is_possible.then(|| Self {
            network,
            set,
            by_source,
            weights,
            of_cells,
            lengths: vec![MAX_LENGTH; capacity.len()],
            load: vec![0.0; capacity.len()],
            capacity,
            effort,
            steps: effort.steps,
            expanded: 0,
            distance: vec![u64::MAX; network.cells],
            touched: Vec::new(),
            wanted: vec![false; network.cells],
            order: Vec::new(),
            heap: BinaryHeap::new(),
            through: vec![0.0; network.cells],
            weighted_distance: 0,
        })
    }

    /// The best lengths found; bounds up to `known` need not be proved again.
    fn search(&mut self, known: u128) -> Option<LengthBound> {
        let mut best: Option<(f64, LengthBound)> = None;
        // The greatest load so far, not that of each step: otherwise steps with little flow would
        // count as much as others, and the mean of the flows would not be the best flow.
        let mut scale = 0.0f64;
        let mut exact = vec![1.0f64; self.capacity.len()];
        let mut sum = vec![0.0f64; self.capacity.len()];
        let mut mean = vec![0.0f64; self.capacity.len()];
        for step in 1..=self.effort.steps {
            if step > self.steps {
                break;
            }
            let found = self.step()?;
            if step == 1 {
                self.steps = (self.effort.budget / self.expanded.max(1)).min(self.effort.steps);
            }
            let value = found.value();
            if best.as_ref().is_none_or(|best| value > best.0) {
                best = Some((value, found));
            }
            let proved = best.as_ref().map_or(0.0, |best| best.0);
            // The flow of each step and the mean flow are feasible, so none is below the bound.
            let most = |loads: &[f64]| self.maximum(loads);
            let now = most(&self.load);
            scale = scale.max(now);
            sum.iter_mut().zip(&self.load).for_each(|(sum, load)| *sum += load);
            let reached = now.min(most(&sum) / to_f64(step));
            if reached <= wide_to_f64(known) || reached <= proved * (1.0 + TOLERANCE) {
                break;
            }
            let growth = self.effort.growth / to_f64(step).sqrt();
            for ((exact, &load), &capacity) in exact.iter_mut().zip(&self.load).zip(&self.capacity)
            {
                if capacity > 0 {
                    *exact *= 1.0 + growth * load / f64::from(capacity) / scale;
                }
            }
            if 2 * step > self.steps {
                let capacity = exact.iter().zip(&self.capacity);
                let all: f64 =
                    capacity.map(|(length, &capacity)| length * f64::from(capacity)).sum();
                mean.iter_mut().zip(&exact).for_each(|(mean, length)| *mean += length / all);
            }
            let longest = exact.iter().copied().fold(0.0, f64::max);
            for (length, exact) in self.lengths.iter_mut().zip(&mut exact) {
                *exact /= longest;
                *length = whole(*exact * f64::from(MAX_LENGTH)).max(1);
            }
        }
        let (value, found) = best?;
        Some(self.sparsified((value, found), &mean, &sum))
    }

    /// The best of some lengths, and of the same lengths with 0 for short places and for places
    /// with little flow. `mean` is the mean of the lengths, `sum` the sum of the loads.
    fn sparsified(&mut self, best: (f64, LengthBound), mean: &[f64], sum: &[f64]) -> LengthBound {
        let (mut value, mut found) = best;
        let longest = mean.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mean: Vec<u32> =
            mean.iter().map(|mean| whole(mean / longest * f64::from(MAX_MEAN_LENGTH))).collect();
        let busiest = self.maximum(sum);
        let busy = |place: usize, least: f64| {
            sum[place] >= least * busiest * f64::from(self.capacity[place])
        };
        let mut tries: Vec<Vec<u32>> = Vec::new();
        for lengths in [&mean, &found.lengths] {
            for least in BUSY {
                let cut =
                    |(place, &length): (usize, &u32)| if busy(place, least) { length } else { 0 };
                tries.push(lengths.iter().enumerate().map(cut).collect());
            }
            let longest = lengths.iter().copied().max().unwrap_or(0);
            for short in SHORT {
                let cut = |&length: &u32| if length < longest / short { 0 } else { length };
                tries.push(lengths.iter().map(cut).collect());
            }
        }
        for lengths in tries.into_iter().take(self.steps) {
            self.lengths = lengths;
            let other = self.proof();
            // Without capacity the quotient is not a number, which is not greater.
            let better = other.value();
            if better > value {
                (value, found) = (better, other);
            }
        }
        found
    }

    fn maximum(&self, loads: &[f64]) -> f64 {
        let rooms = loads.iter().zip(&self.capacity).filter(|(_, capacity)| **capacity > 0);
        rooms.map(|(load, &capacity)| load / f64::from(capacity)).fold(0.0, f64::max)
    }

    /// Sends all weights over the shortest routes and returns the bound that the lengths prove.
    /// `None` if a step visits so many places that too few steps could be made.
    fn step(&mut self) -> Option<LengthBound> {
        self.load.fill(0.0);
        let before = self.expanded;
        for source in 0..to_u32(self.network.cells) {
            if !self.by_source.of(source).is_empty() {
                self.measure(source);
                self.send(source);
            }
            if before == 0 && self.expanded > self.effort.budget / MIN_STEPS {
                return None;
            }
        }
        Some(self.found())
    }

    /// The bound that the lengths prove.
    fn proof(&mut self) -> LengthBound {
        self.weighted_distance = 0;
        for source in 0..to_u32(self.network.cells) {
            if !self.by_source.of(source).is_empty() {
                self.measure(source);
                self.travel(source);
            }
        }
        self.found()
    }

    fn found(&mut self) -> LengthBound {
        let weighted_distance = std::mem::take(&mut self.weighted_distance);
        let capacity = self.lengths.iter().zip(&self.capacity);
        let capacity =
            capacity.map(|(&length, &capacity)| u128::from(length) * u128::from(capacity)).sum();
        LengthBound { weighted_distance, capacity, lengths: self.lengths.clone() }
    }

    fn length(&self, edge: usize) -> u64 {
        let place = if self.of_cells { index(self.network.next.head(edge)) } else { edge };
        u64::from(self.lengths[place])
    }

    /// The distances from a source as far as its farthest target, and the cells in the order of
    /// distance.
    fn measure(&mut self, source: u32) {
        for cell in self.touched.drain(..) {
            self.distance[index(cell)] = u64::MAX;
        }
        self.order.clear();
        self.heap.clear();
        let mut missing = 0;
        self.expanded += self.by_source.of(source).len();
        for &x in self.by_source.of(source) {
            let target = self.set.connections()[index(x)].target.index();
            missing += usize::from(!std::mem::replace(&mut self.wanted[target], true));
        }
        let start = if self.of_cells { u64::from(self.lengths[index(source)]) } else { 0 };
        self.distance[index(source)] = start;
        self.touched.push(source);
        self.heap.push(Reverse((start, source)));
        while let Some(Reverse((distance, cell))) = self.heap.pop() {
            if distance > self.distance[index(cell)] {
                continue;
            }
            self.order.push(cell);
            missing -= usize::from(std::mem::take(&mut self.wanted[index(cell)]));
            if missing == 0 {
                break;
            }
            let edges = self.network.next.edges(cell);
            self.expanded += 1 + edges.len();
            for edge in edges {
                let next = self.network.next.head(edge);
                let reached = distance + self.length(edge);
                if reached < self.distance[index(next)] {
                    if self.distance[index(next)] == u64::MAX {
                        self.touched.push(next);
                    }
                    self.distance[index(next)] = reached;
                    self.heap.push(Reverse((reached, next)));
                }
            }
        }
    }

    /// Adds the distances that the weights of a source travel.
    fn travel(&mut self, source: u32) {
        for &x in self.by_source.of(source) {
            let target = self.set.connections()[index(x)].target.index();
            let weight = u128::from(self.weights[index(x)]);
            self.weighted_distance += weight * u128::from(self.distance[target]);
        }
    }

    /// Sends the weights of a source. If several edges are on shortest routes to a cell, they get
    /// equal shares.
    fn send(&mut self, source: u32) {
        self.travel(source);
        for &x in self.by_source.of(source) {
            let target = self.set.connections()[index(x)].target.index();
            self.through[target] += to_f64(self.weights[index(x)]);
        }
        for row in (0..self.order.len()).rev() {
            let cell = self.order[row];
            let through = std::mem::take(&mut self.through[index(cell)]);
            if through == 0.0 {
                continue;
            }
            if self.of_cells {
                self.load[index(cell)] += through;
            }
            if cell == source {
                continue;
            }
            let network = self.network;
            let back = network.back.of(cell);
            let count = back.iter().filter(|&&from| self.last_step(from, cell).is_some()).count();
            let share = through / to_f64(count);
            for &from in back {
                let Some(edge) = self.last_step(from, cell) else { continue };
                self.through[index(from)] += share;
                if !self.of_cells {
                    self.load[edge] += share;
                }
            }
        }
    }

    /// The edge between two neighbours, if it is the last one of a shortest route.
    fn last_step(&self, from: u32, cell: u32) -> Option<usize> {
        let edge = self.network.next.edge(from, cell);
        let before = self.distance[index(from)];
        let shortest =
            before != u64::MAX && before + self.length(edge) == self.distance[index(cell)];
        shortest.then_some(edge)
    }

    /// A text that names the places with the greatest lengths.
    fn longest(&self, found: &LengthBound) -> String {
        let most = found.lengths.iter().copied().max().unwrap_or(0);
        let near = |&(_, &length): &(usize, &u32)| length >= most - most / 4;
        let places = found.lengths.iter().enumerate().filter(near).map(|(place, _)| place);
        let edges = |cell: u32| self.network.next.edges(cell).map(move |edge| (cell, edge));
        let ends: Vec<(u32, usize)> = (0..to_u32(self.network.cells)).flat_map(edges).collect();
        let name = |place: usize| match self.of_cells {
            true => CellId(to_u32(place)).to_string(),
            false => {
                let (from, edge) = ends[place];
                format!("{} to {}", CellId(from), CellId(self.network.next.head(edge)))
            }
        };
        let mut names: Vec<String> = places.map(name).collect();
        let count = names.len();
        names.truncate(4);
        let more = if count > 4 { format!(" and {} more", count - 4) } else { String::new() };
        format!("the longest are {}{more}", names.join(", "))
    }
}
