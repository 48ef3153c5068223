//! Simulated annealing that balances the loads of a fixed number of phases.
//!
//! A phase lasts until its last word arrives, so the duration of a set is the sum over its phases
//! of the load of the busiest agent or link. If the port that is busiest overall had the same load
//! in every phase, and no other resource had more, that sum would equal the bound. The search
//! starts from the phases of the paper's algorithm. A move transfers one connection to another
//! phase, or exchanges two connections of one agent, with new routes in the new phases:
//!
//! * The objective is the sum of the 8th powers of the loads of all ports and links in all phases,
//!   in units of the load that the busiest port should have. The greatest loads dominate it, and it
//!   still decreases when one of several equally great loads does.
//! * Channels are a hard limit: routes avoid full cells, or the move is rejected.
//! * The result is the division with the least sum of greatest loads of all those visited.
//!
//! With a single phase only routes change. The number of moves is proportional to the number of
//! connections. Where routes are so long that the route searches would expand more than
//! [`EXPANSION_LIMIT`] cells, or more than [`MOVE_EXPANSION_LIMIT`] per move, the search cools
//! faster and ends at that limit. It also ends at a division that takes no longer than the busiest
//! port alone. Sets with an order or with required bandwidths or latencies are returned unchanged.

use conset_ir::convert::{index, to_f64, to_u32, to_u64, truncate};
use conset_ir::{ConnectionSet, Machine};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::max_tree::MaxTree;
use super::path_search::{CLOSED, PathSearch, UNIT};
use crate::interrupt::Interrupt;
use crate::problem::ports;
use crate::work::Work;
use conset_partition_route::network::{Distances, Network};

/// A division: a phase and a path for each connection.
#[derive(Clone, Debug)]
pub(super) struct Division {
    pub(super) phases: u32,
    pub(super) phase_of: Vec<u32>,
    pub(super) paths: Vec<Vec<u32>>,
}

/// The share of an accepted loss at the start and at the end of the search.
const HOT: f64 = 1.0;
const COLD: f64 = 0.001;

/// The maximum number of cells of all phases.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;

/// The number of cells that route searches may expand in total. Every 8x8 machine stays far below.
const EXPANSION_LIMIT: u64 = 1 << 27;

/// The same for each move: slightly more than two searches of all cells of an 8x8 machine. Without
/// this limit 992 connections on a hypercube of ten dimensions took ten times as long as on 8x8
/// cells, with no better result.
const MOVE_EXPANSION_LIMIT: u64 = 160;

/// Balances the phases of a division with `moves` moves and returns the best division visited.
pub(super) fn anneal(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    division: Division,
    (moves, work): (usize, &mut Work),
    interrupt: &Interrupt,
    seed: u64,
) -> Division {
    let held = network.cell_count().saturating_mul(index(division.phases));
    if division.phases == 0 || set.is_empty() || held > TABLE_MEMORY_LIMIT {
        return division;
    }
    let mut search = Annealing::new(machine, set, network, division);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut best = (search.time(), search.division.clone());
    let mut changed = false;
    let most = EXPANSION_LIMIT.min(MOVE_EXPANSION_LIMIT.saturating_mul(to_u64(moves)));
    for step in 0..moves {
        let used = to_f64(search.expanded) / to_f64(most);
        if used >= 1.0 || best.0 <= search.least || interrupt.is_requested() {
            break;
        }
        let heat = HOT * (COLD / HOT).powf((to_f64(step) / to_f64(moves)).max(used));
        changed |= search.propose(&mut rng, heat);
        if changed && step % CHECK == 0 {
            changed = false;
            let time = search.time();
            if time < best.0 {
                best = (time, search.division.clone());
            }
        }
    }
    work.take(search.expanded);
    if search.time() < best.0 { search.division } else { best.1 }
}

/// The number of moves between two evaluations of the duration.
const CHECK: usize = 64;

struct Annealing<'a> {
    network: &'a Network,
    set: &'a ConnectionSet,
    division: Division,
    channels: u32,
    cells: usize,
    port_count: usize,
    ports: Vec<[u32; 2]>,
    /// Connections of each port: row `s` is `ids[first[s]..first[s + 1]]`.
    first: Vec<u32>,
    ids: Vec<u32>,
    /// Clocks that a connection keeps its agents and its links busy.
    agent_clocks: Vec<u64>,
    link_clocks: Vec<u64>,
    /// By phase and cell, port, edge.
    taken: Vec<u32>,
    port_load: MaxTree,
    link_load: MaxTree,
    /// Links of each edge.
    parallel: Vec<u64>,
    unit: f64,
    /// The clocks of the busiest port in all phases together: no division takes less.
    least: u64,
    path_search: PathSearch,
    distances: Distances,
    expanded: u64,
}

