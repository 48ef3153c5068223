//! Shrinking: a smaller case that still fails.
//!
//! A case is taken apart into lists and numbers, these are halved or left out one after the other, and
//! each smaller case that still fails takes the place of the last. The result is not the smallest possible
//! one, but usually small enough to be read.

use std::sync::Arc;

use conset::CompileOptions;
use conset::ir::convert::{index, to_u32, to_u64};
use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, NodeLists, Parameters,
    Program, Protocol, Topology,
};

use crate::case::Case;

/// A smaller case for which `fails` is true, found with at most `tries` calls of it. `case` itself fails.
pub fn shrink(case: &Case, tries: u32, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut smallest = Pieces::of(case);
    let mut left = tries;
    loop {
        let mut found = false;
        // Every step is tried again on the result of the one before.
        for step in 0.. {
            let Some(smaller) = smallest.smaller(step) else { break };
            if smaller == smallest {
                continue;
            }
            let Some(case) = smaller.build() else { continue };
            if left == 0 {
                return smallest.build().unwrap_or_else(|| case.clone());
            }
            left -= 1;
            if fails(&case) {
                (smallest, found) = (smaller, true);
            }
        }
        if !found {
            return smallest.build().unwrap_or_else(|| case.clone());
        }
    }
}

/// A set without its name.
#[derive(Clone, PartialEq)]
struct SetPieces {
    connections: Vec<Connection>,
    order: Vec<(u32, u32)>,
    /// The nodes of each connection; none for a set without lists.
    nodes: Vec<Vec<u32>>,
}

/// A case as lists and numbers.
#[derive(Clone, PartialEq)]
struct Pieces {
    topology: Topology,
    parameters: Parameters,
    dead_cells: Vec<CellId>,
    dead_links: Vec<(CellId, CellId)>,
    sets: Vec<SetPieces>,
    options: CompileOptions,
}

impl Pieces {
    fn of(case: &Case) -> Self {
        let machine = &case.machine;
        let pieces = |set: &Arc<ConnectionSet>| SetPieces {
            connections: set.connections().to_vec(),
            order: set.order().iter().map(|pair| (pair.0.0, pair.1.0)).collect(),
            nodes: set.nodes().map_or_else(Vec::new, |nodes| {
                set.iter().map(|(id, _)| nodes.of(id).to_vec()).collect()
            }),
        };
        Self {
            topology: machine.topology().clone(),
            parameters: machine.parameters().clone(),
            dead_cells: machine.dead_cells().to_vec(),
            dead_links: machine.dead_links().to_vec(),
            sets: case.program.sets().iter().map(pieces).collect(),
            options: case.options.clone(),
        }
    }

    /// The case, if the pieces fit together.
    fn build(&self) -> Option<Case> {
        let Self { topology, parameters, dead_cells, dead_links, .. } = self.clone();
        let machine = Machine::new("random", topology, parameters, dead_cells, dead_links).ok()?;
        let set = |(row, set): (usize, &SetPieces)| {
            let order = set.order.iter().map(|&(a, b)| (ConnectionId(a), ConnectionId(b)));
            let built = ConnectionSet::new(format!("s{row}"), set.connections.clone()).ok()?;
            let mut built = built.with_order(order.collect()).ok()?;
            if !set.nodes.is_empty() {
                let lists = set.nodes.iter().zip(&set.connections);
                let lists = lists.map(|(nodes, connection)| &nodes[..index(connection.words)]);
                let lists = NodeLists::from_lists(lists);
                built = built.with_nodes(lists).ok()?;
            }
            built.check_machine(&machine).ok()?;
            Some(Arc::new(built))
        };
        let sets = self.sets.iter().enumerate().map(set).collect::<Option<_>>()?;
        let program = Program::new(sets).ok()?;
        program.check_clocks(&machine).ok()?;
        let options = self.options.clone();
        Some(Case { machine: Arc::new(machine), program, options })
    }

