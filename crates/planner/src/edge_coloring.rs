//! Rounds for any network by edge coloring and simulated annealing.
//!
//! If all connections have the same number of words, a timetable is an edge coloring: connections
//! of one color form a round, in which no agent sends or receives twice and no link carries two
//! connections. As many colors as the busiest agent has connections suffice for the agents (König).
//! The search looks for a coloring with a given number of colors that suits the links too:
//!
//! * The initial coloring has no conflicts at agents. It is constructed with alternating paths.
//!   Connections of the same displacement are colored together, so that each displacement of a
//!   stencil becomes a round. On meshes and tori the routes of such a round share no link, so that
//!   stencils on any number of cells need no annealing.
//! * A move takes a connection that shares a link in its round. It either reroutes the connection,
//!   or swaps two colors along the alternating path or cycle through it and reroutes all
//!   connections on that path. Neither creates a conflict at an agent.
//! * Moves that do not increase the number of shared links are accepted, others by simulated
//!   annealing. The search ends when no link is shared or its moves are used up.
//!
//! Agents must send and receive independently: with half duplex the graph is not bipartite. Unequal
//! words are allowed; a round then lasts as long as its longest connection.

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, Topology};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::interrupt::Interrupt;
use super::path_search::{PathSearch, UNIT};
use super::paths::{Paths, dimension_ordered};
use conset_partition_route::network::{Distances, Network};

/// The rounds and routes of a coloring.
pub(super) struct Coloring {
    pub(super) rounds: u32,
    /// The duration of the rounds in connections: each lasts as long as its busiest link.
    pub(super) length: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
    /// The cells expanded, and whether the search ended at their limit.
    pub(super) expanded: u64,
    pub(super) stopped: bool,
}

const NONE: u32 = u32::MAX;
/// The maximum number of table entries: cells or edges times rounds.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;
/// The cost of a link that is in use in the round.
const SHARED: u32 = 4 * UNIT;
/// The mean number of cells that a route search may expand; the search ends earlier on large
/// machines.
const ROUTE_EXPANSION_BUDGET: usize = 64;
const HOT: f64 = 1.5;
const COLD: f64 = 0.1;

/// What a search may use.
pub(super) struct ColoringLimits<'a> {
    /// The rounds of the coloring; more if an agent has more connections.
    pub(super) rounds: u32,
    /// The maximum number of connections to reroute; with 0, there is no coloring if the initial one
    /// has a shared link.
    pub(super) routes: usize,
    /// The maximum number of cells to expand.
    pub(super) expanded: u64,
    /// Ends the search early.
    pub(super) interrupt: &'a Interrupt,
}

