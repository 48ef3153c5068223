//! The search for lengths that prove the greatest bound.
//!
//! It increases the lengths of places on shortest routes (multiplicative weights; routes of equal
//! length share the flow). Every step gives a bound in whole numbers, hence exact, and the best one
//! is kept. The search ends when
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
//!
//! A *place* is an edge (the parallel links between two cells) or a cell: first all edges, then all
//! cells. A place that is not searched for has the capacity 0 and the length 0.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use conset_ir::convert::{index, to_f64, to_u32, to_u64, truncate};
use conset_ir::limits::PRICE_SEARCH;
use conset_ir::{Connection, ConnectionSet, Machine};

use crate::network::Network;
use crate::wide::wide_to_f64;

/// What the lengths bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The words over the busiest link: edges have lengths.
    Words,
    /// The phases: cells have lengths.
    Phases,
    /// The words over the busiest link with this number of phases: edges and cells have lengths.
    WordsInPhases(u64),
}

/// What a search may cost.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Links and cells that it may visit in total.
    budget: usize,
    /// The most steps.
    steps: usize,
    /// The growth of the busiest place in the first step.
    growth: f64,
    /// The greatest length while flows are sent; the least is 1.
    fine: u32,
    /// The greatest length of the mean of many steps, which needs finer lengths.
    finest: u32,
}

impl Aim {
    const fn effort(self) -> Effort {
        match self {
            Aim::Words => {
                Effort { budget: 1 << 22, steps: 96, growth: 0.5, fine: 1 << 10, finest: 1 << 20 }
            }
            // The bound is rounded up, so the last hundredths often prove one phase more.
            Aim::Phases => {
                Effort { budget: 1 << 24, steps: 200, growth: 1.0, fine: 1 << 10, finest: 1 << 20 }
            }
            // A channel may cost as much as thousands of words.
            Aim::WordsInPhases(_) => {
                Effort { budget: 1 << 24, steps: 200, growth: 4.0, fine: 1 << 30, finest: 1 << 30 }
            }
        }
    }
}

/// The fewest steps of a search; a search that could make fewer is not started.
const MIN_STEPS: usize = 4;
/// At the end, all lengths below the longest divided by one of these are tried as 0.
const SHORT: [u32; 4] = [2, 4, 8, 16];
/// At the end, the lengths of places with less than one of these shares of the greatest mean load
/// are tried as 0.
const BUSY: [f64; 5] = [0.0, 0.5, 0.75, 0.9, 0.97];
/// A difference between flow and bound that is small enough, relative to the bound.
pub(super) const TOLERANCE: f64 = 0.002;

/// Lengths, and the bound that they prove: `needed / capacity`.
#[derive(Clone, Debug)]
pub(super) struct LengthBound {
    /// The length of all routes, less that of the fixed capacities.
    pub(super) needed: u128,
    /// The length of all places with a fixed capacity, times that.
    pub(super) fixed: u128,
    /// The length of all places with a capacity for each word or phase.
    pub(super) capacity: u128,
    /// The length of each place.
    pub(super) lengths: Vec<u32>,
}

impl LengthBound {
    /// The bound, not rounded; 0 if no place with a length has a capacity that grows with the bound.
    /// (Fixed capacities may then be too small for any bound, which is not what is searched for.)
    fn value(&self) -> f64 {
        match self.capacity {
            0 => 0.0,
            capacity => wide_to_f64(self.needed) / wide_to_f64(capacity),
        }
    }
}

/// Connections with the same source whose routes have the same length.
#[derive(Clone, Debug)]
struct Group {
    source: u32,
    /// The load of an edge by a unit of flow.
    words: u64,
    rows: Range<usize>,
}

/// What a length of fixed capacities costs beside one of the others. Only the lengths among the
/// fixed ones, and among the others, grow with their loads: beside these differences, the small and
/// lasting excess over all fixed capacities would hardly count.
struct FixedPrice {
    value: f64,
    /// The greatest excess so far.
    greatest: f64,
}

impl FixedPrice {
    /// Follows the share by which the fixed capacities are exceeded.
    fn follow(&mut self, excess: f64, growth: f64) {
        self.greatest = self.greatest.max(excess.abs());
        self.value *= (growth * excess / self.greatest).exp();
    }
}

