//! Placement: which cell each part of the program lives on.
//!
//! The aim is the time of the compiled set, as far as it depends on where parts live: channels
//! taken decide the number of phases, loads of links decide how long a phase lasts when agents do
//! not, and short ways make both small (module `cost`). Ways to place:
//!
//! * *given*: part `i` on the `i`-th live cell with an agent;
//! * *curve*: parts in breadth-first order along a serpentine through the cells;
//! * *bisect*: cells and parts are bisected together, over and over: the cells where the machine is
//!   longest, the parts into two halves of matching sizes with few words between them (sweeps
//!   and greedy growing, then Fiduccia-Mattheyses passes), where a part is also drawn towards its
//!   partners in other regions; a bounded descent then swaps neighbours while that shortens ways;
//! * *best*: all of these are starts, some of them several times and with weights for words and
//!   for channels; the cheapest few are improved by a local search under the whole cost, and
//!   the cheapest placement of all that were met is taken. So it never costs more than another.
//!
//! Fewer parts than cells get a compact region (module `region`) to start from. Dead cells and
//! switches hold no part.
//!
//! Distances are those of the intact machine where that has coordinates (dead links may make
//! ways longer); a graph has a table of hops if it is small enough, and else only "here" and
//! "elsewhere". Time is about in proportion to connections and cells, with fixed budgets for the
//! searches. Nothing is routed: whether the estimate comes true is for the router to show.

mod anneal;
mod bisect;
mod cost;
mod curve;
mod graph;
mod metric;
mod region;
mod shares;
mod swap;
mod talk;

use conset_ir::{CellId, ConnectionSet, Fix, Infeasible, Machine};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use cost::Cost;

use crate::explain;
use crate::network::Network;
use cost::Loads;
use graph::PartGraph;
use metric::Metric;
use region::region;
use shares::Shares;
use swap::Near;
use talk::Talk;

/// Bisections tried for each kind of weight, with other random choices, where they are cheap.
const TRIES: usize = 4;
/// Pairs of parts that talk, in all tries together, before those are cut down.
const WORK: usize = 1 << 15;
/// Pairs of parts that talk, beyond which one try has to do.
const LARGE: usize = 1 << 18;
/// Starts that the search under the whole cost improves.
const IMPROVED: usize = 2;
/// Resources that those searches may touch together: some tenths of a second.
const TOUCHED: u64 = 1 << 25;
/// The most words that a connection's channel may weigh.
const CHANNEL: f64 = 65536.0;

/// How parts come to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Part `i` on the `i`-th live cell with an agent.
    Given,
    /// Along a space-filling curve.
    Curve,
    /// By recursive bisection for few word-hops.
    Bisect,
    /// All of these and a local search; the cheapest.
    #[default]
    Best,
}

impl Method {
    /// The spelling in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Given => "given",
            Method::Curve => "curve",
            Method::Bisect => "bisect",
            Method::Best => "best",
        }
    }
}

/// A cell for each part: `place[part]`. The set's cells are part numbers, from 0 to `parts`.
///
/// # Errors
/// More parts than live cells with an agent; a connection of a part that is not there.
pub fn place(
    machine: &Machine,
    set: &ConnectionSet,
    parts: usize,
    method: Method,
    seed: u64,
) -> Result<Vec<CellId>, Infeasible> {
    check(machine, set, parts)?;
    let given: Vec<u32> = machine.endpoints().take(parts).map(|cell| cell.0).collect();
    let place = match method {
        Method::Given => given,
        Method::Curve | Method::Bisect | Method::Best => {
            let network = Network::new(machine);
            let placer = Placer::new(machine, &network, set, parts);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            match method {
                Method::Curve => placer.curve(&placer.words),
                Method::Bisect => placer.bisected(given, &mut rng),
                _ => placer.best(given, &mut rng),
            }
        }
    };
    Ok(place.into_iter().map(CellId).collect())
}

/// What a placement of a set costs by the estimate that [`Method::Best`] minimises.
///
/// # Errors
/// As [`place`], and a placement that is not one: other than one cell for each part, two parts on
/// a cell, a cell that has no live agent.
pub fn cost(
    machine: &Machine,
    set: &ConnectionSet,
    place: &[CellId],
) -> Result<Cost, Infeasible> {
    check(machine, set, place.len())?;
    let mut taken = vec![false; machine.cell_count()];
    for (part, &cell) in place.iter().enumerate() {
        let fits = cell.index() < taken.len() && machine.is_endpoint(cell);
        if !fits || std::mem::replace(&mut taken[cell.index()], true) {
            let reason = format!("part {part} cannot live on {cell}: no live agent, or taken");
            return Err(refusal(set, reason, vec![]));
        }
    }
    let network = Network::new(machine);
    let metric = Metric::new(machine, &network);
    let shares = Shares::new(machine, &network, &metric);
    let talk = Talk::new(machine, set, place.len());
    let mut loads = Loads::new(machine, &shares, &talk);
    let place: Vec<u32> = place.iter().map(|cell| cell.0).collect();
    loads.load(&talk, &place);
    Ok(loads.cost())
}

/// Words times distance of a set whose cells are cells of the machine, over live links.
///
/// # Errors
/// Ends that are not live cells with an agent; connections without a way.
pub fn word_hops(machine: &Machine, set: &ConnectionSet) -> Result<u128, Infeasible> {
    set.check_machine(machine).map_err(|error| explain::misshapen(set, &error))?;
    crate::bounds::word_hops(machine, set)
}

