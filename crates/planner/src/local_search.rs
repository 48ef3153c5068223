//! Local search that improves an existing plan, in which streams may share links.
//!
//! The other planners keep streams on separate links. That is not always possible: where links are
//! short, streams at full rate leave too many links idle, or need too many phases. Streams that
//! share a link each get a part of its rate, and no time is lost as long as the busiest links are
//! never idle. The search changes the plan at random and runs the cost model. It accepts a change
//! that does not make the phases longer, or longer by less than a threshold that decreases
//! (threshold accepting). A change is one of: a new route, not necessarily shortest; a swap of two
//! streams of an agent; a split of a stream into parts on different routes or in different phases;
//! a merge of parts; a transfer of words between parts; a move of a stream to another phase; the
//! removal of a phase.
//!
//! A single change seldom makes a phase shorter, because several agents finish late. The objective
//! therefore adds to the lengths of phases a mean of the times at which agents finish, in which
//! late agents have the greatest weight.
//!
//! The order of a set is preserved. Sets with required bandwidths or latencies are not supported.

mod candidate;

use std::sync::Arc;

use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use conset_ir::{ConnectionId, Infeasible, Machine, StreamClocks, Timetable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::interrupt::Interrupt;
use crate::portfolio::Routed;
use crate::problem::ports;
use candidate::{CandidatePhase, CandidatePlan, CandidateStream};
use conset_partition_route::network::Network;
use conset_partition_route::{channels, explain};

/// A stream for the [`Runner`]: connection, words, and the edges of its route.
pub type Streamed<'a> = (ConnectionId, u32, &'a [u32]);

/// The cost model: runs a phase whose agents open streams in this order, and returns the end of
/// each stream in clocks.
pub type Runner<'a> = dyn FnMut(&[Streamed<'_>]) -> Vec<f64> + 'a;

/// The initial acceptance threshold, as a share of the mean length of a phase.
const SLACK: f64 = 0.006;

/// The maximum number of cells and edges of all phases.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;

/// Cells and edges whose table entries cost as much as running one stream.
const ROW: u64 = 64;

/// Improves the plan of a timetable until about `steps` streams have been run, or `interrupt` asks
/// for the end.
///
/// Returns the best plan visited, or `None` if none is better than the first. With `even`, the
/// search first balances the loads of links.
///
/// # Errors
/// None for the routing of a set on its machine.
pub fn local_search(
    timetable: &Timetable,
    even: bool,
    steps: u64,
    seed: u64,
    interrupt: &Interrupt,
    run: &mut Runner<'_>,
) -> Result<Option<Routed>, Infeasible> {
    let (machine, set) = (timetable.routing().machine(), timetable.routing().set());
    let network = Network::new(machine);
    let row = network.cell_count() + network.outgoing().edge_count();
    let held = row.saturating_mul(timetable.phases().len());
    if set.is_empty() || set.has_requirements() || held > TABLE_MEMORY_LIMIT {
        return Ok(None);
    }
    let candidate = CandidatePlan::new(machine, set, &network, timetable);
    let mut search = LocalSearch {
        candidate,
        switch: to_f64(machine.parameters().switch_clocks()),
        ports: ports(machine, set),
        last: vec![0.0; 2 * network.cell_count()],
        costs: Vec::new(),
        spent: 0,
        width: to_u64(row) / ROW,
        run,
    };
    let better = search.anneal(even, steps, seed, interrupt);
    better.map(|phases| plan_of(machine, set, &network, &phases)).transpose()
}

/// The cost of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// The duration in clocks, with the context switch.
    clocks: f64,
    /// The duration plus the weighted mean of the times at which agents finish.
    all: f64,
}

struct LocalSearch<'a, 'r> {
    candidate: CandidatePlan<'a>,
    switch: f64,
    ports: Vec<[u32; 2]>,
    /// The last end of each port in a phase.
    last: Vec<f64>,
    costs: Vec<Cost>,
    /// The steps spent: streams that were run, and the cost of tables.
    spent: u64,
    /// The cost of the tables of a phase, in steps.
    width: u64,
    run: &'a mut Runner<'r>,
}