/// The search for lengths.
pub(super) struct LengthSearch<'a> {
    network: &'a Network,
    set: &'a ConnectionSet,
    /// The number of edges, and the place of the first cell.
    edges: usize,
    /// The capacity of each place.
    capacity: Vec<u64>,
    /// Places from this one on have a fixed capacity; that of the others grows with the bound.
    fixed: usize,
    /// The connections in the order of their groups, each with its units of flow.
    rows: Vec<(u32, u64)>,
    groups: Vec<Group>,
    lengths: Vec<u32>,
    effort: Effort,
    /// The steps that may be made, and the links and cells visited so far.
    steps: usize,
    expanded: usize,
    // Scratch of one group.
    distance: Vec<u64>,
    touched: Vec<u32>,
    /// Whether a cell is a target that was not reached yet.
    wanted: Vec<bool>,
    order: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    through: Vec<f64>,
    /// Weights times distances so far.
    travelled: u128,
    /// The flow of a step through each place.
    load: Vec<f64>,
}

impl<'a> LengthSearch<'a> {
    /// `None` if the checker would not follow the proof.
    pub(super) fn new(
        machine: &Machine,
        network: &'a Network,
        set: &'a ConnectionSet,
        aim: Aim,
    ) -> Option<Self> {
        let edges = network.next.edge_count();
        let places = edges + network.cells;
        let mut capacity = vec![0u64; places];
        if aim != Aim::Phases {
            capacity[..edges]
                .iter_mut()
                .zip(&network.links)
                .for_each(|(room, &n)| *room = n.into());
        }
        if aim != Aim::Words {
            let phases = if let Aim::WordsInPhases(phases) = aim { phases } else { 1 };
            let channels = u64::from(machine.parameters().channels_per_cell);
            capacity[edges..].fill(channels.saturating_mul(phases));
            machine.dead_cells().iter().for_each(|cell| capacity[edges + cell.index()] = 0);
        }
        let words_of = |x: u32| u64::from(set.connections()[index(x)].words);
        let key = |x: u32| {
            let Connection { source, words, .. } = set.connections()[index(x)];
            let words = if matches!(aim, Aim::WordsInPhases(_)) { words.into() } else { 1u64 };
            (source.0, words)
        };
        let mut rows: Vec<u32> = (0..to_u32(set.len())).collect();
        rows.sort_by_key(|&x| key(x));
        let mut groups: Vec<Group> = Vec::new();
        let mut first = 0;
        for same in rows.chunk_by(|&a, &b| key(a) == key(b)) {
            let (source, words) = key(same[0]);
            groups.push(Group { source, words, rows: first..first + same.len() });
            first += same.len();
        }
        let units = |x: u32| if aim == Aim::Words { words_of(x) } else { 1 };
        let rows = rows.into_iter().map(|x| (x, units(x))).collect();
        // The checker visits the whole machine from each source.
        let links: u32 = network.links.iter().sum();
        let proof = groups.len().saturating_mul(network.cells + index(links));
        let mut effort = aim.effort();
        // No route is longer than 2^63.
        let longest_word = groups.iter().map(|group| group.words).max().unwrap_or(1).max(1);
        let most = (1 << 62) / longest_word / to_u64(places);
        effort.finest = to_u32(most.min(effort.finest.into()));
        effort.fine = effort.fine.min(effort.finest);
        let is_possible = proof <= PRICE_SEARCH && capacity.iter().any(|&capacity| capacity > 0);
        is_possible.then(|| Self {
            network,
            set,
            edges,
            fixed: if matches!(aim, Aim::WordsInPhases(_)) { edges } else { places },
            rows,
            groups,
            lengths: vec![0; places],
            load: vec![0.0; places],
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
            travelled: 0,
        })
    }