    /// The pieces after step number `step`; `None` if there are no more steps.
    fn smaller(&self, step: usize) -> Option<Self> {
        let mut smaller = self.clone();
        let mut rest = step;
        let mut is = |steps: usize| {
            let own = (rest < steps).then_some(rest);
            rest = rest.wrapping_sub(steps);
            own
        };
        if let Some(set) = is(self.sets.len()) {
            if self.sets.len() > 1 {
                smaller.sets.remove(set);
            }
            return Some(smaller);
        }
        for set in 0..self.sets.len() {
            let connections = self.sets[set].connections.len();
            // Stretches of connections: halves, quarters and so on, then single ones.
            let mut stretch = connections.div_ceil(2);
            while stretch > 0 {
                if let Some(at) = is(connections.div_ceil(stretch)) {
                    smaller.sets[set].remove(at * stretch, (at + 1) * stretch);
                    return Some(smaller);
                }
                stretch /= 2;
            }
            if let Some(at) = is(2 + connections) {
                let of = &mut smaller.sets[set];
                let chosen = match at {
                    0 | 1 => &mut of.connections[..],
                    one => &mut of.connections[one - 2..=one - 2],
                };
                for connection in chosen {
                    connection.words = if at == 0 { 1 } else { connection.words.div_ceil(2) };
                }
                return Some(smaller);
            }
            if let Some(what) = is(3) {
                let of = &mut smaller.sets[set];
                match what {
                    0 => of.order.clear(),
                    1 => of.nodes.clear(),
                    _ => {
                        for connection in &mut of.connections {
                            (connection.min_bandwidth, connection.max_latency) = (None, None);
                        }
                    }
                }
                return Some(smaller);
            }
        }
        smaller.simpler(&mut is).then_some(smaller)
    }

    /// A step on the machine or the options; returns whether there is such a step.
    fn simpler(&mut self, is: &mut dyn FnMut(usize) -> Option<usize>) -> bool {
        if is(1).is_some() {
            self.dead_cells.clear();
        } else if is(1).is_some() {
            self.dead_links.clear();
        } else if let Some(dimension) = is(4) {
            self.halve(dimension);
        } else if is(1).is_some() {
            self.options = self.options.clone().max_phases(None).max_plans(None);
        } else if is(1).is_some() {
            self.options = self.options.clone().max_plans(1);
        } else if is(1).is_some() {
            self.parameters = Parameters::iwarp();
        } else if is(1).is_some() {
            self.parameters.duplex = Duplex::Full;
        } else if is(1).is_some() {
            self.parameters.protocol = Protocol::Standing;
        } else if let Some(row) = is(self.parameters.numbers().len()) {
            let (name, ..) = self.parameters.numbers()[row];
            let (_, usual, ..) = Parameters::iwarp().numbers()[row];
            self.parameters.set(name, &usual.to_string()).expect("the value of a preset");
        } else {
            return false;
        }
        true
    }

    /// Halves a dimension of the machine. Connections of cells that are gone go to others.
    fn halve(&mut self, dimension: usize) {
        match &mut self.topology {
            Topology::Torus { dims } | Topology::Mesh { dims } => {
                if let Some(size) = dims.get_mut(dimension) {
                    *size = size.div_ceil(2);
                }
            }
            Topology::Ring { cells: size }
            | Topology::Hypercube { dimension: size }
            | Topology::FatTree { leaves: size, .. } => *size = (*size / 2).max(1),
            Topology::Cluster { nodes, cells_per_node } => {
                let size = if dimension == 0 { nodes } else { cells_per_node };
                *size = size.div_ceil(2);
            }
            Topology::Graph { .. } => return,
        }
        let cells = to_u32(self.topology.agents().unwrap_or(1));
        for connection in self.sets.iter_mut().flat_map(|set| &mut set.connections) {
            connection.source.0 %= cells;
            connection.target.0 %= cells;
        }
        self.dead_cells.clear();
        self.dead_links.clear();
    }
}

impl SetPieces {
    /// Removes the connections from `start` to before `end`.
    fn remove(&mut self, start: usize, end: usize) {
        let end = end.min(self.connections.len());
        let removed = to_u64(end.saturating_sub(start));
        self.connections.drain(start.min(end)..end);
        if !self.nodes.is_empty() {
            self.nodes.drain(start.min(end)..end);
        }
        let gone = |id: u32| (start..end).contains(&index(id));
        self.order.retain(|&(a, b)| !gone(a) && !gone(b));
        let shift = |id: &mut u32| {
            if index(*id) >= end {
                *id -= to_u32(removed);
            }
        };
        for (a, b) in &mut self.order {
            shift(a);
            shift(b);
        }
    }
}