impl<'a> Annealing<'a> {
    fn new(
        machine: &Machine,
        set: &'a ConnectionSet,
        network: &'a Network,
        division: Division,
    ) -> Self {
        let parameters = machine.parameters();
        let cells = network.cell_count();
        let port_count = parameters.duplex.port_count(cells);
        let ports = ports(machine, set);
        let mut first = vec![0u32; port_count + 1];
        for port in ports.iter().flatten() {
            first[index(*port) + 1] += 1;
        }
        for port in 0..port_count {
            first[port + 1] += first[port];
        }
        let mut next = first.clone();
        let mut ids = vec![0; 2 * ports.len()];
        for (x, both) in ports.iter().enumerate() {
            for &port in both {
                ids[index(next[index(port)])] = to_u32(x);
                next[index(port)] += 1;
            }
        }
        let words = || set.connections().iter().map(|c| c.words);
        let link = u64::from(parameters.link_clocks_per_word);
        let parallel: Vec<u64> = network.link_counts().iter().map(|&links| links.into()).collect();
        let phases = index(division.phases);
        let mut this = Self {
            network,
            set,
            channels: parameters.channels_per_cell,
            cells,
            port_count,
            ports,
            first,
            ids,
            agent_clocks: words().map(|words| parameters.end_clocks(words)).collect(),
            link_clocks: words().map(|words| u64::from(words) * link).collect(),
            taken: vec![0; phases * cells],
            port_load: MaxTree::new(phases, port_count),
            link_load: MaxTree::new(phases, parallel.len()),
            parallel,
            unit: 1.0,
            least: 0,
            path_search: PathSearch::new(cells),
            distances: Distances::new(network, set.connections().iter().map(|c| c.target.0)),
            division,
            expanded: 0,
        };
        for x in 0..set.len() {
            this.book(x, true);
        }
        let total =
            |port: usize| (0..phases).map(|p| this.port_load[p * port_count + port]).sum::<u64>();
        let busiest = (0..port_count).map(total).max().unwrap_or(1);
        this.least = busiest;
        this.unit = (to_f64(busiest) / to_f64(phases)).max(1.0);
        this
    }

    /// Adds a connection to its phase, or takes it away.
    fn book(&mut self, x: usize, add: bool) {
        let phase = index(self.division.phase_of[x]);
        let change = |loads: &mut MaxTree, at: usize, by: u64| {
            loads.set(at, if add { loads[at] + by } else { loads[at] - by });
        };
        for port in self.ports[x] {
            let at = phase * self.port_count + index(port);
            change(&mut self.port_load, at, self.agent_clocks[x]);
        }
        let path = &self.division.paths[x];
        for &cell in path {
            let taken = &mut self.taken[phase * self.cells + index(cell)];
            *taken = if add { *taken + 1 } else { *taken - 1 };
        }
        for pair in path.windows(2) {
            let edge = self.network.outgoing().edge(pair[0], pair[1]);
            let by = self.link_clocks[x] / self.parallel[edge];
            change(&mut self.link_load, phase * self.parallel.len() + edge, by);
        }
    }

    /// The sum over the phases of the greatest load.
    fn time(&self) -> u64 {
        let [ports, links] =
            [&self.port_load, &self.link_load].map(|l| l.of_rows().iter().copied());
        ports.zip(links.chain(std::iter::repeat(0))).map(|(a, b)| a.max(b)).sum()
    }

    fn weight(&self, load: u64) -> f64 {
        let u = to_f64(load) / self.unit;
        let square = u * u;
        let fourth = square * square;
        fourth * fourth
    }

    /// What the loads of the ports and links of a connection weigh in a phase. Two places of
    /// one connection are never the same, except for a half-duplex connection to itself.
    fn weight_of_ports(&self, x: usize, phase: u32) -> f64 {
        let at = |port: u32| self.port_load[index(phase) * self.port_count + index(port)];
        self.ports[x].iter().map(|&port| self.weight(at(port))).sum()
    }