    /// The best lengths found; `None` if no lengths prove more than `known`, or if the search takes
    /// too long.
    pub(super) fn search(&mut self, known: u128) -> Option<LengthBound> {
        let known = wide_to_f64(known);
        let places = self.capacity.len();
        let mut best: Option<(f64, LengthBound)> = None;
        let mut exact: Vec<f64> =
            self.capacity.iter().map(|&capacity| if capacity > 0 { 1.0 } else { 0.0 }).collect();
        let parts = [0..self.fixed, self.fixed..places];
        // At first, all fixed capacities together cost as much as all others.
        let mut price = FixedPrice {
            value: known.max(1.0) * self.room(&exact, &parts[0])
                / self.room(&exact, &parts[1]).max(1.0),
            greatest: f64::MIN_POSITIVE,
        };
        self.round(&exact, price.value);
        // The greatest shares so far, not those of each step: otherwise steps with little flow would
        // count as much as others, and the mean of the flows would not be the best flow.
        let mut scales = [f64::MIN_POSITIVE; 2];
        let mut sum = vec![0.0f64; places];
        let mut mean = vec![0.0f64; places];
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
            let goal = known.max(proved);
            // The flow of each step and the mean flow are feasible, so none is below the bound.
            let now = self.maximum(&self.load, goal);
            sum.iter_mut().zip(&self.load).for_each(|(sum, load)| *sum += load);
            let reached = now.min(self.maximum(&sum, goal) / to_f64(step));
            // A number of phases gains from the last hundredths, clocks do not.
            let near = if parts[1].is_empty() { proved } else { goal };
            if reached <= known {
                return None;
            }
            if reached <= near * (1.0 + TOLERANCE) {
                break;
            }
            let growth = self.effort.growth / to_f64(step).sqrt();
            let used: f64 = parts[1].clone().map(|place| exact[place] * self.load[place]).sum();
            price.follow(used / self.room(&exact, &parts[1]).max(f64::MIN_POSITIVE) - 1.0, growth);
            for (part, scale) in parts.iter().zip(&mut scales) {
                let shares = || part.clone().map(|place| self.share(place, self.load[place], 1.0));
                *scale = shares().fold(*scale, f64::max);
                for (place, share) in part.clone().zip(shares()) {
                    exact[place] *= 1.0 + growth * share / *scale;
                }
                let longest = exact[part.clone()].iter().copied().fold(f64::MIN_POSITIVE, f64::max);
                exact[part.clone()].iter_mut().for_each(|exact| *exact /= longest);
            }
            if 2 * step > self.steps {
                let all = self.room(&exact, &parts[0]);
                for (place, mean) in mean.iter_mut().enumerate() {
                    let price = if place < self.fixed { 1.0 } else { price.value };
                    *mean += exact[place] * price / all;
                }
            }
            self.round(&exact, price.value);
        }
        let (value, found) = best?;
        Some(self.sparsified((value, found), &mean, &sum, known.max(value)))
    }

    /// What the lengths of edges prove alone, given the lengths of all places.
    pub(super) fn proved_by(&mut self, lengths: &[u32]) -> LengthBound {
        self.lengths[..self.edges].copy_from_slice(&lengths[..self.edges]);
        self.proof()
    }

    /// The length of some places, times their capacities.
    fn room(&self, lengths: &[f64], part: &Range<usize>) -> f64 {
        let rows = lengths[part.clone()].iter().zip(&self.capacity[part.clone()]);
        rows.map(|(length, &capacity)| length * to_f64(capacity)).sum()
    }

    /// Takes over lengths as whole numbers.
    fn round(&mut self, exact: &[f64], price: f64) {
        let price = |place: usize| if place < self.fixed { 1.0 } else { price };
        let of = |(place, exact): (usize, &f64)| exact * price(place);
        let longest = exact.iter().enumerate().map(of).fold(0.0, f64::max);
        self.lengths = exact
            .iter()
            .enumerate()
            .map(|(place, exact)| {
                let least = u32::from(self.capacity[place] > 0);
                whole(of((place, exact)) / longest, self.effort.fine).max(least)
            })
            .collect();
    }

    /// The best of some lengths, and of the same lengths with 0 for short places and for places
    /// with little flow. `mean` is the mean of the lengths, `sum` the sum of the loads.
    fn sparsified(
        &mut self,
        best: (f64, LengthBound),
        mean: &[f64],
        sum: &[f64],
        goal: f64,
    ) -> LengthBound {
        let (mut value, mut found) = best;
        let longest = mean.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mean: Vec<u32> =
            mean.iter().map(|mean| whole(mean / longest, self.effort.finest)).collect();
        let busiest = self.maximum(sum, goal);
        let mut tries: Vec<Vec<u32>> = Vec::new();
        for lengths in [&mean, &found.lengths] {
            for least in BUSY {
                let busy = |place| self.share(place, sum[place], goal) >= least * busiest;
                let cut = |(place, &length): (usize, &u32)| if busy(place) { length } else { 0 };
                tries.push(lengths.iter().enumerate().map(cut).collect());
            }
            let (of_edges, of_cells) = lengths.split_at(self.edges);
            for short in SHORT {
                let cut = |of: &[u32]| -> Vec<u32> {
                    let least = of.iter().copied().max().unwrap_or(0) / short;
                    of.iter().map(|&length| if length < least { 0 } else { length }).collect()
                };
                tries.push([cut(of_edges), cut(of_cells)].concat());
            }
        }
        for lengths in tries.into_iter().take(self.steps) {
            self.lengths = lengths;
            let other = self.proof();
            let better = other.value();
            if better > value {
                (value, found) = (better, other);
            }
        }
        found
    }

    /// The load of a place over its capacity. Where the capacity is fixed, it counts as much as
    /// others do if the bound is `goal`.
    fn share(&self, place: usize, load: f64, goal: f64) -> f64 {
        match self.capacity[place] {
            0 => 0.0,
            fixed if place >= self.fixed => load / to_f64(fixed) * goal,
            capacity => load / to_f64(capacity),
        }
    }

    fn maximum(&self, loads: &[f64], goal: f64) -> f64 {
        let shares = loads.iter().enumerate().map(|(place, &load)| self.share(place, load, goal));
        shares.fold(0.0, f64::max)
    }

    /// Sends all units over the shortest routes and returns the bound that the lengths prove.
    /// `None` if a step visits so many places that too few steps could be made.
    fn step(&mut self) -> Option<LengthBound> {
        self.load.fill(0.0);
        let before = self.expanded;
        for group in 0..self.groups.len() {
            self.measure(group);
            self.send(group);
            if before == 0 && self.expanded > self.effort.budget / MIN_STEPS {
                return None;
            }
        }
        Some(self.found())
    }

    /// The bound that the lengths prove.
    fn proof(&mut self) -> LengthBound {
        self.travelled = 0;
        for group in 0..self.groups.len() {
            self.measure(group);
            self.travel(group);
        }
        self.found()
    }

    fn found(&mut self) -> LengthBound {
        let travelled = std::mem::take(&mut self.travelled);
        let of = |places: Range<usize>| -> u128 {
            let lengths = self.lengths[places.clone()].iter().zip(&self.capacity[places]);
            lengths.map(|(&length, &capacity)| u128::from(length) * u128::from(capacity)).sum()
        };
        let fixed = of(self.fixed..self.capacity.len());
        LengthBound {
            needed: travelled.saturating_sub(fixed),
            fixed,
            capacity: of(0..self.fixed),
            lengths: self.lengths.clone(),
        }
    }

    /// The length of an edge and the cell that it leads to, for so many words.
    fn length(&self, edge: usize, words: u64) -> u64 {
        let cell = self.edges + index(self.network.next.head(edge));
        words * u64::from(self.lengths[edge]) + u64::from(self.lengths[cell])
    }

    /// The distances from a source as far as its farthest target, and the cells in the order of
    /// distance.
    fn measure(&mut self, group: usize) {
        let Group { source, words, ref rows } = self.groups[group];
        for cell in self.touched.drain(..) {
            self.distance[index(cell)] = u64::MAX;
        }
        self.order.clear();
        self.heap.clear();
        let mut missing = 0;
        self.expanded += rows.len();
        for &(x, _) in &self.rows[rows.clone()] {
            let target = self.set.connections()[index(x)].target.index();
            missing += usize::from(!std::mem::replace(&mut self.wanted[target], true));
        }
        let start = u64::from(self.lengths[self.edges + index(source)]);
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
                let reached = distance + self.length(edge, words);
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

    /// Adds the distances that the units of a group travel.
    fn travel(&mut self, group: usize) {
        for &(x, units) in &self.rows[self.groups[group].rows.clone()] {
            let target = self.set.connections()[index(x)].target.index();
            self.travelled += u128::from(units) * u128::from(self.distance[target]);
        }
    }

    /// Sends the units of a group. If several edges are on shortest routes to a cell, they get
    /// equal shares.
    fn send(&mut self, group: usize) {
        self.travel(group);
        let Group { source, words, ref rows } = self.groups[group];
        for &(x, units) in &self.rows[rows.clone()] {
            let target = self.set.connections()[index(x)].target.index();
            self.through[target] += to_f64(units);
        }
        for row in (0..self.order.len()).rev() {
            let cell = self.order[row];
            let through = std::mem::take(&mut self.through[index(cell)]);
            if through == 0.0 {
                continue;
            }
            self.load[self.edges + index(cell)] += through;
            if cell == source {
                continue;
            }
            let network = self.network;
            let back = network.back.of(cell);
            let last = |from: u32| self.last_step(from, cell, words);
            let count = back.iter().filter(|&&from| last(from).is_some()).count();
            let share = through / to_f64(count);
            for &from in back {
                let Some(edge) = self.last_step(from, cell, words) else { continue };
                self.through[index(from)] += share;
                self.load[edge] += share * to_f64(words);
            }
        }
    }

    /// The edge between two neighbours, if it is the last one of a shortest route.
    fn last_step(&self, from: u32, cell: u32, words: u64) -> Option<usize> {
        let edge = self.network.next.edge(from, cell);
        let before = self.distance[index(from)];
        let shortest =
            before != u64::MAX && before + self.length(edge, words) == self.distance[index(cell)];
        shortest.then_some(edge)
    }
}

/// A length of 0 to 1 as a whole number up to `most`. What is not a number counts as 0.
fn whole(length: f64, most: u32) -> u32 {
    let most = f64::from(most);
    to_u32(truncate((length * most).max(0.0).min(most)))
}