impl LocalSearch<'_, '_> {
    /// The streams of the best phases visited, if they are better than the first.
    fn anneal(
        &mut self,
        even: bool,
        steps: u64,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Option<Vec<Vec<CandidateStream>>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.costs = (0..self.candidate.phases.len()).map(|_| Cost::default()).collect();
        for row in 0..self.costs.len() {
            self.costs[row] = self.cost(row);
        }
        let sum = |costs: &[Cost], of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>();
        let first = sum(&self.costs, |cost| cost.clocks);
        let mut best = (first, None);
        if even {
            self.candidate.even_out(&mut rng);
            for row in 0..self.costs.len() {
                self.costs[row] = self.cost(row);
            }
            self.note(&mut best);
        }
        let mut now = sum(&self.costs, |cost| cost.all);
        let slack = SLACK * first / to_f64(self.costs.len());
        self.spent = 0;
        while self.spent < steps && !interrupt.is_requested() {
            let left = 1.0 - to_f64(self.spent) / to_f64(steps);
            self.spent += 1;
            if !self.candidate.change(&mut rng) {
                continue;
            }
            let touched: Vec<usize> = self.candidate.touched().collect();
            let old: Vec<Cost> = touched.iter().map(|&row| self.costs[row]).collect();
            for &row in &touched {
                self.costs[row] = self.cost(row);
            }
            let then = sum(&self.costs, |cost| cost.all);
            let most = now + slack * left * left * rng.random::<f64>();
            if then > most {
                self.candidate.rollback();
                touched.iter().zip(old).for_each(|(&row, cost)| self.costs[row] = cost);
                continue;
            }
            self.candidate.commit();
            now = then;
            self.note(&mut best);
        }
        best.1
    }

    /// Stores the current streams if their phases are the shortest so far.
    fn note(&self, best: &mut (f64, Option<Vec<Vec<CandidateStream>>>)) {
        let clocks = self.costs.iter().map(|cost| cost.clocks).sum();
        if clocks < best.0 - 1.0 {
            let streams = |phase: &CandidatePhase| phase.streams.clone();
            *best = (clocks, Some(self.candidate.phases.iter().map(streams).collect()));
        }
    }

    /// Runs a phase and stores the ends of its streams.
    fn cost(&mut self, row: usize) -> Cost {
        let phase = &mut self.candidate.phases[row];
        if phase.streams.is_empty() {
            return Cost::default();
        }
        self.spent += to_u64(phase.streams.len()) + self.width;
        let mut streams: Vec<Streamed<'_>> = Vec::with_capacity(phase.streams.len());
        for CandidateStream { connection, words, route } in &phase.streams {
            streams.push((ConnectionId(*connection), *words, &route.edges));
        }
        let ends = (self.run)(&streams);
        self.last.fill(0.0);
        for (stream, &end) in phase.streams.iter().zip(&ends) {
            for port in self.ports[index(stream.connection)] {
                let last = &mut self.last[index(port)];
                *last = end.max(*last);
            }
        }
        phase.ends = ends;
        let length = phase.length();
        let eighth = |x: f64| ((x * x) * (x * x)) * ((x * x) * (x * x));
        let sum: f64 = self.last.iter().map(|&last| eighth(last / length.max(1.0))).sum();
        let late = length * (sum / to_f64(self.last.len())).sqrt().sqrt().sqrt();
        let clocks = self.switch + length;
        Cost { clocks, all: clocks + late }
    }
}

/// Numbers the channels, and gives every stream a start after the preceding streams of its agents.
/// Agents open streams in the order of their starts.
fn plan_of(
    machine: &Arc<Machine>,
    set: &Arc<conset_ir::ConnectionSet>,
    network: &Network,
    phases: &[Vec<CandidateStream>],
) -> Result<Routed, Infeasible> {
    let parameters = machine.parameters();
    let ports = ports(machine, set);
    let mut free = vec![0u64; 2 * network.cell_count()];
    let ordered = if set.order().is_empty() { 0 } else { set.len() };
    let mut over = vec![0u64; ordered];
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); ordered];
    set.order().iter().for_each(|(a, b)| before[b.index()].push(a.0));
    let mut started: Vec<Vec<(u64, &CandidateStream)>> = Vec::new();
    for streams in phases.iter().filter(|streams| !streams.is_empty()) {
        free.fill(0);
        over.fill(0);
        let mut phase = Vec::with_capacity(streams.len());
        for stream in streams {
            let [a, b] = ports[index(stream.connection)].map(index);
            let before = before.get(index(stream.connection)).into_iter().flatten();
            let start = before.map(|&x| over[index(x)]).fold(free[a].max(free[b]), u64::max);
            let connection = set.get(ConnectionId(stream.connection));
            let end = start + StreamClocks::new(parameters, connection).of(stream.words);
            (free[a], free[b]) = (end, end);
            if let Some(over) = over.get_mut(index(stream.connection)) {
                *over = end.max(*over);
            }
            phase.push((start, stream));
        }
        // Parts of a connection stand together.
        phase.sort_by_key(|(start, stream)| (stream.connection, *start));
        started.push(phase);
    }
    let routing = channels::number_parts(machine, set, network, to_u32(started.len()), |phase| {
        let streams = started[index(phase)].iter();
        streams.map(|(_, stream)| (stream.connection, stream.words, stream.route.cells.as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    let starts = started.iter().map(|streams| streams.iter().map(|s| s.0).collect()).collect();
    Ok(Routed { routing, rounds: None, starts: Some(starts) })
}