    fn weight_of_links(&self, x: usize) -> f64 {
        let base = index(self.division.phase_of[x]) * self.parallel.len();
        self.division.paths[x]
            .windows(2)
            .map(|pair| {
                self.weight(self.link_load[base + self.network.outgoing().edge(pair[0], pair[1])])
            })
            .sum()
    }

    /// Proposes a move and returns whether it was accepted.
    fn propose(&mut self, rng: &mut ChaCha8Rng, heat: f64) -> bool {
        let x = rng.random_range(0..self.set.len());
        let from = self.division.phase_of[x];
        let allowed = -heat * f64::ln(rng.random_range(1e-9..1.0));
        let partner = if rng.random_range(0..4) > 0 {
            let port = index(self.ports[x][rng.random_range(0..2)]);
            let (first, end) = (self.first[port], self.first[port + 1]);
            let other = index(self.ids[index(rng.random_range(first..end))]);
            if self.division.phase_of[other] == from {
                return false;
            }
            Some(other)
        } else {
            None
        };
        let to = match partner {
            Some(other) => self.division.phase_of[other],
            None => rng.random_range(0..self.division.phases),
        };
        self.attempt(x, partner, to, allowed)
    }

    /// Moves `x` to phase `to` and `partner` the other way, if the loss is allowed.
    fn attempt(&mut self, x: usize, partner: Option<usize>, to: u32, allowed: f64) -> bool {
        let from = self.division.phase_of[x];
        if from == to && partner.is_some() {
            return false;
        }
        let moved: &[usize] = match partner {
            Some(other) => &[x, other],
            None => &[x],
        };
        let mut old: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        let mut gain = 0.0;
        for (row, &x) in moved.iter().enumerate() {
            let phase = self.division.phase_of[x];
            gain += self.weight_of_ports(x, phase) + self.weight_of_links(x);
            self.book(x, false);
            gain -= self.weight_of_ports(x, phase) + self.weight_of_links(x);
            old[row] = std::mem::take(&mut self.division.paths[x]);
        }
        // First the agents alone: most moves fail there, before any search for a route.
        let mut done = 0;
        for (row, &x) in moved.iter().enumerate() {
            let phase = if row == 0 { to } else { from };
            let loss = self.loss_of_ports(x, phase);
            if loss - gain > allowed || !self.find(x, phase) {
                break;
            }
            self.division.phase_of[x] = phase;
            self.division.paths[x].clone_from(&self.path_search.path);
            gain += self.weight_of_ports(x, phase) + self.weight_of_links(x);
            self.book(x, true);
            gain -= self.weight_of_ports(x, phase) + self.weight_of_links(x);
            done += 1;
        }
        if done == moved.len() && -gain <= allowed {
            return true;
        }
        for &x in &moved[..done] {
            self.book(x, false);
        }
        for (row, &x) in moved.iter().enumerate() {
            self.division.phase_of[x] = if row == 0 { from } else { to };
            self.division.paths[x] = std::mem::take(&mut old[row]);
            self.book(x, true);
        }
        false
    }

    fn loss_of_ports(&self, x: usize, phase: u32) -> f64 {
        let at = |port: u32| self.port_load[index(phase) * self.port_count + index(port)];
        let clocks = self.agent_clocks[x];
        self.ports[x]
            .iter()
            .map(|&port| self.weight(at(port) + clocks) - self.weight(at(port)))
            .sum()
    }

    /// Finds a route in a phase that avoids full cells, and if possible nearly full cells and
    /// links.
    fn find(&mut self, x: usize, phase: u32) -> bool {
        let c = self.set.get(conset_ir::ConnectionId(to_u32(x)));
        let (source, target) = (c.source.0, c.target.0);
        self.distances.aim(self.network, source, target);
        let (taken, links) = (index(phase) * self.cells, index(phase) * self.parallel.len());
        let (channels, unit) = (self.channels, truncate(self.unit));
        let cell = |at: u32| {
            let used = self.taken[taken + index(at)];
            if used >= channels {
                CLOSED
            } else {
                let [used, all] = [used, channels].map(|count| u64::from(count) * u64::from(count));
                UNIT + to_u32(u64::from(UNIT) * used / all)
            }
        };
        let link = |edge: usize| {
            let load = self.link_load[links + edge] + self.link_clocks[x];
            let share = to_u32((load * 4 / unit.max(1)).min(16));
            share * share
        };
        let found =
            self.path_search.find(self.network, &self.distances, (source, target), cell, link);
        self.expanded += to_u64(self.path_search.expanded());
        found
    }
}
