//! Placements to start from, each improved by a quick descent.
//!
//! Small programs get several tries, because a bisection is cheap and full of choices. Parts are
//! drawn together by their words alone, or by words and channels: a connection of few words
//! takes as many channels as one of many.

use conset_ir::Machine;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::metric::Metric;
use super::part_graph::PartGraph;
use super::region::region;
use super::swap_descent::{self, NearbyEndpoints};
use super::{Placer, bisect, curve};

/// Bisections tried for each kind of weight, with other random choices, where they are cheap.
const MAX_TRIES: usize = 4;
/// Pairs of parts that traffic, in all tries together, before those are cut down.
const WORK_BUDGET: usize = 1 << 15;
/// Pairs of parts that traffic, beyond which one try has to do.
const MANY_PAIRS: usize = 1 << 18;
/// The most words that a connection's channel may weigh.
const MAX_CHANNEL_WEIGHT: f64 = 65536.0;

/// What makes starts for one set.
pub(super) struct InitialPlacements<'a> {
    placer: &'a Placer<'a>,
    /// The metric without the links that close dimensions to rings.
    unrolled: Metric,
    pub(super) nearby: NearbyEndpoints,
    /// Parts drawn together by words.
    words: PartGraph,
    /// The cells that get the parts.
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

    /// Along a curve, as it comes.
    pub(super) fn curve(&self) -> Vec<u32> {
        curve::assign(&self.placer.metric, &self.words, self.cells.clone())
    }

    /// The fewest word-hops of several bisections and the placement as given, each improved.
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

    /// Along a curve and by bisection, with channels in the weights; small programs also as given
    /// and by several bisections.
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
        // Few programs are rings. On a torus as it is, the two sides of a region are equally far
        // from the region across, and parts can be led to either.
        let flat = if turn.is_multiple_of(2) { &self.unrolled } else { metric };
        let cells = self.cells.clone();
        let place = bisect::assign(machine, network, flat, graph, cells, &mut self.rng);
        self.improved(graph, place)
    }

    /// Shortens the ways of a placement by swaps; what they weigh in the end, and where it is.
    fn improved(&self, graph: &PartGraph, mut place: Vec<u32>) -> (i128, Vec<u32>) {
        let metric = &self.placer.metric;
        swap_descent::improve(&self.nearby, metric, graph, &mut place);
        (swap_descent::weighted_hops(graph, metric, &place), place)
    }
}

/// What a connection's channel weighs beside its words: a hop more takes a share of all channels,
/// hence of a phase's switch, and its words a share of all links.
fn channel_weight(machine: &Machine) -> i64 {
    let parameters = machine.parameters();
    let links: usize = machine.cells().map(|cell| machine.outgoing(cell).len()).sum();
    let cells = machine.cells().filter(|&cell| machine.is_alive(cell)).count();
    let switch = parameters.switch_clocks() as f64;
    let channels = f64::from(parameters.channels_per_cell.max(1)) * cells.max(1) as f64;
    let link = f64::from(parameters.link_clocks_per_word.max(1)) / links.max(1) as f64;
    (switch / channels / link).clamp(1.0, MAX_CHANNEL_WEIGHT) as i64
}