/// A machine and a set made ready for placing.
struct Placer<'a> {
    machine: &'a Machine,
    network: &'a Network,
    metric: Metric,
    /// The metric without the links that close dimensions to rings.
    unrolled: Metric,
    near: Near,
    talk: Talk,
    /// Parts drawn together by words, and by words and channels.
    words: PartGraph,
    both: PartGraph,
    cells: Vec<u32>,
}

impl<'a> Placer<'a> {
    fn new(
        machine: &'a Machine,
        network: &'a Network,
        set: &ConnectionSet,
        parts: usize,
    ) -> Self {
        let metric = Metric::new(machine, network);
        let talk = Talk::new(machine, set, parts);
        Self {
            machine,
            network,
            unrolled: metric.unrolled(),
            metric,
            near: Near::new(machine, network),
            words: PartGraph::new(&talk, 0),
            both: PartGraph::new(&talk, channel_weight(machine)),
            talk,
            cells: region(machine, network, parts),
        }
    }

    fn curve(&self, graph: &PartGraph) -> Vec<u32> {
        curve::assign(&self.metric, graph, self.cells.clone())
    }

    /// Shortens the ways of a placement by swaps; what they weigh in the end.
    fn shortened(&self, graph: &PartGraph, mut place: Vec<u32>) -> (i128, Vec<u32>) {
        swap::improve(&self.near, &self.metric, graph, &mut place);
        (swap::weighted_hops(graph, &self.metric, &place), place)
    }

    fn bisection(&self, graph: &PartGraph, turn: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
        // Few programs are rings. On a torus as it is, the two sides of a region are equally far
        // from the region across, and parts can be led to either.
        let flat = if turn % 2 == 0 { &self.unrolled } else { &self.metric };
        bisect::assign(self.machine, self.network, flat, graph, self.cells.clone(), rng)
    }

    fn tries(&self) -> usize {
        let least = if self.words.len() > LARGE { 1 } else { 2 };
        (WORK / (self.words.len() + self.talk.parts()).max(1)).clamp(least, TRIES)
    }

    /// The fewest word-hops of several bisections and the placement as given, each shortened.
    fn bisected(&self, given: Vec<u32>, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut best = self.shortened(&self.words, given);
        for turn in 0..self.tries() {
            let start = self.bisection(&self.words, turn, rng);
            let next = self.shortened(&self.words, start);
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    /// The cheapest placement of all starts and of the searches from the best of them.
    fn best(&self, given: Vec<u32>, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let shares = Shares::new(self.machine, self.network, &self.metric);
        let mut loads = Loads::new(self.machine, &shares, &self.talk);
        let mut met = Met::default();
        let mut offer = |place: Vec<u32>, loads: &mut Loads<'_>| {
            loads.load(&self.talk, &place);
            met.add(loads.clocks(), place);
        };
        offer(given.clone(), &mut loads);
        offer(self.bisected(given.clone(), rng), &mut loads);
        let graph = &self.both;
        offer(self.shortened(graph, given).1, &mut loads);
        offer(self.shortened(graph, self.curve(graph)).1, &mut loads);
        for turn in 0..self.tries() {
            let start = self.bisection(graph, turn, rng);
            offer(self.shortened(graph, start).1, &mut loads);
        }
        for mut start in met.cheapest(IMPROVED) {
            let budget = TOUCHED / IMPROVED as u64;
            anneal::improve(
                &self.near,
                &self.metric,
                &self.talk,
                &mut loads,
                &mut start,
                budget,
                rng,
            );
            loads.load(&self.talk, &start);
            met.add(loads.clocks(), start);
        }
        met.cheapest(1).pop().unwrap_or_default()
    }
}

/// Placements met, and what each costs; of equal ones the first is better.
#[derive(Default)]
struct Met {
    all: Vec<(f64, Vec<u32>)>,
}

impl Met {
    fn add(&mut self, clocks: f64, place: Vec<u32>) {
        if !self.all.iter().any(|(_, other)| *other == place) {
            self.all.push((clocks, place));
        }
    }

    /// So many of the cheapest, cheapest first.
    fn cheapest(&mut self, count: usize) -> Vec<Vec<u32>> {
        self.all.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.all.iter().take(count).map(|(_, place)| place.clone()).collect()
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
    (switch / channels / link).clamp(1.0, CHANNEL) as i64
}

fn check(machine: &Machine, set: &ConnectionSet, parts: usize) -> Result<(), Infeasible> {
    let homes = machine.endpoints().count();
    if parts > homes {
        return Err(too_many_parts(set, parts, homes));
    }
    let stray = |c: &&conset_ir::Connection| c.source.index().max(c.target.index()) >= parts;
    let Some(stray) = set.connections().iter().find(stray) else { return Ok(()) };
    let (source, target) = (stray.source.0, stray.target.0);
    let reason =
        format!("a connection from part {source} to part {target}, but there are {parts} parts");
    let fix = Fix::Other("give the number of parts that the set has".to_owned());
    Err(refusal(set, reason, vec![fix]))
}

fn too_many_parts(set: &ConnectionSet, parts: usize, homes: usize) -> Infeasible {
    let reason = format!("{parts} parts do not fit on {homes} live cells, one to each");
    let fixes = vec![
        Fix::Other(format!("make at most {homes} parts (--parts {homes})")),
        Fix::Other(format!("take a machine of {parts} cells or more (--machine)")),
    ];
    refusal(set, reason, fixes)
}

fn refusal(set: &ConnectionSet, reason: String, fixes: Vec<Fix>) -> Infeasible {
    Infeasible {
        set: set.name().to_owned(),
        reason,
        overfull: Vec::new(),
        connections: Vec::new(),
        fixes,
    }
}

#[cfg(test)]
mod tests;