/// Searches for a coloring within limits. Returns `None` for a machine or a set that is not
/// supported, and if there is no coloring without annealing where none is allowed.
pub(super) fn search(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    limits: &ColoringLimits<'_>,
    seed: u64,
) -> Option<Coloring> {
    if machine.parameters().duplex == conset_ir::Duplex::Half || set.is_empty() {
        return None;
    }
    let &ColoringLimits { rounds, routes, expanded: most, interrupt } = limits;
    let rounds = busiest_port(set, network.cell_count()).max(rounds);
    let table =
        network.cell_count().checked_mul(index(rounds)).filter(|&n| n <= TABLE_MEMORY_LIMIT)?;
    (network.outgoing().edge_count().checked_mul(index(rounds))? <= TABLE_MEMORY_LIMIT)
        .then_some(())?;
    let mut search = ColoringSearch {
        network,
        set,
        rounds: index(rounds),
        sends: vec![NONE; table],
        receives: vec![NONE; table],
        round_of: vec![NONE; set.len()],
        paths: vec![Vec::new(); set.len()],
        used: vec![0; network.outgoing().edge_count() * index(rounds)],
        parallel: network
            .link_counts()
            .iter()
            .map(|&links| u16::try_from(links).unwrap_or(u16::MAX).min(1 << 12))
            .collect(),
        path_search: PathSearch::new(network.cell_count()),
        distances: Distances::new(network, set.connections().iter().map(|c| c.target.0)),
        chain: Vec::new(),
        spent: 0,
        expanded: 0,
    };
    let grid = DisplacementGrid::new(machine);
    for (first, class) in (0..).zip(grid.classes(set)) {
        class.into_iter().for_each(|x| search.color(x, first));
    }
    let mut shared: i64 = 0;
    for x in 0..to_u32(set.len()) {
        search.paths[index(x)] = grid.path(set.get(ConnectionId(x)));
        if search.is_blocked(x) {
            search.find(x);
        }
        shared += search.book(x);
        if shared > 0 && routes == 0 {
            return None;
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    search.expanded = 0;
    let mut stopped = false;
    while shared > 0 {
        let used = search.spent.max(search.expanded / ROUTE_EXPANSION_BUDGET);
        // The share of the work, in routes.
        let product = u128::from(to_u64(search.expanded)) * u128::from(to_u64(routes));
        let worked = usize::try_from(product / u128::from(most)).unwrap_or(usize::MAX);
        stopped |= worked > used && worked >= routes;
        let used = used.max(worked);
        if used >= routes || interrupt.is_requested() {
            break;
        }
        let heat = HOT * (COLD / HOT).powf(to_f64(used) / to_f64(routes));
        shared += search.propose(&mut rng, heat);
    }
    let expanded = to_u64(search.expanded);
    let mut paths = Paths::with_capacity(set.len());
    for path in &search.paths {
        paths.push(path.iter().copied());
    }
    let length = search.length();
    Some(Coloring { rounds, length, round_of: search.round_of, paths, expanded, stopped })
}

/// The grid of a machine in whose dimensions connections have displacements.
struct DisplacementGrid {
    topology: Topology,
    /// The sizes of the dimensions; empty for machines without coordinates or with dead parts, whose
    /// connections all have the same displacement.
    sizes: Vec<u32>,
}

impl DisplacementGrid {
    fn new(machine: &Machine) -> Self {
        let topology = machine.topology().clone();
        let is_whole = machine.dead_cells().is_empty() && machine.dead_links().is_empty();
        let sizes = topology.dims().filter(|_| is_whole).unwrap_or_default();
        Self { topology, sizes }
    }

    /// The steps from source to target in each dimension, the short way where there are two.
    fn steps(&self, connection: &Connection) -> Vec<i64> {
        let coordinates = |cell: CellId| self.topology.coordinates(cell.index());
        let ends = coordinates(connection.source).zip(coordinates(connection.target));
        let (source, target) = ends.unwrap_or_default();
        let pairs = source.into_iter().zip(target).map(|(s, t)| i64::from(t) - i64::from(s));
        pairs.zip(&self.sizes).map(|(step, &size)| self.short_way(step, size.into())).collect()
    }

    fn short_way(&self, step: i64, size: i64) -> i64 {
        let ahead = step.rem_euclid(size);
        match self.topology.wraps() {
            true if 2 * ahead > size => ahead - size,
            true => ahead,
            false => step,
        }
    }

    /// The connections of each displacement, modulo the sizes.
    fn classes(&self, set: &ConnectionSet) -> Vec<Vec<u32>> {
        let mut classes: BTreeMap<Vec<i64>, Vec<u32>> = BTreeMap::new();
        for (x, connection) in (0..).zip(set.connections()) {
            let steps = self.steps(connection).into_iter().zip(&self.sizes);
            let displacement = steps.map(|(step, &size)| step.rem_euclid(size.into())).collect();
            classes.entry(displacement).or_default().push(x);
        }
        classes.into_values().collect()
    }

    /// The dimension-ordered path of a connection; empty on machines without coordinates.
    fn path(&self, connection: &Connection) -> Vec<u32> {
        match self.sizes.is_empty() {
            true => Vec::new(),
            false => dimension_ordered(connection.source.0, &self.steps(connection), &self.sizes),
        }
    }
}

/// Connections of the busiest port.
fn busiest_port(set: &ConnectionSet, cells: usize) -> u32 {
    let mut sends = vec![0u32; cells];
    let mut receives = vec![0u32; cells];
    for c in set.connections() {
        sends[c.source.index()] += 1;
        receives[c.target.index()] += 1;
    }
    sends.into_iter().chain(receives).max().unwrap_or(0)
}

struct ColoringSearch<'a> {
    network: &'a Network,
    set: &'a ConnectionSet,
    rounds: usize,
    /// By cell and round: the connection that it sends, receives.
    sends: Vec<u32>,
    receives: Vec<u32>,
    round_of: Vec<u32>,
    paths: Vec<Vec<u32>>,
    /// By edge and round: connections over it.
    used: Vec<u16>,
    parallel: Vec<u16>,
    path_search: PathSearch,
    distances: Distances,
    chain: Vec<u32>,
    /// Connections routed anew; eight looked at count for one.
    spent: usize,
    /// Cells that searches looked at.
    expanded: usize,
}

impl ColoringSearch<'_> {
    fn ends(&self, x: u32) -> (usize, usize) {
        let c = self.set.get(ConnectionId(x));
        (c.source.index() * self.rounds, c.target.index() * self.rounds)
    }

    fn place(&mut self, x: u32, round: u32) {
        let (source, target) = self.ends(x);
        self.sends[source + index(round)] = x;
        self.receives[target + index(round)] = x;
        self.round_of[index(x)] = round;
    }

    /// Gives a connection the first round that is free at both ends, preferably `first`, after
    /// swapping rounds along an alternating path where there is none.
    fn color(&mut self, x: u32, first: usize) {
        let (source, target) = self.ends(x);
        let sends = &self.sends[source..source + self.rounds];
        let receives = &self.receives[target..target + self.rounds];
        let first = Some(first).filter(|&round| round < self.rounds);
        let mut rounds = first.into_iter().chain(0..self.rounds);
        let both = rounds.find(|&r| sends[r] == NONE && receives[r] == NONE);
        let free = |list: &[u32]| list.iter().position(|&x| x == NONE);
        let round = match both {
            Some(round) => round,
            None => {
                // There are as many rounds as the busiest end has connections.
                let a = free(sends).expect("a free round at the source");
                let b = free(receives).expect("a free round at the target");
                // The path from the target that begins with round a does not reach the source.
                let first = self.receives[target + a];
                self.collect(first, to_u32(a), to_u32(b));
                self.swap_chain(to_u32(a), to_u32(b));
                a
            }
        };
        self.place(x, to_u32(round));
    }

    /// All connections on the alternating path or cycle of rounds `a` and `b` through `x`.
    fn collect(&mut self, x: u32, a: u32, b: u32) {
        self.chain.clear();
        self.chain.push(x);
        for at_source in [true, false] {
            let (mut at, mut at_source) = (x, at_source);
            loop {
                let other = index(if self.round_of[index(at)] == a { b } else { a });
                let (source, target) = self.ends(at);
                let next = match at_source {
                    true => self.sends[source + other],
                    false => self.receives[target + other],
                };
                if next == x {
                    return;
                }
                if next == NONE {
                    break;
                }
                self.chain.push(next);
                (at, at_source) = (next, !at_source);
            }
        }
    }

    /// Swaps two rounds along the collected path.
    fn swap_chain(&mut self, a: u32, b: u32) {
        for row in 0..self.chain.len() {
            let x = self.chain[row];
            let (source, target) = self.ends(x);
            let round = index(self.round_of[index(x)]);
            self.sends[source + round] = NONE;
            self.receives[target + round] = NONE;
        }
        for row in 0..self.chain.len() {
            let x = self.chain[row];
            let round = if self.round_of[index(x)] == a { b } else { a };
            self.place(x, round);
        }
    }

    /// Puts a connection on its links; by how much that makes sharing greater.
    fn book(&mut self, x: u32) -> i64 {
        self.change(x, true)
    }

    /// Takes a connection off its links; by how much that makes sharing greater (not above 0).
    fn unbook(&mut self, x: u32) -> i64 {
        self.change(x, false)
    }

    fn change(&mut self, x: u32, add: bool) -> i64 {
        let round = index(self.round_of[index(x)]);
        let mut change = 0;
        for pair in self.paths[index(x)].windows(2) {
            let edge = self.network.outgoing().edge(pair[0], pair[1]);
            let used = &mut self.used[edge * self.rounds + round];
            if add {
                change += i64::from(*used >= self.parallel[edge]);
                *used += 1;
            } else {
                *used -= 1;
                change -= i64::from(*used >= self.parallel[edge]);
            }
        }
        change
    }

    /// Whether a connection that is off its links has no path, or one with a link in use.
    fn is_blocked(&self, x: u32) -> bool {
        let round = index(self.round_of[index(x)]);
        let path = &self.paths[index(x)];
        path.is_empty()
            || path.windows(2).any(|pair| {
                let edge = self.network.outgoing().edge(pair[0], pair[1]);
                self.used[edge * self.rounds + round] >= self.parallel[edge]
            })
    }

    fn shares_a_link(&self, x: u32) -> bool {
        let round = index(self.round_of[index(x)]);
        self.paths[index(x)].windows(2).any(|pair| {
            let edge = self.network.outgoing().edge(pair[0], pair[1]);
            self.used[edge * self.rounds + round] > self.parallel[edge]
        })
    }

    /// The best route in a connection's round, for one that is off its links.
    fn find(&mut self, x: u32) {
        let c = self.set.get(ConnectionId(x));
        let (source, target) = (c.source.0, c.target.0);
        self.distances.aim(self.network, source, target);
        let (rounds, round) = (self.rounds, index(self.round_of[index(x)]));
        let (used, parallel) = (&self.used, &self.parallel);
        let link = |edge: usize| {
            let used = used[edge * rounds + round];
            if used < parallel[edge] { 0 } else { SHARED * u32::from(used) }
        };
        let found =
            self.path_search.find(self.network, &self.distances, (source, target), |_| UNIT, link);
        debug_assert!(found, "ways were found before");
        self.expanded += self.path_search.expanded();
        self.paths[index(x)].clone_from(&self.path_search.path);
    }

    fn length(&self) -> u32 {
        let mut lengths = vec![1; self.rounds];
        for (edge, used) in self.used.chunks(self.rounds).enumerate() {
            for (length, used) in lengths.iter_mut().zip(used) {
                *length = u32::from(used.div_ceil(self.parallel[edge])).max(*length);
            }
        }
        lengths.into_iter().sum()
    }

    /// Proposes a move; by how much it makes sharing greater.
    fn propose(&mut self, rng: &mut ChaCha8Rng, heat: f64) -> i64 {
        let count = to_u32(self.set.len());
        let mut x = rng.random_range(0..count);
        for _ in 0..64 {
            if self.shares_a_link(x) {
                break;
            }
            x = rng.random_range(0..count);
        }
        let a = self.round_of[index(x)];
        let b = rng.random_range(0..to_u32(self.rounds));
        self.chain.clear();
        if a == b {
            self.chain.push(x);
        } else {
            self.collect(x, a, b);
        }
        let chain = self.chain.clone();
        let mut change: i64 = chain.iter().map(|&x| self.unbook(x)).sum();
        if a != b {
            self.swap_chain(a, b);
        }
        change += chain.iter().map(|&x| self.book(x)).sum::<i64>();
        let mut old = Vec::new();
        for &x in &chain {
            if a == b || self.shares_a_link(x) {
                change += self.unbook(x);
                old.push((x, std::mem::take(&mut self.paths[index(x)])));
                self.find(x);
                change += self.book(x);
            }
        }
        self.spent += 1 + old.len() + chain.len() / 8;
        let allowed = -heat * f64::ln(rng.random_range(1e-9..1.0));
        if change <= 0 || to_f64(change) <= allowed {
            return change;
        }
        for &x in &chain {
            self.unbook(x);
        }
        if a != b {
            self.swap_chain(a, b);
        }
        for (x, path) in old {
            self.paths[index(x)] = path;
        }
        for &x in &chain {
            self.book(x);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections from each cell to all its neighbors in a grid, diagonal ones included.
    fn stencil(machine: &Machine, wraps: bool) -> ConnectionSet {
        let sizes = machine.topology().dims().unwrap();
        let coordinates = |cell: CellId| machine.topology().coordinates(cell.index()).unwrap();
        let is_neighbor = |a: CellId, b: CellId| {
            let mut pairs = coordinates(a).into_iter().zip(coordinates(b)).zip(&sizes);
            pairs.all(|((a, b), &size)| {
                let apart = a.abs_diff(b);
                (if wraps { apart.min(size - apart) } else { apart }) <= 1
            })
        };
        let pairs = machine.cells().flat_map(|a| machine.cells().map(move |b| (a, b)));
        let pairs = pairs.filter(|&(a, b)| a != b && is_neighbor(a, b));
        let connections = pairs.map(|(a, b)| Connection::new(a, b, 1 + (a.0 + b.0) % 5)).collect();
        ConnectionSet::new("stencil", connections).unwrap()
    }

    fn color(machine: &Machine, set: &ConnectionSet, routes: usize) -> Option<Coloring> {
        let interrupt = Interrupt::default();
        let limits = ColoringLimits { rounds: 0, routes, expanded: 1 << 30, interrupt: &interrupt };
        let found = search(machine, set, &Network::new(machine), &limits, 1)?;
        let mut busy = std::collections::HashSet::new();
        for (x, c) in set.iter() {
            let (round, path) = (found.round_of[x.index()], found.paths.of(x.index()));
            assert!(round < found.rounds);
            assert!(busy.insert((round, 0, c.source.0)) && busy.insert((round, 1, c.target.0)));
            assert_eq!([path[0], path[path.len() - 1]], [c.source.0, c.target.0]);
            assert!(machine.carries(&path.iter().map(|&cell| CellId(cell)).collect::<Vec<_>>()));
        }
        Some(found)
    }

    #[test]
    fn stencils_need_no_annealing() {
        for (spec, wraps, rounds) in [
            ("mesh:7x9", false, 8),
            ("mesh:7x9", true, 8),
            ("torus:8x5", false, 8),
            ("torus:8x5", true, 8),
            ("mesh:4x5x6", false, 26),
            ("mesh:4x5x6", true, 26),
        ] {
            let machine = Machine::from_spec(spec).unwrap();
            let found = color(&machine, &stencil(&machine, wraps), 0).expect(spec);
            assert_eq!((found.rounds, found.length), (rounds, rounds), "{spec} {wraps}");
        }
    }

    #[test]
    fn sets_whose_links_are_short_of_room_need_annealing() {
        let machine = Machine::from_spec("mesh:4x4").unwrap();
        let pairs = machine.cells().flat_map(|a| machine.cells().map(move |b| (a, b)));
        let connections = pairs.map(|(a, b)| Connection::new(a, b, 1)).collect();
        let set = ConnectionSet::new("complete", connections).unwrap();
        assert!(color(&machine, &set, 0).is_none());
        let found = color(&machine, &set, 1 << 12).unwrap();
        assert_eq!(found.rounds, 16);
    }

    #[test]
    fn dead_links_are_avoided() {
        let machine = Machine::from_spec("mesh:4x4").unwrap();
        let machine = machine.with_dead(&[], &[(CellId(5), CellId(6))]).unwrap();
        assert!(color(&machine, &stencil(&machine, false), 1 << 10).is_some());
    }
}
