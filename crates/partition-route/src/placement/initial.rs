//! Initial placements for the local search, each improved by a quick descent.
//!
//! Small programs get several attempts, because a bisection is cheap and has many random choices.
//! Parts attract each other by their words alone, or by words and channels: a connection of few
//! words takes as many channels as one of many.

use conset_ir::Machine;
use conset_ir::convert::{to_f64, to_i64, truncate};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::metric::Metric;
use super::part_graph::PartGraph;
use super::region::region;
use super::swap_descent::{self, NearbyEndpoints};
use super::{Placer, bisect, curve};

/// Bisections for each kind of weight, with different random choices, if they are cheap.
const MAX_TRIES: usize = 4;
/// Pairs of communicating parts in all bisections together, beyond which there are fewer.
const WORK_BUDGET: usize = 1 << 15;
/// Pairs of communicating parts beyond which there is only one bisection.
const MANY_PAIRS: usize = 1 << 18;
/// The greatest weight of a connection's channel, in words.
const MAX_CHANNEL_WEIGHT: f64 = 65536.0;

/// Makes the initial placements of one set.
pub(super) struct InitialPlacements<'a> {
    placer: &'a Placer<'a>,
    /// The metric without the links that close dimensions to rings.
    unrolled: Metric,
    pub(super) nearby: NearbyEndpoints,
    /// The graph of parts, weighted by words.
    words: PartGraph,
    /// The cells to be used.
    cells: Vec<u32>,
    pub(super) rng: ChaCha8Rng,
}

impl<'a> InitialPlacements<'a> {
    pub(super) fn new(placer: &'a Placer<'a>) -> Self {
        let parts = placer.traffic.parts();
        Self {
            placer,
            unrolled: placer.metric.unrolled(),
            nearby: NearbyEndpoints::new(placer.machine, placer.network),
            words: PartGraph::new(&placer.traffic, 0),
            cells: region(placer.machine, placer.network, parts),
            rng: ChaCha8Rng::seed_from_u64(placer.seed),
        }
    }

    /// The placement along a curve.
    pub(super) fn curve(&self) -> Vec<u32> {
        curve::assign(&self.placer.metric, &self.words, self.cells.clone())
    }

    /// The placement with the fewest word-hops among several bisections and the given one, each
    /// improved.
    pub(super) fn bisected(&mut self, given: Vec<u32>) -> Vec<u32> {
        let graph = self.words.clone();
        let mut best = self.improved(&graph, given);
        for turn in 0..self.tries() {
            let next = self.bisection(&graph, turn);
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    /// The curve and a bisection with channels in the weights; for small programs also the given
    /// placement and several bisections.
    pub(super) fn for_channels(&mut self, given: Vec<u32>) -> Vec<Vec<u32>> {
        let graph = PartGraph::new(&self.placer.traffic, channel_weight(self.placer.machine));
        let mut starts = vec![self.improved(&graph, self.curve()).1];
        let small = self.tries() == MAX_TRIES;
        if small {
            starts.push(self.improved(&graph, given).1);
        }
        for turn in 0..if small { MAX_TRIES } else { 1 } {
            starts.push(self.bisection(&graph, turn).1);
        }
        starts
    }

    fn tries(&self) -> usize {
        let least = if self.words.len() > MANY_PAIRS { 1 } else { 2 };
        (WORK_BUDGET / (self.words.len() + self.words.parts()).max(1)).clamp(least, MAX_TRIES)
    }

    fn bisection(&mut self, graph: &PartGraph, turn: usize) -> (i128, Vec<u32>) {
        let Placer { machine, network, metric, .. } = self.placer;
        // Few programs are rings. With the links that close a torus, both sides of a region are
        // equally far from the opposite region, which misleads the division.
        let flat = if turn.is_multiple_of(2) { &self.unrolled } else { metric };
        let cells = self.cells.clone();
        let place = bisect::assign(machine, network, flat, graph, cells, &mut self.rng);
        self.improved(graph, place)
    }

    /// Improves a placement by swaps; returns its weighted hops and the placement.
    fn improved(&self, graph: &PartGraph, mut place: Vec<u32>) -> (i128, Vec<u32>) {
        let metric = &self.placer.metric;
        swap_descent::improve(&self.nearby, metric, graph, &mut place);
        (swap_descent::weighted_hops(graph, metric, &place), place)
    }
}

/// The weight of a connection's channel in words: one more hop costs a share of all channels, hence
/// of a context switch, and for its words a share of all links.
fn channel_weight(machine: &Machine) -> i64 {
    let parameters = machine.parameters();
    let links: usize = machine.cells().map(|cell| machine.outgoing(cell).len()).sum();
    let cells = machine.cells().filter(|&cell| machine.is_alive(cell)).count();
    let switch = to_f64(parameters.switch_clocks());
    let channels = f64::from(parameters.channels_per_cell.max(1)) * to_f64(cells.max(1));
    let link = f64::from(parameters.link_clocks_per_word.max(1)) / to_f64(links.max(1));
    to_i64(truncate((switch / channels / link).clamp(1.0, MAX_CHANNEL_WEIGHT)))
}
